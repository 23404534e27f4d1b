"""Scans that are valid but rare, folders that cannot be written, and a run that dies in the middle of a file."""

from __future__ import annotations

import csv
import subprocess
import sys
import warnings

import nibabel
import numpy as np
import pytest
import torch
from causes import causes
from dicom_files import write_series

from monai_margincal.networks import COPLENet

SMALL = (8, 16, 32, 64, 128)
AFFINE = np.diag([-0.7, -0.7, 5.0, 1.0])


def scan(planes=4, seed=0):
    coarse = np.random.RandomState(seed).randint(-1024, 200, (6, 5, planes))
    coarse[0, 0] = -1024
    return np.kron(coarse, np.ones((8, 8, 1), np.int64)).astype(np.int16)


def save(path, array, affine=AFFINE):
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(array, affine, dtype=array.dtype), path)


def mask(folder, case):
    return nibabel.load(folder / "eval" / "images" / f"{case}_mask.nii.gz")


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """A random network that marks about half of the voxels."""
    path = tmp_path_factory.mktemp("weights") / "model.pt"
    torch.manual_seed(3)
    network = COPLENet(features=SMALL, norm="group").eval()
    planes = torch.from_numpy(scan().astype(np.float32)).permute(2, 0, 1)[:, None]
    with torch.no_grad():
        logits = network(((planes + 1400) / 1500).clip(0, 1))
        network.out_conv.bias[1] -= (logits[:, 1] - logits[:, 0]).median()
    torch.save(network.state_dict(), path)
    return path


@pytest.mark.parametrize("crop", [False, True], ids=["whole", "lung crop"])
def test_one_anatomy_in_rare_files_gives_one_mask(workflow, weights, tmp_path, crop):
    """Types, a fourth axis, odd names, voxels that are no numbers, slices thicker than they are wide."""
    hu = scan()
    holes = np.where(hu == -1024, np.nan, hu).astype(np.float32)
    holes[0, 0, 0] = -1024
    names = {
        "plain": hu,
        "int32": hu.astype(np.int32),
        "float64": hu.astype(np.float64),
        "int64": hu.astype(np.int64),
        "big endian": hu.astype(">i2"),
        "one frame": hu[..., None],
        "Müller, Jane (2) 肺": hu,
        "a.b.c": hu,
        "holes": holes,
    }
    for name, array in names.items():
        save(tmp_path / "data" / "images" / f"{name}.nii.gz", array)
    save(tmp_path / "data" / "images" / "anisotropic.nii.gz", hu, np.diag([-0.3, -0.9, 20.0, 1.0]))
    flags = {"dataset_dir": str(tmp_path / "data"), "checkpoint": str(weights), "lung_crop": crop, "lung_margin": 1000}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        workflow(("inference",), "infer", **flags).run()
    ours = [str(w.message) for w in caught if "images/" in str(w.message)]
    assert len(ours) == 1
    assert "holes.nii.gz: found 255 of 7680 voxels that are not a number" in ours[0]

    expected = np.asarray(mask(tmp_path, "plain").dataobj)
    assert 0.2 < expected.mean() < 0.8
    for name in [*names, "anisotropic"]:
        found = mask(tmp_path, name)
        assert found.shape == hu.shape, name
        assert found.get_data_dtype() == np.uint8
        assert np.abs(found.affine - (AFFINE if name != "anisotropic" else np.diag([-0.3, -0.9, 20, 1]))).max() < 1e-4
        assert np.array_equal(np.asarray(found.dataobj), expected), name
    with (tmp_path / "eval" / "volumes.csv").open(newline="", encoding="utf-8") as file:
        rows = {row["image"].rsplit("/", 1)[-1].removesuffix(".nii.gz"): row for row in csv.DictReader(file)}
    assert set(rows) == {*names, "anisotropic"}
    assert {row["lesion_voxels"] for row in rows.values()} == {str(expected.sum())}
    assert float(rows["anisotropic"]["lesion_ml"]) == pytest.approx(expected.sum() * 0.3 * 0.9 * 20 / 1000, rel=1e-5)


