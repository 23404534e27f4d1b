"""A configuration in which every key does something."""

from __future__ import annotations

from typing import Any


def small_config(**changed: Any) -> dict[str, Any]:
    """A new one each time: MONAI's parser writes what it resolves into the dictionary that it is given."""
    return {
        "imports": ["$import glob"],
        "bundle_root": ".",
        "pattern": "*.nii",
        "epochs": 3,
        "lr": 0.1,
        "shared": {"a": [1, 2]},
        "copy": {"nested": "%shared#a"},
        "left_over": {"_target_": "Compose", "transforms": "@copy"},
        "train": {"trainer": {"max_epochs": "@epochs", "lr": "$@lr * 2"}},
        "initialize": [{"_target_": "monai_margincal.bundle.refuse_unknown_keys", "entries": ["shared"]}],
        "eval_run": ["$print(@pattern)"],
        "run": ["$@train#trainer"],
        **changed,
    }
