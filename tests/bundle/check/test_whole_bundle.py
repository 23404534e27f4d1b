"""What `check_bundle` says about faultless and about broken bundles: ours, MONAI's template, one in YAML."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import nibabel
import numpy as np
import pytest
from monai.bundle import ConfigParser, init_bundle

from monai_margincal.bundle import bundle_dir
from monai_margincal.bundle.check import check_bundle
from monai_margincal.counting.class_counts import ClassCounts
from monai_margincal.samples import sample_dir

NAME = "covid19_ct_lesion_coplenet"


@pytest.fixture
def bundle(tmp_path):
    return Path(shutil.copytree(bundle_dir(NAME), tmp_path / NAME, ignore=shutil.ignore_patterns("models", "eval")))


def edit(bundle, name, change):
    """Change one JSON file of a bundle."""
    path = bundle / "configs" / f"{name}.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def errors(findings):
    return [str(finding) for finding in findings if finding.severity == "error"]


def test_our_bundle_is_faultless_and_stays_as_it_was(bundle):
    before = {path: path.read_bytes() for path in bundle.rglob("*") if path.is_file()}
    assert check_bundle(bundle) == []
    assert {path: path.read_bytes() for path in bundle.rglob("*") if path.is_file()} == before


def test_our_bundle_with_its_sample_data():
    assert errors(check_bundle(bundle_dir(NAME), dataset_dir=sample_dir("lung_ct"))) == []


def output(content):
    return content["network_data_format"]["outputs"]["pred"]


FAULTS = {
    "a required entry is missing": (
        "metadata",
        lambda c: c.pop("required_packages_version"),
        "'required_packages_version' is a required property, expected what meta_schema_20240725 asks for",
    ),
    "a wrong type, with its place": (
        "metadata",
        lambda c: output(c).update(num_channels="two"),
        "network_data_format#outputs#pred#num_channels: 'two' is not of type 'integer'",
    ),
    "a missing package": (
        "metadata",
        lambda c: c["required_packages_version"].update({"no-such-package": "1.0"}),
        "no-such-package 1.0 required, none installed",
    ),
    "swapped names": (
        "metadata",
        lambda c: output(c).update(channel_def={"0": "lesion", "1": "background"}),
        "found class_names ['background', 'lesion'], expected ['lesion', 'background'], channel_def",
    ),
    "a mask with other names": (
        "metadata",
        lambda c: c["network_data_format"]["post_processed_outputs"]["pred"].update(channel_def={"0": "bg", "1": "x"}),
        "['bg', 'x'] in channel_def of post_processed_outputs#pred",
    ),
    "a channel without a name": (
        "metadata",
        lambda c: output(c).update(channel_def={"0": "background"}),
        "1 names in channel_def of outputs#pred, expected 2, its num_channels",
    ),
    "a network that gives something else": (
        "metadata",
        lambda c: output(c).update(dtype="float16"),
        "network_def: ValueError: dtype of output data `torch.float32` doesn't match: torch.float16.",
    ),
    "a network that takes something else": (
        "inference",
        lambda c: c["network_def"].update(in_channels=3),
        "configs/inference.json: found network_def: ValueError: COPLENet was built for in_channels=3",
    ),
    "inference with another window": (
        "inference",
        lambda c: c.update(window_width=400.0),
        "ScaleIntensityRanged with a_max -450.0, expected 100.0, as in configs/train.json: train#preprocessing",
    ),
    "inference without reorientation": (
        "inference",
        lambda c: c["preprocessing"]["transforms"].pop(3),
        "configs/inference.json: preprocessing: found image transforms ['LoadImaged', 'AffineToRASd', 'EnsureChannelFirstd",
    ),
    "inference without the training's lung crop": (
        "inference",
        lambda c: c.update(lung_crop=False),
        "'Orientationd', 'LungRegionCropd', 'ScaleIntensityRanged'], as in configs/train.json: train#preprocessing",
    ),
    "another margin around the lungs in inference": (
        "inference",
        lambda c: c.update(lung_margin=5.0),
        "LungRegionCropd with margin_mm 5.0, expected 20.0, as in configs/train.json: train#preprocessing",
    ),
    "a client's property is missing": (
        "inference",
        lambda c: c.pop("inferer"),
        "found no inferer, expected the property 'inferer' that every infer workflow has",
    ),
    "a property under another name": (
        "train",
        lambda c: c["train"]["trainer"].update(train_handlers="@other_handlers"),
        "the property 'train_handlers' under another id than train::handlers",
    ),
    "a key twice": ("train", None, "found Duplicate key: `epochs`, expected every key once"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(bundle, fault):
    name, change, message = FAULTS[fault]
    if change is None:
        path = bundle / "configs" / f"{name}.json"
        path.write_text(path.read_text().replace('"seed"', '"epochs": 3,\n"seed"', 1))
    else:
        edit(bundle, name, change)
    found = errors(check_bundle(bundle))
    assert any(message.lower() in text.lower() for text in found), "\n".join(found)


def test_versions_are_compared_with_the_installed_ones(bundle):
    edit(bundle, "metadata", lambda c: c.update(monai_version="99.0", numpy_version="1.0", pytorch_version="new"))
    found = {str(f).split(", but")[0].split(": Invalid")[0] for f in check_bundle(bundle)}
    place = "configs/metadata.json: found"
    assert found == {f"warning: {place} monai 99.0", f"info: {place} numpy 1.0", f"error: {place} torch"}


def test_an_unused_key_in_a_file_and_an_unknown_override(bundle):
    edit(bundle, "train", lambda c: c.update(learning_rat=1))
    assert [str(f) for f in check_bundle(bundle) if f.files == ("configs/train.json",)] == [
        "warning: configs/train.json: found unknown key 'learning_rat' (did you mean 'learning_rate'?): nothing in the "
        "configuration refers to it, expected a key that something refers to"
    ]
    assert any(
        "unknown key 'outputdir' (did you mean 'output_dir'?)" in e
        for e in errors(check_bundle(bundle, {"outputdir": "x"}))
    )
    assert any("'infererr'" in e for e in errors(check_bundle(bundle, {"infererr#roi_size": [1]})))


def test_a_reference_to_a_file_that_is_not_there(bundle):
    edit(bundle, "inference", lambda c: c.update(output_dir="%none.json#a"))
    (text,) = errors(check_bundle(bundle))
    assert text.startswith("error: configs/inference.json: found FileNotFoundError: ")
    assert text.endswith("'none.json', expected a configuration that can be read")


def test_overrides_that_are_meant(bundle):
    """A key of one workflow only, a nested one, and one that another override refers to."""
    good = {"cases": "lung1", "epochs": "$@n", "n": 3, "network_def#norm": "batch", "train#dataset#cache_rate": 1.0}
    assert check_bundle(bundle, good) == []
    found = errors(check_bundle(bundle, {"features": [8, 16]}))
    assert any("features must have 5 entries, one per level, found 2" in text for text in found)


def test_windows_of_another_size_than_the_patches(bundle):
    found = [str(finding) for finding in check_bundle(bundle, {"roi_size": [64, 64], "patch_size": [96, 96]})]
    expected = "expected [96, 96], as in spatial_size of RandCropByLabelClassesd in configs/train.json"
    assert found == [
        f"warning: configs/train.json: validate#inferer#roi_size: found windows of [64, 64], {expected}",
        f"warning: configs/inference.json: inferer#roi_size: found windows of [64, 64], {expected}",
    ]
    assert check_bundle(bundle, {"roi_size": [64, 64], "patch_size": [64, 64]}) == []


def test_counts_of_other_classes(bundle, tmp_path):
    path = str(tmp_path / "counts.json")
    for counts, message in [
        (ClassCounts([9, 1], names=["background", "tumour"]), "found classes ['background', 'tumour'], expected"),
        (ClassCounts([9, 1, 1]), "found counts of 3 classes, expected 2"),
    ]:
        counts.to_json(path)
        assert any(message in text for text in errors(check_bundle(bundle, {"class_counts": path})))
    ClassCounts([9, 1], names=["background", "lesion"]).to_json(path)
    assert check_bundle(bundle, {"class_counts": path}) == []


@pytest.fixture
def data(tmp_path):
    """Four cases; what is wrong with them is up to the test."""
    for kind in ("images", "labels"):
        (tmp_path / "data" / kind).mkdir(parents=True)
    for case in "abcd":
        label = np.zeros((16, 16, 3), np.uint8)
        label[2:9, 3:8, 1] = ord(case) % 7 > 0
        label[2, 2, 2] = 1
        label[ord(case) % 5, 1, 0] = 1
        for kind, array in (("images", label.astype(np.int16) * 100), ("labels", label)):
            nibabel.save(nibabel.Nifti1Image(array, np.eye(4)), tmp_path / "data" / kind / f"{case}.nii.gz")
    return tmp_path / "data"


def test_good_data(bundle, data):
    assert errors(check_bundle(bundle, dataset_dir=data)) == []


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda d: (d / "labels" / "b.nii.gz").unlink(), "ValueError: images and labels in {data} do not pair up: no label of"),
        (lambda d: shutil.rmtree(d), "FileNotFoundError: data set folder not found: {data}"),
        (lambda d: [p.unlink() for p in d.rglob("*.gz")], "no image found: nothing in {data} fits the pattern"),
        (
            lambda d: nibabel.save(nibabel.Nifti1Image(np.full((16, 16, 3), 2, np.uint8), np.eye(4)), d / "labels" / "b.nii.gz"),
            "labels/b.nii.gz",
        ),
        (
            lambda d: nibabel.save(nibabel.Nifti1Image(np.zeros((16, 16, 4), np.int16), np.eye(4)), d / "images" / "c.nii.gz"),
            "geometry mismatch",
        ),
    ],
    ids=["unpaired", "no folder", "empty folder", "label out of range", "other grid"],
)  # fmt: skip
def test_bad_data(bundle, data, spoil, message):
    spoil(data)
    found = errors(check_bundle(bundle, dataset_dir=data))
    assert any(message.format(data=data) in text for text in found), "\n".join(found)


def test_a_case_in_training_and_in_validation(bundle, data):
    found = errors(check_bundle(bundle, {"train_cases": "all", "val_cases": "a"}, dataset_dir=data))
    assert found == [
        f"error: {data}/images/a.nii.gz: found 1 image(s) in training and in validation, expected each in one"
    ]
    found = errors(check_bundle(bundle, {"train#dataset#data": []}, dataset_dir=data))
    assert "found an empty list at train::dataset::data, expected at least one case" in found[0]


def test_patients_in_both_parts(bundle, data):
    for kind in ("images", "labels"):
        for case, name in {"a": "p1_1", "b": "p2_1", "c": "p1_2", "d": "p3_1"}.items():
            (data / kind / f"{case}.nii.gz").rename(data / kind / f"{name}.nii.gz")
    split = {"val_cases": ["p1_2"], "train_cases": ["p1_1", "p2_1"]}
    about = [str(f) for f in check_bundle(bundle, split, dataset_dir=data) if f.kind == "group in two parts"]
    assert len(about) == 1
    assert about[0].startswith(
        "warning: p1_1 (and 1 more): group in two parts: found names that suggest the group 'p1'"
    )
    found = errors(check_bundle(bundle, {**split, "group_pattern": "{group}_*"}, dataset_dir=data))
    assert "splits: found the group 'p1' in 'training' ('p1_1') and in 'validation' ('p1_2')" in found[0]
    by_patient = {"group_pattern": "{group}_*", "folds": 2, "fold": 0}
    assert not [f for f in check_bundle(bundle, by_patient, dataset_dir=data) if f.kind == "group in two parts"]
    assert errors(check_bundle(bundle, by_patient, dataset_dir=data)) == []


def test_monais_template(tmp_path):
    """Any bundle can be checked; the template names no network yet and has no schema."""
    init_bundle(str(tmp_path / "new"))
    found = check_bundle(tmp_path / "new")
    assert "'schema' is a required property" in errors(found)[0]
    assert any("network_def" in text for text in errors(found))
    assert any("NameError: name 'os' is not defined in $not os.path.exists" in text for text in errors(found))
    edit(tmp_path / "new", "inference", lambda c: c.update(network_def=NETWORK, imports=IMPORTS))
    edit(
        tmp_path / "new",
        "metadata",
        lambda c: c.update(schema="https://example.org/schema.json", network_data_format=FORMAT),
    )
    assert errors(check_bundle(tmp_path / "new")) == []


#: the template uses `os` without importing it
IMPORTS = ["$import glob", "$import os"]
NETWORK = {"_target_": "BasicUNet", "spatial_dims": 2, "in_channels": 1, "out_channels": 2, "features": [4] * 6}
TENSOR = {"type": "image", "format": "hounsfield", "spatial_shape": [32, 32], "dtype": "float32", "value_range": []}
FORMAT = {
    "inputs": {"image": {**TENSOR, "num_channels": 1}},
    "outputs": {"pred": {**TENSOR, "num_channels": 2, "channel_def": {"0": "background", "1": "spleen"}}},
}


def test_a_bundle_in_yaml(tmp_path):
    init_bundle(str(tmp_path / "new"))
    edit(tmp_path / "new", "metadata", lambda c: c.update(schema="s", network_data_format=FORMAT))
    path = tmp_path / "new" / "configs" / "inference.json"
    config = {**json.loads(path.read_text()), "network_def": NETWORK, "imports": IMPORTS, "forgotten": 3}
    ConfigParser.export_config_file(config, path.with_suffix(".yaml"), fmt="yaml")
    path.unlink()
    found = check_bundle(tmp_path / "new")
    assert errors(found) == []
    assert [f.message.split(":")[0] for f in found if f.files == ("configs/inference.yaml",)] == [
        "found unknown key 'forgotten'"
    ]


def test_what_is_no_bundle(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"found no configs/metadata\.json, expected the folder of a MONAI bundle"
    ):
        check_bundle(tmp_path)


def test_a_nested_flag_that_is_misspelt(bundle):
    found = errors(check_bundle(bundle, {"inferer#roi_sizee": [9, 9]}))
    assert any(
        "inferer: monai_margincal.inferers.VolumeSliceInferer with the argument 'roi_sizee'" in text for text in found
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"datalist_file": "none.json"}, "none.json: no such file, expected a data list in JSON"),
        ({"cases": "lung9"}, "configs/inference.json: found dataset::data: FileNotFoundError: no image for the cases lung9"),
        ({"dataset#data": []}, "configs/inference.json: found an empty list at dataset::data"),
        ({"dataset#data": [{"image": "/none.nii"}]}, "/none.nii: found no such file or folder, expected an image of"),
        ({"dataset_dir": "/none"}, "FileNotFoundError: data set folder not found: /none"),
    ],
)  # fmt: skip
def test_flags_that_leave_no_data(bundle, given, message):
    found = errors(check_bundle(bundle, given))
    assert any(message in text for text in found), found


def test_flags_that_change_the_data_and_are_right(bundle):
    assert errors(check_bundle(bundle, {"cases": "lung1", "val_cases": "lung2"}, sample_dir("lung_ct"))) == []
