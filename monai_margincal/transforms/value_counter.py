"""Exact counts of the values in a stream of label voxels, at a small multiple of the time that reading them takes.

Label volumes are made of long runs, so a chunk is looked at as 8-byte words first: equal neighbours are counted by the length
of their run, and only the few words at the edges of a structure are looked at voxel by voxel. A chunk without runs is counted
voxel by voxel. Either way the counts are exact integers, whatever the order and the size of the chunks.

Why these building blocks: `torch.bincount` is the fastest exact histogram at hand, but it refuses floats and booleans, wraps
silently after a careless cast to uint8 (300 becomes 44), and `torch.histc` saturates at 2^25 voxels on float32. So values are
checked before any narrowing, and floats are counted as integers only if they are integers.
"""

from __future__ import annotations

import numpy as np
import torch

#: Elements that are converted, compared or counted at once: temporaries stay in the cache.
CHUNK_ELEMENTS = 1 << 19
#: A histogram array over [lowest, highest] value is used up to this width, hashing/sorting beyond it.
_DENSE_WIDTH = 1 << 16
#: Runs pay off only while they are at least this many words long on average.
_MIN_MEAN_RUN = 4
#: Below this many voxels the bookkeeping of runs costs more than it saves.
_MIN_RUN_BYTES = 1 << 14


