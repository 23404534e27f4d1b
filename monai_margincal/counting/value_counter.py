"""Exact counts of the values in a stream of label voxels, in a small multiple of the time it takes to decode them.

Label volumes consist of long runs, so a chunk is first looked at as 8-byte words: equal neighbours are one run, counted by
its length, and only the few words at the edges of a structure are looked at voxel by voxel. Runs of many chunks are collected
before they are evaluated. A chunk without runs is counted voxel by voxel. Either way the counts are exact integers, whatever
the order and the size of the chunks.

Why these building blocks: `torch.bincount` is the fastest exact histogram at hand, but it refuses floats and booleans, wraps
silently after a careless cast to uint8 (300 becomes 44), and `torch.histc` saturates at 2^25 voxels on float32. So values are
checked before any narrowing, and floats are counted as integers only if they are integers. torch is used only where the program
has imported it anyway: importing it to count files would cost more time and memory than it saves.
"""

from __future__ import annotations

import sys

import numpy as np

from ..labels import not_integers

#: Number of bytes converted, compared or counted at once: temporaries stay in the cache.
CHUNK_BYTES = 1 << 19
#: A histogram array over [lowest, highest] value is used up to this width, and sorting beyond it.
_DENSE_WIDTH = 1 << 16
#: Runs pay off only while they are at least this many words long on average.
_MIN_MEAN_RUN = 3
#: Below this many bytes the bookkeeping of runs costs more than it saves.
_MIN_RUN_BYTES = 1 << 14
#: Background is skipped in blocks of this size.
_BLOCK_BYTES = 1 << 13
#: Up to this label value, comparing with each value is faster than looking for runs.
_FEW_CLASSES = 2
#: For how many chunks the shortcuts rest after they did not help.
_REST = 7
#: How many runs are collected before they are evaluated.
_STAGED_RUNS = 1 << 15
#: From this many voxels on, preparing a histogram over pairs of voxels pays off.
_MIN_PAIRED_VOXELS = 1 << 14
_TORCH_TYPES = tuple(np.dtype(name) for name in ("uint8", "int16", "int32", "int64"))
#: bytes of a voxel -> the word that holds the value 1 in each of its voxels
_ONE_IN_EVERY_VOXEL = {1: 0x0101010101010101, 2: 0x0001000100010001, 4: 0x0000000100000001, 8: 1}


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
        self._counts: dict[int, int] = {}
        self._words = np.empty(0, np.uint64)
        self._lengths = np.empty(0, np.int64)
        self._resting = 0
        self._staged = 0
        self._staged_dtype = np.dtype(np.uint8)
        # kept, because fresh memory for every comparison costs more than the comparison
        self._mask = np.empty(CHUNK_BYTES, bool)

    def add(self, voxels: np.ndarray) -> None:
        """Count the voxels of one array of any shape, memory layout and byte order.

        Args:
            voxels: boolean, integer, or floating point with integral values.

        Raises:
            ValueError: a value is NaN, infinite, not integral or beyond int64, or the voxels are not plain numbers. It may be
                raised by a later `add` or by `counts`.
        """
        flat = voxels.reshape(-1) if voxels.flags.c_contiguous else voxels.ravel(order="K")
        step = max(CHUNK_BYTES // max(flat.itemsize, 1), 1)
        for start in range(0, flat.size, step):
            self._add_chunk(flat[start : start + step])

    def counts(self) -> dict[int, int]:
        """Voxels per value, ``{value: count}`` in ascending order of the values, as Python integers."""
        self._evaluate_runs()
        return dict(sorted(self._counts.items()))

    def _add_chunk(self, chunk: np.ndarray) -> None:
        kind, itemsize = chunk.dtype.kind, chunk.itemsize
        if kind == "b":
            # a borrowed boolean buffer may hold any byte for True: Pillow's holds 255
            chunk = (chunk.view(np.uint8) != 0).view(np.uint8)
        elif kind not in "iuf":
            raise ValueError(f"{self.where}: found voxels of type {chunk.dtype}, expected {self.expected}")
        if chunk.nbytes >= _MIN_RUN_BYTES and itemsize <= 8 and chunk.flags.c_contiguous:
            if self._resting:
                # neighbouring chunks are alike: where the shortcuts did not help, they are not tried for a while
                self._resting -= 1
            else:
                chunk, helped = self._without_background(chunk)
                if not chunk.size or self._add_few(chunk):
                    return
                self._resting = 0 if helped else _REST
            whole = chunk.size - chunk.size % (8 // itemsize)
            if whole and self._add_runs(chunk[:whole]):
                chunk = chunk[whole:]
        if chunk.size:
            self._add_voxels(chunk)

    def _without_background(self, chunk: np.ndarray) -> tuple[np.ndarray, bool]:
        """Count blocks of zero bytes only, by far the most frequent content; return the rest, and whether there were any."""
        whole = chunk.nbytes - chunk.nbytes % _BLOCK_BYTES
        as_bytes = chunk.view(np.uint8)
        # asking for the largest byte is the cheapest test: several times as fast as looking for runs
        if not as_bytes.max():
            self._tally([0], [chunk.size])
            return chunk[:0], True
        blocks = as_bytes[:whole].reshape(-1, _BLOCK_BYTES)
        filled = np.flatnonzero(blocks.max(axis=1))
        empty = len(blocks) - len(filled)
        if 4 * empty < len(blocks):
            return chunk, False
        self._tally([0], [empty * (_BLOCK_BYTES // chunk.itemsize)])
        rest = chunk[whole // chunk.itemsize :]
        # runs still hold although blocks that were apart are now neighbours
        if not len(filled):
            return rest, True
        return np.concatenate([blocks[filled].reshape(-1).view(chunk.dtype), rest]), True

    def _add_few(self, chunk: np.ndarray) -> bool:
        """Count a chunk of 0 and a few more classes by comparing; False (and nothing counted) if it holds anything else."""
        if chunk.dtype.kind == "f" or chunk.itemsize > 2 or not chunk.dtype.isnative:
            return False
        highest = int(chunk.max())
        if highest > _FEW_CLASSES or (chunk.dtype.kind == "i" and int(chunk.min()) < 0):
            return False
        if highest == 1 and chunk.itemsize == 1:
            counts = [int(np.count_nonzero(chunk.view(bool)))]
        else:
            equal = self._mask[: chunk.size]
            counts = [int(np.count_nonzero(np.equal(chunk, value, out=equal))) for value in range(1, highest + 1)]
        self._tally(list(range(highest + 1)), [chunk.size - sum(counts), *counts])
        return True

    def _add_runs(self, chunk: np.ndarray) -> bool:
        """Collect the runs of equal 8-byte words; False (and nothing collected) where there are too few to pay off."""
        words = chunk.view(np.uint64)
        changes = np.flatnonzero(np.not_equal(words[1:], words[:-1], out=self._mask[: len(words) - 1]))
        runs = len(changes) + 1
        if runs * _MIN_MEAN_RUN > len(words):
            return False
        if not _allocator_settled:
            _settle_allocator()
        if self._staged + runs > len(self._words) or chunk.dtype != self._staged_dtype:
            self._evaluate_runs()
            self._staged_dtype = chunk.dtype
            if runs > len(self._words):
                room = max(runs, _STAGED_RUNS)
                self._words, self._lengths = np.empty(room, np.uint64), np.empty(room, np.int64)
        start, end = self._staged, self._staged + runs
        np.take(words, changes, out=self._words[start : end - 1], mode="clip")
        self._words[end - 1] = words[-1]
        lengths = self._lengths[start:end]
        if runs > 1:
            lengths[0] = changes[0] + 1
            np.subtract(changes[1:], changes[:-1], out=lengths[1:-1])
            lengths[-1] = len(words) - 1 - changes[-1]
        else:
            lengths[0] = len(words)
        self._staged = end
        return True

    def _evaluate_runs(self) -> None:
        words, lengths = self._words[: self._staged], self._lengths[: self._staged]
        dtype = self._staged_dtype
        self._staged = 0
        if not len(words):
            return
        per_word = 8 // dtype.itemsize
        first = words.view(f"u{dtype.itemsize}")[::per_word]
        uniform = words == first * np.uint64(_ONE_IN_EVERY_VOXEL[dtype.itemsize])
        inside = np.flatnonzero(uniform)
        if len(inside):
            self._add_weighted(first[inside].view(dtype), lengths[inside] * per_word)
        if len(inside) < len(words):
            edges = np.flatnonzero(~uniform)
            # most edges consist of few different words, so sorting them beats a histogram of their voxels
            kinds, times = np.unique(words[edges], return_counts=True)
            repeats = lengths[edges]
            repeated = np.flatnonzero(repeats > 1)
            if len(repeated):
                # a word of several values that is repeated, one after the other
                kinds = np.concatenate([kinds, words[edges[repeated]]])
                times = np.concatenate([times, repeats[repeated] - 1])
            self._add_weighted(kinds.view(dtype), np.repeat(times, per_word))

    def _add_voxels(self, voxels: np.ndarray) -> None:
        voxels = self._as_integers(voxels)
        low, high = int(voxels.min()), int(voxels.max())
        if high - low >= _DENSE_WIDTH:
            values, counts = np.unique(voxels, return_counts=True)
            self._tally(values.tolist(), counts.tolist())
            return
        if low < 0 or high >= _DENSE_WIDTH:
            self._tally_dense(_histogram(_from_zero(voxels, low), high - low), low)
        else:
            self._tally_dense(_histogram(voxels, high), 0)

    def _add_weighted(self, voxels: np.ndarray, weights: np.ndarray) -> None:
        # The weights add up to at most the voxels of all collected runs, far below 2^53, so their float64 sums are exact.
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
            if count:
                self._counts[value] = self._counts.get(value, 0) + count

    def _as_integers(self, voxels: np.ndarray) -> np.ndarray:
        if not voxels.dtype.isnative:
            voxels = voxels.astype(voxels.dtype.newbyteorder("="))
        if voxels.dtype.kind != "f":
            return voxels
        with np.errstate(invalid="ignore"):
            integers = voxels.astype(np.int64)
        # NaN, infinities and values beyond int64 do not survive the round trip either; where the processor saturates instead
        # of wrapping, 2^63 would, so the largest int64 (not representable in float64) marks it
        faulty = (integers.astype(voxels.dtype) != voxels) | (integers == np.iinfo(np.int64).max)
        if faulty.any():
            raise ValueError(not_integers(self.where, np.unique(voxels[faulty]).tolist(), self.expected))
        return integers


_allocator_settled = False


def _settle_allocator() -> None:
    """Let a chunk's temporaries come from memory that the process keeps.

    glibc maps blocks of 128 KiB and more anew each time and returns memory at the heap's end at once; the page faults then cost
    a third of the counting. Once a larger block has been freed, it raises both limits by itself. Elsewhere this does nothing.
    """
    global _allocator_settled
    np.empty(1 << 22, np.uint8)
    _allocator_settled = True


def _histogram(voxels: np.ndarray, high: int) -> np.ndarray:
    """Voxels per value 0 ... high, of integers in that range."""
    paired = voxels.dtype == np.uint8 and high < 128 and len(voxels) % 2 == 0 and voxels.flags.c_contiguous
    if not paired or len(voxels) < _MIN_PAIRED_VOXELS:
        return _bincount(voxels, high + 1)
    # Two voxels at a time: half as many increments. A pair is 256 times one voxel plus the other, below 2^15.
    table = _bincount(voxels.view(np.int16), (high + 1) * 256).reshape(high + 1, 256)
    return table.sum(axis=1) + table.sum(axis=0)[: high + 1]


def _bincount(voxels: np.ndarray, width: int) -> np.ndarray:
    if voxels.dtype == np.uint16 and width <= 1 << 15:
        voxels = voxels.view(np.int16)
    torch = sys.modules.get("torch")
    if torch is None or voxels.dtype not in _TORCH_TYPES:
        return np.bincount(voxels, minlength=width)
    # torch warns about arrays it could not write to, such as memory-mapped files
    own = voxels if voxels.flags.writeable else voxels.copy()
    return torch.bincount(torch.from_numpy(own), minlength=width).numpy()


def _from_zero(voxels: np.ndarray, low: int) -> np.ndarray:
    """The voxels minus ``low`` as int64; their range is known to be small, so even a wrapped difference comes out right."""
    if voxels.dtype == np.uint64:
        return (voxels - np.uint64(low)).astype(np.int64)
    shifted = voxels.astype(np.int64)
    if low:
        shifted -= low
    return shifted
