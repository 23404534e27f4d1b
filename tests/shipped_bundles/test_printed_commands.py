"""The commands of the bundle's README, word for word, in a folder that holds what they name: BUNDLE and DATA."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nibabel
import numpy as np
import pytest
import torch
from dicom_files import write_series

from monai_margincal.networks import COPLENet

BUNDLE = Path(__file__).resolve().parents[2] / "bundles" / "covid19_ct_lesion_coplenet"
README = (BUNDLE / "docs" / "README.md").read_text(encoding="utf-8")

#: all commands, a line that ends with a backslash goes on
COMMANDS = [
    line.strip()
    for block in re.findall(r"```bash\n(.*?)```", README, re.DOTALL)
    for line in block.replace("\\\n", " ").splitlines()
    if re.match(r"\s*(python|torchrun) ", line)
]

#: behind the printed words, so that a command takes seconds: the last of a repeated flag holds
QUICK = '--features "[8,16,32,64,128]" --num_workers 0'
QUICK_TRAINING = (
    f'{QUICK} --epochs 1 --warmup_epochs 0 --patch_size "[32,32]" --slices_per_volume 1 '
    "--train#save_interval 1 --val_interval 1"
)

#: what no machine of the suite has: GPUs, torch_tensorrt
NOT_RUN = ("trt_export", "inference_trt.json")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """BUNDLE, DATA with four small cases in every layout of the README, weights of a small network."""
    here = tmp_path_factory.mktemp("a shell user's folder")
    shutil.copytree(BUNDLE, here / "BUNDLE", ignore=shutil.ignore_patterns("eval", "models"))
    (here / "BUNDLE" / "models").mkdir()
    torch.manual_seed(0)
    network = COPLENet(features=(8, 16, 32, 64, 128), norm="group")
    torch.save(network.state_dict(), here / "BUNDLE" / "models" / "model.pt")
    random = np.random.RandomState(0)
    for case in ("a", "b", "7", "8"):
        scan = random.randint(-1024, 200, (32, 32, 3)).astype(np.int16)
        label = (random.rand(32, 32, 3) > 0.7).astype(np.uint8)
        for array, names in (
            (scan, (f"images/{case}.nii.gz", f"folders/{case}/ct.nii.gz")),
            (label, (f"labels/{case}.nii.gz", f"folders/{case}/lesion.nii.gz")),
        ):
            for name in names:
                path = here / "DATA" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                nibabel.save(nibabel.Nifti1Image(array, np.eye(4)), path)
        write_series(here / "SERIES" / case, scan)
    return here


def shell(folder, line, expect=0):
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, capture_output=True, text=True, timeout=300, check=False,
        env={
            **os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        },
    )  # fmt: skip
    assert done.returncode == expect, done.stdout + done.stderr
    return (done.stderr.strip().splitlines() or [""])[-1]


def quick(line):
    if " run " not in line:
        return line
    several = " --val_cases a,b" if line.startswith("torchrun") and "DATA" in line else ""  # a case for each process
    training = "train.json" in line and "evaluate" not in line
    return f"{line} {QUICK_TRAINING if training else QUICK}{several}"


@pytest.mark.slow
@pytest.mark.parametrize("line", [line for line in COMMANDS if not any(word in line for word in NOT_RUN)])
def test_a_printed_command(folder, line):
    where = folder / "BUNDLE" if "BUNDLE" not in line and " run " not in line and "torch.load" not in line else folder
    if "torch.load" in line:
        (folder / "demo").mkdir(exist_ok=True)
        shutil.copy(folder / "BUNDLE" / "models" / "model.pt", folder / "demo")
    if "_export" in line:  # of the network that the configuration names
        where = folder / "export"
        shutil.copytree(BUNDLE, where, ignore=shutil.ignore_patterns("eval"), dirs_exist_ok=True)
    shell(where, quick(line))


def test_commands_were_found():
    assert len(COMMANDS) >= 12
    assert sum(any(word in line for word in NOT_RUN) for line in COMMANDS) == 2


INFERENCE = (
    "python -m monai.bundle run --config_file BUNDLE/configs/inference.json --bundle_root BUNDLE --lung_crop false"
)

#: what is typed: the masks below OUT, or the last line of the error
TYPED = {
    '--dataset_dir SERIES --image_pattern "{case}" --output_dir OUT': ["7_mask", "8_mask", "a_mask", "b_mask"],
    "--dataset_dir SERIES --image_pattern={case} --output_dir=OUT --cases 7": ["7_mask"],
    '--dataset_dir DATA --image_pattern "folders/{case}/ct.nii.gz" --output_dir OUT --cases a,b': ["ct_mask", "ct_mask"],
    "--dataset_dir DATA --cases \"['a','7']\" --output_dir 'OUT/exp#1/@x/50%'": ["7_mask", "a_mask"],
    "--dataset_dir ~/DATA --cases b --output_dir=~/OUT": ["b_mask"],
    "--dataset_dir 2025 --output_dir OUT": "error: FileNotFoundError: data set folder not found: {folder}/2025",
    "--dataset_dir None --output_dir OUT": "error: ValueError: --dataset_dir: found None, expected a path (with",
    "--dataset_dir DATA --output_dir '$HOME/OUT'": "error: ValueError: --output_dir: found '$HOME/OUT', an expression for MONAI",
    "--dataset_dir DATA --cases c --output_dir OUT": "error: FileNotFoundError: no image for the cases c: nothing in",
    "--dataset_dir DATA --cases --output_dir OUT": "error: ValueError: --cases: found no value, expected names of cases",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("flags", TYPED)
def test_flags_as_a_shell_user_types_them(folder, flags, monkeypatch):
    monkeypatch.setenv("HOME", str(folder))
    shutil.rmtree(folder / "OUT", ignore_errors=True)
    expected = TYPED[flags]
    line = shell(folder, f"{INFERENCE} {QUICK} {flags}", expect=0 if isinstance(expected, list) else 1)
    written = sorted(path.name.removesuffix(".nii.gz") for path in (folder / "OUT").rglob("*.nii.gz"))
    there = {path.name for path in folder.iterdir() if path.name[0] != "."} - {"export", "demo", "OUT"}
    assert there == {"BUNDLE", "DATA", "SERIES"}, "nothing is written elsewhere"
    if isinstance(expected, list):
        assert written == expected
        if "exp#1" in flags:
            assert (folder / "OUT" / "exp#1" / "@x" / "50%" / "images" / "a_mask.nii.gz").is_file()
    else:
        assert line.startswith(expected.format(folder=folder))
        assert not written
