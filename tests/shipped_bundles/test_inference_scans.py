"""Whole scans as hospitals have them, in every format, and from one slice to a thousand."""

from __future__ import annotations

import csv

import nibabel
import numpy as np
import pytest
import SimpleITK
import torch
from monai.data.utils import orientation_ras_lps
from shared import SHARED, needs_shared

from monai_margincal.decisions import ClassOffsets
from monai_margincal.networks import COPLENet

SMALL = (8, 16, 32, 64, 128)


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """A random network that marks a part of every scan."""
    path = tmp_path_factory.mktemp("weights") / "model.pt"
    torch.manual_seed(3)
    network = COPLENet(features=SMALL, norm="group").eval()
    planes = torch.nn.functional.interpolate(torch.rand(2, 1, 8, 8), size=(128, 128))
    with torch.no_grad():
        logits = network(planes)
        network.out_conv.bias[1] -= (logits[:, 1] - logits[:, 0]).median()
    torch.save(network.state_dict(), path)
    return path


def same_grid(mask, scan, tolerance=1e-4):
    """A nibabel mask lies where a SimpleITK image lies."""
    assert mask.shape == scan.GetSize()
    lps = np.eye(4)
    lps[:3, :3] = np.reshape(scan.GetDirection(), (3, 3)) @ np.diag(scan.GetSpacing())
    lps[:3, 3] = scan.GetOrigin()
    assert np.abs(mask.affine - orientation_ras_lps(lps)).max() < tolerance


@needs_shared
@pytest.mark.slow
@pytest.mark.parametrize("crop", [False, True], ids=["whole", "lung crop"])
def test_the_two_whole_scans(workflow, weights, tmp_path, crop):
    """512 x 512 x 48 and 512 x 512 x 61, NRRD, axes towards left and posterior."""
    data = SHARED / "data" / "lung_ct"
    flags = {
        "dataset_dir": str(data),
        "image_pattern": "{case}_image.nrrd",
        "checkpoint": str(weights),
        "lung_crop": crop,
    }
    workflow(("inference",), "infer", **flags).run()
    with (tmp_path / "eval" / "volumes.csv").open(newline="") as file:
        rows = {row["image"].rsplit("/", 1)[-1]: row for row in csv.DictReader(file)}
    assert sorted(rows) == ["lung1_image.nrrd", "lung2_image.nrrd"]
    for name, row in rows.items():
        mask = nibabel.load(tmp_path / "eval" / name.replace(".nrrd", "_mask.nii.gz"))
        scan = SimpleITK.ReadImage(str(data / name))
        same_grid(mask, scan)
        assert mask.get_data_dtype() == np.uint8
        voxels = np.asarray(mask.dataobj)
        assert 0 < voxels.mean() < 1
        assert int(row["lesion_voxels"]) == voxels.sum()
        assert float(row["voxel_volume_mm3"]) == pytest.approx(np.prod(scan.GetSpacing()), rel=1e-6)
        assert row["cropped_to"] == ("lungs" if crop else "")


@needs_shared
@pytest.mark.slow
@pytest.mark.parametrize("series", ["dcmqi/ct-3slice", "monai_ct_dicom/CT_DICOM"])
@pytest.mark.parametrize("crop", [False, True], ids=["whole", "lung crop"])
def test_one_scan_as_dicom_nifti_nrrd_and_metaimage_gives_one_mask(workflow, weights, tmp_path, series, crop):
    """monai-deploy-app-sdk pull 559, model-zoo issue 508; 512 x 512 x 3, and 16 x 16 x 4 without file endings."""
    folder = SHARED / "data" / "dicom" / series
    reader = SimpleITK.ImageSeriesReader()
    reader.SetFileNames(reader.GetGDCMSeriesFileNames(str(folder)))
    image = SimpleITK.Cast(reader.Execute(), SimpleITK.sitkInt16)
    (tmp_path / "data" / "images").mkdir(parents=True)
    for case, ending in (("nifti", "nii.gz"), ("nrrd", "nrrd"), ("meta", "mha")):
        SimpleITK.WriteImage(image, str(tmp_path / "data" / "images" / f"{case}.{ending}"))
    gap = folder.name == "CT_DICOM"  # its first slice lies 202.5 mm away from the others
    common = {"checkpoint": str(weights), "lung_crop": crop, "allow_gaps": gap}
    workflow(("inference",), "infer", dataset_dir=str(tmp_path / "data"), **common).run()
    dicom = {"dataset_dir": str(folder.parent), "image_pattern": "{case}", "cases": folder.name}
    workflow(("inference",), "infer", **dicom, **common).run()
    masks = [nibabel.load(path) for path in sorted((tmp_path / "eval").rglob("*_mask.nii.gz"))]
    assert len(masks) == 4
    for mask in masks:
        same_grid(mask, image)
        assert np.array_equal(np.asarray(mask.dataobj), np.asarray(masks[0].dataobj))


@needs_shared
@pytest.mark.slow
def test_a_dicom_series_gives_a_dicom_segmentation(workflow, weights, tmp_path):
    """The voxels of the mask, as segment 1, in the frame of reference of the series."""
    highdicom = pytest.importorskip("highdicom")
    dicom = {"dataset_dir": str(SHARED / "data" / "dicom" / "dcmqi"), "image_pattern": "{case}", "cases": "ct-3slice"}
    ClassOffsets([0.0, 50.0]).to_json(tmp_path / "decision.json")
    marked = []
    for decision in ("argmax", str(tmp_path / "decision.json")):
        outputs = {"outputs": "mask,dicom_seg", "decision": decision}
        workflow(("inference",), "infer", **dicom, checkpoint=str(weights), **outputs).run()
        mask = nibabel.load(tmp_path / "eval" / "ct-3slice_mask.nii.gz")
        segmentation = highdicom.seg.segread(tmp_path / "eval" / "ct-3slice_seg.dcm")
        marked.append(int(segmentation.pixel_array.sum()))
        assert marked[-1] == int(np.asarray(mask.dataobj).sum()) > 0
        assert segmentation.Rows == segmentation.Columns == 512
    assert marked[0] < marked[1], "with offsets, too, what is written is what was decided"


@pytest.mark.parametrize("slices", [1, 2, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("crop", [False, True], ids=["whole", "lung crop"])
def test_one_slice_to_a_thousand(workflow, weights, tmp_path, slices, crop):
    plane = np.kron(np.random.RandomState(0).randint(-1000, 100, (6, 5)), np.ones((8, 8))).astype(np.int16)
    (tmp_path / "data" / "images").mkdir(parents=True)
    scan = nibabel.Nifti1Image(np.repeat(plane[..., None], slices, axis=-1), np.diag([-0.7, -0.7, 0.5, 1]))
    nibabel.save(scan, tmp_path / "data" / "images" / "a.nii.gz")
    flags = {"dataset_dir": str(tmp_path / "data"), "checkpoint": str(weights), "lung_crop": crop, "lung_margin": 1000}
    workflow(("inference",), "infer", **flags).run()
    mask = nibabel.load(tmp_path / "eval" / "images" / "a_mask.nii.gz")
    assert mask.shape == (48, 40, slices)
    assert np.abs(mask.affine - scan.affine).max() < 1e-4
    voxels = np.asarray(mask.dataobj)
    assert 0 < voxels.mean() < 1
    assert (voxels == voxels[..., :1]).all(), "equal slices, equal masks, whatever batch they fall into"
