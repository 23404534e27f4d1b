"""Affines, voxels and grids against values worked out by hand."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from monai_margincal.geometry import (
    GRID_TOLERANCE,
    LPS_TO_RAS,
    affine_of_axes,
    corner_shift,
    plane_affine,
    signs_to_ras,
    spans_volume,
    voxel_spacing,
    voxel_volume_mm3,
    without_trailing_ones,
)

#: 0.6 x 0.8 x 5 mm; rows to the right and down by 3-4-5, so that every number can be checked by hand
OBLIQUE = np.array([[0.36, -0.64, 0, 10], [0.48, 0.48, 0, 20], [0, 0, -5, 30], [0, 0, 0, 1.0]])
ROTATION = np.array([[0.6, -0.8, 0], [0.8, 0.6, 0], [0, 0, 1]])
SINGULAR = {
    "all zero": np.zeros((4, 4)),
    "no third axis": np.diag([1.0, 1, 0, 1]),
    "two axes alike": np.array([[1.0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]),
    # 0.1 + 0.2 is not 0.3: the determinant is 1e-17 and not 0
    "alike but for rounding": np.array([[0.1 + 0.2, 0.3, 0, 0], [0.1, 0.1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]),
    "NaN": np.full((4, 4), np.nan),
    "infinite": np.diag([np.inf, 1, 1, 1]),
}


def moved(affine, *mm):
    return affine + np.pad(np.array(mm)[:, None], ((0, 1), (3, 0)))


def rotations(seed):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]


def test_no_torch():
    code = "import sys, monai_margincal.geometry; assert not {'torch', 'monai', 'scipy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_lps_to_ras_is_its_own_inverse_and_cannot_be_changed():
    assert (LPS_TO_RAS @ [3, 4, 5, 1]).tolist() == [-3, -4, 5, 1]
    assert np.array_equal(LPS_TO_RAS @ LPS_TO_RAS, np.eye(4))
    with pytest.raises(ValueError, match="read-only"):
        LPS_TO_RAS[0, 0] = 1


@pytest.mark.parametrize(
    ("space", "signs"),
    [
        ("RAS", (1, 1, 1)),
        ("lps", (-1, -1, 1)),
        ("Right-Posterior-Inferior", (1, -1, -1)),
        ("scanner-xyz", None),
        ("ASR", None),  # another order of axes
        ("left-posterior-superior-time", None),
        ("", None),
    ],
)
def test_signs_of_a_space(space, signs):
    assert signs_to_ras(space) == signs


def test_affine_of_axes():
    affine = affine_of_axes([[0, 2, 0], [-3, 0, 0], [0, 0, 4]], [5, 6, 7])
    assert (affine @ [1, 1, 1, 1]).tolist() == [5 - 3, 6 + 2, 7 + 4, 1]
    plane = affine_of_axes([[0, 2], [-3, 0]], None)
    assert (plane @ [1, 1, 1, 1]).tolist() == [-3, 2, 1, 1]
    assert affine_of_axes([[1.0]], None) is None
    assert affine_of_axes([[1, 0, 0], [0, 1, 0]], None) is None
    assert affine_of_axes([[1, 0], [0, float("nan")]], None) is None


def test_plane_affine():
    """A coronal slice: rows to the left, columns to the feet, so that its normal points to the back (+y in LPS)."""
    plane = plane_affine([1, 0, 0, 0, 0, -1], [-10, 33, 50], ["0.8", "0.5"])
    assert (plane @ [2, 3, 0, 1]).tolist() == pytest.approx([-10 + 2 * 0.5, 33, 50 - 3 * 0.8, 1])
    assert plane[:3, 2] @ plane[:3, 3] == pytest.approx(33)
    with pytest.raises(ValueError, match="cannot reshape array of size 3"):
        plane_affine([1, 0, 0], [0, 0, 0], [1, 1])


@pytest.mark.parametrize("flip", [1, -1])
def test_spacing_and_volume(flip):
    affine = OBLIQUE @ np.diag([flip, 1, 1, 1])
    assert voxel_spacing(affine) == pytest.approx((0.6, 0.8, 5))
    assert voxel_volume_mm3(affine) == pytest.approx(0.6 * 0.8 * 5)
    assert voxel_volume_mm3(affine[:3, :3].tolist()) == pytest.approx(2.4)
    assert voxel_volume_mm3(torch.tensor(affine)) == pytest.approx(2.4)


@settings(deadline=None, max_examples=50)
@given(
    spacing=st.tuples(*[st.floats(0.1, 10)] * 3),
    flips=st.tuples(*[st.sampled_from([-1, 1])] * 3),
    seed=st.integers(0, 20),
    order=st.permutations(range(3)),
)
def test_spacing_and_volume_of_any_orientation(spacing, flips, seed, order):
    """MONAI issue 5332: spacing came out negative for LPS affines."""
    affine = np.eye(4)
    affine[:3, :3] = (rotations(seed) @ np.diag(np.multiply(spacing, flips)))[:, order]
    affine[:3, 3] = 100
    assert voxel_volume_mm3(affine) == pytest.approx(np.prod(spacing), rel=1e-9)
    assert voxel_spacing(affine) == pytest.approx([spacing[axis] for axis in order], rel=1e-9)
    assert spans_volume(affine)


@pytest.mark.parametrize("case", SINGULAR)
def test_what_a_singular_affine_gives_is_up_to_the_caller(case):
    assert not spans_volume(SINGULAR[case])
    assert voxel_volume_mm3(SINGULAR[case], default=None) is None
    assert voxel_volume_mm3(SINGULAR[case], default=1.5) == 1.5
    with pytest.raises(
        ValueError, match=r"found the affine \[\[.*, which spans no volume, expected three directions in mm"
    ):
        voxel_volume_mm3(SINGULAR[case])


def test_trailing_ones():
    assert without_trailing_ones([5, 1, 4, 1, 1]) == (5, 1, 4)
    assert without_trailing_ones((1, 1, 1)) == (1,)
    assert without_trailing_ones(()) == ()


def test_shift_by_hand():
    shape = (9, 8, 4)
    assert corner_shift(OBLIQUE, OBLIQUE, shape) == (0, 0)
    # 3-4-12-13, in edges of 0.6 mm
    assert corner_shift(OBLIQUE, moved(OBLIQUE, 3, 4, 12), shape) == pytest.approx((13, 13 / 0.6))
    # another slice distance grows from the first slice to the last
    assert corner_shift(np.diag([1.0, 1, 2, 1]), np.diag([1.0, 1, 2.5, 1]), (9, 8, 5)) == pytest.approx((2, 2))
    # mirrored about its middle: the first corner lands on the far one
    mirrored = moved(np.diag([-1.0, 1, 1, 1]), 8, 0, 0)
    assert corner_shift(np.eye(4), mirrored, shape) == pytest.approx((8, 8))
    # transposed in a square plane: two corners stay where they are
    assert corner_shift(np.eye(4), np.eye(4)[[1, 0, 2, 3]], (5, 5, 1)).mm == pytest.approx(4 * 2**0.5)


def test_shift_of_planes_and_of_broken_affines():
    assert corner_shift(np.eye(4), np.diag([2.0, 2, 1, 1]), (9, 8)) == pytest.approx((113**0.5, 113**0.5))
    flat = np.diag([0.5, 0.5, 0, 1])  # NIfTI planes say 0 for the distance of slices
    assert corner_shift(flat, moved(flat, 0.1, 0, 0), (9, 8, 1)).voxels == pytest.approx(0.2)
    assert corner_shift(np.diag([0.0, 0, 0, 1]), np.diag([0.0, 0, 0, 1]), (9, 8, 4)) == (0, 0)
    assert np.isnan(corner_shift(np.eye(4), np.full((4, 4), np.nan), (9, 8, 4)).voxels)
    assert not corner_shift(np.full((4, 4), np.nan), np.eye(4), (9, 8, 4)).voxels <= GRID_TOLERANCE


@settings(deadline=None, max_examples=50)
@given(
    spacing=st.tuples(*[st.floats(0.1, 10)] * 3),
    shift=st.tuples(*[st.floats(-20, 20)] * 3),
    seed=st.integers(0, 100),
    shape=st.tuples(*[st.integers(1, 60)] * 3),
)
def test_shift_does_not_change_when_both_grids_are_turned_together(spacing, shift, seed, shape):
    first = np.diag([*spacing, 1.0])
    second = moved(first, *shift) + np.pad(np.random.default_rng(seed).normal(0, 0.01, (3, 3)), (0, 1))
    turn = np.eye(4)
    turn[:3, :3], turn[:3, 3] = rotations(seed), shift[::-1]
    plain, turned = corner_shift(first, second, shape), corner_shift(turn @ first, turn @ second, shape)
    assert turned == pytest.approx(plain, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    "round_", [lambda a: a.round(4), lambda a: a.astype(np.float32)], ids=["4 decimals", "float32"]
)
def test_rounding_is_within_the_tolerance_and_half_a_voxel_is_not(round_):
    shape = (512, 512, 150)
    for seed in range(20):
        affine = np.eye(4)
        affine[:3, :3] = rotations(seed) @ np.diag([0.5, 0.5, 1.25])
        affine[:3, 3] = np.random.default_rng(seed).uniform(-400, 400, 3)
        assert corner_shift(affine, round_(affine), shape).voxels <= GRID_TOLERANCE
        for axis in range(3):
            centre = affine.copy()
            centre[:3, 3] += affine[:3, axis] / 2
            assert corner_shift(affine, round_(centre), shape).voxels > GRID_TOLERANCE
