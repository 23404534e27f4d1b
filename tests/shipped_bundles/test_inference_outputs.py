"""What inference writes, chosen by one flag, with the demonstration weights and the shipped scans."""

from __future__ import annotations

import csv
import shutil
import sys
import types
from pathlib import Path

import nibabel
import numpy as np
import pytest
import torch
from causes import causes
from monai.bundle import ckpt_export
from monai.transforms import Compose, Invertd, LoadImage, Orientation, SaveImaged
from networks.golden_weights import golden_weights

from monai_margincal.cli import main
from monai_margincal.networks import COPLENet
from monai_margincal.samples import sample_dir
from monai_margincal.transforms import LungRegionCrop

LABELS = (("L", "R"), ("P", "A"), ("I", "S"))
SAMPLES = Path(sample_dir("lung_ct"))
#: the bundle's own network, for the weights that travel with it
OWN = {"features": [16, 32, 64, 128, 256]}


def array(path):
    return np.asarray(nibabel.load(path).dataobj)


def iou(prediction, truth):
    return (prediction & truth).sum() / (prediction | truth).sum()


@pytest.fixture(scope="module")
def at_once(command, bundle, tmp_path_factory):
    """The README's command as it stands: nothing trained, no flag of the network."""
    return command(
        tmp_path_factory.mktemp("at_once"),
        ("inference",),
        ckpt_dir=bundle / "models",
        outputs="mask,volumes,overlay,probability",
        **OWN,
    )


@pytest.fixture
def infer(workflow, bundle, tmp_path):
    def run(configs=("inference",), **overrides):
        given = {"checkpoint": str(bundle / "models" / "model.pt"), "cases": "lung2", **OWN, **overrides}
        workflow(configs, "infer", **given).run()
        return tmp_path / "eval"

    return run


def test_the_demonstration_weights_fit_the_configured_network_and_mark_the_lesions(at_once, configs, bundle):
    assert configs["inference"]["features"] == configs["train"]["features"] == OWN["features"]
    assert (bundle / "models" / "model.pt").stat().st_size < 25e6, "the limit of the model zoo for one file"
    for case, least in (("lung1", 0.15), ("lung2", 0.85)):
        mask = array(at_once.cwd / "eval" / "images" / f"{case}_mask.nii.gz")
        assert iou(mask == 1, array(SAMPLES / "labels" / f"{case}.nii.gz") == 1) > least


def test_one_row_per_scan_with_the_lesion_volume(at_once):
    with (at_once.cwd / "eval" / "volumes.csv").open(newline="") as file:
        rows = {Path(row["image"]).name: row for row in csv.DictReader(file)}
    assert sorted(rows) == ["lung1.nii.gz", "lung2.nii.gz"]
    for name, row in rows.items():
        mask = nibabel.load(at_once.cwd / "eval" / "images" / name.replace(".nii.gz", "_mask.nii.gz"))
        voxels = int((np.asarray(mask.dataobj) == 1).sum())
        assert int(row["lesion_voxels"]) == voxels > 0
        volume = voxels * float(np.prod(mask.header.get_zooms())) / 1000
        assert float(row["lesion_ml"]) == pytest.approx(volume, rel=1e-5)


@pytest.mark.parametrize("case", ["lung1", "lung2"])
def test_the_probability_map_has_the_scans_grid_and_agrees_with_the_mask(at_once, case):
    folder = at_once.cwd / "eval" / "images"
    probability, scan = (
        nibabel.load(folder / f"{case}_probability.nii.gz"),
        nibabel.load(SAMPLES / "images" / f"{case}.nii.gz"),
    )
    assert probability.get_data_dtype() == np.float32
    assert probability.shape == scan.shape
    assert np.abs(probability.affine - scan.affine).max() < 1e-4
    values, mask = np.asarray(probability.dataobj), array(folder / f"{case}_mask.nii.gz")
    assert 0 <= values.min() < 0.01
    assert 0.99 < values.max() <= 1
    assert np.array_equal(values > 0.5, mask == 1)
    assert (folder / f"{case}_overlay.png").stat().st_size > 10_000


