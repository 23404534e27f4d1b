"""The transforms, inside real MONAI chains."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
import torch
from monai.bundle import ConfigParser
from monai.data import CacheDataset, DataLoader, Dataset, MetaTensor, decollate_batch, list_data_collate
from monai.transforms import (
    Compose,
    EnsureChannelFirstd,
    LoadImaged,
    Orientationd,
    RandCropByPosNegLabeld,
    RandFlipd,
    Spacingd,
)
from shared import SHARED, needs_shared

import monai_margincal
from monai_margincal.transforms import CountLabels, CountLabelsD, CountLabelsd, CountLabelsDict, counts_in_meta


def volume(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 3, (12, 10, 8)).astype(np.uint8)


@pytest.fixture
def label_files(tmp_path: Path) -> list[dict[str, str]]:
    items = []
    for case in range(4):
        path = tmp_path / f"case_{case}.nii.gz"
        nib.save(nib.Nifti1Image(volume(case), np.diag([-1.0, 1.0, 2.0, 1.0])), path)
        items.append({"label": str(path)})
    return items


@pytest.mark.parametrize("kind", ["numpy", "tensor", "meta"])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64", "float32", "float64", "bool"])
def test_label_passes_unchanged(kind: str, dtype: str) -> None:
    array = (volume() > 1).astype(dtype)[None]
    label = {"numpy": array, "tensor": torch.from_numpy(array), "meta": MetaTensor(array.copy())}[kind]
    before = copy.deepcopy(label)
    transform = CountLabels(num_classes=2)
    result = transform(label)
    assert result is label
    assert result.dtype == before.dtype
    assert (np.asarray(result) == np.asarray(before)).all()
    assert transform.latest is not None
    assert transform.latest.counts.tolist() == [int((array == 0).sum()), int((array == 1).sum())]


def test_counts_survive_the_rest_of_the_chain(label_files: list[dict[str, str]]) -> None:
    """A sibling key ``label_*`` would break Spacingd; meta data does not."""
    chain = Compose(
        [
            LoadImaged("label"),
            EnsureChannelFirstd("label"),
            CountLabelsd("label", num_classes=3),
            Orientationd("label", "RAS", labels=None),
            Spacingd("label", (2.0, 2.0, 2.0), mode="nearest"),
            RandFlipd("label", prob=1.0),
        ]
    )
    items = [chain(item) for item in label_files]
    for case, item in enumerate(items):
        expected = np.bincount(volume(case).ravel(), minlength=3)
        assert item["label"].meta["class_counts"].tolist() == expected.tolist()
        assert set(item) == {"label"}
        # what was counted is the file, not what resampling left
        assert item["label"].numel() != expected.sum()
    batch = list_data_collate(items)
    assert batch["label"].meta["class_counts"].shape == (4, 3)
    assert batch["label"].meta["class_counts"].dtype == torch.int64
    for case, item in enumerate(decollate_batch(batch)):
        assert item["label"].meta["class_counts"].tolist() == np.bincount(volume(case).ravel()).tolist()
    inverted = chain.inverse(items[0])
    assert inverted["label"].meta["class_counts"].tolist() == np.bincount(volume(0).ravel()).tolist()


@pytest.mark.parametrize("num_workers", [0, 2])
def test_counts_come_out_of_a_dataloader(label_files: list[dict[str, str]], num_workers: int) -> None:
    chain = Compose(
        [LoadImaged("label"), EnsureChannelFirstd("label"), CountLabelsd("label", ids=[0, 1, 2], ignore_index=7)]
    )
    loader = DataLoader(Dataset(label_files, chain), batch_size=3, num_workers=num_workers)
    found = [counts.counts.tolist() for batch in loader for counts in counts_in_meta(batch["label"])]
    assert found == [np.bincount(volume(case).ravel()).tolist() for case in range(4)]


def test_cached_items_and_crops(label_files: list[dict[str, str]]) -> None:
    chain = Compose(
        [
            LoadImaged("label"),
            EnsureChannelFirstd("label"),
            RandCropByPosNegLabeld("label", "label", (4, 4, 4), num_samples=2),
            CountLabelsd("label", num_classes=3),
        ]
    )
    for _ in range(2):
        crops = CacheDataset(label_files, chain, progress=False)[0]
        assert [int(crop["label"].meta["class_counts"].sum()) for crop in crops] == [64, 64]


def test_plain_arrays_report_beside_the_label_and_not_under_its_prefix() -> None:
    item = CountLabelsd(["label", "other"], num_classes=2)({"label": np.array([[0, 1]]), "other": torch.ones(1, 3)})
    assert item["class_counts"]["label"].tolist() == [1, 1]
    assert item["class_counts"]["other"].tolist() == [0, 3]
    assert item["class_ids"]["label"].tolist() == [0, 1]
    assert not [name for name in item if name.startswith("label_")]
    assert list_data_collate([item, item])["class_counts"]["label"].tolist() == [[1, 1], [1, 1]]


def test_one_hot_is_detected_once_and_counted_as_classes() -> None:
    """MONAI/issues/6766: no second argmax over what already is an index map."""
    index = torch.from_numpy(volume()).long()
    hot = torch.nn.functional.one_hot(index, 3).movedim(-1, 0)
    expected = np.bincount(volume().ravel()).tolist()
    for label in (hot, hot.float(), hot.bool(), MetaTensor(hot)):
        transform = CountLabels(num_classes=3)
        transform(label)
        assert transform.latest is not None
        assert transform.latest.counts.tolist() == expected


@pytest.mark.parametrize(
    ("label", "message"),
    [
        (torch.zeros(2, 4, 4), r"found 2 channels \(shape \(2, 4, 4\)\), expected 1 \(class indices\) or 3 \(one-hot"),
        (torch.zeros(3, 4, 4), r"0 voxel\(s\) in more than one class and 16 in none.*EnsureChannelFirst"),
        (torch.full((1, 4), 3), r"3 \(4 voxels\)"),
    ],
)
def test_wrong_channels(label: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CountLabels(num_classes=3)(label)


def test_error_names_the_file(tmp_path: Path) -> None:
    """MONAI/issues/6576, /6766 and tutorials/issues/578: the message carries the path."""
    path = tmp_path / "mask.nii.gz"
    nib.save(nib.Nifti1Image(np.array([[[0, 255]]], np.uint8), np.eye(4)), path)
    item = Compose([LoadImaged("label"), EnsureChannelFirstd("label")])({"label": path})
    with pytest.raises(ValueError, match=r"mask\.nii\.gz: found the label value\(s\) 255 .*ids=\[0, 255\]"):
        CountLabelsd("label", num_classes=2)(item)


def test_missing_key() -> None:
    with pytest.raises(KeyError, match="label"):
        CountLabelsd("label", num_classes=2)({"image": torch.zeros(1, 2)})
    item = {"image": torch.zeros(1, 2)}
    assert CountLabelsd("label", num_classes=2, allow_missing_keys=True)(item).keys() == item.keys()


def test_undeclared_ids_are_those_present() -> None:
    label = CountLabels()(MetaTensor(torch.tensor([[0, 9, 9]])))
    assert label.meta["class_ids"].tolist() == [0, 9]
    assert [counts.counts.tolist() for counts in counts_in_meta(label)] == [[1, 2]]
    with pytest.raises(ValueError, match="passed CountLabels"):
        counts_in_meta(MetaTensor(torch.zeros(1, 2)))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"num_classes": 0}, ValueError, "num_classes is 0"),
        ({"num_classes": True}, TypeError, "num_classes must be an integer"),
        ({"num_classes": 3, "ids": [0, 1]}, ValueError, "num_classes is 3, but ids has 2"),
        ({"ids": [0, 0]}, ValueError, r"found \[0\] more than once"),
        ({"ignore_index": 1.5}, TypeError, "ignore_index must be an integer"),
    ],
)
def test_invalid_arguments(arguments: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        CountLabels(**arguments)  # type: ignore[arg-type]


def test_conventions(label_files: list[dict[str, str]]) -> None:
    assert CountLabelsD is CountLabelsd is CountLabelsDict
    assert monai_margincal.CountLabels is CountLabels
    assert CountLabelsd.backend == CountLabels.backend
    config = {"_target_": "monai_margincal.transforms.CountLabelsd", "keys": "label", "num_classes": 3}
    transform = ConfigParser(json.loads(json.dumps({"t": config}))).get_parsed_content("t")
    assert isinstance(transform, CountLabelsd)
    chain = Compose(
        [LoadImaged("label"), EnsureChannelFirstd("label"), pickle.loads(pickle.dumps(transform))], lazy=True
    )
    assert int(chain(label_files[0])["label"].meta["class_counts"].sum()) == 960


@needs_shared
def test_real_labels_with_gaps() -> None:
    assert SHARED is not None
    path = SHARED / "data" / "chest_labelmaps" / "lm-64.nrrd"
    item = Compose([LoadImaged("label", reader="ITKReader"), EnsureChannelFirstd("label"), CountLabelsd("label")])(
        {"label": path}
    )
    found = counts_in_meta(item["label"])[0]
    assert found.count_of(0) == 257437
    assert found.count_of(9) == 10164
    assert found.total == 64 * 64 * 79
