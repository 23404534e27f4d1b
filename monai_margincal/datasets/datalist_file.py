"""A MONAI data list in a JSON file, as `margincal datalist` writes it: sections of cases, paths relative to the file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..json_files import read_json
from .groups import require_separate_groups


def read_datalist(
    path: str | os.PathLike[str],
    sections: Sequence[str] = ("training", "validation"),
    keys: Sequence[str] = ("image", "label"),
    optional_keys: Sequence[str] = (),
    plain_list: bool = False,
) -> dict[str, list[dict[str, Any]]]:
    """Read sections of a data list; paths that are not absolute are taken from the list's folder.

    Args:
        path: the JSON file, ``{"training": [{"image": ..., "label": ...}, ...], "validation": [...], ...}``.
        sections: the sections that are wanted; each must hold a case.
        keys: what every case must have, each the path of a file or folder that exists, or a list of such paths.
        optional_keys: what a case may have; also paths, but they are not checked for existence.
        plain_list: take a file that holds nothing but a list of cases for every section.

    Returns:
        section -> cases, in the file's order, with absolute paths under ``keys`` and ``optional_keys``.

    Raises:
        FileNotFoundError: the list, or a file that it names, does not exist.
        ValueError: the file is not JSON of that form, a section is missing or empty, a case lacks a key, or an image stands in
            two sections (the first key tells).

    Example:
        >>> import json, tempfile
        >>> from monai_margincal.samples import sample_dir
        >>> case = {"image": f"{sample_dir('lung_ct')}/images/lung1.nii.gz"}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "list.json")
        ...     _ = file.write_text(json.dumps({"test": [case]}))
        ...     len(read_datalist(file, sections=["test"], keys=["image"])["test"])
        1
    """
    file = Path(path).expanduser()
    content = read_json(file, "a data list in JSON")
    if plain_list and isinstance(content, list):
        content = dict.fromkeys(sections, content)
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
            folds = any(isinstance(case, dict) and "fold" in case for name in filled for case in content[name])
            hint = "; its cases have folds, of which `fold` names one for validation" if folds else ""
            raise ValueError(
                f"{file}: found no case in section {section!r} (sections with cases: {filled}), expected at least one{hint}"
            )
        if not isinstance(content[section], list):
            raise ValueError(
                f"{file}: found a {type(content[section]).__name__} as section {section!r}, expected a list of cases"
            )
        found[section] = []
        for case in content[section]:
            if not isinstance(case, dict) or not all(_is_path(case.get(key)) for key in keys):
                raise ValueError(
                    f"{file}: found the entry {case!r} in {section!r}, expected a mapping with paths for {list(keys)}"
                )
            paths = {key: _absolute(case[key], base) for key in (*keys, *optional_keys) if _is_path(case.get(key))}
            for key in keys:
                for path in _each(paths[key]):
                    if not Path(path).exists():
                        raise FileNotFoundError(f"{file}: the {key} {path} in {section!r} does not exist")
            found[section].append({**case, **paths})
            for path in _each(paths[keys[0]]):
                if section_of.setdefault(path, section) != section:
                    raise ValueError(
                        f"{file}: found {path} in {section_of[path]!r} and in {section!r}, expected it in one of them"
                    )
    if len(found) > 1:
        # a group that is split between training and test is as wrong for who only trains
        sections_of_cases = {
            section: [case for case in cases if isinstance(case, dict)]
            for section, cases in content.items()
            if isinstance(cases, list)
        }
        require_separate_groups(sections_of_cases, str(file))
    return found


def _is_path(value: Any) -> bool:
    return isinstance(value, str) or (
        isinstance(value, list) and bool(value) and all(isinstance(part, str) for part in value)
    )


def _absolute(value: str | list[str], base: Path) -> str | list[str]:
    return str(base / value) if isinstance(value, str) else [str(base / part) for part in value]


def _each(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
