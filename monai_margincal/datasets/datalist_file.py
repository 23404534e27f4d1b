"""A MONAI data list in a JSON file, as `margincal datalist` writes it: sections of cases, paths relative to the file."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def read_datalist(
    path: str | os.PathLike[str],
    sections: Sequence[str] = ("training", "validation"),
    keys: Sequence[str] = ("image", "label"),
) -> dict[str, list[dict[str, Any]]]:
    """Read sections of a data list; paths that are not absolute are taken from the list's folder.

    Args:
        path: the JSON file, ``{"training": [{"image": ..., "label": ...}, ...], "validation": [...], ...}``.
        sections: the sections that are wanted; each must hold a case.
        keys: what every case must have, each the path of a file or folder that exists.

    Returns:
        section -> cases, in the file's order, with absolute paths under `keys`.

    Raises:
        FileNotFoundError: the list, or a file that it names, does not exist.
        ValueError: the file is no JSON of that form, a section is missing or empty, a case lacks a key, or an image stands in
            two sections.

    Example:
        >>> import tempfile
        >>> from monai_margincal.samples import sample_dir
        >>> case = {"image": f"{sample_dir('lung_ct')}/images/lung1.nii.gz"}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "list.json")
        ...     _ = file.write_text(json.dumps({"test": [case]}))
        ...     len(read_datalist(file, sections=["test"], keys=["image"])["test"])
        1
    """
    file = Path(path).expanduser()
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"{file}: no such file, expected a data list in JSON") from None
    except ValueError as error:
        raise ValueError(f"{file}: found {error}, expected a data list in JSON") from error
    if not isinstance(content, dict):
        raise ValueError(
            f"{file}: found a {type(content).__name__}, expected an object with the sections {list(sections)}"
        )
    base = file.absolute().parent
    found: dict[str, list[dict[str, Any]]] = {}
    section_of: dict[str, str] = {}
    for section in sections:
        if not content.get(section):
            filled = sorted(name for name, cases in content.items() if cases and isinstance(cases, list))
            raise ValueError(
                f"{file}: found no case in section {section!r} (sections with cases: {filled}), expected at least one"
            )
        found[section] = [_case(case, keys, base, file, section) for case in content[section]]
        for case in found[section]:
            image = case[keys[0]]
            if section_of.setdefault(image, section) != section:
                raise ValueError(
                    f"{file}: found {image} in {section_of[image]!r} and in {section!r}, expected it in one of them"
                )
    return found


def _case(case: Any, keys: Sequence[str], base: Path, file: Path, section: str) -> dict[str, Any]:
    missing = [key for key in keys if key not in case] if isinstance(case, dict) else list(keys)
    if missing:
        raise ValueError(f"{file}: found the entry {case!r} in {section!r}, expected a mapping with {list(keys)}")
    paths = {key: base / case[key] for key in keys}
    for key, path in paths.items():
        if not path.exists():
            raise FileNotFoundError(f"{file}: the {key} {path} in {section!r} does not exist")
    return {**case, **{key: str(path) for key, path in paths.items()}}