def test_without_flags_only_masks_and_the_table(infer, at_once):
    """The decision inside the inferer is the decision by the logits."""
    folder = infer()
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*.*")) == [
        "images/lung2_mask.nii.gz",
        "volumes.csv",
    ]
    assert np.array_equal(
        array(folder / "images" / "lung2_mask.nii.gz"), array(at_once.cwd / "eval" / "images" / "lung2_mask.nii.gz")
    )


@pytest.mark.parametrize("outputs", ["mask,volumes", "mask,volumes,overlay,probability"])
def test_programs_that_save_by_themselves_get_the_mask_and_no_files(workflow, bundle, at_once, tmp_path, outputs):
    """MONAI Label drops what is a `SaveImaged`, MONAI Deploy what has "SaveImage" in its name; both run the rest."""
    loaded = workflow(("inference",), "infer", cases="lung2", outputs=outputs, **OWN)
    network = loaded.network_def
    network.load_state_dict(torch.load(bundle / "models" / "model.pt", weights_only=True))
    item = loaded.dataset[0]
    with torch.no_grad():
        item["pred"] = loaded.inferer(item["image"][None], network.eval())[0]
    expected = array(at_once.cwd / "eval" / "images" / "lung2_mask.nii.gz")
    for left_out in (lambda t: isinstance(t, SaveImaged), lambda t: "SaveImage" in type(t).__name__):
        kept = [t for t in loaded.postprocessing.transforms if not left_out(t)]
        assert any(isinstance(t, Invertd) for t in kept)
        result = Compose(kept)(dict(item))
        assert result["pred"].dtype == torch.uint8
        assert np.array_equal(result["pred"][0].numpy(), expected)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    "flags",
    [
        {"channels_last": True},
        {"inferer#device": "cpu", "sw_batch_size": 1},
        {"sw_batch_size": 1000},
        {"lung_crop": "false"},
    ],
    ids=["channels_last", "stitch", "one batch", "no crop"],
)
def test_flags_that_change_cost_only(infer, at_once, flags):
    mask = array(infer(**flags) / "images" / "lung2_mask.nii.gz")
    expected = array(at_once.cwd / "eval" / "images" / "lung2_mask.nii.gz")
    assert (mask != expected).mean() < 1e-4


@pytest.mark.parametrize("codes", ["RAS", "SAR"])
def test_the_lung_crop_is_undone_on_save(infer, tmp_path, codes):
    """A drawn chest: the result is that of the cropped scan as a file of its own, on the whole scan's grid, 0 elsewhere."""
    hu = np.full((96, 80, 12), -1000, np.int16)
    hu[8:88, 6:74] = 40
    hu[20:40, 24:60, 2:10] = hu[56:76, 24:60, 2:10] = np.random.RandomState(0).normal(-800, 150, (20, 36, 8))
    change = nibabel.orientations.ornt_transform(
        nibabel.orientations.axcodes2ornt("RAS"), nibabel.orientations.axcodes2ornt(codes)
    )
    whole = nibabel.Nifti1Image(hu, np.diag([2.0, 2, 5, 1])).as_reoriented(change)
    (tmp_path / "data" / "images").mkdir(parents=True)
    nibabel.save(whole, tmp_path / "data" / "images" / "whole.nii.gz")
    chain = Compose([LoadImage(ensure_channel_first=True), Orientation("PLS", labels=LABELS), LungRegionCrop(20.0)])
    cropped = chain(str(tmp_path / "data" / "images" / "whole.nii.gz"))
    assert cropped.meta["cropped_to"] == "lungs"
    part = nibabel.Nifti1Image(np.asarray(cropped[0]).astype(np.int16), np.asarray(cropped.affine))
    nibabel.save(part, tmp_path / "data" / "images" / "part.nii.gz")

    common = {"dataset_dir": str(tmp_path / "data"), "outputs": ["mask", "volumes", "probability"]}
    infer(**common, cases="part", lung_crop="false")
    folder = infer(**common, cases="whole", lung_crop="true")
    mask, probability, expected = (
        nibabel.load(folder / "images" / f"{name}.nii.gz")
        for name in ("whole_mask", "whole_probability", "part_probability")
    )
    for saved in (mask, probability):
        assert saved.shape == whole.shape
        assert np.abs(saved.affine - whole.affine).max() < 1e-4
    values, inside = np.asarray(probability.dataobj), np.asarray(expected.dataobj)
    to_whole = np.linalg.inv(whole.affine) @ part.affine
    index = np.indices(part.shape).reshape(3, -1)
    placed = np.rint(to_whole[:3, :3] @ index + to_whole[:3, 3:]).astype(int)
    assert np.abs(values[tuple(placed)] - inside.ravel()).max() < 1e-6
    values[tuple(placed)] = 0
    assert (values == 0).all()
    with (folder / "volumes.csv").open(newline="") as file:
        rows = {Path(row["image"]).name: row["cropped_to"] for row in csv.DictReader(file)}
    assert rows == {"part.nii.gz": "", "whole.nii.gz": "lungs"}


