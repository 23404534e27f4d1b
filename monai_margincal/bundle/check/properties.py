"""The properties that MONAI and its clients look up: present, under MONAI's id, and with a value that can be used."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
from monai.bundle import ConfigWorkflow

from ...errors import root_message
from ...findings import Finding
from .configs import Workflow, config_file, switched_off


def check_properties(workflow: Workflow) -> list[Finding]:
    """Check a workflow's properties; ``initialize`` is not run and no component is made.

    An error is a required property that is missing, null or empty, one that cannot be what it is for (``dataset_dir`` a number,
    ``max_epochs`` a text, a component that is neither a component nor an expression, or switched off), and any property under
    an id other than MONAI's.

    Args:
        workflow: the configuration, with overrides.
    """
    monais = ConfigWorkflow(
        workflow_type=workflow.kind,
        config_file=[str(path) for path in workflow.files],
        meta_file=str(config_file(workflow.root, "metadata")),
        logging_file=False,
        bundle_root=str(workflow.root),
    )
    monais.parser.update(dict(workflow.overrides))
    # one spelling of ids, `::` for `#`; nothing is instantiated
    monais.parser.parse(True)
    found, place = [], workflow.place
    for name, table in monais.properties.items():
        id, required = str(table["id"]), table.get("required", False)
        if required and id not in monais.parser:
            expected = f"the property {name!r} that every {workflow.kind} workflow has"
            found.append(Finding.in_file("error", place, f"no {id}", expected))
        elif required and not id.startswith("_meta_"):
            found += _value(monais.parser, id, name, place)
        elif not required and not monais._check_optional_id(name=name, property=table):
            message = f"the property {name!r} under another id than {id}"
            found.append(Finding.in_file("error", place, message, "MONAI's id, which clients look up"))
    return found


def _value(parser: Any, id: str, name: str, place: str) -> list[Finding]:
    """Whether a required property has a value that makes sense for it."""
    text = parser[id]
    if text is None or (isinstance(text, str | list | dict) and not text):
        shown = "null" if text is None else repr(text)
        return [
            Finding.in_file("error", place, f"{id} {shown}", f"a value for the property {name!r}, which is required")
        ]
    if name not in _READABLE:
        return _component(parser, text, id, place)
    expected, is_good = _READABLE[name]
    try:
        value = parser.get_parsed_content(id)
        good = is_good(value)
    except Exception as error:  # an expression may fail in any way
        return [Finding.in_file("error", place, f"{id}: {root_message(error)}", expected)]
    return [] if good else [Finding.in_file("error", place, f"{id} {value!r}", expected)]


def _component(parser: Any, text: Any, id: str, place: str) -> list[Finding]:
    expected = "a component with _target_, a reference or an expression"
    if isinstance(text, str) and text.startswith(("$", "@")):
        return []
    if not isinstance(text, dict) or "_target_" not in text:
        shown = f"a dictionary without _target_, {sorted(text)}" if isinstance(text, dict) else repr(text)
        return [Finding.in_file("error", place, f"{id} {shown}", expected)]
    if switched_off(parser, id):
        return [Finding.in_file("error", place, f"{id} switched off by _disabled_", expected)]
    return []


def _is_device(value: Any) -> bool:
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
