"""The decision of an inference configuration: whether its file is there and of the configured classes."""

from __future__ import annotations

from typing import Any

from ...findings import Finding
from ...workflows.chosen_offsets import choose_decision
from .configs import value_at

#: the component of an inference configuration that chooses the decision
_TARGET = "monai_margincal.workflows.chosen_offsets"


def check_decision(parser: Any, place: str) -> list[Finding]:
    """Choose the decision as a run would.

    Args:
        parser: `monai.bundle.ConfigParser` of the configuration.
        place: the configuration's file, for the findings.

    Returns:
        a warning if the file belongs to other weights.

    Raises:
        FileNotFoundError: the file of the key ``decision`` does not exist.
        ValueError: a file holds no offsets, or those of other classes.

    Example:
        >>> from monai.bundle import ConfigParser
        >>> given = {"decision": "argmax", "weights_file": "models/model.pt", "class_names": ["background", "lesion"]}
        >>> check_decision(ConfigParser({"offsets": {"_target_": _TARGET, **given}}), "configs/inference.json")
        []
    """
    if "offsets::_target_" not in parser or parser["offsets::_target_"] != _TARGET:
        return []
    arguments = {key: value_at(parser, f"offsets::{key}") for key in ("decision", "weights_file", "class_names")}
    choice = choose_decision(**arguments)
    if not choice.doubtful:
        return []
    return [Finding.in_file("warning", place, f"as the decision {choice.reason}", "the one that was fitted for them")]
