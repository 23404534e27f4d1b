"""The bundle on machines and in programs that are not its own: other folders, no GPU, a host's logging, scanners."""

from __future__ import annotations

import hashlib
import json
import logging
import pydoc
import re
import shutil
import time

import monai
import nibabel
import numpy as np
import pytest
import torch
import yaml
from causes import causes
from monai.transforms import Invertd

from monai_margincal.networks import COPLENet

SMALL = {"features": [8, 16, 32, 64, 128], "num_workers": 0}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    for case in "ab":
        image = np.random.RandomState(ord(case)).randint(-1000, 200, (32, 32, 3)).astype(np.int16)
        label = np.zeros(image.shape, np.uint8)
        label[8:16, 10:24, 1] = 1
        for kind, array in (("images", image), ("labels", label)):
            (root / kind).mkdir(exist_ok=True)
            nibabel.save(nibabel.Nifti1Image(array, np.eye(4)), root / kind / f"{case}.nii.gz")
    return root


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    path = tmp_path_factory.mktemp("weights") / "model.pt"
    torch.save(COPLENet(features=SMALL["features"], norm="group").state_dict(), path)
    return path


def test_from_another_folder_the_root_must_be_given(bundle, data, tmp_path, monkeypatch):
    """Project-MONAI/model-zoo#247, Project-MONAI/MONAI#4093: paths hang on the current folder; say which file is missing."""
    monkeypatch.chdir(tmp_path)

    def run(**root):
        loaded = monai.bundle.ConfigWorkflow(
            str(bundle / "configs" / "inference.json"),
            workflow_type="infer",
            logging_file=False,
            dataset_dir=str(data),
            output_dir=str(tmp_path / "out"),
            device="cpu",
            num_workers=0,
            **root,
        )
        loaded.initialize()
        loaded.run()

    with pytest.raises(RuntimeError) as raised:
        run()
    assert "weights not found (No such file or directory: './models/model.pt')" in causes(raised.value)
    run(bundle_root=str(bundle))
    assert (tmp_path / "out" / "images" / "a_mask.nii.gz").is_file()


@pytest.fixture
def saved_on_gpu(monkeypatch):
    """Save what `torch.save` writes on a machine where the tensors lie on the second GPU."""

    def save(content, path):
        with monkeypatch.context() as patch:
            patch.setattr(torch.serialization, "location_tag", lambda storage: "cuda:1")
            torch.save(content, path)
        return str(path)

    return save


def test_checkpoints_saved_on_a_gpu_load_where_there_is_none(workflow, weights, data, tmp_path, saved_on_gpu):
    """Project-MONAI/model-zoo#482: to infer, to evaluate, to start training from and to resume."""
    plain = torch.load(weights, weights_only=True)
    path = saved_on_gpu(plain, tmp_path / "gpu.pt")
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError, match="CUDA"):
            torch.load(path, weights_only=True)
    common = {"dataset_dir": str(data)}
    small = {
        **common,
        "epochs": 1,
        "patch_size": [16, 16],
        "slices_per_volume": 1,
        "val_cases": "b",
        "learning_rate": 0.0,
    }
    workflow(("inference",), "infer", **common, checkpoint=path).run()
    workflow(("train", "evaluate"), "train", **common, val_cases="b", checkpoint=path).run()
    trained = workflow(("train",), "train", **small, load_pretrain=True, checkpoint=path)
    assert torch.equal(trained.trainer.network.state_dict()["out_conv.weight"], plain["out_conv.weight"])
    trained.run()
    state = torch.load(tmp_path / "models" / "checkpoint_epoch=1.pt", weights_only=True)
    path = saved_on_gpu(state, tmp_path / "state.pt")
    resumed = workflow(("train",), "train", **{**small, "epochs": 2}, resume_from=path)
    resumed.run()
    assert resumed.trainer.state.epoch == 2


def test_the_seed_is_a_key_and_set_before_anything_is_drawn(workflow, data):
    """Project-MONAI/model-zoo#362, #717, Project-MONAI/MONAI#5830: which seed, and is it in force when the network is made?"""

    def first_weights(**seed):
        loaded = workflow(("train",), "train", dataset_dir=str(data), patch_size=[16, 16], **seed)
        crops = loaded.train_dataset[0]
        return loaded.network_def.state_dict()["in_conv.first.conv.weight"], torch.stack([c["image"] for c in crops])

    default, again, other = first_weights(), first_weights(seed=0), first_weights(seed=1)
    assert all(map(torch.equal, default, again))
    assert not any(map(torch.equal, default, other))


