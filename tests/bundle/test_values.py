"""Values that are there but cannot be right: null, empty, of a wrong type, misspelt arguments, sizes that metadata has wrong."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from monai.bundle import ConfigParser

from monai_margincal.bundle import bundle_dir
from monai_margincal.bundle.check import check_bundle
from monai_margincal.bundle.check.components import check_components
from monai_margincal.bundle.check.properties import check_properties
from monai_margincal.bundle.check.tensor_formats import check_formats
from monai_margincal.samples import sample_dir

CONFIGS = Path(bundle_dir("covid19_ct_lesion_coplenet")) / "configs"


def properties(kind, given):
    name = "train" if kind == "train" else "inference"
    return [str(f) for f in check_properties(kind, [CONFIGS / f"{name}.json"], given, f"configs/{name}.json")]


@pytest.mark.parametrize("kind", ["train", "infer"])
def test_our_own(kind):
    assert properties(kind, {}) == []


@pytest.mark.parametrize(
    "id", ["bundle_root", "device", "dataset_dir", "dataset", "evaluator", "network_def", "inferer"]
)
@pytest.mark.parametrize(("value", "shown"), [(None, "null"), ("", "''"), ([], "[]"), ({}, "{}")])
def test_nothing_where_a_value_is_required(id, value, shown):
    expected = f"error: configs/inference.json: found {id} {shown}, expected a value for the property"
    assert properties("infer", {id: value})[0].startswith(expected)


@pytest.mark.parametrize(
    ("kind", "id", "value", "message"),
    [
        ("infer", "dataset_dir", 5, "found dataset_dir 5, expected the path of a folder"),
        ("infer", "dataset_dir", "$None", "found dataset_dir None, expected the path of a folder"),
        ("infer", "dataset_dir", "$1 / 0", "found dataset_dir: ZeroDivisionError: division by zero"),
        ("infer", "dataset_dir", ["a", "b"], "found dataset_dir ['a', 'b'], expected the path of a folder"),
        ("infer", "device", "gpu", "found device 'gpu', expected a device, such as 'cpu' or 'cuda:0'"),
        ("infer", "device", True, "found device True, expected a device"),
        ("infer", "inferer", 3, "found inferer 3, expected a component with _target_, a reference or an expression"),
        ("infer", "inferer", "SimpleInferer", "found inferer 'SimpleInferer', expected a component"),
        ("infer", "inferer", {"roi_size": [9, 9]}, "found inferer a dictionary without _target_, ['roi_size'], expected"),
        ("infer", "evaluator", {"_target_": "x", "_disabled_": True}, "found evaluator switched off by _disabled_"),
        ("train", "epochs", "x", "found train::trainer::max_epochs 'x', expected a whole number of epochs, 1 or more"),
        ("train", "epochs", 0, "found train::trainer::max_epochs 0, expected a whole number"),
        ("train", "epochs", 2.5, "found train::trainer::max_epochs 2.5, expected a whole number"),
        ("train", "epochs", True, "found train::trainer::max_epochs True, expected a whole number"),
        ("train", "train#trainer#max_epochs", None, "found train::trainer::max_epochs null, expected a value"),
        ("train", "train#inferer", None, "found train::inferer null, expected a value for the property 'train_inferer'"),
        ("train", "train#dataset", "data", "found train::dataset 'data', expected a component"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be(kind, id, value, message):
    found = properties(kind, {id: value})
    assert any(message in text for text in found), found


@pytest.mark.parametrize(
    ("id", "value"),
    [
        ("dataset_dir", "/any/where"), ("dataset_dir", Path("/any")), ("device", "cuda:1"), ("device", "$torch.device('cpu')"),
        ("inferer", "@other"), ("evaluator", "$@other"), ("inferer", {"_target_": "SimpleInferer"}),
    ],
)  # fmt: skip
def test_values_that_can_be(id, value):
    assert properties("infer", {id: value, "other": {"_target_": "SimpleInferer"}}) == []


def components(**config):
    return [f.found for f in check_components(ConfigParser(config), "c.json")]


def test_components_that_are_right():
    assert components(
        net={"_target_": "BasicUNet", "spatial_dims": 2, "_desc_": "x"},
        part={"_target_": "monai.losses.DiceLoss", "_mode_": "callable", "softmax": True},
        late={"_target_": "monai_margincal.datasets.select_cases", "_mode_": "callable", "cases": ["a"]},
        free={"_target_": "monai_margincal.inferers.ScanEvaluator", "amp": True},
        off={"_target_": "no.such.thing", "_disabled_": "$not @flag"},
        text={"_target_": "$@net"},
        flag=False,
        _meta_={"_target_": "nothing"},
    ) == []  # fmt: skip


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"_target_": "BasicUNett"}, "a#0#b: no BasicUNett"),
        ({"_target_": "monai_margincal.inferers.ScanEvaluatr"}, "a#0#b: no monai_margincal.inferers.ScanEvaluatr"),
        ({"_target_": "no_such_package.Thing"}, "a#0#b: no no_such_package.Thing"),
        (
            {"_target_": "SimpleInferer", "_disabled_": "$not os.path.exists('x')"},
            "a#0#b: NameError: name 'os' is not defined in $not os.path.exists('x')",
        ),
        (
            {"_target_": "monai_margincal.inferers.VolumeSliceInferer", "roi_sizee": 1},
            "a#0#b: monai_margincal.inferers.VolumeSliceInferer with the argument 'roi_sizee' (did you mean 'roi_size'?)",
        ),
        (
            {"_target_": "LoadImaged", "key": "image"},
            "a#0#b: LoadImaged without the argument(s) ['keys']",
        ),
    ],
)
def test_components_that_cannot_be_made(config, message):
    assert message in components(a=[{"b": config}])


def formats(shape, inferer, preprocessing=(), dtype=None, saver=None):
    metadata = {"network_data_format": {"inputs": {"image": {"spatial_shape": shape}}}}
    if dtype:
        metadata["network_data_format"]["post_processed_outputs"] = {"pred": {"dtype": dtype}}
    config = {
        "size": 96,
        "inferer": {"_target_": "SlidingWindowInferer", **inferer},
        "preprocessing": {"_target_": "Compose", "transforms": list(preprocessing)},
        "postprocessing": {
            "_target_": "Compose",
            "transforms": [{"_target_": "SaveImaged", "keys": "pred", **(saver or {})}],
        },
    }
    return [str(f) for f in check_formats(metadata, ConfigParser(config), "configs/inference.json")]


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ([96, 96, 96], [96, 96, 96]), (["16*n", "2**p"], [512, 512]), (["2**p*n", "*"], [48, 7]), ([96, 96], "$[@size, @size]"),
        ([229, 229], [-1, -1]), ([229, 229], 96),
    ],
)  # fmt: skip
def test_sizes_that_agree(shape, size):
    """A window of one number or of whatever size the image has says nothing that could be compared."""
    assert formats(shape, {"roi_size": size}) == []


@pytest.mark.parametrize(
    ("shape", "size"),
    [([229, 229], [299, 299]), (["16*n", "16*n"], [500, 500]), ([160] * 3, [96] * 3), ([96] * 3, [96] * 2)],
)
def test_metadata_with_another_size_than_inference_feeds(shape, size):
    """Project-MONAI/model-zoo#303: metadata said 229, the pipeline resized to 299, and the network takes both."""
    (text,) = formats(shape, {"roi_size": size})
    assert f"spatial_shape {shape} of the network's input, expected {size}, roi_size of inferer" in text
    steps = [{"_target_": "ResizeD", "keys": "image", "spatial_size": size}, {"_target_": "ToTensord", "keys": "image"}]
    (text,) = formats(shape, {}, steps)
    assert f"expected {size}, spatial_size of Resized in configs/inference.json" in text


