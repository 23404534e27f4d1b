"""What can be said about the bundle without running it: properties, metadata, one preprocessing, one word per key."""

from __future__ import annotations

import copy
import json
import re
import shutil
from importlib.metadata import requires
from pathlib import Path

import monai.bundle
import pytest
import torch
from packaging.requirements import Requirement
from shared import GOLDEN

import monai_margincal
from monai_margincal.bundle.check.image_chain import transform_ids
from monai_margincal.outputs.kind import KINDS
from monai_margincal.samples import sample_dir

#: what the extra `bundle` brings, and what is always needed
REQUIRED = {
    item.name.lower(): item.specifier
    for item in map(Requirement, requires("monai-margincal") or [])
    if not item.marker or item.marker.evaluate({"extra": "bundle"})
}

CONSTRAINTS = Path(__file__).resolve().parents[1] / "constraints.txt"

#: keys of train.json that a user sets; test_overrides.py proves that each does something
TUNABLES = {
    "dataset_dir", "image_pattern", "label_pattern", "train_cases", "val_cases", "device", "amp", "seed", "epochs",
    "val_interval", "batch_size", "slices_per_volume", "num_workers", "cache_rate", "learning_rate", "load_pretrain",
    "checkpoint", "decision", "resume_from", "grid_tolerance", "window_level", "window_width", "axcodes", "patch_size",
    "num_classes", "class_names", "features", "norm", "roi_size", "class_counts", "output_dir", "ckpt_dir", "warmup_epochs",
    "early_stop_patience", "datalist_file", "lung_crop", "lung_margin", "channels_last",
    "groups", "group_column", "group_pattern", "folds", "fold",
}  # fmt: skip
INFERENCE_ONLY = {"cases", "outputs", "stop_on_error", "allow_gaps", "compile", "sw_batch_size"}


@pytest.mark.parametrize(
    ("kind", "names"),
    [("train", ("train",)), ("train", ("train", "evaluate")), ("infer", ("inference",))],
    ids=["train", "train+evaluate", "infer"],
)
def test_required_properties(workflow, kind, names):
    assert workflow(names, kind).check_properties() == []


def test_metadata_follows_the_schema(bundle, tmp_path):
    """The schema lies where the command expects it, so that nothing is downloaded."""
    shutil.copy(GOLDEN / "meta_schema_20240725.json", tmp_path / "schema.json")
    arguments = {"meta_file": str(bundle / "configs" / "metadata.json"), "filepath": str(tmp_path / "schema.json")}
    monai.bundle.verify_metadata(**arguments)
    broken = json.loads((bundle / "configs" / "metadata.json").read_text())
    del broken["required_packages_version"]
    (tmp_path / "metadata.json").write_text(json.dumps(broken))
    with pytest.raises(ValueError, match="'required_packages_version' is a required property"):
        monai.bundle.verify_metadata(**{**arguments, "meta_file": str(tmp_path / "metadata.json")})


@pytest.mark.parametrize(("config", "n"), [("inference", 1), ("inference", 4), ("train", 3)])
def test_network_takes_and_gives_what_metadata_says(bundle, config, n):
    """MONAI issue 303 of the model zoo: metadata said 229, the pipeline used 299."""
    monai.bundle.verify_net_in_out(
        net_id="network_def",
        meta_file=str(bundle / "configs" / "metadata.json"),
        config_file=str(bundle / "configs" / f"{config}.json"),
        device="cpu",
        n=n,
        features=[8, 16, 32, 64, 128],
    )


def test_metadata_equals_the_configs(configs):
    """Model-zoo issues 107 and 396, tutorials issue 433: names copied from elsewhere, classes swapped."""
    formats = configs["metadata"]["network_data_format"]
    names = {str(index): name for index, name in enumerate(configs["train"]["class_names"])}
    for key in ("outputs", "post_processed_outputs"):
        assert formats[key]["pred"]["channel_def"] == names
    assert formats["outputs"]["pred"]["num_channels"] == configs["train"]["num_classes"] == len(names)
    assert formats["post_processed_outputs"]["pred"]["dtype"] == KINDS["mask"].dtype == "uint8"
    assert formats["inputs"]["image"]["num_channels"] == configs["inference"]["network_def"]["in_channels"]
    scale = _image_chain(configs["inference"], "preprocessing")[-1]
    assert formats["inputs"]["image"]["value_range"] == [scale["b_min"], scale["b_max"]]
    assert len(formats["inputs"]["image"]["spatial_shape"]) == configs["inference"]["network_def"]["spatial_dims"] == 2


def test_metadata_equals_the_package_and_the_tested_stack(configs):
    meta = configs["metadata"]
    assert meta["version"] in meta["changelog"]
    tested = dict(line.split("==") for line in CONSTRAINTS.read_text().splitlines() if "==" in line)
    versions = {
        key.removesuffix("_version"): meta[key] for key in ("monai_version", "pytorch_version", "numpy_version")
    }
    versions["torch"] = versions.pop("pytorch")
    versions |= meta["required_packages_version"]
    assert versions.pop("monai-margincal") == monai_margincal.__version__
    for package, version in versions.items():
        assert version == tested[package], package
        assert REQUIRED[package.lower()].contains(version), package


def test_one_preprocessing_for_training_evaluation_and_inference(configs):
    """FLIP pull 1020: inference had drifted from training, invisible without a ground truth."""
    training = _image_chain(configs["train"], "train::deterministic_transforms")
    assert training == _image_chain(configs["train"], "validate::preprocessing")
    assert training == _image_chain(configs["inference"], "preprocessing")
    assert [step["_target_"] for step in training] == [
        "LoadImaged",
        "monai_margincal.transforms.AffineToRASd",
        "EnsureChannelFirstd",
        "Orientationd",
        "monai_margincal.transforms.LungRegionCropd",
        "ScaleIntensityRanged",
    ]
    # where the network lies, in which layout, is a matter of speed
    shared = set(configs["train"]) & set(configs["inference"]) - {"initialize", "run", "switches", "network"}
    expected = "window_level window_width axcodes lung_crop lung_margin features norm roi_size network_def"
    assert set(expected.split()) < shared
    different = [key for key in sorted(shared) if configs["train"][key] != configs["inference"][key]]
    assert not different


