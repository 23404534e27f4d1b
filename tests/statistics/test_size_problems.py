"""A single case or a single class that outweighs the others, and the limits from which on that is said."""

from __future__ import annotations

from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared import SHARED, needs_shared

from monai_margincal import ClassCounts
from monai_margincal.statistics import find_problems, scan_labels
from monai_margincal.statistics.size_problems import size_problems


def counts_of(cases: dict[str, list[int]]) -> ClassCounts:
    return ClassCounts(np.sum(list(cases.values()), axis=0).tolist(), cases=cases)


def kinds(counts: ClassCounts) -> list[tuple[str, tuple[str, ...]]]:
    return [(finding.kind, finding.files) for finding in size_problems(counts)]


def test_a_case_that_holds_most_of_the_background() -> None:
    cases = {f"crop_{number}": [30_000, 1000] for number in range(20)} | {"whole": [60_000_000, 1200]}
    (finding,) = size_problems(counts_of(cases), {"whole": "labels/whole.nii.gz"})
    assert (finding.severity, finding.kind, finding.files) == ("warning", "size outlier", ("labels/whole.nii.gz",))
    assert finding.message.startswith(
        "holds more than 99 % of the voxels of class 0, 2,000 times the median of the 21 cases"
    )


def test_the_limits_of_an_outlier() -> None:
    """More than half of the voxels, more than ten medians, at least five cases."""
    usual = {f"case_{number}": [1000, 1000] for number in range(20)}
    assert kinds(counts_of(usual | {"big": [1000, 20_000]})) == []
    assert kinds(counts_of(usual | {"big": [1000, 20_001]})) == [("size outlier", ("big",))]
    few = dict(list(usual.items())[:4])
    assert kinds(counts_of(few | {"big": [1000, 10_000]})) == []
    assert kinds(counts_of(few | {"big": [1000, 10_001]})) == [("size outlier", ("big",))]
    # cases without the class say nothing of its usual size
    lacking = {f"none_{number}": [1000, 0] for number in range(20)}
    three = dict(list(usual.items())[:3])
    assert kinds(counts_of(three | lacking | {"big": [1000, 10**6]})) == []


@pytest.mark.parametrize(("voxels", "told"), [(0, False), (1, True), (100, True), (101, False)])
def test_a_class_of_a_handful_of_voxels(voxels: int, told: bool) -> None:
    cases = {"a": [500_000, 9000, voxels], "b": [500_000, 8000, 0]}
    assert kinds(counts_of(cases)) == ([("handful of voxels", ("a",))] if told else [])


def test_the_share_of_tau_is_said() -> None:
    # rho_0k goes with sqrt(n - n_k) / n_k
    voxels = np.array([1_000_000.0, 30, 9])
    ratios = np.sqrt(voxels.sum() - voxels) / voxels
    (finding,) = size_problems(ClassCounts([1_000_000, 30, 9], names=["air", "organ", "stray"]))
    share = f"{100 * ratios[2] / ratios.sum():.0f} %"
    assert f"class 2 stray has 9 voxels in the whole set and takes {share} of tau" in finding.message
    assert finding.files == ()


def test_a_handful_that_is_much_of_a_small_set_or_shares_tau_is_none() -> None:
    assert kinds(ClassCounts([900, 90, 10])) == []
    # two classes of a handful share tau: neither takes more than half
    assert kinds(ClassCounts([1_000_000, 50, 50])) == []


@given(st.lists(st.lists(st.integers(0, 10**6), min_size=3, max_size=3), min_size=1, max_size=8))
def test_never_more_than_one_outlier_and_one_handful_per_set_and_class(rows: list[list[int]]) -> None:
    found = kinds(counts_of({f"case_{number}": row for number, row in enumerate(rows)}))
    assert [kind for kind, _ in found].count("handful of voxels") <= 1
    assert [kind for kind, _ in found].count("size outlier") <= 3
    assert len(rows) >= 5 or "size outlier" not in dict(found)


def test_counts_without_a_voxel_or_a_case_have_none() -> None:
    assert size_problems(ClassCounts([0, 0])) == ()
    assert size_problems(ClassCounts([5])) == ()


def test_a_scan_names_the_files(tmp_path: Path) -> None:
    for number in range(6):
        label = np.zeros((90, 90, 2) if number == 5 else (8, 8, 2), np.uint8)
        label[0, : number + 1] = 1
        nib.save(nib.Nifti1Image(label, np.eye(4)), tmp_path / f"{number}.nii")
    scan = scan_labels(str(tmp_path / "*.nii"), num_classes=2, progress=False)
    found = [finding for finding in find_problems(scan) if finding.kind == "size outlier"]
    assert [finding.files for finding in found] == [(str(tmp_path / "5.nii"),)]


@needs_shared
def test_the_whole_scan_among_the_crops_of_the_hippocampus() -> None:
    assert SHARED is not None
    files = sorted((SHARED / "data" / "hippocampus_mr" / "labels").glob("hippocampus_2*.nii.gz"))
    found = size_problems(scan_labels(files, num_classes=3, progress=False).counts)
    assert [(finding.kind, finding.files) for finding in found] == [("size outlier", ("hippocampus_281",))]
