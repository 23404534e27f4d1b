"""The properties that MONAI and its clients look up: there, under MONAI's id, and with a value that they can use."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ...errors import root_message
from .finding import Finding


def check_properties(kind: str, files: list[Path], given: Mapping[str, Any], place: str) -> list[Finding]:
    """Check a workflow's properties; ``initialize`` is not run and no component is made.

    An error is a required property that is missing, null or empty, one that cannot be what it is for (``dataset_dir`` a number,
    ``max_epochs`` a text, a component that is neither a component nor an expression, or switched off), and any property under
    another id than MONAI's.

    Args:
        kind: ``"train"`` or ``"infer"``.
        files: config files, later ones take precedence.
        given: ``id`` -> value, as on the command line.
        place: the files' name, for the findings.
    """
    from monai.bundle import ConfigWorkflow

    workflow = ConfigWorkflow(
        workflow_type=kind,
        config_file=[str(path) for path in files],
        meta_file=str(files[0].parent / "metadata.json"),
        logging_file=False,
        bundle_root=str(files[0].parents[1]),
    )
    workflow.parser.update(dict(given))
    # one spelling of ids, `::` for `#`; nothing is instantiated
    workflow.parser.parse(True)
    found = []
    for name, table in workflow.properties.items():
        id, required = str(table["id"]), table.get("required", False)
        if required and id not in workflow.parser:
            found.append(Finding("error", place, f"no {id}", f"the property {name!r} that every {kind} workflow has"))
        elif required and not id.startswith("_meta_"):
            found += _value(workflow.parser, id, name, place)
        elif not required and not workflow._check_optional_id(name=name, property=table):
            message = f"the property {name!r} under another id than {id}"
            found.append(Finding("error", place, message, "MONAI's id, which clients look up"))
    return found


def _value(parser: Any, id: str, name: str, place: str) -> list[Finding]:
    """Whether a required property has a value that it can have."""
    text = parser[id]
    if text is None or (isinstance(text, str | list | dict) and not text):
        shown = "null" if text is None else repr(text)
        return [Finding("error", place, f"{id} {shown}", f"a value for the property {name!r}, which is required")]
    if name not in _READABLE:
        return _component(parser, text, id, place)
    expected, is_good = _READABLE[name]
    try:
        value = parser.get_parsed_content(id)
        good = is_good(value)
    except Exception as error:  # an expression may fail in any way
        return [Finding("error", place, f"{id}: {root_message(error)}", expected)]
    return [] if good else [Finding("error", place, f"{id} {value!r}", expected)]


def _component(parser: Any, text: Any, id: str, place: str) -> list[Finding]:
    expected = "a component with _target_, a reference or an expression"
    if isinstance(text, str) and text.startswith(("$", "@")):
        return []
    if not isinstance(text, dict) or "_target_" not in text:
        shown = f"a dictionary without _target_, {sorted(text)}" if isinstance(text, dict) else repr(text)
        return [Finding("error", place, f"{id} {shown}", expected)]
    if switched_off(parser, id):
        return [Finding("error", place, f"{id} switched off by _disabled_", expected)]
    return []


def switched_off(parser: Any, id: str) -> bool:
    """Whether the component at an id has a ``_disabled_`` that MONAI takes for true."""
    key = f"{id}::_disabled_"
    value = parser.get_parsed_content(key) if key in parser else False
    return value.strip().lower() == "true" if isinstance(value, str) else bool(value)


def _is_device(value: Any) -> bool:
    import torch

    try:
        torch.device(value)
    except (RuntimeError, TypeError):
        return False
    return not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_path(value: Any) -> bool:
    return isinstance(value, str | os.PathLike) and bool(os.fspath(value))


#: properties that are plain values: what they must be
_READABLE: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "bundle_root": ("the path of a folder", _is_path),
    "dataset_dir": ("the path of a folder", _is_path),
    "device": ("a device, such as 'cpu' or 'cuda:0'", _is_device),
    "max_epochs": ("a whole number of epochs, 1 or more", _is_count),
}
