"""Refuse a misspelt flag of ``python -m monai.bundle run`` when the bundle starts.

MONAI adds an unknown top-level key to the configuration and goes on with the default of the one that was meant.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from .keys import describe_unknown, unused_in_groups, unused_keys
from .other_command import takers

if TYPE_CHECKING:
    from monai.bundle import ConfigParser


def refuse_unknown_keys(entries: Iterable[str] = ()) -> None:
    """Raise if a flag set a key that does nothing; meant for a bundle's ``initialize``.

    ``"initialize": [{"_target_": "monai_margincal.bundle.refuse_unknown_keys"}, ...]`` makes
    ``python -m monai.bundle run --config_file configs/train.json --epochz 3`` an error instead of a run with the default. A key
    of the bundle's own files is never refused: it loses its effect when somebody replaces the component that used it. A key of
    another file of the bundle is, as ``--cases`` of the inference in a training. Besides top-level keys those in a group such
    as ``train`` are looked at; a component refuses an argument that it does not know by itself.

    Args:
        entries: keys to accept although nothing refers to them. MONAI replaces macros (``%key``) before anything is
            instantiated, so a top-level key that is used by macros only must be named here.

    Raises:
        ValueError: a key has no effect; the message names it and the key that it resembles.
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
    refuse_without_effect(*config_being_resolved(sys._getframe(1)), entries)


def refuse_without_effect(config: Mapping[str, Any], folder: Path | None, entries: Iterable[str] = ()) -> None:
    """Raise if the configuration has a key without effect that none of the folder's files has.

    Args:
        config: the configuration as text.
        folder: where the bundle's files lie, or None.
        entries: as for `refuse_unknown_keys`.

    Raises:
        ValueError: there is one, at the top level or in a group such as ``train``; the message names it.
    """
    entries, written = set(entries), _written(config, folder)
    nested = {id for id in written if "#" in id}
    unknown = [*unused_keys(config, entries | written), *unused_in_groups(config, entries | nested)]
    if unknown:
        raise ValueError(describe_unknown(unknown, config, {key: takers(key, folder) for key in unknown}))


def config_being_resolved(frame: FrameType | None) -> tuple[dict[str, Any], Path | None]:
    """The configuration, as text, one of whose items is being instantiated, and the folder that it comes from."""
    parser, folder = parser_at_work(frame)
    return dict(parser[""]), folder


def parser_at_work(frame: FrameType | None) -> tuple[ConfigParser, Path | None]:
    """The parser that instantiates an item, and the folder that its configuration comes from.

    MONAI hands an item its own arguments only, and a reference to everything would be a reference to itself; so the parser and
    the workflow that are at work are looked for further up the stack.
    """
    from monai.bundle import ConfigParser, ConfigWorkflow

    parser: ConfigParser | None = None
    while frame is not None:
        owner = frame.f_locals.get("self")
        if parser is None and isinstance(owner, ConfigParser):
            parser = owner
        elif parser is not None and isinstance(owner, ConfigWorkflow):
            return parser, Path(owner.config_root_path)
        frame = frame.f_back
    if parser is None:
        raise RuntimeError(
            "refuse_unknown_keys must be called by MONAI's config parser, from the initialize list of a bundle"
        )
    return parser, None


def _written(config: Mapping[str, Any], folder: Path | None) -> set[str]:
    """Keys, and keys of groups, in the folder's files that were merged into the configuration: all their keys are in it."""
    from monai.bundle import ConfigParser

    written: set[str] = set()
    for path in sorted(folder.glob("*")) if folder is not None else ():
        if path.suffix not in (".json", ".yaml", ".yml") or path.stem == "metadata":
            continue
        content = ConfigParser.load_config_file(path)
        content = {str(key).lstrip("+").replace("::", "#"): value for key, value in content.items()}
        groups = {key.split("#")[0] for key in content}
        if groups <= set(config):
            nested = {
                f"{key}#{child}" for key, value in content.items() if isinstance(value, Mapping) for child in value
            }
            written |= {*groups, *content, *nested}
    return written
