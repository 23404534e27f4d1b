"""Every key of inference does something when it is given as one flag, and so does what is nested because it is rare."""

from __future__ import annotations

import json
from pathlib import Path

import monai
import pytest
import torch
from fire.parser import DefaultParseValue

from monai_margincal.samples import sample_dir

BUNDLE = Path(__file__).resolve().parents[2] / "bundles" / "covid19_ct_lesion_coplenet"
LABEL = {"image": f"{sample_dir('lung_ct')}/labels/lung1.nii.gz"}


class Parsed:
    """The config as the command line makes it; nothing is instantiated before it is looked at."""

    def __init__(self, **overrides):
        self.parser = monai.bundle.ConfigParser()
        self.parser.read_config(str(BUNDLE / "configs" / "inference.json"))
        self.parser.update({"bundle_root": str(BUNDLE), "features": [8, 16, 32, 64, 128], **overrides})
        self.parser.parse(True)

    def __getitem__(self, key):
        return self.parser.get_parsed_content(key)


def step(transforms, name):
    return next(t for t in transforms.flatten().transforms if type(t).__name__ == name)


def lung_crops(p):
    return [t for t in p["preprocessing"].flatten().transforms if type(t).__name__ == "LungRegionCropd"]


def output(p, kind):
    return next(output for output in p["saving"].chosen if output.kind == kind)


def dropouts(p):
    return {m.p for m in p["network"].modules() if "Dropout" in type(m).__name__}


#: key: (value, what then holds, further flags)
KEYS = {
    "image_pattern": ("labels/{case}.*", lambda p: "/labels/" in p["dataset"].data[0]["image"]),
    "cases": ("lung2", lambda p: [i["case"] for i in p["dataset"].data] == ["lung2"]),
    "outputs": ("mask,overlay", lambda p: p["saving"].kinds == ["mask", "overlay"]),
    "device": ("cpu", lambda p: str(p["evaluator"].state.device) == "cpu"),
    "amp": (True, lambda p: p["evaluator"].amp),
    "num_workers": (3, lambda p: p["dataloader"].num_workers == 3),
    "checkpoint": ("x.pt", lambda p: p["handlers"][0].load_path == "x.pt"),
    "decision": ("argmax", lambda p: p["offsets"] is None),
    "window_level": (40.0, lambda p: step(p["preprocessing"], "ScaleIntensityRanged").scaler.a_min == -710),
    "window_width": (400.0, lambda p: step(p["preprocessing"], "ScaleIntensityRanged").scaler.a_max == -450),
    "axcodes": ("RAS", lambda p: step(p["preprocessing"], "Orientationd").ornt_transform.axcodes == "RAS"),
    "lung_crop": ("false", lambda p: not lung_crops(p)),
    "lung_margin": ([5, 6, 7], lambda p: [c.cropper.margin_mm for c in lung_crops(p)] == [[5, 6, 7]]),
    "num_classes": (3, lambda p: p["network"].out_conv.out_channels == 3),
    "class_names": (["a", "b"], lambda p: output(p, "volumes").table.class_names == ["a", "b"]),
    "features": ([4, 8, 16, 32, 64], lambda p: p["network"].out_conv.in_channels == 4, {"norm": "batch"}),
    "norm": ("batch", lambda p: any(isinstance(m, torch.nn.BatchNorm2d) for m in p["network"].modules())),
    "roi_size": ([64, 32], lambda p: p["inferer"].roi_size == (64, 32)),
    "sw_batch_size": (2, lambda p: p["inferer"].sw_batch_size == 2),
    "channels_last": ("true", lambda p: p["inferer"].memory_format == torch.channels_last),
    "compile": ("true", lambda p: hasattr(p["evaluator"].network, "_orig_mod")),
    "stop_on_error": ("true", lambda p: p["evaluator"].stop_on_error),
    "allow_gaps": ("true", lambda p: p["dataset"].allow_gaps),
    "ckpt_dir": ("m", lambda p: p["handlers"][0].load_path == "m/model.pt"),
    "output_dir": ("o", lambda p: output(p, "mask").saver.folder_layout.output_dir == "o"),
}

#: what the README shows besides, and what one would look for
NESTED = {
    "network_def#dropout": ([0.5] * 5, lambda p: dropouts(p) == {0.5}),
    "inferer#overlap": (0.5, lambda p: p["inferer"].overlap == 0.5),
    "inferer#device": ("cpu", lambda p: p["inferer"].device == "cpu"),
    "dataset#data": ([LABEL], lambda p: p["dataset"].data == [LABEL]),
    "saving#mask#postfix": ("seg", lambda p: output(p, "mask").saver.folder_layout.postfix == "seg"),
    "saving#volumes#file": ("v.csv", lambda p: output(p, "volumes").reasons.name == "v.csv"),
    "saving#overlay#image_name": ("scan", lambda p: output(p, "overlay").image_name == "scan", {"outputs": "overlay"}),
}


def test_every_key_is_tried_here():
    """Project-MONAI/MONAI#5899: what cannot be set by one flag is set by replacing all that is around it."""
    config = json.loads((BUNDLE / "configs" / "inference.json").read_text())
    keys = {key for key, value in config.items() if not isinstance(value, dict)}
    made = {"network", "handlers", "initialize", "run", "bundle_root"}
    assert keys - made == set(KEYS)


@pytest.mark.parametrize("key", [*KEYS, *NESTED])
def test_one_flag(key, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    value, holds, *others = {**KEYS, **NESTED}[key]
    base = {"output_dir": str(tmp_path / "eval"), "num_workers": 0, **(others[0] if others else {})}
    assert holds(Parsed(**{**base, key: value})), "the flag did nothing"
    if not (key == "device" and not torch.cuda.is_available()):
        assert not holds(Parsed(**base)), "the check holds without the flag, too"


@pytest.mark.parametrize("text", ["probability", "mask,probability", "['mask','probability']"])
def test_logits_are_kept_only_for_an_output_that_needs_them(text):
    """A choice as a shell gives it: MONAI's command line makes it a text, a tuple or a list."""

    def steps(p):
        return [type(t).__name__ for t in p["postprocessing"].transforms]

    saved = ["SaveImageOutputsd", "Invertd", "SaveImageOutputsd"]
    default, asked = Parsed(), Parsed(outputs=DefaultParseValue(text))
    assert default["inferer"].decide
    assert steps(default) == saved
    assert not asked["inferer"].decide
    assert steps(asked) == ["MapsFromLogitsd", "DecideClassd", *saved]