def test_the_type_of_the_saved_mask():
    """The zoo's bundles say nothing and save float32."""
    assert formats(["*"], {}, dtype="uint8", saver={"output_dtype": "uint8"}) == []
    assert formats(["*"], {}, dtype="uint8", saver={"output_dtype": "$torch.uint8"}) == []
    assert formats(["*"], {}, dtype="uint8", saver={"keys": "probability"}) == []
    (text,) = formats(["*"], {}, dtype="uint8")
    assert "found SaveImaged that saves float32, expected uint8, dtype of post_processed_outputs" in text


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    root = tmp_path_factory.mktemp("copy") / "b"
    return Path(shutil.copytree(CONFIGS.parent, root, ignore=shutil.ignore_patterns("models", "eval")))


def errors(bundle, given, **options):
    return [str(f) for f in check_bundle(bundle, given, **options) if f.severity == "error"]


def test_a_nested_flag_that_is_misspelt(bundle):
    found = errors(bundle, {"inferer#roi_sizee": [9, 9]})
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
    found = errors(bundle, given)
    assert any(message in text for text in found), found


def test_flags_that_change_the_data_and_are_right(bundle):
    assert errors(bundle, {"cases": "lung1", "val_cases": "lung2"}, dataset_dir=sample_dir("lung_ct")) == []
