"""Short, distinct case names from file paths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ..formats import suffix_of


def case_names(paths: Sequence[Path]) -> list[str]:
    """A name per path: the file name without its ending, with as many parent folders as it takes to tell two paths apart.

    The names depend on the set of paths, not on their order. Where only the ending differs it is kept.

    Args:
        paths: the paths, each once.

    Example:
        >>> case_names([Path("a/case_1/label.nii.gz"), Path("a/case_2/label.nii.gz"), Path("a/other.nrrd")])
        ['case_1/label', 'case_2/label', 'other']
        >>> case_names([Path("a/b.nii"), Path("a/b.nrrd"), Path("c/b.nii")])
        ['b.nii', 'b.nrrd', 'b']
    """
    absolute = [path.absolute() for path in paths]
    name_of: dict[Path, str] = {}
    stems = {path: _without_ending(path) for path in absolute}
    same_stem = Counter(stems.values())
    # within one folder, parents cannot tell two files apart that differ only in their endings
    pending = {path: path.parts if same_stem[stem] > 1 else stem for path, stem in stems.items()}
    depth = 1
    while pending:
        names = {path: "/".join(parts[-depth:]) for path, parts in pending.items()}
        repeated = {name for name, count in Counter(names.values()).items() if count > 1}
        name_of |= {path: name for path, name in names.items() if name not in repeated}
        pending = {path: parts for path, parts in pending.items() if path not in name_of}
        depth += 1
    return [name_of[path] for path in absolute]


def case_name(path: Path) -> str:
    """The name of a single path."""
    return case_names([path])[0]


def _without_ending(path: Path) -> tuple[str, ...]:
    name = path.name
    ending = suffix_of(path)
    return (*path.parts[:-1], name[: len(name) - len(ending)] if ending and len(ending) < len(name) else name)
