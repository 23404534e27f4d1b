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


<<<<<<< HEAD
=======
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
    config, folder = config_being_resolved(sys._getframe(1))
    unknown = keys_without_effect(config, folder, entries)
    if unknown:
        raise ValueError(describe_unknown(unknown, config))


def keys_without_effect(config: Mapping[str, Any], folder: Path | None, entries: Iterable[str] = ()) -> list[str]:
    """Name the keys that a flag set and that do nothing: top-level ones, and ones in a group such as ``train``.

    A group is a dictionary that is no component. What it holds does something under the same conditions as a top-level key.

    Args:
        config: as for `unused_keys`.
        folder: where the bundle's files lie; no key that is written in them is named.
        entries: further keys that something looks up by name.
    """
    written = _written(config, folder)
    unknown = unused_keys(config, {*entries, *(key for key in written if "#" not in key)})
    known = written | {id.replace("::", "#") for id in _property_ids()}
    referred = {id.replace("::", "#") for id in _referred_ids(config)}
    for group, content in config.items():
        if not isinstance(content, Mapping) or "_target_" in content or group in _ENTRIES:
            continue
        for child in content:
            id = f"{group}#{child}"
            if not any(other == id or other.startswith(f"{id}#") for other in (known | referred)):
                unknown.append(id)
    return unknown


>>>>>>> 4c70e43 (Put a training's configuration on a diet: one loss, one session, one preparation, one data list)
def describe_unknown(unknown: Iterable[str], config: Mapping[str, Any]) -> str:
    """One line about keys without effect, with the keys that they may have been meant to be."""
    listed = list(unknown)
    nested = [id for id in _ids(config) if "#" in id and id not in listed]
    others = [key for key in config if key not in listed]
    shown = []
    for key in listed:
        last = key.rsplit("#", 1)[-1]
        # the key itself somewhere else says more than another one that looks like it
        close = [id for id in nested if id.rsplit("#", 1)[1] == last][:1]
        close = close or difflib.get_close_matches(key, nested if "#" in key else others, n=1)
        shown.append(repr(key) + (f" (did you mean {close[0]!r}?)" if close else ""))
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


def _referred_ids(value: Any) -> Iterable[str]:
    """The ids that an item's text refers to."""
    for text in _texts(value):
        yield from _REFERRED_ID.findall(text)


def _texts(value: Any) -> Iterable[str]:
    """Every text inside of an item."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for child in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(child)


def _ids(value: Any, above: str = "") -> Iterable[str]:
    """The id of every item, level by level of one branch."""
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
<<<<<<< HEAD
=======


def config_being_resolved(frame: FrameType | None) -> tuple[dict[str, Any], Path | None]:
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


def _written(config: Mapping[str, Any], folder: Path | None) -> set[str]:
    """Keys, and keys of groups, in the folder's files that were merged into the configuration: all their keys are in it."""
    from monai.bundle import ConfigParser

    written: set[str] = set()
    for path in sorted(folder.glob("*")) if folder is not None else ():
        if path.suffix not in (".json", ".yaml", ".yml") or path.stem == "metadata":
            continue
        content = {
            str(key).lstrip("+").replace("::", "#"): value for key, value in ConfigParser.load_config_file(path).items()
        }
        if {key.split("#")[0] for key in content} <= set(config):
            written |= {part for key in content for part in (key, key.split("#")[0])}
            written |= {
                f"{key}#{child}" for key, value in content.items() if isinstance(value, Mapping) for child in value
            }
    return written
>>>>>>> 4c70e43 (Put a training's configuration on a diet: one loss, one session, one preparation, one data list)
