"""When a validation curve stands still: the rule that ends pre-training, and the warning where a curve had not ended."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["Standstill", "still_rises"]

#: below this score nothing has been learnt that could stand still
_NOTHING = 0.01

#: a curve rises if its end is this far above what it reached before its last quarter
_RISE = 0.01


class Standstill:
    """True once the score has not become better for a while.

    Args:
        points: how many points of the validation curve are looked at.
        gain: what one of them has to be above the best point before them, a fraction of 1.

    Raises:
        ValueError: an argument is out of range.

    Example:
        >>> still = Standstill(points=2, gain=0.01)
        >>> still([0.0, 0.0, 0.0]), still([0.0, 0.3, 0.5, 0.505]), still([0.0, 0.3, 0.5, 0.505, 0.509])
        (False, False, True)
    """

    def __init__(self, points: int = 3, gain: float = 0.005) -> None:
        if not isinstance(points, int) or points < 1 or not 0 <= gain < 1:
            raise ValueError(
                f"found points {points!r} and gain {gain!r}, expected a whole number from 1 and a number from 0 to below 1"
            )
        self.points = points
        self.gain = gain

    def __call__(self, scores: Sequence[float]) -> bool:
        """Whether training may end, given the curve so far. A class that is not found yet does not stand still."""
        before, last = scores[: -self.points], scores[-self.points :]
        return len(before) > 0 and max(scores) > _NOTHING and max(last) < max(before) + self.gain


def still_rises(steps: Sequence[int], scores: Sequence[float]) -> bool | None:
    """Whether training ended too early: its score rose by a point or more in the last quarter, or has learnt nothing yet.

    Returns:
        None if the curve has no point between its first and its last, so that nobody can tell.

    Example:
        >>> still_rises([0, 100, 200, 300, 400], [0.0, 0.3, 0.5, 0.52, 0.55])
        True
        >>> still_rises([0, 100, 200, 300, 400], [0.0, 0.5, 0.55, 0.55, 0.555])
        False
        >>> still_rises([0, 100, 200, 300, 400], [0.003, 0.0, 0.0, 0.0, 0.0])
        True
    """
    before = [score for step, score in zip(steps, scores, strict=True) if step <= 0.75 * steps[-1]] if steps else []
    if len(before) < 2:
        return None
    return scores[-1] <= _NOTHING or scores[-1] >= max(before) + _RISE
