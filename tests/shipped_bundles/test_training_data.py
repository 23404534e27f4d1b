"""Training on data as they come: healthy scans, empty slices, planes smaller than the patch, wrong labels."""

from __future__ import annotations

import re
import warnings

import nibabel
import numpy as np
import pytest
from causes import causes

AFFINE = np.diag([-0.7, -0.7, 5.0, 1.0])


def write(root, case, image, label, label_affine=AFFINE):
    for kind, array, affine in (("images", image, AFFINE), ("labels", label, label_affine)):
        (root / kind).mkdir(exist_ok=True)
        nibabel.save(nibabel.Nifti1Image(array, affine), root / kind / f"{case}.nii.gz")


def volume(shape=(48, 40, 6), lesion=True, seed=0):
    image = np.random.RandomState(seed).randint(-1000, 200, shape).astype(np.int16)
    label = np.zeros(shape, np.uint8)
    if lesion:
        label[10:20, 12:20, 2] = 1
        image[label == 1] = 50
    return image, label


def test_healthy_scans_and_empty_slices_train_without_a_warning(workflow, tmp_path):
    """MONAI issues 6576 and 5330, Project-MONAI/tutorials#174: sampling stopped at a scan without lesion."""
    for index, lesion in enumerate([True, False, False, True]):
        write(tmp_path, f"case{index}", *volume(lesion=lesion, seed=index))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loaded = workflow(
            ("train",),
            "train",
            dataset_dir=str(tmp_path),
            epochs=2,
            patch_size=[64, 32],  # wider than the planes along one axis
            slices_per_volume=3,
            val_cases=["case1", "case3"],
        )
        loaded.run()
        loaded.finalize()
    about = [str(w.message) for w in caught if issubclass(w.category, UserWarning | RuntimeWarning)]
    about = [text for text in about if "log level" not in text and "nvImageCodec" not in text]
    assert not about
    assert (tmp_path / "models" / "model.pt").is_file()
    metrics = loaded.evaluator.state.metrics
    assert 0 <= metrics["val_iou"] <= 1
    assert metrics["val_iou_images_lesion"] in (1, 2)


def test_nothing_but_healthy_scans_is_refused(workflow, tmp_path):
    """There is nothing to learn and no margin for a class that fills everything."""
    for index in range(2):
        write(tmp_path, f"case{index}", *volume(lesion=False, seed=index))
    with pytest.raises(RuntimeError) as raised:
        workflow(("train",), "train", dataset_dir=str(tmp_path), epochs=1, patch_size=[32, 32]).run()
    assert "class '0 background' fills everything (11520 voxels)" in causes(raised.value)


def test_crops_are_balanced_by_class(workflow, tmp_path):
    write(tmp_path, "a", *volume((64, 64, 40)))
    write(tmp_path, "b", *volume((64, 64, 40)))
    loaded = workflow(("train",), "train", dataset_dir=str(tmp_path), patch_size=[64, 64], slices_per_volume=100)
    crops = loaded.train_dataset[0]
    with_lesion = sum(bool(crop["label"].any()) for crop in crops)
    assert 35 <= with_lesion <= 68, "half of the crops are centred on the one slice of 40 that holds the lesion"
    assert {crop["image"].shape for crop in crops} == {(1, 64, 64)}
    assert type(crops[0]["image"]).__name__ == "Tensor", "no metadata is dragged through the training"


def test_crops_are_balanced_over_more_classes(workflow, tmp_path):
    """Four classes by the ratios, one of them in a single slice; a volume without it shares its part among the others."""
    image, label = volume((64, 64, 40), lesion=False)
    for index, (value, slices) in enumerate({1: slice(0, 10), 2: slice(20, 30), 3: slice(35, 36)}.items()):
        label[16 * index : 16 * index + 8, 10:20, slices] = value
    without = np.where(label == 3, 0, label).astype(np.uint8)
    write(tmp_path, "a", image, label)
    write(tmp_path, "b", image, without)
    write(tmp_path, "v", image, label)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.filterwarnings("ignore", message=".*(log level|nvImageCodec|jit).*")
        loaded = workflow(
            ("train",), "train", dataset_dir=str(tmp_path), val_cases="v", lung_crop=False, patch_size=[64, 64],
            slices_per_volume=200, num_classes=4, class_names=["background", "x", "y", "z"], epochs=1,
            **{"train#augmentation_prob": 0.0, "train#class_ratios": [0, 1, 1, 2]},
        )  # fmt: skip
        shares = [
            [sum(bool((crop["label"] == k).any()) for crop in loaded.train_dataset[case]) / 200 for k in (1, 2, 3)]
            for case in (0, 1)
        ]
    assert shares[0] == pytest.approx([0.25, 0.25, 0.5], abs=0.12)
    assert shares[1] == pytest.approx([0.5, 0.5, 0], abs=0.12)
    loaded.evaluator.run()
    assert {f"val_iou_{name}" for name in "xyz"} < set(loaded.evaluator.state.metrics)


