"""Switches of a bundle: MONAI's command line makes `--amp false` the text "false", which is true for Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .texts import CASES, kind_of

_MEANT = {"true": True, "false": False}


def switches(**values: bool | str) -> dict[str, bool]:
    """Read switches as they come from a configuration or from the command line.

    Args:
        values: name -> True, False, or "true" or "false" in any letter case.

    Returns:
        name -> what is meant.

    Raises:
        ValueError: a value is anything else; the message names the switch.

    Example:
        >>> switches(amp="false", compile=True)
        {'amp': False, 'compile': True}
        >>> switches(amp="maybe")
        Traceback (most recent call last):
        ValueError: amp: found 'maybe', expected true or false
    """
    meant = {}
    for name, value in values.items():
        text = str(value).lower() if isinstance(value, bool | str) else ""
        if text not in _MEANT:
            raise ValueError(f"{name}: found {value!r}, expected true or false")
        meant[name] = _MEANT[text]
    return meant


def refuse_texts(config: Mapping[str, Any]) -> None:
    """Raise where a component would be handed "true" or "false" as text, which `--loss#include_background false` makes of it.

    Top-level keys are left alone, since they are read by `switches`, and so are names and paths, which may be called so, and
    ``_disabled_``, which MONAI reads itself.

    Args:
        config: the configuration as text.

    Raises:
        ValueError: a nested item is such a text; the message names its id.

    Example:
        >>> refuse_texts({"amp": "false", "loss": {"batch": "true"}})
        Traceback (most recent call last):
        ValueError: loss#batch: found the text 'true', expected True or False
    """
    for key, value in config.items():
        if key != "_meta_" and key not in CASES:
            _refuse_in(value, key)


def _refuse_in(value: Any, id: str) -> None:
    children = (
        value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list | tuple) else ()
    )
    for key, child in children:
        if isinstance(child, str) and child.strip().lower() in _MEANT and key != "_disabled_" and not kind_of(str(key)):
            raise ValueError(f"{id}#{key}: found the text {child!r}, expected True or False")
        _refuse_in(child, f"{id}#{key}")