class ValueCounter:
    """Counts how often each integer value occurs in arrays that are added one after the other.

    Args:
        where: what messages call the data, for example the file.
        expected: what messages say was expected, for example ``"class ids [0, 1]"``.

    Example:
        >>> counter = ValueCounter()
        >>> counter.add(np.array([0, 0, 517], dtype=np.uint16))
        >>> counter.add(np.array([0.0, 100000.0], dtype=np.float32))
        >>> counter.counts()
        {0: 3, 517: 1, 100000: 1}
    """

    def __init__(self, where: str = "label", expected: str = "integer class ids") -> None:
        self.where = where
        self.expected = expected
        self._bytes = np.zeros(256, np.int64)
        self._others: dict[int, int] = {}

    def add(self, voxels: np.ndarray) -> None:
        """Count the voxels of one array of any shape, memory layout and byte order.

        Args:
            voxels: boolean, integer, or floating point with integral values.

        Raises:
            ValueError: a value is NaN, infinite, not integral or beyond int64, or the voxels are not plain numbers.
        """
        flat = voxels.reshape(-1) if voxels.flags.c_contiguous else voxels.ravel(order="K")
        for start in range(0, flat.size, CHUNK_ELEMENTS):
            self._add_chunk(flat[start : start + CHUNK_ELEMENTS])

    def _add_chunk(self, chunk: np.ndarray) -> None:
        if not chunk.dtype.isnative:
            chunk = chunk.astype(chunk.dtype.newbyteorder("="))
        kind, itemsize = chunk.dtype.kind, chunk.itemsize
        if kind == "b":
            # a borrowed boolean buffer may hold any byte for True: Pillow's holds 255
            chunk = (chunk.view(np.uint8) != 0).view(np.uint8)
        elif kind not in "iuf":
            raise ValueError(f"{self.where}: found voxels of type {chunk.dtype}, expected {self.expected}")
        if chunk.nbytes >= _MIN_RUN_BYTES and itemsize <= 8 and chunk.flags.c_contiguous:
            whole = chunk.size - chunk.size % (8 // itemsize)
            if self._add_runs(chunk[:whole]):
                chunk = chunk[whole:]
        if chunk.size:
            self._add_voxels(chunk)

    def _add_runs(self, chunk: np.ndarray) -> bool:
        """Count by runs of equal 8-byte words; False (and nothing counted) where there are too few runs to pay off."""
        words = chunk.view(np.uint64)
        changes = np.flatnonzero(words[1:] != words[:-1])
        runs = len(changes) + 1
        if runs * _MIN_MEAN_RUN > len(words):
            return False
        last = np.empty(runs, np.int64)
        last[:-1] = changes
        last[-1] = len(words) - 1
        word_of_run = words[last]
        self._add_voxels(word_of_run.view(chunk.dtype))
        # The words above stand for one repetition of each run; what follows adds the others.
        repeats = np.empty(runs, np.int64)
        repeats[0] = last[0]
        np.subtract(last[1:], last[:-1], out=repeats[1:])
        repeats[1:] -= 1
        longer = np.flatnonzero(repeats)
        if len(longer):
            per_word = 8 // chunk.itemsize
            voxels = word_of_run[longer].view(chunk.dtype).reshape(-1, per_word)
            repeats = repeats[longer]
            if (voxels == voxels[:, :1]).all():
                self._add_weighted(voxels[:, 0], repeats * per_word)
            else:
                self._add_weighted(voxels.reshape(-1), np.repeat(repeats, per_word))
        return True

    def _add_voxels(self, voxels: np.ndarray) -> None:
        voxels = self._as_integers(voxels)
        if voxels.dtype == np.uint8:
            # torch warns about arrays it could not write to, such as memory-mapped files
            own = voxels if voxels.flags.writeable else voxels.copy()
            self._bytes += torch.bincount(torch.from_numpy(own), minlength=256).numpy()
            return
        low, high = int(voxels.min()), int(voxels.max())
        if high - low >= _DENSE_WIDTH:
            values, counts = np.unique(voxels, return_counts=True)
            self._tally(values.tolist(), counts.tolist())
            return
        self._tally_dense(torch.bincount(torch.from_numpy(_from_zero(voxels, low))).numpy(), low)

    def _add_weighted(self, voxels: np.ndarray, weights: np.ndarray) -> None:
        # Weights add up to at most one chunk, far below 2^53, so their float64 sums are exact.
        voxels = self._as_integers(voxels)
        low, high = int(voxels.min()), int(voxels.max())
        if high - low >= _DENSE_WIDTH:
            values, index = np.unique(voxels, return_inverse=True)
            self._tally(values.tolist(), np.bincount(index.reshape(-1), weights=weights).astype(np.int64).tolist())
            return
        self._tally_dense(np.bincount(_from_zero(voxels, low), weights=weights).astype(np.int64), low)

    def _tally_dense(self, counts: np.ndarray, low: int) -> None:
        present = np.flatnonzero(counts)
        self._tally([value + low for value in present.tolist()], counts[present].tolist())

    def _tally(self, values: list[int], counts: list[int]) -> None:
        for value, count in zip(values, counts, strict=True):
            self._others[value] = self._others.get(value, 0) + count

    def _as_integers(self, voxels: np.ndarray) -> np.ndarray:
        if voxels.dtype.kind != "f":
            return voxels
        with np.errstate(invalid="ignore"):
            integers = voxels.astype(np.int64)
        # NaN, infinities and values beyond int64 do not survive the way back either; where the processor saturates instead
        # of wrapping, 2^63 would, so the largest int64 (not representable in float64) marks it
        faulty = (integers.astype(voxels.dtype) != voxels) | (integers == np.iinfo(np.int64).max)
        if faulty.any():
            raise ValueError(
                f"{self.where}: found values that are not integers: {_some(voxels[faulty])}, expected {self.expected}"
            )
        return integers

    def counts(self) -> dict[int, int]:
        """Voxels per value, ``{value: count}`` in ascending order of the values, as Python integers."""
        total = dict(self._others)
        for value in np.flatnonzero(self._bytes).tolist():
            total[value] = total.get(value, 0) + int(self._bytes[value])
        return dict(sorted(total.items()))


def _from_zero(voxels: np.ndarray, low: int) -> np.ndarray:
    """The voxels minus ``low`` as int64; their range is known to be small, so a wrapped difference comes out right."""
    if voxels.dtype == np.uint64:
        return (voxels - np.uint64(low)).astype(np.int64)
    shifted = voxels.astype(np.int64)
    if low:
        shifted -= low
    return shifted


def _some(values: np.ndarray, limit: int = 6) -> str:
    distinct = np.unique(values)
    shown = ", ".join(f"{value:.6g}" for value in distinct[:limit].tolist())
    return shown + (f", ... ({len(distinct)} different values)" if len(distinct) > limit else "")
