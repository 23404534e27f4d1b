"""What cannot give a right result ends with one line that says why, an exit code that is not 0, and nothing half written."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest
import SimpleITK
import torch
from dicom_files import write_series

from monai_margincal.errors import root_message
from monai_margincal.networks import COPLENet

BUNDLE = Path(__file__).resolve().parents[2] / "bundles" / "covid19_ct_lesion_coplenet"
SMALL = (8, 16, 32, 64, 128)
SHAPE = (32, 32, 3)


def write(path, array, affine=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(array, np.eye(4) if affine is None else affine), path)


def scan(seed=0):
    return np.random.RandomState(seed).randint(-1000, 100, SHAPE).astype(np.int16)


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """Three cases and weights; every test spoils a copy."""
    root = tmp_path_factory.mktemp("good")
    label = np.zeros(SHAPE, np.uint8)
    label[3:9, 4:12, 1] = 1
    for index, case in enumerate("abc"):
        write(root / "data" / "images" / f"{case}.nii.gz", scan(index))
        write(root / "data" / "labels" / f"{case}.nii.gz", label)
    torch.save(COPLENet(features=SMALL, norm="group").state_dict(), root / "w.pt")
    torch.save(COPLENet(features=(16, 32, 64, 128, 256), norm="group").state_dict(), root / "wide.pt")
    return root


@pytest.fixture
def data(good, tmp_path):
    return Path(shutil.copytree(good, tmp_path / "in")) / "data"


def flags_of(configs, folder, **overrides):
    own = {"checkpoint": str(folder.parent / "w.pt")} if configs == ("inference",) else {"val_cases": ["c"]}
    small = {"epochs": 1, "patch_size": [32, 32], "slices_per_volume": 1} if configs == ("train",) else {}
    common = {"dataset_dir": str(folder), "features": list(SMALL), "num_workers": 0, "lung_crop": False}
    return {**common, **own, **small, **overrides}


def cut(path, size=-500):
    path.write_bytes(path.read_bytes()[:size])


def as_nrrd(path, array):
    path.unlink()
    SimpleITK.WriteImage(SimpleITK.GetImageFromArray(array), str(path.with_name("a.nrrd")))
    cut(path.with_name("a.nrrd"))


def empty(data):
    shutil.rmtree(data)
    data.mkdir()


def series_with_a_gap(data):
    write_series(data / "series" / "a", np.tile(scan(), (1, 1, 2)))
    (data / "series" / "a" / "IM2").unlink()


INFERENCE, TRAIN, EVALUATE = ("inference",), ("train",), ("train", "evaluate")
UNREADABLE = "cannot be read or prepared: "
SHORT = r"cannot be read, expected \d+ voxels of int16: "
#: what gzip says of a file that is cut off, wherever it is noticed
ENDED = r"\w+: .*ended before the end-of-stream marker was reached\)?"

#: what: (configs, how the data are spoilt, flags, the one line)
FAULTS: dict[str, tuple[tuple[str, ...], Callable[[Path], Any] | None, dict[str, Any], str]] = {
    "no folder": (INFERENCE, shutil.rmtree, {}, r"FileNotFoundError: data set folder not found: {data}"),
    "no folder to train on": (TRAIN, shutil.rmtree, {}, r"FileNotFoundError: data set folder not found: {data}"),
    "empty folder": (INFERENCE, empty, {},
        r"FileNotFoundError: no image found: nothing in {data} fits the pattern 'images/\{{case\}}\.\*'"),
    "empty list": (INFERENCE, None, {"dataset#data": []}, r"ValueError: the list of scans is empty, expected at least one .*"),
    "unknown key": (INFERENCE, None, {"sw_batchsize": 4},
        r"ValueError: unknown key 'sw_batchsize' \(did you mean 'sw_batch_size'\?\): nothing in the configuration refers to it"),
    "unknown key of training": (TRAIN, None, {"epoch": 4}, r"ValueError: unknown key 'epoch' \(did you mean 'epochs'\?\).*"),
    "key of inference in training": (TRAIN, None, {"cases": "a"}, r"ValueError: unknown key 'cases' \(it belongs to inference.*"),
    "misspelt argument": (INFERENCE, None, {"inferer#roi_sizee": [9, 9]},
        r"TypeError: .*unexpected keyword argument 'roi_sizee' .*"),
    "misspelt component": (INFERENCE, None, {"infererr#roi_size": [9, 9]},
        r"ValueError: By 'infererr', did you mean 'inferer'\? .*"),
    "no weights": (INFERENCE, None, {"checkpoint": "none.pt"},
        r"FileNotFoundError: .*weights not found .*'none\.pt'.*train first.*convert-weights.*--checkpoint.*"),
    "no model.pt": (INFERENCE, None, {"checkpoint": f"{BUNDLE}/models/none.pt"},
        rf"FileNotFoundError: .*{BUNDLE}/models/none\.pt.* \({BUNDLE}/large_files\.yml says where they are\).*"),
    "no weights to evaluate": (EVALUATE, None, {}, r"FileNotFoundError: .*weights not found .*/models/model\.pt'.*"),
    "no weights to start from": (TRAIN, None, {"load_pretrain": True},
        r"FileNotFoundError: .*weights not found .*/models/model\.pt'.*"),
    "weights of another width": (INFERENCE, None, {"checkpoint": "{data}/../wide.pt"},
        r"ValueError: .*wide\.pt: found weights of another network .*: features \[16, .*expected \[8, .*--features.*"),
    "weights of another width to start from": (TRAIN, None, {"load_pretrain": "true", "checkpoint": "{data}/../wide.pt"},
        r"ValueError: .*wide\.pt: found weights of another network .*: features \[16, .*expected \[8, .*"),
    "weights that are none": (INFERENCE, lambda d: (d.parent / "w.pt").write_text("none"), {},
        r"ValueError: .*w\.pt: found no file of plain tensors \(.*\), expected weights"),
    "unclear switch": (TRAIN, None, {"load_pretrain": "maybe"},
        r"ValueError: load_pretrain: found 'maybe', expected true or false"),
    "unclear switch of inference": (INFERENCE, None, {"stop_on_error": "maybe"},
        r"ValueError: stop_on_error: found 'maybe', expected true or false"),
    "unknown output": (INFERENCE, None, {"outputs": "mask,overlays"},
        r"ValueError: unknown kind of output 'overlays', expected some of \['dicom_seg', .*'mask', 'overlay', .*"),
    "truncated scan": (INFERENCE, lambda d: cut(d / "images" / "a.nii.gz"), {},
        rf"1 of 3 scans failed: {{data}}/images/a\.nii\.gz: {SHORT}{ENDED}"),
    "truncated NRRD": (INFERENCE, lambda d: as_nrrd(d / "images" / "a.nii.gz", scan()), {},
        r"1 of 3 scans failed: {data}/images/a\.nrrd: found \d+ bytes of voxels, expected \d+: it is truncated"),
    "no image": (INFERENCE, lambda d: (d / "images" / "a.xyz").write_text("none"), {"image_pattern": "images/{{case}}.xyz"},
        r"1 of 1 scans failed: {data}/images/a\.xyz: found the file name ending '\.xyz', expected one of \.dcm, .* or DICOM"),
    "missing slice": (INFERENCE, series_with_a_gap, {"image_pattern": "series/{{case}}"},
        r"1 of 1 scans failed: {data}/series/a: found a gap .*slice.*"),
    "stop at once": (INFERENCE, lambda d: cut(d / "images" / "a.nii.gz"), {"stop_on_error": "true"},
        rf"{{data}}/images/a\.nii\.gz: {SHORT}{ENDED}"),
    "truncated image": (TRAIN, lambda d: cut(d / "images" / "a.nii.gz"), {},
        rf"{{data}}/images/a\.nii\.gz, .*: {UNREADABLE}{ENDED}"),
    "truncated image, cached": (TRAIN, lambda d: cut(d / "images" / "a.nii.gz"), {"cache_rate": 1.0},
        rf"{{data}}/images/a\.nii\.gz, .*: {UNREADABLE}{ENDED}"),
    "truncated image of validation": (TRAIN, lambda d: cut(d / "images" / "c.nii.gz"), {},
        rf"{{data}}/images/c\.nii\.gz, .*: {UNREADABLE}{ENDED}"),
    "truncated label": (TRAIN, lambda d: cut(d / "labels" / "a.nii.gz", 60), {},
        r"ValueError: {data}/labels/a\.nii\.gz: found .*expected.*"),
    "label out of range": (TRAIN, lambda d: write(d / "labels" / "b.nii.gz", np.full(SHAPE, 2, np.uint8)), {},
        r"ValueError: {data}/labels/b\.nii\.gz: found the label value\(s\) 2 .*, expected class ids \[0, 1\].*"),
    "label out of range, counts given": (
        TRAIN, lambda d: write(d / "labels" / "b.nii.gz", np.full(SHAPE, 2, np.uint8)), {"class_counts": [9, 1]},
        r"{data}/labels/b\.nii\.gz: found the label value\(s\) 2 .*, expected class ids \[0, 1\].*"),
    "label of validation out of range": (TRAIN, lambda d: write(d / "labels" / "c.nii.gz", np.full(SHAPE, 255, np.uint8)), {},
        r"{data}/labels/c\.nii\.gz: found the label value\(s\) 255 .*, expected class ids \[0, 1\].*"),
    "label that is not integral": (TRAIN, lambda d: write(d / "labels" / "b.nii.gz", np.full(SHAPE, 0.5, np.float32)), {},
        r"ValueError: {data}/labels/b\.nii\.gz: found values that are not integers: 0\.5, expected class ids \[0, 1\]"),
    "label of validation that is not integral": (
        TRAIN, lambda d: write(d / "labels" / "c.nii.gz", np.full(SHAPE, 0.5, np.float32)), {},
        r"{data}/labels/c\.nii\.gz: found values that are not integers: 0\.5, expected class ids \[0, 1\]"),
    "label of another shape": (TRAIN, lambda d: write(d / "labels" / "b.nii.gz", np.zeros((32, 32, 4), np.uint8)), {},
        r"ValueError: image and label lie on different grids: image \({data}/images/b.nii.gz\) has shape .*, label .*"),
    "label elsewhere": (TRAIN, lambda d: write(d / "labels" / "b.nii.gz", np.zeros(SHAPE, np.uint8), np.diag([2.0, 2, 2, 1])), {},
        r"ValueError: image and label lie on different grids: .*b\.nii\.gz.* a corner moves by .* voxels, allowed are 0\.25"),
    "a label less": (TRAIN, lambda d: (d / "labels" / "b.nii.gz").unlink(), {},
        r"ValueError: images and labels in {data} do not pair up: no label .* for the images images/b\.nii\.gz"),
    "an image less": (TRAIN, lambda d: (d / "images" / "b.nii.gz").unlink(), {},
        r"ValueError: images and labels in {data} do not pair up: no image .* for the labels labels/b\.nii\.gz"),
    "a name for a loss": (TRAIN, None, {"loss": "margin"}, r"TypeError: then: found 'margin', expected a loss .*"),
    "misspelt argument of the loss": (TRAIN, None, {"loss#tao": 2},
        r"TypeError: .* unexpected keyword argument 'tao' in monai_margincal\.losses\.MarginCalibrationTverskyLoss"),
    "argument of the loss at the top": (TRAIN, None, {"tau": 2},
        r"ValueError: unknown key 'tau' \(did you mean 'loss#tau'\?\).*"),
    "misspelt key of a group": (TRAIN, None, {"train#save_intervall": 2},
        r"ValueError: unknown key 'train#save_intervall' \(did you mean 'train#save_interval'\?\).*"),
    "text for a switch of a component": (TRAIN, None, {"loss#include_background": "false"},
        r"ValueError: loss#include_background: found the text 'false', expected True or False"),
    "nothing left to train on": (TRAIN, None, {"val_cases": "all"},
        r"ValueError: no case is left for part 'training': 'validation' takes all 3 cases, .*"),
    "text for a number": (INFERENCE, None, {"window_level": "x"}, r"TypeError: .* in \$@window_level - @window_width / 2"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_the_one_line(workflow, data, fault, tmp_path):
    """Model-zoo pulls 789 and 761; MONAI issue 5881, tutorials issue 578: exit 0 and nothing done, or no file named."""
    configs, spoil, overrides, message = FAULTS[fault]
    if spoil is not None:
        spoil(data)
    filled = {key: value.format(data=data) if isinstance(value, str) else value for key, value in overrides.items()}
    kind = "infer" if configs == INFERENCE else "train"
    with pytest.raises(Exception) as raised:
        workflow(configs, kind, **flags_of(configs, data, **filled)).run()
    line = root_message(raised.value)
    assert re.fullmatch(message.format(data=re.escape(str(data))), line), line
    written = {path.name for path in tmp_path.rglob("*") if path.is_file()} - {p.name for p in data.parent.rglob("*")}
    readable = 2 if "1 of 3 scans failed" in line else 0
    assert len([name for name in written if "_mask" in name]) == readable
    assert not any(name.endswith((".pt", ".tmp")) for name in written)


def run(data, out, configs, *words, **overrides):
    """`python -m monai.bundle run` as a user starts it: exit code, last line on stderr, everything."""
    files = [str(BUNDLE / "configs" / f"{name}.json") for name in configs]
    line = [
        sys.executable,
        *words,
        "-m",
        "monai.bundle",
        "run",
        "--config_file",
        str(files),
        "--bundle_root",
        str(BUNDLE),
    ]
    folders = {"output_dir": out / "eval", "ckpt_dir": out / "models"}
    for key, value in {**folders, **flags_of(configs, data, **overrides)}.items():
        line += [f"--{key}", str(value)]
    done = subprocess.run(
        line, capture_output=True, text=True, timeout=300, check=False, cwd=data.parent,
        env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
    )  # fmt: skip
    return done.returncode, (done.stderr.strip().splitlines() or [""])[-1], done.stdout + done.stderr


def test_a_command_goes_on_with_the_other_scans_and_fails_in_the_end(data, tmp_path):
    cut(data / "images" / "b.nii.gz")
    code, line, printed = run(data, tmp_path, INFERENCE, num_workers=2)
    assert code == 1, printed
    assert re.fullmatch(rf"error: 1 of 3 scans failed: {data}/images/b\.nii\.gz: {SHORT}{ENDED}", line), printed
    assert "Traceback" not in printed
    results = {
        path.relative_to(tmp_path / "eval").as_posix() for path in (tmp_path / "eval").rglob("*") if path.is_file()
    }
    assert results == {"images/a_mask.nii.gz", "images/c_mask.nii.gz", "volumes.csv"}
    rows = [
        row
        for row in (tmp_path / "eval" / "volumes.csv").read_text().splitlines()
        if row.startswith(f"{data}/images/b")
    ]
    assert len(rows) == 1
    assert re.search(SHORT + ENDED, rows[0])


def test_a_command_names_the_file_of_a_worker_process(data, tmp_path):
    cut(data / "images" / "a.nii.gz")
    code, line, printed = run(data, tmp_path, TRAIN, num_workers=1)
    assert code == 1, printed
    assert re.match(rf"error: {data}/images/a\.nii\.gz, {data}/labels/a\.nii\.gz: {UNREADABLE}EOFError: ", line), (
        printed
    )
    assert not list(tmp_path.rglob("model.pt"))


def test_a_command_with_a_label_out_of_range(data, tmp_path):
    write(data / "labels" / "b.nii.gz", np.full(SHAPE, 2, np.uint8))
    code, line, printed = run(data, tmp_path, TRAIN)
    assert code == 1, printed
    assert line.startswith(f"error: ValueError: {data}/labels/b.nii.gz: found the label value(s) 2 (3072 voxels)"), (
        printed
    )


@pytest.mark.parametrize(
    ("configs", "key", "command"), [(EVALUATE, "epochs", "evaluation"), (INFERENCE, "val_interval", "inference")]
)
def test_a_command_with_a_key_of_training(data, tmp_path, configs, key, command):
    code, line, printed = run(data, tmp_path, configs, **{key: 2})
    assert code == 1, printed
    assert line == f"error: ValueError: key {key!r} has no effect in {command}: it belongs to training"


def test_a_command_with_an_unknown_key(data, tmp_path):
    code, line, printed = run(data, tmp_path, EVALUATE, sw_batchsize=4)
    assert code == 1, printed
    assert line.startswith(
        "error: ValueError: unknown key 'sw_batchsize' (did you mean 'validate#inferer#sw_batch_size'?)"
    ), printed
    assert not (tmp_path / "eval").exists()


def test_a_command_with_an_unknown_component(data, tmp_path):
    """MONAI refuses it before any item of the bundle is looked at."""
    code, line, printed = run(data, tmp_path, INFERENCE, **{"infererr#roi_size": [9, 9]})
    assert code == 1, printed
    assert line == "KeyError: 'query key: infererr'"


@pytest.mark.slow
def test_two_processes(data, tmp_path):
    """Each rank says it in one line, with its number before it; torchrun's own report comes after that."""
    cut(data / "images" / "a.nii.gz")
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2")
    gloo = {"num_workers": 1, "val_cases": ["b", "c"], "device": "cpu", "train_cases": ["a"]}
    code, _, printed = run(data, tmp_path, ("train", "multi_gpu_train"), *launcher, **gloo)
    assert code == 1, printed
    lines = [text for text in printed.splitlines() if re.match(r"\[rank[01]\]: ", text)]
    assert f"{data}/images/a.nii.gz, {data}/labels/a.nii.gz: {UNREADABLE}" in lines[0], printed
    assert len(lines) <= 2


def test_a_scan_that_is_no_ct_warns_and_is_named(command, data, tmp_path):
    write(data / "images" / "eight_bit.nii.gz", np.random.RandomState(0).randint(0, 255, (32, 32, 3)).astype(np.uint8))
    done = command(tmp_path, ("inference",), dataset_dir=data, checkpoint=data.parent / "w.pt")
    warned = [line for line in done.output.splitlines() if "is it a chest CT in Hounsfield units" in line]
    assert len(warned) == 1
    assert "eight_bit.nii.gz" in warned[0]
    assert (tmp_path / "eval" / "images" / "eight_bit_mask.nii.gz").is_file()


@pytest.mark.parametrize("value", ["false", "False", False])
def test_weights_are_not_loaded_when_the_switch_says_false(workflow, data, tmp_path, value):
    """The command line makes `--load_pretrain false` a text, which Python takes for true; there are no weights to load."""
    loaded = workflow(TRAIN, "train", **flags_of(TRAIN, data, load_pretrain=value))
    assert loaded.parser.get_parsed_content("train#handlers#0").pretrained is None
