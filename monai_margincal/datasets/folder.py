"""A folder of images, with or without labels, as a MONAI data list: paired by case name, never by sorted position."""

from __future__ import annotations

import glob
import os
import re
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ..errors import some_of
from ..formats import IMAGE_SUFFIXES
from .groups import assign_groups

_CASE = "{case}"
_GROUP = "{group}"
_ANY_ENDING = ".*"
_PLACEHOLDER = re.compile(f"({re.escape(_CASE)}|{re.escape(_GROUP)})")
#: a group is as long as it can be, as in a pattern of case names
_STANDS_FOR = {_CASE: "(?P<case>[^/]+?)", _GROUP: "(?P<group>[^/]+)"}


def folder_datalist(
    root: str | os.PathLike[str],
    image: str = "images/{case}.*",
    label: str | None = "labels/{case}.*",
    cases: Sequence[str | int] | str | int | None = None,
    groups: str | os.PathLike[str] | Mapping[str, str | int] | None = None,
    group_column: str | None = None,
    group_pattern: str | None = None,
    skip_unpaired: bool = False,
) -> list[dict[str, str]]:
    """List the images of a folder, each with the label of the same case name.

    A template says where a file lies: it is a path relative to ``root`` that contains ``{case}`` once. The ending ``.*``
    stands for that of any image format (``monai_margincal.formats.IMAGE_SUFFIXES``), in any letter case. A template without a
    known ending, such as ``"scans/{case}"`` or ``"{case}/CT 1.2.840"``, stands for folders, one DICOM series each. Names that
    begin with a dot are skipped. The case name is whatever ``{case}`` stands for; it may contain dots but no ``/``.

    A template may contain ``{group}`` once as well, for the patient or whatever else the cases of a group share:
    ``"{group}/{case}/ct.nii.gz"``, ``"{group}_scan{case}.nii.gz"``. Case names are then ``GROUP/CASE``, since the scans of two
    patients may have the same names.

    Args:
        root: the data set's folder.
        image: template of the images.
        label: template of the labels, or None for images without labels.
        cases: a name or names: list only these cases, in this order; files of other cases are then not looked at.
            By default all, sorted by name.
        groups: which cases belong together, such as the scans of a patient: a CSV file or case name -> group, see
            `monai_margincal.datasets.assign_groups`.
        group_column: the column of the groups in that file.
        group_pattern: instead, what case names look like: ``"{group}_*"``.
        skip_unpaired: leave out images without a label and labels without an image, with a warning that names them all, instead
            of refusing the folder.

    Returns:
        one ``{"image": path, "label": path, "case": name}`` per case (no ``"label"`` if ``label`` is None), with absolute paths,
        and with a ``"group"`` where groups are asked for or the templates have one.

    Raises:
        TypeError: ``root`` is not a path or a template is not a string.
        FileNotFoundError: ``root`` is not a folder, no file fits a template, or a case of ``cases`` has no image or no label.
        ValueError: a template is not relative or does not hold ``{case}`` exactly once, only one template has ``{group}``, an
            image has no label, a label has no image, two files belong to one case, ``cases`` is empty or names a case twice, or
            a case has no group. With ``skip_unpaired``: no image has a label.

    Example:
        >>> from monai_margincal.datasets import folder_datalist
        >>> from monai_margincal.samples import sample_dir
        >>> [item["case"] for item in folder_datalist(sample_dir("lung_ct"))]
        ['lung1', 'lung2']
        >>> sorted(folder_datalist(sample_dir("lung_ct"), label=None, cases=["lung2"])[0])
        ['case', 'image']
    """
    if not isinstance(root, str | os.PathLike):
        raise TypeError(f"data set folder: found {root!r}, expected a path")
    folder = Path(root).expanduser().absolute()
    if not folder.is_dir():
        raise FileNotFoundError(f"data set folder not found: {folder}")
    templates = {"image": image} if label is None else {"image": image, "label": label}
    wanted = None if cases is None else _case_names(cases)
    with_group = [key for key, template in templates.items() if isinstance(template, str) and _GROUP in template]
    if with_group and len(with_group) < len(templates):
        raise ValueError(
            f"the patterns {list(templates.values())}: found {_GROUP} in one of them, expected it in both or none"
        )

    found: dict[str, dict[str, str]] = {}
    for key, template in templates.items():
        found[key] = _matches(folder, template, key, wanted)
    if wanted is None:
        alone = _unpaired(folder, templates, found)
        wanted = sorted(set.intersection(*(set(paths) for paths in found.values())))
        if alone and not (skip_unpaired and wanted):
            raise ValueError(
                f"images and labels in {folder} do not pair up: {_complaints(templates, alone, at_most=10)}"
            )
        if alone:
            warnings.warn(f"left out of {folder}: {_complaints(templates, alone, at_most=sys.maxsize)}", stacklevel=2)
    else:
        for key, template in templates.items():
            missing = [case for case in wanted if case not in found[key]]
            if missing:
                raise FileNotFoundError(
                    f"no {key} for the cases {_shown(missing)}: nothing in {folder} fits the pattern {template!r} for them"
                )
    data = [{**{key: found[key][case] for key in templates}, "case": case} for case in wanted]
    if with_group:
        data = [{**item, "group": item["case"].rpartition("/")[0]} for item in data]
    return assign_groups(data, groups, group_column, group_pattern)