def test_the_three_chains_give_the_same_image(workflow):
    item = {
        "image": f"{sample_dir('lung_ct')}/images/lung1.nii.gz",
        "label": f"{sample_dir('lung_ct')}/labels/lung1.nii.gz",
    }
    train, infer = workflow(("train",), "train"), workflow(("inference",), "infer")
    first = monai.transforms.Compose(train.parser.get_parsed_content("train#deterministic_transforms"))(item)["image"]
    for chain in (train.val_preprocessing, infer.preprocessing):
        other = chain(item)["image"]
        assert torch.equal(first.as_tensor(), other.as_tensor())
        assert torch.equal(first.affine, other.affine)
    # 0 HU lies 1400 / 1500 up the window from -1400 to 100
    raw = monai.transforms.LoadImage(ensure_channel_first=True)(item["image"])
    turned = monai.transforms.Orientation("PLS", labels=(("L", "R"), ("P", "A"), ("I", "S")))(raw)
    assert torch.allclose(first.as_tensor(), ((turned.as_tensor() + 1400) / 1500).clip(0, 1), atol=1e-6)


@pytest.mark.parametrize("name", ["train", "inference"])
def test_every_tunable_is_a_top_level_key_that_is_used(configs, name):
    """MONAI issue 5899: a nested key is overridden only by replacing all that is around it."""
    config = configs[name]
    used = set(re.findall(r"@(\w+)", json.dumps(config)))
    plain = {
        key
        for key, value in config.items()
        if not isinstance(value, dict) and key not in ("initialize", "run", "handlers")
    }
    plain -= {"network", "bundle_root"}
    plain -= {"is_not_rank0"}  # set by the configs for several processes
    plain |= {"dataset_dir"}
    tunables = TUNABLES | INFERENCE_ONLY
    assert plain <= tunables, plain - tunables
    if name == "train":
        assert set(config) >= TUNABLES
    assert plain <= used, plain - used


def test_every_reference_exists(configs):
    for names in (("train",), ("train", "evaluate"), ("train", "multi_gpu_train"), ("inference",)):
        merged = monai.bundle.ConfigParser(copy.deepcopy(configs[names[0]]))
        for name in names[1:]:
            merged.update(configs[name])
        for reference in re.findall(r"@(\w+(?:#\w+)*)", json.dumps(merged[""])):
            assert reference in merged, reference


def test_inference_does_not_need_metadata(configs):
    """MONAILabel reads inference.json alone."""
    assert "_meta_" not in json.dumps(configs["inference"])


def test_nothing_but_monai_torch_and_ours_is_called(configs):
    """MONAI pulls 9057 and 9078: scanners allow targets by prefix."""
    targets = re.findall(r'"_target_": "([\w.]+)"', json.dumps(configs))
    assert {
        name for name in targets if "." in name and not name.startswith(("monai.", "torch.", "monai_margincal."))
    } == set()
    for name in targets:
        if "." not in name:
            assert any(
                hasattr(room, name)
                for room in (monai.transforms, monai.data, monai.handlers, monai.inferers, monai.engines)
            ), name


def test_files_of_a_first_class_bundle(bundle):
    wanted = [
        "LICENSE",
        "configs/metadata.json",
        "configs/inference.json",
        "configs/train.json",
        "configs/evaluate.json",
    ]
    wanted += ["configs/logging.conf", "docs/README.md", "docs/data_license.txt"]
    for name in wanted:
        assert (bundle / name).stat().st_size > 0, name
    assert not list(bundle.rglob("*.py"))


def test_readme_tells_every_key_and_its_default(bundle, configs):
    table = "\n".join(line for line in (bundle / "docs" / "README.md").read_text().splitlines() if line.startswith("|"))
    words = set(re.findall(r"`(\w+)`", table)) | set(re.findall(r"--(\w+)", table))
    documented_elsewhere = {
        "dataset_dir",
        "val_cases",
        "train_cases",
        "num_classes",
        "class_names",
    }
    keys = (TUNABLES | INFERENCE_ONLY) - documented_elsewhere
    assert keys <= words, keys - words


def test_every_key_with_a_way_to_it_that_the_readme_shows_is_there(bundle, configs):
    losses = [json.loads(path.read_text()) for path in (bundle / "configs" / "losses").iterdir()]
    parsers = [monai.bundle.ConfigParser({**configs["train"], **loss}) for loss in ({}, *losses)]
    parsers.append(monai.bundle.ConfigParser(configs["inference"]))
    shown = set(re.findall(r"(?:`|--)(\w+(?:#\w+)+)(?:`|\s)", (bundle / "docs" / "README.md").read_text()))
    assert len(shown) > 15
    assert {id for id in shown if not any(id in parser for parser in parsers)} == set()


def _image_chain(config, id):
    """The text of the image's transforms, without saying which items they are for."""
    parser = monai.bundle.ConfigParser(copy.deepcopy(config))
    parser.parse(True)
    chain = []
    for step in map(parser.__getitem__, transform_ids(parser, id)):
        keys = [step["keys"]] if isinstance(step["keys"], str) else step["keys"]
        # the check returns its items unchanged
        if "image" in keys and not step["_target_"].endswith("CheckSameGridd"):
            chain.append({key: value for key, value in step.items() if key not in ("keys", "label_key")})
    return chain
