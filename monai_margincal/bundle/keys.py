"""Which top-level keys of a configuration do something, by its text alone.

No list of allowed keys is needed: a key does something if another part of the configuration refers to it (``@key``, ``%key``),
or if MONAI itself looks it up.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

#: looked up by `monai.bundle.run` and its clients, whatever refers to them
_ENTRIES = {"initialize", "run", "finalize", "imports", "_meta_", "displayable_configs"}

#: names of experiment tracking; monai.fl sets them whether or not anything is tracked
_TRACKING = {"run_name", "experiment_name", "tracking_uri", "save_execute_config"}

_REFERENCE = re.compile(r"[@%](\w+)")
_IMPORT = re.compile(r"\$\s*(import|from)\s")


def unused_keys(config: Mapping[str, Any], entries: Iterable[str] = ()) -> list[str]:
    """Name the top-level keys of a bundle's configuration that have no effect.

    A key has an effect if an item outside of it refers to it, if it is one of MONAI's bundle properties or entry points
    (``initialize``, ``run``, ``finalize``, ``train``, ``validate``, ``dataset_dir``, ...), if it is an import, if it is a list
    of expressions (which ``--run_id`` can name), or if it is a component that itself refers to others: evaluation leaves parts
    of a training configuration aside, whereas a flag is a value.

    Args:
        config: the configuration with the overrides in it, as text (not instantiated); nested dictionaries and lists.
        entries: further keys that something looks up by name.

    Returns:
        the keys, in the order of the configuration.

    Example:
        >>> unused_keys({"epochs": 3, "epochz": 4, "train": {"trainer": {"max_epochs": "@epochs"}}})
        ['epochz']
    """
    known = _ENTRIES | _TRACKING | set(entries) | _property_keys()
    referred = {key: set(references(value)) for key, value in config.items()}
    return [
        key
        for key, value in config.items()
        if key not in known
        and not any(key in names for other, names in referred.items() if other != key)
        and not _is_entry(value)
    ]


def describe_unknown(unknown: Iterable[str], config: Mapping[str, Any]) -> str:
    """One line about keys without effect, with the keys that they may have been meant to be."""
    listed = list(unknown)
    others = [key for key in config if key not in listed]
    shown = []
    for key in listed:
        close = difflib.get_close_matches(key, others, n=1)
        shown.append(repr(key) + (f" (did you mean {close[0]!r}?)" if close else ""))
    noun = "key" if len(listed) == 1 else "keys"
    return f"unknown {noun} {', '.join(shown)}: nothing in the configuration refers to {'it' if len(listed) == 1 else 'them'}"


def _property_keys() -> set[str]:
    """First parts of the IDs of MONAI's bundle properties."""
    from monai.bundle.properties import InferProperties, MetaProperties, TrainProperties
    from monai.utils import BundlePropertyConfig

    ids = [
        item[BundlePropertyConfig.ID]
        for table in (TrainProperties, InferProperties, MetaProperties)
        for item in table.values()
    ]
    return {re.split(r"::|#", str(name))[0] for name in ids}


def references(value: Any) -> Iterable[str]:
    """The top-level keys that an item's text refers to."""
    if isinstance(value, str):
        yield from _REFERENCE.findall(value)
    elif isinstance(value, Mapping):
        for child in value.values():
            yield from references(child)
    elif isinstance(value, list | tuple):
        for child in value:
            yield from references(child)


def _is_entry(value: Any) -> bool:
    """An import, a list of expressions, or a component made of other items."""
    if isinstance(value, str):
        return _IMPORT.match(value) is not None
    if isinstance(value, Mapping):
        return any(True for _ in references(value))
    return isinstance(value, list) and bool(value) and all(isinstance(v, str) and v.startswith("$") for v in value)
