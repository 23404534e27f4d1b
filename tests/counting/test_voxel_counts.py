"""Counting one label array: against NumPy's unique, over every type, layout and fault."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from monai_margincal.counting import label_voxel_counts
from monai_margincal.counting.one_hot import one_hot_voxel_counts
from monai_margincal.counting.value_counter import CHUNK_BYTES, ValueCounter
from monai_margincal.counting.voxel_counts import value_counts

INTEGERS = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]
FLOATS = ["float16", "float32", "float64"]


def oracle(array: np.ndarray) -> dict[int, int]:
    values, counts = np.unique(array, return_counts=True)
    return {int(value): int(count) for value, count in zip(values, counts, strict=True)}


def blobs(dtype: str, seed: int, size: int = 300_000, ids: tuple[int, ...] = (0, 1, 2, 9)) -> np.ndarray:
    """Runs of random length, like rows of a segmentation, with some noise."""
    rng = np.random.default_rng(seed)
    lengths = rng.geometric(1 / 60, size)
    labels = np.repeat(rng.choice(ids, size, p=None), lengths)[:size]
    noisy = rng.random(size) < 0.001
    labels[noisy] = rng.choice(ids, int(noisy.sum()))
    return labels.astype(dtype)


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
@pytest.mark.parametrize("byteorder", ["<", ">"])
def test_runs_equal_unique_for_every_type(dtype: str, byteorder: str) -> None:
    array = blobs(dtype, 0).astype(np.dtype(dtype).newbyteorder(byteorder))
    assert value_counts(array) == oracle(array)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "int32", "int64", "float32", "float64"])
def test_noise_without_runs_equals_unique(dtype: str) -> None:
    array = np.random.default_rng(1).integers(0, 120, CHUNK_BYTES + 12_345).astype(dtype)
    assert value_counts(array) == oracle(array)


@given(
    runs=st.lists(st.tuples(st.integers(0, 2**64), st.integers(1, 70)), min_size=1, max_size=60),
    dtype=st.sampled_from(INTEGERS + FLOATS),
    offset=st.integers(0, 7),
    repeats=st.integers(1, 60),
)
@settings(max_examples=150, deadline=None)
def test_any_runs_equal_unique(runs: list[tuple[int, int]], dtype: str, offset: int, repeats: int) -> None:
    info = np.iinfo(dtype) if dtype in INTEGERS else None
    span = 2048 if info is None else int(info.max) - int(info.min) + 1
    low = 0 if info is None else int(info.min)
    # values beyond int64 cannot be counted as int64 ids
    values = [min(low + value % span, 2**63 - 1) for value, _ in runs]
    array = np.repeat(np.array(values, dtype=dtype), [length for _, length in runs])
    array = np.tile(array, repeats)[min(offset, array.size - 1) :]
    assert value_counts(array) == oracle(array)


@given(
    labels=st.lists(st.sampled_from([0, 1, 7, 255, 100_000, -1]), min_size=1, max_size=200),
    ids=st.sampled_from([(0, 1, 7, 255, 100_000, -1), (0, 1), (0, 1, 7)]),
    ignore=st.sampled_from([None, -1, 255, 0]),
    kind=st.sampled_from(["numpy", "torch", "float"]),
)
@settings(max_examples=150, deadline=None)
def test_ids_and_ignored_partition_the_voxels(
    labels: list[int], ids: tuple[int, ...], ignore: int | None, kind: str
) -> None:
    array = np.array(labels, dtype=np.int32)
    given_as = {"numpy": array, "torch": torch.from_numpy(array), "float": torch.from_numpy(array).float()}[kind]
    strangers = set(labels) - set(ids) - {ignore}
    if strangers:
        with pytest.raises(ValueError, match="expected class ids"):
            label_voxel_counts(given_as, ids, ignore)
        return
    result = label_voxel_counts(given_as, ids, ignore)
    assert result.counts.dtype == np.int64
    assert result.ids == tuple(sorted(ids))
    assert result.counts.tolist() == [0 if i == ignore else labels.count(i) for i in result.ids]
    assert result.ignored == (0 if ignore is None else labels.count(ignore))
    assert result.counts.sum() + result.ignored == len(labels)


@pytest.mark.parametrize("layout", ["C", "F", "transposed", "strided", "reversed", "readonly"])
def test_memory_layout_does_not_matter(layout: str) -> None:
    base = blobs("uint16", 3, 64 * 50 * 40).reshape(64, 50, 40)
    array = {
        "C": base,
        "F": np.asfortranarray(base),
        "transposed": base.transpose(2, 0, 1),
        "strided": base[::2, 1::3, ::-1],
        "reversed": base[::-1],
        "readonly": base.copy(),
    }[layout]
    if layout == "readonly":
        array.flags.writeable = False
    assert value_counts(array) == oracle(array)


def test_periodic_words_longer_than_one_word() -> None:
    """Equal 8-byte words that are not of one value: every voxel of every repetition counts."""
    array = np.tile(np.array([1, 2, 3, 4, 5, 6, 7, 8], np.uint8), 10_000)
    assert value_counts(array) == dict.fromkeys(range(1, 9), 10_000)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16])
@pytest.mark.parametrize("extra", [torch.bool, torch.bfloat16, torch.float32, torch.float64])
def test_torch_types(dtype: torch.dtype, extra: torch.dtype) -> None:
    base = torch.tensor([[0, 1, 1], [0, 0, 1]])
    for kind in (dtype, extra):
        assert value_counts(base.to(kind)) == {0: 3, 1: 3}
    assert value_counts(base.to(dtype).requires_grad_(dtype.is_floating_point)) == {0: 3, 1: 3}


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.array([60000, 60000, 0], np.uint16), {0: 1, 60000: 2}),
        (np.array([100000, 0], np.int32), {0: 1, 100000: 1}),
        (np.array([100000.0, 0.0], np.float32), {0: 1, 100000: 1}),
        (np.array([2**40, 0], np.int64), {0: 1, 2**40: 1}),
        (np.array([2**63 - 1], np.uint64), {2**63 - 1: 1}),
        (np.array([-0.0, 0.0, 300.0]), {0: 2, 300: 1}),
    ],
)
def test_large_ids_survive(array: np.ndarray, expected: dict[int, int]) -> None:
    """MONAI/issues/5505: uint16 60000 and int32 100000 survive; a cast to uint8 would make 300 a 44."""
    assert value_counts(array) == expected


def test_more_than_2_to_the_31_voxels() -> None:
    """Counts beyond int32, without the memory for them: one array seen through a zero stride."""
    counter = ValueCounter()
    chunk = np.zeros(CHUNK_BYTES, np.uint8)
    chunk[-1] = 3
    for _ in range(2**31 // CHUNK_BYTES + 1):
        counter.add(chunk)
    times = 2**31 // CHUNK_BYTES + 1
    assert counter.counts() == {0: times * (CHUNK_BYTES - 1), 3: times}
    assert sum(counter.counts().values()) > 2**31


def test_float32_counts_do_not_saturate() -> None:
    """torch.histc stops at 2^25 on float32; this does not."""
    counter = ValueCounter()
    for _ in range(40):
        counter.add(np.ones(1 << 20, np.float32))
    assert counter.counts() == {1: 40 << 20}


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_counts_do_not_depend_on_the_device(device: str) -> None:
    """pytorch/issues/98316: bincount is flagged on GPUs and histc differs; these counts are equal."""
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no GPU")
    array = blobs("int32", 7)
    assert value_counts(torch.from_numpy(array).to(device)) == oracle(array)


@pytest.mark.parametrize(
    ("label", "message"),
    [
        (np.array([0.0, np.nan]), r"case: found values that are not integers: nan, expected class ids \[0, 1\]"),
        (np.array([0.0, np.inf]), "not integers: inf"),
        (np.array([0.5, 1.0, 0.25]), r"not integers: 0\.25, 0\.5"),
        (np.array([1e30]), "not integers: 1e"),
        (np.array([2.0**63]), "not integers: 9"),
        (np.zeros((0, 3)), r"empty label of shape \(0, 3\)"),
        (
            np.array([0, 2]),
            r"found the label value\(s\) 2 \(1 voxel\) besides 0, expected class ids \[0, 1\].*num_classes=3",
        ),
        (np.array([0, 255, 255]), r"255 \(2 voxels\).*drawn with 0 and 255: declare ids=\[0, 255\]"),
        (np.array([0, 1, 255]), r"leave out, say ignore_index=255"),
        (np.array([0, 1, -1]), r"leave out, say ignore_index=-1"),
        (np.arange(-1024, 500), "looks like an image"),
        (np.array([1 + 2j]), "found voxels of type complex128"),
        (np.zeros(3, dtype=[("R", "u1"), ("G", "u1"), ("B", "u1")]), "found voxels of type"),
    ],
)
def test_faults_name_what_was_found_and_expected(label: np.ndarray, message: str) -> None:
    """nnUNet/issues/2868, /1777, /2404, /2500, /1007: one message with file, found and expected, and a hint."""
    with pytest.raises(ValueError, match=message):
        label_voxel_counts(label, ids=[0, 1], where="case")


def test_negative_value_beside_the_ignored_one_is_an_error() -> None:
    """pytorch/issues/12670: -4 with ignore -1 is not silently dropped."""
    with pytest.raises(ValueError, match=r"-4 \(1 voxel\).*class ids \[0, 1\] or the ignored value -1"):
        label_voxel_counts(np.array([0, -1, -4]), [0, 1], ignore_index=-1)


def test_ignore_as_the_highest_id_leaves_the_classes_whole() -> None:
    """nnUNet/issues/1926, /1821, /2567: with ignore = highest id, the fractions add up to 1 over the valid voxels."""
    result = label_voxel_counts(np.array([0, 0, 1, 2, 3, 3]), range(3), ignore_index=3)
    assert (result.counts / result.counts.sum()).sum() == 1.0
    assert (result.ids, result.counts.tolist(), result.ignored) == ((0, 1, 2), [2, 1, 1], 2)


def test_undeclared_ids_are_those_present() -> None:
    result = label_voxel_counts(np.array([5, 0, 5, 517]))
    assert (result.ids, result.counts.tolist()) == ((0, 5, 517), [1, 2, 1])
    with pytest.raises(ValueError, match="found 2000 label value"):
        label_voxel_counts(np.arange(2000))
    with pytest.raises(ValueError, match="expected at most 1024 integer class ids >= 0"):
        label_voxel_counts(np.array([0, -1]))


@pytest.mark.parametrize(
    ("label", "error"), [([0, 1], TypeError), ("label.nii", TypeError), (torch.tensor([1j]), ValueError)]
)
def test_what_is_no_array_is_a_type_error(label: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="expected"):
        label_voxel_counts(label, [0, 1])


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        ([], ValueError, "ids is empty"),
        ([1, 1], ValueError, "distinct"),
        ([0.5], TypeError, "integer"),
        ("01", TypeError, "ids"),
    ],
)
def test_invalid_ids(ids: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        label_voxel_counts(np.array([0]), ids)  # type: ignore[arg-type]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=50), st.sampled_from(["uint8", "float32", "bool"]))
@settings(max_examples=50, deadline=None)
def test_one_hot_equals_index_counts(labels: list[int], dtype: str) -> None:
    index = np.array(labels)
    hot = np.stack([index == i for i in range(4)]).astype(dtype)
    assert one_hot_voxel_counts(hot, range(4)).counts.tolist() == label_voxel_counts(index, range(4)).counts.tolist()
    assert one_hot_voxel_counts(torch.from_numpy(hot), (0, 5, 6, 9)).ids == (0, 5, 6, 9)


def test_one_hot_ignores() -> None:
    hot = np.array([[1, 0, 255, 1], [0, 1, 255, 0]])
    result = one_hot_voxel_counts(hot, [0, 1], ignore_index=255)
    assert (result.counts.tolist(), result.ignored) == ([2, 1], 1)
    result = one_hot_voxel_counts(hot[:, [0, 1, 3]], [0, 1], ignore_index=0)
    assert (result.counts.tolist(), result.ignored) == ([0, 1], 2)


@pytest.mark.parametrize(
    ("hot", "message"),
    [
        (np.array([[1, 1], [0, 1]]), r"found 1 voxel\(s\) in more than one class and 0 in none"),
        (np.array([[1, 0], [0, 0]]), r"found 0 voxel\(s\) in more than one class and 1 in none"),
        (np.array([[1, 2], [0, 0]]), r"found the values \[0, 1, 2\], expected a one-hot label of 2 channels"),
        (np.array([[1, 0], [0, 1], [0, 0]]), "expected one channel per class id"),
        (np.zeros((2, 0)), "empty label"),
        (np.array([[0.5, 1], [0.5, 0]]), "not integers: 0.5"),
    ],
)
def test_one_hot_faults(hot: np.ndarray, message: str) -> None:
    """MONAI/pull/5292: overlapping channels are an error, never an argmax."""
    with pytest.raises(ValueError, match=message):
        one_hot_voxel_counts(hot, [0, 1])


def test_true_may_be_any_byte() -> None:
    """Pillow lends boolean arrays whose True is 255."""
    assert value_counts(np.array([[0, 255], [255, 1]], np.uint8).view(bool)) == {0: 1, 1: 3}
