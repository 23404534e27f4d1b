"""A key that another command of the bundle takes, and which one that is.

An evaluation reads the training's file, so that every key of the training is known to it; many do nothing there. What a command
uses is what its ``initialize``, ``run`` and ``finalize`` refer to, directly or through other items.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from .keys import referred_ids

#: configuration file of a bundle, by MONAI's names -> what users call the command
_COMMANDS = {"train": "training", "evaluate": "evaluation", "inference": "inference"}
_ROOTS = ("initialize", "run", "finalize")


def refuse_keys_of_other_commands(
    flags: Mapping[str, str | None], config: Mapping[str, Any], folder: Path | None
) -> None:
    """Raise if a flag sets a key of the configuration that does nothing in this command.

    A key that a flag has made idle, such as the pattern of the names in a run with a list, is left alone: what counts is the
    configuration as it is in its files. Nothing is judged where other entries than ``run`` are asked for.

    Args:
        flags: as they were typed, see `typed_flags`.
        config: the configuration with the flags in it, as text.
        folder: where the bundle's files lie, or None.

    Raises:
        ValueError: there is such a flag; the message names the command that takes it.
    """
    files = list(_config_files(flags.get("config_file")))
    if folder is None or not files or {"run_id", "init_id", "final_id"} & set(flags):
        return
    from monai.bundle import ConfigParser

    written = ConfigParser.load_config_files(files)
    reached = used_ids(written) | used_ids(config)
    idle = [id for id in flags if not is_used(id, reached)]
    here = _command(files)
    for id in idle:
        others = [name for name in takers(id, folder) if name != here]
        if others:
            raise ValueError(f"key {id!r} has no effect in {here}: it belongs to {' and '.join(others)}")


def takers(id: str, folder: Path | None) -> list[str]:
    """The commands in whose files a key stands, by the files of a folder.

    Args:
        id: the key.
        folder: where the bundle's files lie, or None.

    Example:
        >>> from monai_margincal.bundle import bundle_dir
        >>> folder = Path(bundle_dir("covid19_ct_lesion_coplenet"), "configs")
        >>> takers("val_interval", folder), takers("cases", folder), takers("nothing", folder)
        (['training'], ['inference'], [])
    """
    from monai.bundle import ConfigParser

    known = [path for stem in _COMMANDS for path in sorted(folder.glob(f"{stem}.*"))] if folder is not None else []
    return [
        _COMMANDS[path.stem]
        for path in known
        if path.suffix in (".json", ".yaml", ".yml") and _item(ConfigParser.load_config_file(path), id) is not None
    ]


def used_ids(config: Mapping[str, Any]) -> set[str]:
    """The ids that the entries of a configuration refer to, directly or through others.

    Example:
        >>> sorted(used_ids({"run": ["$@train#trainer.run()"], "train": {"trainer": "@epochs", "rest": "@lr"}, "lr": 1}))
        ['epochs', 'run', 'train#trainer']
    """
    used: set[str] = set()
    ahead = [root for root in _ROOTS if root in config]
    while ahead:
        id = ahead.pop()
        if id not in used:
            used.add(id)
            ahead += [other.replace("::", "#") for other in referred_ids(_item(config, id))]
    return used


def is_used(id: str, used: Iterable[str]) -> bool:
    """Whether an item, or a part or an owner of it, is among those that `used_ids` gives."""
    own = f"{id.replace('::', '#')}#"
    return any(own.startswith(f"{other}#") or f"{other}#".startswith(own) for other in used)


def _item(config: Any, id: str) -> Any:
    """The item of an id; None if there is none."""
    for step in id.replace("::", "#").split("#"):
        if isinstance(config, Mapping) and step in config:
            config = config[step]
        elif isinstance(config, list) and step.isdecimal() and int(step) < len(config):
            config = config[int(step)]
        else:
            return None
    # a key without a value is a key
    return "" if config is None else config


def _config_files(typed: str | None) -> Iterator[str]:
    """The files that ``--config_file`` names, one or a list of them."""
    try:
        found = ast.literal_eval(typed or "[]")
    except (SyntaxError, ValueError):
        found = typed
    yield from [found] if isinstance(found, str) else found


def _command(files: Iterable[str]) -> str:
    """What users call a command of these files: the last of the known ones decides."""
    known = [_COMMANDS[Path(file).stem] for file in files if Path(file).stem in _COMMANDS]
    return known[-1] if known else "this run"