@pytest.mark.parametrize("slices", [1, 4])
def test_a_dicom_folder_gives_the_mask_of_its_slices(workflow, weights, tmp_path, slices):
    """Project-MONAI/model-zoo#508, Project-MONAI/MONAI#6943, #1711: one series without file endings, also of one slice."""
    hu = scan()[..., :slices]
    write_series(tmp_path / "data" / "1.2.840.7", hu)
    # the same planes as NIfTI: columns towards left and rows towards posterior are its first two axes
    save(tmp_path / "nifti" / "images" / "a.nii.gz", np.ascontiguousarray(hu.transpose(1, 0, 2)), AFFINE)
    common = {"checkpoint": str(weights)}
    workflow(("inference",), "infer", dataset_dir=str(tmp_path / "nifti"), **common).run()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the thickness of the one slice
        dicom = {"dataset_dir": str(tmp_path / "data"), "image_pattern": "{case}"}
        workflow(("inference",), "infer", **dicom, **common).run()
    found = nibabel.load(tmp_path / "eval" / "1.2.840.7_mask.nii.gz")
    assert found.shape == (40, 48, slices)
    assert np.array_equal(np.asarray(found.dataobj), np.asarray(mask(tmp_path, "a").dataobj))
    assert 0 < np.asarray(found.dataobj).mean() < 1


def test_an_output_folder_that_cannot_be_written_is_named(workflow, weights, tmp_path):
    """A file where the folder should be: unlike missing rights it stops the administrator, too."""
    save(tmp_path / "data" / "images" / "a.nii.gz", scan())
    (tmp_path / "eval").write_text("the user's own file")
    with pytest.raises((RuntimeError, OSError)) as raised:
        workflow(("inference",), "infer", dataset_dir=str(tmp_path / "data"), checkpoint=str(weights)).run()
    assert f"'{tmp_path / 'eval'}" in causes(raised.value)
    assert (tmp_path / "eval").read_text() == "the user's own file"


DIES = """
import os, signal, sys
import nibabel
from monai.bundle import run
saved = []
whole = nibabel.save
def half_of_the_second(image, path):
    whole(image, path)
    saved.append(path)
    if len(saved) == 2:
        content = open(path, "rb").read()
        open(path, "wb").write(content[: len(content) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
nibabel.save = half_of_the_second
config, root, data, output, checkpoint = sys.argv[1:]
run(config_file=config, bundle_root=root, dataset_dir=data, output_dir=output, checkpoint=checkpoint,
    features=[8, 16, 32, 64, 128], num_workers=0, device="cpu")
"""


def test_a_run_that_is_killed_leaves_whole_files_and_the_next_completes_it(bundle, workflow, weights, tmp_path):
    """SIGKILL in the middle of writing the second of two masks."""
    for case in "ab":
        save(tmp_path / "data" / "images" / f"{case}.nii.gz", scan(seed=ord(case)))
    arguments = [bundle / "configs" / "inference.json", bundle, tmp_path / "data", tmp_path / "eval", weights]
    done = subprocess.run(
        [sys.executable, "-c", DIES, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == -9, done.stderr
    visible = sorted(path.name for path in (tmp_path / "eval").rglob("*") if not path.name.startswith("."))
    assert visible == ["a_mask.nii.gz", "images", "volumes.csv"]
    first = np.asarray(mask(tmp_path, "a").dataobj)
    with (tmp_path / "eval" / "volumes.csv").open(newline="") as file:
        assert [row["lesion_voxels"] for row in csv.DictReader(file)] == [str(first.sum())]

    workflow(("inference",), "infer", dataset_dir=str(tmp_path / "data"), checkpoint=str(weights)).run()
    assert np.array_equal(np.asarray(mask(tmp_path, "a").dataobj), first)
    assert np.asarray(mask(tmp_path, "b").dataobj).any()
    with (tmp_path / "eval" / "volumes.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 2
