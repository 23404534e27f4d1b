"""Components of a configuration: whether their classes can be imported and take the arguments given there."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pydoc import locate
from typing import Any

from ...errors import root_message
from ...findings import Finding
from ...hints import did_you_mean
from .configs import switched_off


def check_components(parser: Any, place: str) -> list[Finding]:
    """Look up every ``_target_`` and compare the other keys of its component with its signature; nothing is called.

    A misspelt argument in a file or a flag (``--inferer#roi_sizee``) is otherwise found only when the component is made, which
    for a component of validation is after the first epoch. Components that are switched off are left out.

    Args:
        parser: `monai.bundle.ConfigParser` of the configuration.
        place: the configuration's file, for the findings.

    Example:
        >>> from monai.bundle import ConfigParser
        >>> parser = ConfigParser({"net": {"_target_": "BasicUNet", "spatial_dim": 2}})
        >>> print(check_components(parser, "train.json")[0])
        error: train.json: found net: BasicUNet with the argument 'spatial_dim' (did you mean 'spatial_dims'?), expected ...
    """
    parser.parse(True)
    found = []
    for id, config in _components(parser[""], ""):
        if config["_target_"].startswith(("$", "@", "%")):
            continue
        try:
            if not switched_off(parser, id):
                found += _check(config, id, parser.locator, place)
        except Exception as error:  # an expression or the import of a module may fail in any way
            message = f"{id.replace('::', '#')}: {root_message(error)}"
            found.append(Finding.in_file("error", place, message, "a component that can be made"))
    return found


def _components(config: Any, id: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Id and text of everything that has a ``_target_``."""
    children: Iterator[tuple[Any, Any]] = iter(())
    if isinstance(config, dict):
        if isinstance(config.get("_target_"), str):
            yield id, config
        children = iter(config.items())
    elif isinstance(config, list):
        children = iter(enumerate(config))
    for key, child in children:
        # the metadata and what clients display are not components
        if id or key not in ("_meta_", "displayable_configs"):
            yield from _components(child, f"{id}::{key}" if id else str(key))


def _check(config: dict[str, Any], id: str, locator: Any, place: str) -> list[Finding]:
    from monai.bundle.config_item import ConfigComponent

    name, shown = config["_target_"], id.replace("::", "#")
    target = locate(ConfigComponent(config, id, locator).resolve_module_name())
    if not callable(target):
        return [Finding.in_file("error", place, f"{shown}: no {name}", "a class or function that can be imported")]
    try:
        parameters = inspect.signature(target).parameters
    except (TypeError, ValueError):  # written in C, without a signature
        return []
    taken = {key: value for key, value in parameters.items() if value.kind is not value.VAR_POSITIONAL}
    written = [key for key in config if not key.startswith("_")]
    found = []
    if not any(value.kind is value.VAR_KEYWORD for value in parameters.values()):
        for key in written:
            if key not in taken:
                message = f"{shown}: {name} with the argument {key!r}{did_you_mean(key, taken)}"
                found.append(Finding.in_file("error", place, message, f"one of {list(taken)}"))
    missing = [
        key
        for key, value in taken.items()
        if value.default is value.empty and value.kind is not value.VAR_KEYWORD and key not in written
    ]
    # with `callable` the other arguments of a function come later, with `_args_` they come without names
    if missing and config.get("_mode_", "default") == "default" and "_args_" not in config:
        found.append(
            Finding.in_file("error", place, f"{shown}: {name} without the argument(s) {missing}", "a value for each")
        )
    return found
