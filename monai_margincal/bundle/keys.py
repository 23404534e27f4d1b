"""Top-level keys that nothing refers to: what a misspelt flag of ``python -m monai.bundle run`` becomes.

MONAI adds an unknown top-level key to the configuration and goes on. No list of allowed keys is needed to notice it: a key
does something if another part of the configuration refers to it (``@key``, ``%key``), or if MONAI itself looks it up.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import FrameType
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


def refuse_unknown_keys(entries: Iterable[str] = ()) -> None:
    """Raise if a flag set a top-level key that does nothing; meant for a bundle's ``initialize``.

    ``"initialize": [{"_target_": "monai_margincal.bundle.refuse_unknown_keys"}, ...]`` makes
    ``python -m monai.bundle run --config_file configs/train.json --epochz 3`` an error instead of a run with the default. A key
    of the bundle's own files is never refused: it loses its effect when somebody replaces the component that used it. A key of
    another file of the bundle is, as ``--cases`` of the inference in a training.

    Args:
        entries: keys to accept although nothing refers to them. MONAI replaces macros (``%key``) before anything is
            instantiated, so a top-level key that is used by macros only must be named here.

    Raises:
        ValueError: a top-level key has no effect; the message names it and the key that it resembles.
        RuntimeError: not called by MONAI's config parser.

    Example:
        >>> from monai.bundle import ConfigParser
        >>> parser = ConfigParser({
        ...     "epochs": 3, "epochz": 4, "run": ["$print(@epochs)"],
        ...     "initialize": [{"_target_": "monai_margincal.bundle.refuse_unknown_keys"}]})
        >>> try:
        ...     parser.get_parsed_content("initialize::0")
        ... except RuntimeError as error:
        ...     print(error.__cause__)
        unknown key 'epochz' (did you mean 'epochs'?): nothing in the configuration refers to it
    """
    config, folder = _config_being_resolved(sys._getframe(1))
    unknown = unused_keys(config, {*entries, *_declared(config, folder)})
    if unknown:
        raise ValueError(describe_unknown(unknown, config))


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


def _config_being_resolved(frame: FrameType | None) -> tuple[dict[str, Any], Path | None]:
    """The configuration, as text, one of whose items is being instantiated, and the folder that it comes from.

    MONAI hands an item its own arguments only, and a reference to everything would be a reference to itself; so the parser and
    the workflow that are at work are looked for further up the stack.
    """
    from monai.bundle import ConfigParser, ConfigWorkflow

    config: dict[str, Any] | None = None
    while frame is not None:
        owner = frame.f_locals.get("self")
        if config is None and isinstance(owner, ConfigParser):
            config = dict(owner[""])
        elif config is not None and isinstance(owner, ConfigWorkflow):
            return config, Path(owner.config_root_path)
        frame = frame.f_back
    if config is None:
        raise RuntimeError(
            "refuse_unknown_keys must be called by MONAI's config parser, from the initialize list of a bundle"
        )
    return config, None


def _declared(config: Mapping[str, Any], folder: Path | None) -> set[str]:
    """Top-level keys of those files in the folder that were merged into the configuration: all their keys are in it."""
    from monai.bundle import ConfigParser

    declared: set[str] = set()
    for path in sorted(folder.glob("*")) if folder is not None else ():
        if path.suffix in (".json", ".yaml", ".yml") and path.stem != "metadata":
            keys = {re.split(r"::|#", str(key).lstrip("+"))[0] for key in ConfigParser.load_config_file(path)}
            if keys <= set(config):
                declared |= keys
    return declared
