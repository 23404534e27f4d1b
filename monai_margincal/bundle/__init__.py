"""Bundles: where the shipped ones lie, and what can be wrong with any bundle before it runs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .keys import refuse_unknown_keys, unused_keys
from .last_line import errors_in_one_line
from .locate import bundle_dir
from .switches import switches

if TYPE_CHECKING:
    from .check import check_bundle
    from .finding import Finding

#: imported on first use: a config that only refuses unknown keys needs none of it
_EXPORTS = {"check_bundle": "check", "Finding": "finding"}

__all__ = [
    "Finding",
    "bundle_dir",
    "check_bundle",
    "errors_in_one_line",
    "refuse_unknown_keys",
    "switches",
    "unused_keys",
]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_EXPORTS[name]}", __name__), name)
    globals()[name] = value
    return value