@pytest.fixture
def host_logging():
    """A host program that has set up its own logging; what it was before comes back."""
    root, named = logging.getLogger(), logging.getLogger("host.program")
    before, level = root.handlers[:], root.level
    root.setLevel(logging.ERROR)
    named.setLevel(logging.DEBUG)
    yield root, named
    root.handlers[:] = before
    root.setLevel(level)
    named.setLevel(logging.NOTSET)


@pytest.mark.parametrize("kind", ["infer", "train"])
def test_the_hosts_logging_stays_as_it_is(workflow, data, weights, host_logging, kind):
    """Project-MONAI/model-zoo#322, Project-MONAI/MONAI#5404, #7513, #7745: with `logging_file=False` nothing is set up."""
    root, named = host_logging
    before = root.handlers[:]
    flags = {"dataset_dir": str(data), "checkpoint": str(weights)}
    if kind == "train":
        flags |= {"epochs": 1, "patch_size": [16, 16], "slices_per_volume": 1}
    loaded = workflow(("inference",) if kind == "infer" else ("train",), kind, **flags)
    loaded.run()
    loaded.finalize()
    assert root.handlers == before
    assert root.level == logging.ERROR
    assert named.level == logging.DEBUG
    assert not named.disabled
    assert not named.handlers
    assert logging.root.manager.disable == 0


@pytest.mark.parametrize("shipped", [True, False], ids=["with the file", "without it"])
def test_the_shipped_logging_conf_silences_nobody(bundle, data, weights, tmp_path, host_logging, shipped):
    """The same threads: the file prints to the console and leaves other loggers alive; the bundle runs without it, too."""
    _, named = host_logging
    copy = shutil.copytree(bundle, tmp_path / "bundle", ignore=shutil.ignore_patterns("models", "eval"))
    conf = copy / "configs" / "logging.conf"
    text = conf.read_text()
    assert "File" not in text, "a log file would appear where the host runs"
    if not shipped:
        conf.unlink()
    loaded = monai.bundle.ConfigWorkflow(
        str(copy / "configs" / "inference.json"),
        workflow_type="infer",
        logging_file=str(conf) if shipped else None,
        bundle_root=str(copy),
        dataset_dir=str(data),
        checkpoint=str(weights),
        output_dir=str(tmp_path / "out"),
        device="cpu",
        **SMALL,
    )
    loaded.initialize()
    loaded.run()
    assert (tmp_path / "out" / "images" / "a_mask.nii.gz").is_file()
    assert not named.disabled


def test_configs_are_declarative_enough_for_scanners(configs):
    """londonaicentre/FLIP#1115, Project-MONAI/MONAI#9057, #9078: targets by prefix, few expressions, none that reaches out."""
    allowed = ("monai.", "torch.", "monai_margincal.")
    most = {
        "train": 55,
        "inference": 25,
        "multi_gpu_train": 25,
        "multi_gpu_evaluate": 20,
        "evaluate": 10,
        "inference_trt": 5,
    }
    for name, config in configs.items():
        text = json.dumps(config)
        for target in re.findall(r'"_target_": "([\w.]+)"', text):
            assert "." not in target or target.startswith(allowed), f"{name}: {target}"
        expressions = re.findall(r'"(\$[^"]*)"', text)
        switches = [text for text in expressions if re.fullmatch(r"\$(not )?@switches\['\w+'\]", text)]
        assert len(expressions) - len(switches) <= most.get(name, 0), name
        for expression in expressions:
            imported = re.fullmatch(r"\$import ([\w.]+)(?: as \w+)?", expression)
            assert imported is None or imported[1] in ("logging", "ignite.distributed"), expression
            assert imported or "import" not in expression, expression
            reaches_out = (
                r"torch\.(load|hub|jit\.load)\b|\b(eval|exec|open|compile|getattr|globals)\(|\bos\.|subprocess|__|http"
            )
            assert not re.search(reaches_out, expression), f"{name}: {expression}"


def test_everything_that_is_called_comes_from_installed_packages(bundle, configs, tmp_path, monkeypatch):
    """Project-MONAI/MONAI#6722, Project-MONAI/model-zoo#466, #112: code in `scripts/` cannot be imported everywhere."""
    assert not list(bundle.rglob("*.py"))
    monkeypatch.chdir(tmp_path)
    targets = set(re.findall(r'"_target_": "([\w.]+\.\w+)"', json.dumps(configs)))
    assert targets
    for target in targets:
        assert pydoc.locate(target) is not None, target


def test_no_metadata_dictionaries(configs, workflow, data):
    """Project-MONAI/model-zoo#517: `*_meta_dict` keys that newer versions of MONAI do not have."""
    for name, config in configs.items():
        text = json.dumps(config)
        assert not re.search(r"meta_dict|meta_keys?\b|meta_key_postfix", text), name
    loaded = workflow(("train",), "train", dataset_dir=str(data), patch_size=[16, 16])
    for chain, keys in (
        (loaded.val_preprocessing, {"image", "label", "case"}),
        (loaded.train_preprocessing, {"image", "label", "case"}),
    ):
        items = chain(dict(loaded.train_dataset_data[0]))
        for item in items if isinstance(items, list) else [items]:
            assert set(item) == keys


