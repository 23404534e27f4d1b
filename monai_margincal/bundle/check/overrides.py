"""What the overrides on a command line mean to one configuration of several, and which parts of it they reach."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from monai.bundle import ConfigParser

from ..keys import references, unused_keys


def top_level(id: str) -> str:
    """The top-level key of a nested id.

    Example:
        >>> top_level("train#trainer#max_epochs"), top_level("epochs")
        ('train', 'epochs')
    """
    return id.replace("#", "::").split("::")[0]


def applicable(config: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The overrides that matter to one configuration: those of its keys, or of keys that another override refers to.

    Args:
        config: the configuration's text.
        overrides: ``id`` -> value, as on the command line.

    Example:
        >>> applicable({"run": "$@epochs", "epochs": 1}, {"epochs": "$@n", "n": 3, "cases": "a"})
        {'epochs': '$@n', 'n': 3}
    """
    ours = {id: value for id, value in overrides.items() if top_level(id) in config}
    helpers = {id: value for id, value in overrides.items() if top_level(id) == id and id not in config}
    both = {top_level(id): [config[top_level(id)], value] for id, value in ours.items()}
    useless = set(unused_keys({**config, **helpers, **both}))
    return {**ours, **{id: value for id, value in helpers.items() if id not in useless}}


def reaches(config: Mapping[str, Any], overrides: Collection[str], ids: Collection[str]) -> bool:
    """Whether an override changes one of the items at ``ids``, or what it is made of.

    Args:
        config: the configuration's text.
        overrides: ids as on the command line.
        ids: ids, with ``::``; those that are not in the configuration are left out.

    Example:
        >>> config = {"train": {"data": "$@files[:3]"}, "files": "$list(@folder)", "folder": "a", "epochs": 1}
        >>> reaches(config, ["folder"], ["train::data"]), reaches(config, ["epochs"], ["train::data"])
        (True, False)
    """
    parser = ConfigParser(dict(config))
    parser.parse(True)
    reached: set[str] = set()
    ahead = {name for id in ids if id in parser for name in references(parser[id])}
    while ahead:
        reached |= ahead
        ahead = {name for key in ahead & set(config) for name in references(config[key])} - reached
    given = [id.replace("#", "::") for id in overrides]
    itself = any(_is_within(id, other) or _is_within(other, id) for id in ids for other in given)
    return itself or bool(reached & {top_level(id) for id in given})


def _is_within(id: str, other: str) -> bool:
    return f"{id}::".startswith(f"{other}::")
