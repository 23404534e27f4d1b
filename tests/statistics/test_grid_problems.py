"""Grids that differ within a set, on data that has them and on data that has not."""

from __future__ import annotations

from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from PIL import Image
from shared import SHARED, needs_shared

from monai_margincal.findings import Finding
from monai_margincal.statistics import find_problems, scan_labels


def save(path: Path, shape: tuple[int, ...] = (6, 5, 4), affine: np.ndarray | None = None) -> str:
    label = np.zeros(shape, np.uint8)
    label[1:3, 1:3] = 1
    nib.save(nib.Nifti1Image(label, np.eye(4) if affine is None else affine), path)
    return str(path)


def differing(files: list[str]) -> list[Finding]:
    found = find_problems(scan_labels(files, progress=False))
    return [finding for finding in found if finding.kind == "differing grids"]


def test_planes_among_volumes(tmp_path: Path) -> None:
    files = [save(tmp_path / f"{number}.nii", (6, 5, 4 + number)) for number in range(3)]
    Image.fromarray(np.eye(5, 7, dtype=np.uint8)).save(tmp_path / "plane.png")
    (finding,) = differing([*files, str(tmp_path / "plane.png")])
    assert finding.severity == "warning"
    assert finding.message.startswith("volumes (3) and planes (1) in one set")
    assert finding.files == (str(tmp_path / "plane.png"),)


def test_one_slice_among_volumes_is_a_volume(tmp_path: Path) -> None:
    assert differing([save(tmp_path / "a.nii"), save(tmp_path / "b.nii", (6, 5, 1))]) == []


@pytest.mark.parametrize(("slices", "told"), [(2.0, False), (2.1, True), (0.5, False), (0.45, True)])
def test_distances_of_slices(tmp_path: Path, slices: float, told: bool) -> None:
    """More than a factor of 2 between the cases, whose sizes all differ; the case off the median is named."""
    spacings = [1.0, 1.0, 1.0, slices]
    files = [
        save(tmp_path / f"{number}.nii", (6, 5, 4 + number), np.diag([1.0, 1.0, spacing, 1.0]))
        for number, spacing in enumerate(spacings)
    ]
    found = differing(files)
    assert [finding.files for finding in found] == ([(files[3],)] if told else [])
    if told:
        low, high = sorted([1, slices])
        assert found[0].severity == "info"
        assert found[0].message.startswith(f"neighbouring voxels lie {low:g} to {high:g} mm from foot to head apart")
        assert found[0].message.endswith("far from the median: 1 of 4 cases")


def test_axes_stored_in_another_order_are_the_same_grid(tmp_path: Path) -> None:
    """Spacing and size are compared along the patient's axes."""
    files = [save(tmp_path / f"{number}.nii", affine=np.diag([1.0, 1.0, 3.0, 1.0])) for number in range(10)]
    turned = np.array([[0.0, 0, 1, 0], [0, 1, 0, 0], [3, 0, 0, 0], [0, 0, 0, 1]])
    files.append(save(tmp_path / "turned.nii", (4, 5, 6), turned))
    assert differing(files) == []


@pytest.mark.parametrize(("alike", "told"), [(8, False), (9, True)])
def test_a_few_of_another_size(tmp_path: Path, alike: int, told: bool) -> None:
    """Where nine of ten have one size."""
    files = [save(tmp_path / f"{number}.nii", (6, 5, 4 if number < alike else 2 * number)) for number in range(10)]
    found = differing(files)
    assert [finding.files for finding in found] == ([(files[9],)] if told else [])
    if told:
        assert (found[0].severity, found[0].message) == ("info", "9 of 10 cases have 6×5×4 voxels; of another size: 1")


@needs_shared
def test_the_whole_scan_among_the_crops_of_the_hippocampus() -> None:
    assert SHARED is not None
    files = sorted((SHARED / "data" / "hippocampus_mr" / "labels").glob("hippocampus_2[78]*.nii.gz"))
    (finding,) = differing([str(file) for file in files])
    assert [Path(file).name for file in finding.files] == ["hippocampus_281.nii.gz"]
    assert "1 to 5 mm from foot to head" in finding.message
