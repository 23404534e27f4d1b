"""What has to be remembered of a case so that its confusion matrix is known under any offsets of a grid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from ..labels import class_labels

__all__ = ["GRID", "CaseVotes", "case_votes"]

#: Offsets that are tried, in natural units of the logits: thresholds from 0.018 to 0.982 on the probability of two classes.
GRID = torch.from_numpy(np.arange(-40, 41) * 0.1).float()
_LARGEST = float(GRID[-1])

#: Voxels that are looked at together: temporaries are this many rows of logits.
_CHUNK = 1 << 20


class CaseVotes:
    """The voxels of one case: those that no offsets of the grid can move, counted, and the others with their logits.

    Attributes:
        fixed: confusion matrix of the voxels that stay where they are (C, C), rows are true classes.
        logits: float32 (n, C) of the others.
        truth: int16 (n,), their true classes.
        weight: how many voxels each of the others stands for; 1 unless they were thinned.
    """

    def __init__(self, fixed: torch.Tensor, logits: torch.Tensor, truth: torch.Tensor) -> None:
        self.fixed = fixed
        self.logits = logits
        self.truth = truth
        self.weight = 1

    @property
    def num_bytes(self) -> int:
        """Memory of what is kept."""
        return self.logits.numel() * 4 + self.truth.numel() * 2

    def thin(self) -> None:
        """Keep every second of the voxels that can move, each of which then stands for twice as many."""
        self.logits, self.truth = self.logits[::2].clone(), self.truth[::2].clone()
        self.weight *= 2

    def confusion(self, offsets: Sequence[float]) -> np.ndarray:
        """Confusion matrix under offsets (C,), int64 (C, C)."""
        classes = len(offsets)
        counts = torch.zeros(classes * classes, dtype=torch.int64)
        shift = torch.tensor(offsets, dtype=torch.float32)
        for rows, truth in self._chunks():
            decided = (rows + shift).max(dim=1).indices
            counts += torch.bincount(truth * classes + decided, minlength=classes * classes)
        return (self.fixed + self.weight * counts.reshape(classes, classes)).numpy()

    def confusions(self, offsets: Sequence[float], k: int) -> np.ndarray:
        """Confusion matrices for every offset of class ``k`` on the grid, the other offsets as given: int64 (G, C, C)."""
        classes, grid = len(offsets), len(GRID)
        cells = torch.zeros(classes * classes * (grid + 1), dtype=torch.int64)
        shift = torch.tensor(offsets, dtype=torch.float32)
        for rows, truth in self._chunks():
            shifted = rows + shift
            shifted[:, k] = -torch.inf
            rival, rival_class = shifted.max(dim=1)
            first = _first_win(rows[:, k].contiguous(), rival, rival_class > k)
            cells += torch.bincount((truth * classes + rival_class) * (grid + 1) + first, minlength=len(cells))
        moved = cells.reshape(classes, classes, grid + 1)
        won = moved[..., :grid].cumsum(-1)
        confusion = moved.sum(-1, keepdim=True) - won  # left with the rival
        confusion[:, k] = won.sum(1)  # the rival is never k
        return (self.fixed + self.weight * confusion.movedim(-1, 0)).numpy()

    def _chunks(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for start in range(0, len(self.truth), _CHUNK):
            yield self.logits[start : start + _CHUNK], self.truth[start : start + _CHUNK].long()


def _first_win(own: torch.Tensor, rival: torch.Tensor, wins_ties: torch.Tensor) -> torch.Tensor:
    """Index of the first offset of the grid with which a class beats its rival, the grid's length if none does.

    The sums are compared as the decision itself compares them, in single precision, ties included: the position by the
    difference may be one off.
    """

    def wins(place: torch.Tensor) -> torch.Tensor:
        total = own + GRID[place.clamp(0, len(GRID) - 1)]
        return (total > rival) | ((total == rival) & wins_ties)

    first = torch.searchsorted(GRID, rival - own, right=True)
    earlier = (first > 0) & wins(first - 1)
    later = (first < len(GRID)) & ~wins(first)
    return first - earlier.long() + later.long()


def case_votes(
    logits: torch.Tensor, labels: torch.Tensor, num_classes: int, ignore_index: int | None, where: str
) -> CaseVotes:
    """Look at a case once.

    Args:
        logits: (C, ...), or (1, ...) for two classes: the logit of class 1 against 0.
        labels: class indices (...) or (1, ...).
        num_classes: C.
        ignore_index: label of voxels that do not count.
        where: what messages call the case.

    Raises:
        ValueError: the shapes do not belong to one case of C classes, a logit is NaN, or a label is not a class.
    """
    spatial = tuple(logits.shape[1:])
    if logits.ndim < 2 or (logits.shape[0] != num_classes and not (logits.shape[0] == 1 and num_classes == 2)):
        raise ValueError(
            f"{where}: found logits of shape {tuple(logits.shape)}, expected one case, channel first, of {num_classes} classes"
        )
    if tuple(labels.shape) not in (spatial, (1, *spatial)):
        raise ValueError(
            f"{where}: found labels of shape {tuple(labels.shape)} for logits of shape {tuple(logits.shape)}, expected {spatial} "
            f"or {(1, *spatial)}"
        )
    scores = torch.as_tensor(logits).detach().reshape(logits.shape[0], -1)
    truth, valid = class_labels(
        torch.as_tensor(labels).detach().reshape(-1), num_classes, ignore_index, where=f"{where}, labels"
    )
    fixed = torch.zeros(num_classes * num_classes, dtype=torch.int64)
    rows: list[torch.Tensor] = []
    kept: list[torch.Tensor] = []
    has_offset = torch.arange(num_classes)[:, None] > 0
    for start in range(0, scores.shape[1], _CHUNK):
        chunk = scores[:, start : start + _CHUNK].float().cpu()
        part = truth[start : start + _CHUNK].cpu()
        if valid is not None:
            chosen = valid[start : start + _CHUNK].cpu()
            chunk, part = chunk[:, chosen], part[chosen]
        if chunk.isnan().any():
            raise ValueError(f"{where}: found a logit that is not a number (NaN), expected numbers")
        if chunk.shape[0] == 1:
            chunk = torch.cat([torch.zeros_like(chunk), chunk])
        top, top_class = chunk.max(dim=0)
        # class 0 has no offset of its own: against it a class moves by one offset, against any other by two
        near = top - chunk <= _LARGEST * (1 + (has_offset & (top_class > 0)).long())
        near.scatter_(0, top_class[None], False)
        movable = near.any(dim=0)
        fixed += torch.bincount((part * num_classes + top_class)[~movable], minlength=num_classes * num_classes)
        rows.append(chunk[:, movable].T.contiguous())
        kept.append(part[movable].to(torch.int16))
    return CaseVotes(fixed.reshape(num_classes, num_classes), torch.cat(rows), torch.cat(kept))
