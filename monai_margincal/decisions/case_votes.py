"""What has to be remembered of a case so that its confusion matrix is known under any offsets of a grid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch

__all__ = ["GRID", "CaseVotes"]

#: Offsets that are tried, in natural units of the logits: thresholds from 0.018 to 0.982 on the probability of two classes.
GRID = torch.from_numpy(np.arange(-40, 41) / 10).float()
_LARGEST = float(GRID[-1])

#: Rows are kept in blocks of so many bytes, made before they are filled: the C library takes pieces above 32 MiB from the system
#: and gives them back. Small pieces that stay between large ones that come and go cost several times their size.
_BLOCK = 64 << 20
#: rows that are looked at together
_ROWS = 1 << 18


class CaseVotes:
    """The voxels of one case: those that no offsets of the grid can move, counted, and the others with their logits.

    Args:
        num_classes: C.
        weight: keep one in so many of the voxels that can move; it then stands for all of them.

    Attributes:
        fixed: confusion matrix of the voxels that stay where they are, int64 (C, C), rows are true classes.

    Example:
        >>> case = CaseVotes(num_classes=2)
        >>> case.add(torch.tensor([[0.0, 0.0, 0.0], [9.0, 0.5, -9.0]]), torch.tensor([1, 0, 0]))
        >>> case.fixed.tolist()
        [[1, 0], [0, 1]]
        >>> case.confusion([0.0, 0.0]).tolist(), case.confusion([0.0, -1.0]).tolist()
        ([[1, 1], [0, 1]], [[2, 0], [0, 1]])
    """

    def __init__(self, num_classes: int, weight: int = 1) -> None:
        self.num_classes = num_classes
        self.weight = weight
        self.fixed = torch.zeros(num_classes, num_classes, dtype=torch.int64, device="cpu")
        self._blocks: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._open: tuple[torch.Tensor, torch.Tensor] | None = None
        self._filled = 0
        self._largest = torch.zeros_like(self.fixed)
        self._movable = 0

    @property
    def num_bytes(self) -> int:
        """Memory of what is kept."""
        return sum(4 * logits.numel() + 2 * truth.numel() for logits, truth in self._pieces())

    @property
    def signature(self) -> tuple[int, ...]:
        """What two cases hardly have in common: voxels by true class and class of the largest logit, all and those that stay."""
        return (*self._largest.flatten().tolist(), *self.fixed.flatten().tolist())

    def add(self, logits: torch.Tensor, truth: torch.Tensor) -> None:
        """Look at some voxels once; what can move is copied to the CPU.

        Args:
            logits: float32 (C, n) on any device.
            truth: their true classes, int64 (n,), on the same device.
        """
        top, top_class = logits.max(dim=0)
        # class 0 has no offset of its own: against it a class moves by one offset, against any other by two
        near = top - logits <= _LARGEST * (1 + (top_class > 0).to(logits.dtype))
        near[0] = top - logits[0] <= _LARGEST
        movable = near.sum(dim=0) > 1  # the largest is near to itself
        cells = truth * self.num_classes + top_class
        for matrix, some in ((self._largest, cells), (self.fixed, cells[~movable])):
            matrix += torch.bincount(some, minlength=self.num_classes**2).reshape(matrix.shape).cpu()
        found = movable.nonzero()[:, 0]
        kept = found[-self._movable % self.weight :: self.weight]
        self._movable += len(found)
        if len(kept):
            self._keep(logits[:, kept].T.cpu(), truth[kept].cpu())

    def add_background(self, truth_counts: torch.Tensor) -> None:
        """Count voxels without logits, which are background whatever the offsets: those outside of the region looked at.

        Args:
            truth_counts: how many there are of every true class, int64 (C,).
        """
        self.fixed[:, 0] += truth_counts.cpu()

    def thin(self) -> None:
        """Keep every second of the voxels that can move, each of which then stands for twice as many."""
        is_closed, left = self._open is None, self._pieces()[::-1]
        self._blocks, self._open = [], None
        before = 0
        while left:  # one block after the other, so that the old and the new are never both there
            logits, truth = left.pop()
            first = before % 2
            before += len(truth)
            self._keep(logits[first::2], truth[first::2])
        if is_closed:
            self.close()
        self.weight *= 2

    def confusion(self, offsets: Sequence[float]) -> np.ndarray:
        """Confusion matrix under offsets (C,), int64 (C, C)."""
        classes = len(offsets)
        counts = torch.zeros(classes * classes, dtype=torch.int64, device="cpu")
        shift = torch.tensor(offsets, dtype=torch.float32, device="cpu")
        for rows, truth in self._rows():
            decided = (rows + shift).max(dim=1).indices
            counts += torch.bincount(truth * classes + decided, minlength=classes * classes)
        return (self.fixed + self.weight * counts.reshape(classes, classes)).numpy()

    def confusions(self, offsets: Sequence[float], k: int) -> np.ndarray:
        """Confusion matrices for every offset of class ``k`` on the grid, the other offsets as given: int64 (G, C, C)."""
        classes, grid = len(offsets), len(GRID)
        cells = torch.zeros(classes * classes * (grid + 1), dtype=torch.int64, device="cpu")
        shift = torch.tensor(offsets, dtype=torch.float32, device="cpu")
        for rows, truth in self._rows():
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

    def close(self) -> None:
        """Give back the memory that was set aside for more voxels."""
        if self._open is not None:
            self._blocks.append((self._open[0][: self._filled].clone(), self._open[1][: self._filled].clone()))
            self._open = None

    def _keep(self, logits: torch.Tensor, truth: torch.Tensor) -> None:
        done = 0
        while done < len(truth):
            if self._open is None:
                size = max(1, _BLOCK // (4 * self.num_classes + 2))
                rows = torch.empty(size, self.num_classes, dtype=torch.float32, device="cpu")
                self._open, self._filled = (rows, torch.empty(size, dtype=torch.int16, device="cpu")), 0
            rows, ones = self._open
            some = min(len(truth) - done, len(ones) - self._filled)
            rows[self._filled : self._filled + some] = logits[done : done + some]
            ones[self._filled : self._filled + some] = truth[done : done + some]
            self._filled += some
            done += some
            if self._filled == len(ones):
                self._blocks.append(self._open)
                self._open = None

    def _pieces(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """What is kept, in order."""
        if self._open is None:
            return list(self._blocks)
        return [*self._blocks, (self._open[0][: self._filled], self._open[1][: self._filled])]

    def _rows(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for logits, truth in self._pieces():
            for start in range(0, len(truth), _ROWS):
                yield logits[start : start + _ROWS], truth[start : start + _ROWS].long()


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
