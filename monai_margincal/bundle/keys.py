"""Which keys of a configuration have an effect, judged by its text alone.

No list of allowed keys is needed: a key has an effect if another part of the configuration refers to it (``@key``, ``%key``) or
if MONAI itself looks it up.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

#: looked up by `monai.bundle.run` and its clients, whatever refers to them
_ENTRIES = {"initialize", "run", "finalize", "imports", "_meta_", "displayable_configs"}

#: names used for experiment tracking; monai.fl sets them whether or not anything is tracked
_TRACKING = {"run_name", "experiment_name", "tracking_uri", "save_execute_config"}

_REFERENCE = re.compile(r"[@%](\w+)")
#: the whole id that a reference names, with either separator
_REFERRED_ID = re.compile(r"[@%](\w+(?:(?:#|::)\w+)*)")
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


def unused_in_groups(config: Mapping[str, Any], entries: Iterable[str] = ()) -> list[str]:
    """Name the keys in groups, such as ``train``, that have no effect. A group is a dictionary without a ``_target_``.

    A key of a group has an effect if something refers to it or if it is one of MONAI's bundle properties.

    Args:
        config: as for `unused_keys`.
        entries: further ids, with ``#``, or whole groups that something looks up by name.

    Example:
        >>> unused_in_groups({"train": {"handlers": ["@train#every"], "every": 1, "evrey": 2}})
        ['train#evrey']
    """
    referred = {id.replace("::", "#") for id in referred_ids(config)}
    referred |= set(entries)
    known = referred | {id.replace("::", "#") for id in _property_ids()}
    # a reference to a whole group uses everything in it
    groups = {
        group: content
        for group, content in config.items()
        if isinstance(content, Mapping) and "_target_" not in content and group not in _ENTRIES | referred
    }
    ids = [f"{group}#{key}" for group, content in groups.items() for key in content]
    return [id for id in ids if not any(f"{other}#".startswith(f"{id}#") for other in known)]


def describe_unknown(
    unknown: Iterable[str], config: Mapping[str, Any], takers: Mapping[str, Sequence[str]] | None = None
) -> str:
    """One line about keys without effect, with the key, at any level, that each may have been meant for.

    Args:
        unknown: the keys.
        config: the configuration.
        takers: key -> other commands of the bundle that take it.

    Example:
        >>> describe_unknown(["tau"], {"loss": {"tau": 1.0}, "tau": 2.0})
        "unknown key 'tau' (did you mean 'loss#tau'?): nothing in the configuration refers to it"
        >>> describe_unknown(["epochs"], {"cases": None}, {"epochs": ["training"]})
        "unknown key 'epochs' (it belongs to training): nothing in the configuration refers to it"
    """
    listed = list(unknown)
    meant: dict[str, str] = {}
    for id in sorted(set(_ids(config)) - set(listed), key=lambda id: (id.count("#"), id)):
        last = id.rsplit("#", 1)[-1]
        if not last.isdecimal() and not last.startswith("_"):
            meant.setdefault(last, id)
    shown = []
    for key in listed:
        close = [meant[word] for word in difflib.get_close_matches(key.rsplit("#", 1)[-1], meant, n=1)]
        others = (takers or {}).get(key, ())
        hints = [f"it belongs to {' and '.join(others)}"] * bool(others) + [f"did you mean {name!r}?" for name in close]
        shown.append(f"{key!r} ({'; '.join(hints)})" if hints else repr(key))
    noun = "key" if len(listed) == 1 else "keys"
    return f"unknown {noun} {', '.join(shown)}: nothing in the configuration refers to {'it' if len(listed) == 1 else 'them'}"


def _property_keys() -> set[str]:
    """First parts of the IDs of MONAI's bundle properties."""
    return {re.split(r"::|#", id)[0] for id in _property_ids()}


def _property_ids() -> set[str]:
    """The IDs of MONAI's bundle properties."""
    from monai.bundle.properties import InferProperties, MetaProperties, TrainProperties
    from monai.utils import BundlePropertyConfig

    tables = (TrainProperties, InferProperties, MetaProperties)
    return {str(item[BundlePropertyConfig.ID]) for table in tables for item in table.values()}


def references(value: Any) -> Iterable[str]:
    """The top-level keys that an item's text refers to."""
    for text in _texts(value):
        yield from _REFERENCE.findall(text)


def referred_ids(value: Any) -> Iterable[str]:
    """The ids that an item's text refers to."""
    for text in _texts(value):
        yield from _REFERRED_ID.findall(text)


def _texts(value: Any) -> Iterable[str]:
    """Every text in an item."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for child in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(child)


def _ids(value: Any, above: str = "") -> Iterable[str]:
    """The id of every item, with ``#``; metadata left aside."""
    children = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        if key != "_meta_":
            yield f"{above}{key}"
            yield from _ids(child, f"{above}{key}#")


def _is_entry(value: Any) -> bool:
    """An import, a list of expressions, or a component made of other items."""
    if isinstance(value, str):
        return _IMPORT.match(value) is not None
    if isinstance(value, Mapping):
        return any(True for _ in references(value))
    return isinstance(value, list) and bool(value) and all(isinstance(v, str) and v.startswith("$") for v in value)
