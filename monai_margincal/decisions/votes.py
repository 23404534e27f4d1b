"""The cases of a fit, each seen once, in a memory that does not grow without bound; in one process or in several."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import torch
from monai.data import MetaTensor

from ..processes import gather, own_rank
from .case_slabs import case_slabs, expect_case, label_slabs
from .case_votes import CaseVotes
from .logits_grid import common_grid

__all__ = ["MOST_BYTES", "AllVotes", "Votes"]

T = TypeVar("T")

#: Logits of the voxels that offsets can move are kept up to this size; beyond it every second voxel is dropped.
MOST_BYTES = 5 << 29


class Votes:
    """What is kept of the cases that this process has seen: the voxels that offsets can move.

    Args:
        num_classes: C, background included.
        ignore_index: label of voxels that do not count.

    Example:
        >>> votes = Votes(num_classes=2)
        >>> votes.add(torch.zeros(2, 4, 4), torch.zeros(4, 4))
        >>> len(votes.cases), votes.num_bytes
        (1, 160)
    """

    def __init__(self, num_classes: int, ignore_index: int | None = None) -> None:
        self.num_classes = num_classes
        self.ignore_index = ignore_index
        self.cases: list[CaseVotes] = []
        self.names: list[str] = []
        self.groups: list[str] = []
        self.weight = 1

    def add(self, logits: torch.Tensor, labels: torch.Tensor, name: str = "", group: str = "") -> None:
        """Look at a case.

        Args:
            logits: (C, ...), or (1, ...) for two classes (the logit of class 1 against 0), on any device.
            labels: class indices (...) or (1, ...). If both are MetaTensors they may lie on different grids of the same voxels,
                turned, mirrored or cropped; a voxel of the label without logits then counts as background.
            name: what the case is called: its file.
            group: what it shares with other cases, such as the patient; empty: it stands alone.

        Raises:
            ValueError: the shapes do not belong to one case of C classes, a logit is NaN, a label is no class.
        """
        where = name or f"case {len(self.cases)}"
        placed = isinstance(logits, MetaTensor) and isinstance(labels, MetaTensor)
        expect_case(logits, labels, self.num_classes, where=where, same_size=not placed)
        truth = labels[0] if labels.ndim == logits.ndim else labels
        if isinstance(logits, MetaTensor) and isinstance(truth, MetaTensor):
            scores, inside = common_grid(logits, truth, where)
        else:
            scores, inside = _plain(logits), _plain(truth)
        case = CaseVotes(self.num_classes, self.weight)
        self.cases.append(case)
        self.names.append(name)
        self.groups.append(group)
        for some, classes in case_slabs(scores, inside, self.num_classes, self.ignore_index, where=where):
            case.add(some, classes)
            while self.num_bytes > MOST_BYTES:
                self.thin()
        case.close()
        if inside.numel() < truth.numel():
            for sign, part in ((1, _plain(truth)), (-1, inside)):
                for classes in label_slabs(part, self.num_classes, self.ignore_index, where=where):
                    case.add_background(sign * torch.bincount(classes, minlength=self.num_classes))

    @property
    def num_bytes(self) -> int:
        """Memory of what is kept."""
        return sum(case.num_bytes for case in self.cases)

    def thin(self) -> None:
        """Keep every second of the voxels that can move, of every case."""
        self.weight *= 2
        for case in self.cases:
            case.thin()


class AllVotes:
    """The cases of all processes, in an order that does not depend on which process has seen which.

    Nothing but confusion matrices travels between processes. All of them must make one and ask it the same, in the same order.

    Attributes:
        groups: the group of every case, as numbers from 0; a case without a group has one of its own.
        num_groups: how many groups there are.

    Args:
        votes: those of this process.
        across_ranks: whether the other processes have some too; otherwise these are all.
    """

    def __init__(self, votes: Votes, across_ranks: bool = False) -> None:
        self.votes = votes
        self.num_classes = votes.num_classes
        self._across_ranks = across_ranks
        rank = own_rank() if across_ranks else 0
        # by name; without names case by case in turn, as a distributed sampler deals them out
        own = [
            ((name, case.signature) if name else ("", ()), place, rank, group)
            for place, (name, case, group) in enumerate(zip(votes.names, votes.cases, votes.groups, strict=True))
        ]
        everyone = sorted(key for keys in self._exchanged(own) for key in keys)
        # some samplers repeat cases to make the shares of all processes equal; crops of one scan share its name but differ
        repeated = [last[0] == key[0] != ("", ()) for last, key in itertools.pairwise(everyone)]
        kept = [key for key, again in zip(everyone, [False, *repeated], strict=False) if not again]
        self._number = len(kept)
        self._own = {number: votes.cases[place] for number, (_, place, owner, _) in enumerate(kept) if owner == rank}
        numbers: dict[tuple[str, int], int] = {}
        self.groups = [
            numbers.setdefault((group, -1 if group else number), len(numbers))
            for number, (*_, group) in enumerate(kept)
        ]
        self.num_groups = len(numbers)
        heaviest = max(self._exchanged(votes.weight))
        while votes.weight < heaviest:
            votes.thin()
        while sum(self._exchanged(sum(case.num_bytes for case in self._own.values()))) > MOST_BYTES:
            votes.thin()

    def __len__(self) -> int:
        return self._number

    @property
    def weight(self) -> int:
        """How many of the voxels that can move each that was kept stands for."""
        return self.votes.weight

    def matrices(
        self, of_case: Callable[[int, CaseVotes], np.ndarray], numbers: Sequence[int] | None = None
    ) -> np.ndarray:
        """What a function gives for every case (N, ...), or for those of some numbers, on every process."""
        chosen = range(len(self)) if numbers is None else numbers
        own = {number: of_case(number, self._own[number]) for number in chosen if number in self._own}
        found = {number: value for part in self._exchanged(own) for number, value in part.items()}
        return np.stack([found[number] for number in chosen])

    def _exchanged(self, own: T) -> list[T]:
        return gather(lambda: own) if self._across_ranks else [own]


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.as_tensor() if isinstance(tensor, MetaTensor) else tensor