def test_a_dicom_segmentation_of_a_nifti_is_refused(infer):
    pytest.importorskip("highdicom")
    with pytest.raises(RuntimeError) as raised:
        infer(outputs="dicom_seg")
    assert "a DICOM SEG refers to a DICOM series, found no folder of DICOM files" in causes(raised.value)


def test_the_tensorrt_config_runs_the_exported_network(infer, at_once, bundle, tmp_path, monkeypatch):
    """Everything but the engine itself: the exported program takes the network's place, weights are not loaded again."""
    monkeypatch.setitem(sys.modules, "torch_tensorrt", types.ModuleType("torch_tensorrt"))
    root = tmp_path / "root"
    shutil.copytree(bundle, root)
    ckpt_export(
        net_id="network_def",
        filepath=str(root / "models" / "model_trt.ts"),
        ckpt_file=str(root / "models" / "model.pt"),
        meta_file=str(root / "configs" / "metadata.json"),
        config_file=str(root / "configs" / "inference.json"),
    )
    folder = infer(
        ("inference", "inference_trt"),
        trt_file=str(root / "models" / "model_trt.ts"),
        checkpoint=str(tmp_path / "none.pt"),
    )
    mask = array(folder / "images" / "lung2_mask.nii.gz")
    assert (mask != array(at_once.cwd / "eval" / "images" / "lung2_mask.nii.gz")).mean() < 1e-4


def published_weights():
    """A checkpoint as published for MONAI 0.2."""
    weights = golden_weights("monai02")
    floats = {key: value.float() if value.is_floating_point() else value for key, value in weights.items()}
    return {"model_state_dict": floats, "epoch": 50}


def test_published_weights_go_from_conversion_to_a_mask(infer, tmp_path):
    """The layout of `coplenet_pretrained_monai_dict.pt` by the golden rule; the mask is the network on every slice."""
    torch.save(published_weights(), tmp_path / "coplenet_pretrained_monai_dict.pt")
    published = tmp_path / "published.pt"
    assert main(["convert-weights", str(tmp_path / "coplenet_pretrained_monai_dict.pt"), str(published)]) == 0
    network = COPLENet().eval()  # the published network is the class's default
    network.load_state_dict(torch.load(published, weights_only=True), strict=True)
    source = nibabel.load(SAMPLES / "images" / "lung2.nii.gz")
    (tmp_path / "data" / "images").mkdir(parents=True)
    thin = nibabel.Nifti1Image(np.asarray(source.dataobj)[:, :, 8:11], source.affine)
    nibabel.save(thin, tmp_path / "data" / "images" / "thin.nii.gz")
    flags = {"features": [32, 64, 128, 256, 512], "norm": "batch"}
    folder = infer(
        checkpoint=str(published), dataset_dir=str(tmp_path / "data"), cases="thin", outputs="probability", **flags
    )
    scan = nibabel.orientations.apply_orientation(
        np.asarray(thin.dataobj, dtype=np.float32),
        change := nibabel.orientations.ornt_transform(
            nibabel.orientations.io_orientation(thin.affine), nibabel.orientations.axcodes2ornt("PLS")
        ),
    )
    planes = torch.from_numpy(((scan + 1400) / 1500).clip(0, 1).transpose(2, 0, 1)[:, None].copy())
    with torch.no_grad():
        expected = network(planes).softmax(1)[:, 1].permute(1, 2, 0).numpy()
    found = nibabel.orientations.apply_orientation(array(folder / "images" / "thin_probability.nii.gz"), change)
    assert np.abs(found - expected).max() < 1e-4