def test_augmentation_moves_image_and_label_together(workflow, tmp_path):
    image, label = volume((64, 64, 4))
    image[label == 0] = -1400
    write(tmp_path, "a", image, label)
    write(tmp_path, "b", image, label)
    loaded = workflow(
        ("train",), "train", dataset_dir=str(tmp_path), patch_size=[64, 64], slices_per_volume=30,
        **{"train#augmentation_prob": 1.0},
    )  # fmt: skip
    agreement = []
    for crop in loaded.train_dataset[0]:
        bright, marked = crop["image"][0] > 0.5, crop["label"][0] == 1
        if marked.any():
            agreement.append(((bright & marked).sum() / (bright | marked).sum()).item())
    assert len(agreement) > 5
    assert min(agreement) > 0.7


def chest_with_two_lesions():
    """Two lungs in a body in air; one lesion in a lung, one far below them, outside of the crop; 2 x 2 x 5 mm."""
    image = np.full((96, 80, 16), -1000, np.int16)
    image[8:88, 6:74] = 40
    image[20:40, 24:60, 6:14] = image[56:76, 24:60, 6:14] = np.random.RandomState(0).normal(-800, 90, (20, 36, 8))
    label = np.zeros(image.shape, np.uint8)
    label[25:30, 30:40, 8] = 1
    label[40:44, 30:40, 0] = 1
    return image, label


@pytest.mark.parametrize("crop", ["true", "false"])
def test_a_lesion_outside_of_the_lungs_is_named_in_training_and_counts_in_validation(workflow, tmp_path, crop):
    """Cut off with a warning in training; in validation missed, since labels are not cut."""
    for case in ("a", "b"):
        image, label = chest_with_two_lesions()
        for kind, array in (("images", image), ("labels", label)):
            (tmp_path / kind).mkdir(exist_ok=True)
            nibabel.save(nibabel.Nifti1Image(array, np.diag([2.0, 2, 5, 1])), tmp_path / kind / f"{case}.nii.gz")
    loaded = workflow(
        ("train",),
        "train",
        dataset_dir=str(tmp_path),
        patch_size=[32, 32],
        lung_crop=crop,
        lung_margin=5,
        val_cases="b",
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        patches = loaded.train_dataset[0]
    told = [str(w.message) for w in caught if "labelled voxels" in str(w.message)]
    assert len(told) == (crop == "true")
    for text in told:
        assert re.search(r"labels/a\.nii\.gz: 40 of 90 labelled voxels lie outside the region of the lungs", text)
    assert any(patch["label"].any() for patch in patches)
    assert loaded.parser.get_parsed_content("class_counts").counts.tolist() == [label.size - 90, 90], "of whole labels"

    for parameter in loaded.network_def.out_conv.parameters():
        parameter.data.zero_()
    loaded.network_def.out_conv.bias.data[1] = 1.0  # everything that the network sees is lesion
    loaded.evaluator.run()
    metrics = loaded.evaluator.state.metrics
    shape = loaded.val_dataset[0]["image"].shape[1:]
    seen = np.prod(shape)
    assert (seen < label.size / 1.5) == (crop == "true")
    assert loaded.val_dataset[0]["label"].shape[1:] == label.shape
    found = 50 if crop == "true" else 90
    assert metrics["val_iou_recall_lesion"] == pytest.approx(found / 90, abs=1e-12)
    assert metrics["val_iou_precision_lesion"] == pytest.approx(found / seen, abs=1e-12)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("value", r"b\.nii\.gz.*2|2.*b\.nii\.gz"),
        (
            "slice",
            r"images/b\.nii\.gz\) has shape \(48, 40, 6\), label \(.*labels/b\.nii\.gz\) has shape \(48, 40, 5\)",
        ),
        ("header", r"labels/b\.nii\.gz\) has .* voxels, allowed are 0\.25"),
    ],
)
def test_a_wrong_label_stops_the_training_and_is_named(workflow, tmp_path, fault, message):
    """MONAI issue 5881, tutorials issue 578: a label of 2 was an index error without a file."""
    write(tmp_path, "a", *volume(seed=1))
    image, label = volume()
    if fault == "value":
        label[0, 0, 0] = 2
    write(
        tmp_path, "b", image, label[..., :5] if fault == "slice" else label, np.eye(4) if fault == "header" else AFFINE
    )
    with pytest.raises(RuntimeError) as raised:
        workflow(("train",), "train", dataset_dir=str(tmp_path), patch_size=[32, 32], epochs=1, val_cases="a").run()
    assert re.search(message, causes(raised.value)), causes(raised.value)
