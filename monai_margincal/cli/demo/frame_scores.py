"""What the masks of held-out frames are worth, by sequence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...metrics import class_iou
from .frames_bundle import sequence_of


@dataclass(frozen=True)
class FrameScores:
    """The scores of the tool.

    Attributes:
        sequences: sequence, or "all frames" -> number of frames, and the IoU of one confusion matrix over all their pixels.
        shown: frames to show, of each sequence those with the best, the median and the worst IoU.
    """

    sequences: dict[str, tuple[int, float]]
    shown: list[str]


def frame_scores(confusions: Mapping[str, np.ndarray]) -> FrameScores:
    """Sum up the confusion matrices of frames.

    Args:
        confusions: frame -> pixels, (2, 2), rows = truth.

    Example:
        >>> scores = frame_scores({"a_1": np.array([[8, 1], [0, 1]]), "b_1": np.array([[9, 0], [0, 1]])})
        >>> scores.sequences, scores.shown
        ({'a': (1, 0.5), 'b': (1, 1.0), 'all frames': (2, 0.66...)}, ['a_1', 'b_1'])
    """
    frames: dict[str, list[str]] = {}
    for frame in confusions:
        frames.setdefault(sequence_of(frame), []).append(frame)
    sequences = {
        name: (len(listed), _iou(sum(confusions[frame] for frame in listed)))
        for name, listed in {**frames, "all frames": list(confusions)}.items()
    }
    shown: list[str] = []
    for listed in frames.values():
        # frames with a tool in truth or prediction say more than those without
        order = sorted(
            (frame for frame in listed if not np.isnan(_iou(confusions[frame]))), key=lambda f: -_iou(confusions[f])
        )
        order = order or listed
        shown += dict.fromkeys((order[0], order[len(order) // 2], order[-1]))
    return FrameScores(sequences, shown)


def _iou(confusion: object) -> float:
    return float(class_iou(np.asarray(confusion))[1])