def test_what_must_be_downloaded_has_a_hash(bundle):
    """Project-MONAI/model-zoo#537, Project-MONAI/MONAI#6962, #8375, Project-MONAI/MONAILabel#1005: downloads that fail late."""
    listed = yaml.safe_load((bundle / "large_files.yml").read_text())["large_files"]
    for entry in listed:
        assert set(entry) >= {"path", "url", "hash_val", "hash_type"}, entry
        assert len(entry["hash_val"]) == hashlib.new(entry["hash_type"]).digest_size * 2
    if "models/model.pt" not in {entry["path"] for entry in listed}:
        assert (bundle / "models" / "model.pt").is_file(), "inference would have no weights"


def test_caching_is_off_and_costs_what_the_readme_says(bundle, configs, workflow, data):
    """Project-MONAI/model-zoo#395, Project-MONAI/MONAILabel#1211: a cache of everything ends a machine without a message."""
    assert configs["train"]["cache_rate"] == 0.0
    loaded = workflow(("train",), "train", dataset_dir=str(data))
    prepared = monai.transforms.Compose(loaded.parser.get_parsed_content("train#deterministic_transforms"))
    item = prepared(dict(loaded.train_dataset_data[0]))
    size = sum(item[key].element_size() * item[key].numel() for key in ("image", "label")) / item["image"].numel()
    text = (bundle / "docs" / "README.md").read_text(encoding="utf-8")
    about = next(part for part in re.split(r"\n(?=\n|\||\*)", text) if "cache_rate" in part and "per voxel" in part)
    stated = [float(number) for number in re.findall(r"([\d.]+)(?: bytes)? per voxel", about)]
    assert any(size <= number <= 1.1 * size for number in stated), (size, stated)


def test_taking_training_batches_apart_costs_nothing(workflow, data):
    """Project-MONAI/MONAI#8541: doubled the time of a step. Crops are plain tensors here: 0.12 ms a batch on one CPU core."""
    loaded = workflow(("train",), "train", dataset_dir=str(data), patch_size=[256, 256], slices_per_volume=8)
    (batch,) = loaded.parser.get_parsed_content("train#dataloader")
    batch |= {"pred": torch.rand(8, 2, 256, 256), "loss": torch.rand(())}
    times = []
    for _ in range(20):
        start = time.process_time()
        assert len(monai.data.decollate_batch(batch)) == 8
        times.append(time.process_time() - start)
    assert min(times) < 0.003


def test_nothing_but_the_decision_is_turned_back(workflow, data, weights, monkeypatch):
    """lassoan/SlicerMONAIAuto3DSeg#92, #20, #21, #98, Project-MONAI/MONAILabel#1269: no softmax and no float map per class."""
    seen = []
    original = Invertd.__call__

    def watch(self, items):
        seen.append((items["pred"].dtype, tuple(items["pred"].shape)))
        return original(self, items)

    monkeypatch.setattr(Invertd, "__call__", watch)
    operations = set()

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            operations.add(str(func))
            return func(*args, **(kwargs or {}))

    loaded = workflow(("inference",), "infer", dataset_dir=str(data), checkpoint=str(weights), cases="a")
    with Watch():
        loaded.run()
    assert seen == [(torch.uint8, (1, 32, 32, 3))]
    assert any("convolution" in name for name in operations)
    assert not [name for name in operations if "softmax" in name]


def test_the_readme_says_how_the_network_is_trained_and_fed(bundle, configs):
    """What four threads asked: how to train it, the order of pad, resize and crop, 3-D volumes, where the loss is.

    Project-MONAI/MONAI#1288, Project-MONAI/research-contributions#4, HiLab-git/COPLE-Net#4, HiLab-git/PyMIC_examples#16;
    Project-MONAI/MONAI#396 asks for the example as such.
    """
    text = (bundle / "docs" / "README.md").read_text(encoding="utf-8")
    for config in (configs["train"], configs["inference"]):
        width, level = config["window_width"], config["window_level"]
        assert f"window of width {width:.0f} and level {level:.0f} HU mapped to [0, 1]" in text
    for words in ("configs/train.json", "axial slices", "Nothing is resampled", "--lung_crop", "configs/losses"):
        assert words in text, words
    index = (bundle.parents[1] / "docs" / "index.md").read_text(encoding="utf-8")
    assert "https://github.com/Project-MONAI/MONAI/issues/396" in index
