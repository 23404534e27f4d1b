"""Which decision inference takes: the one beside the weights, a file that the user names, or the largest logit."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ..decisions import ClassOffsets
from ..decisions.bake import baked_offsets
from ..decisions.offsets_handler import DECISION_FILE
from ..decisions.weights_digest import weights_digest
from ..networks import convert_coplenet_state_dict

_logger = logging.getLogger(__name__)

#: the word for the largest logit; a file of that name is ./argmax
ARGMAX = "argmax"


class Choice(NamedTuple):
    """A decision, in words for the log, and whether somebody should look at it."""

    offsets: ClassOffsets | None
    reason: str
    doubtful: bool = False


def chosen_offsets(
    decision: str | os.PathLike[str] | None,
    weights_file: str | os.PathLike[str],
    class_names: Sequence[str],
) -> ClassOffsets | None:
    """Choose the decision of a run, and say in one line of the log which it is.

    Args:
        decision: a file of offsets; ``"argmax"`` for the largest logit; None for ``decision.json`` beside the weights, if there
            is one, it was fitted for these weights, and no offsets have been baked into them.
        weights_file: the file of the weights; it need not exist.
        class_names: names of the classes by id.

    Returns:
        the offsets; None for the largest logit.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: it holds no offsets, or those of other classes; the message names it.

    Example:
        >>> chosen_offsets("argmax", "models/model.pt", ["background", "lesion"]) is None
        True
    """
    choice = choose_decision(decision, weights_file, class_names)
    _logger.log(logging.WARNING if choice.doubtful else logging.INFO, "decision: %s", choice.reason)
    return choice.offsets


def choose_decision(
    decision: str | os.PathLike[str] | None,
    weights_file: str | os.PathLike[str],
    class_names: Sequence[str],
) -> Choice:
    """`chosen_offsets` without the log, with the reason."""
    if decision == ARGMAX:
        return Choice(None, "the largest logit, as asked for")
    path = Path(weights_file).parent / DECISION_FILE if decision is None else Path(decision)
    if decision is None and not path.exists():
        return Choice(None, f"the largest logit, since there is no {path}")
    offsets = ClassOffsets.from_json(path)
    _expect_classes(offsets, class_names, path)
    content = _content(weights_file)
    fitted_for, found = (offsets.fitted_on or {}).get("weights"), digest_of_content(content)
    doubt = ""
    if baked_offsets(content) is not None:
        doubt = f"{weights_file} has offsets in it already"
    elif None not in (fitted_for, found) and fitted_for != found:
        doubt = f"{path} was fitted for other weights than {weights_file}"
    if doubt and decision is None:
        return Choice(None, f"the largest logit, since {doubt}", True)
    return Choice(offsets, f"{path}: {offsets!r}{f'; {doubt}' if doubt else ''}", bool(doubt))


def digest_of_file(weights_file: str | os.PathLike[str]) -> str | None:
    """Digest of the weights of a file, of a COPLE-Net in any published layout; None where there are none to read."""
    return digest_of_content(_content(weights_file))


def _content(weights_file: str | os.PathLike[str]) -> Any:
    try:
        return torch.load(weights_file, map_location="cpu", weights_only=True)
    except Exception:  # torch raises errors of many types; who loads the weights says what is wrong with them
        return None


def digest_of_content(content: Any) -> str | None:
    """`digest_of_file` of what a file of weights holds."""
    try:
        return weights_digest(convert_coplenet_state_dict(content))
    except (TypeError, ValueError):  # another network
        plain = isinstance(content, dict) and all(isinstance(value, torch.Tensor) for value in content.values())
        return weights_digest(content) if plain else None


def _expect_classes(offsets: ClassOffsets, class_names: Sequence[str], path: Path) -> None:
    expected, found = (
        list(class_names),
        len(offsets.offsets) if offsets.class_names is None else list(offsets.class_names),
    )
    if found not in (expected, len(expected)):
        raise ValueError(
            f"{path}: found offsets of {found if isinstance(found, list) else f'{found} classes'}, expected {expected}"
        )
