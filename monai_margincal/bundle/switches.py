"""Switches of a bundle: MONAI's command line makes `--amp false` the text "false", which is true for Python."""

from __future__ import annotations

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