def _case_names(cases: Sequence[str | int] | str | int) -> list[str]:
    """Case names as strings: in a configuration a name such as 7 may be a number."""
    names = [str(case) for case in ([cases] if isinstance(cases, str | int) else cases)]
    if not names:
        raise ValueError("`cases` is an empty list; expected case names, or None for all cases")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"`cases` names these cases more than once: {_shown(twice)}")
    return names


def _matches(folder: Path, template: str, key: str, wanted: list[str] | None) -> dict[str, str]:
    """Map case name to path for everything in ``folder`` that fits ``template``."""
    if not isinstance(template, str):
        raise TypeError(f"the {key} pattern: found {template!r}, expected a text that holds {_CASE} exactly once")
    template = template.removeprefix("./")
    if template.count(_CASE) != 1 or Path(template).is_absolute() or template.count(_GROUP) > 1:
        at_most = f" and {_GROUP} at most once" if _GROUP in template else ""
        raise ValueError(
            f"the {key} pattern must be a relative path that holds {_CASE} exactly once{at_most}, found {template!r}"
        )
    any_ending = template.endswith(_ANY_ENDING)
    stem = template[: -len(_ANY_ENDING)] if any_ending else template
    parts = _PLACEHOLDER.split(stem)
    ending = f"(?i:{'|'.join(map(re.escape, IMAGE_SUFFIXES))})" if any_ending else ""
    fits = re.compile("".join(_STANDS_FOR.get(part, re.escape(part)) for part in parts) + ending)
    shape = "".join("*" if part in _STANDS_FOR else glob.escape(part) for part in parts)
    last = parts[-1].rsplit("/", 1)[-1]
    # Without an ending nothing tells an image from any other file, so only folders count. A dot may stand in the name of a
    # folder (DICOM's numbers) or before an ending that is not known here.
    folders = not any_ending and not last.lower().endswith(IMAGE_SUFFIXES)
    single_files = any_ending or "." in last

    paths: dict[str, list[str]] = {}
    for path in folder.glob(shape + (_ANY_ENDING if any_ending else "")):
        match = fits.fullmatch(path.relative_to(folder).as_posix())
        if match is None or not (folders if path.is_dir() else single_files):
            continue
        named = [match[name] for name in ("group", "case") if name in fits.groupindex]
        if not any(name.startswith(".") for name in named):
            paths.setdefault("/".join(named), []).append(str(path))
    if not paths:
        raise FileNotFoundError(f"no {key} found: nothing in {folder} fits the pattern {template!r}")
    double = [
        case for case, several in sorted(paths.items()) if len(several) > 1 and (wanted is None or case in wanted)
    ]
    if double:
        files = "; ".join(
            _shown(sorted(Path(path).relative_to(folder).as_posix() for path in paths[case])) for case in double
        )
        raise ValueError(f"more than one {key} in {folder} fits the pattern {template!r} for a case: {files}")
    return {case: several[0] for case, several in paths.items()}


def _unpaired(folder: Path, templates: dict[str, str], found: dict[str, dict[str, str]]) -> dict[str, list[str]]:
    """Images without labels and labels without images: one missing file must not shift or drop a case unseen."""
    if "label" not in templates:
        return {}
    alone = {
        key: [
            Path(found[key][case]).relative_to(folder).as_posix()
            for case in sorted(set(found[key]) - set(found[other]))
        ]
        for key, other in (("image", "label"), ("label", "image"))
    }
    return {key: names for key, names in alone.items() if names}


def _complaints(templates: dict[str, str], alone: dict[str, list[str]], at_most: int) -> str:
    other = {"image": "label", "label": "image"}
    return "; ".join(
        f"no {other[key]} of the pattern {templates[other[key]]!r} for the {key}s {some_of(names, at_most)}"
        for key, names in alone.items()
    )


def _shown(names: Iterable[str]) -> str:
    return some_of(names, at_most=10)
