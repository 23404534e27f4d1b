"""Inference that cannot give a right mask: one line that says why, an exit code that is not 0, nothing written."""

from __future__ import annotations

import re

import nibabel
import numpy as np
import pytest
import torch

from monai_margincal.networks import COPLENet

SMALL = (8, 16, 32, 64, 128)


def write(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(array, np.eye(4)), path)


def scan(seed=0):
    return np.random.RandomState(seed).randint(-1000, 100, (32, 32, 3)).astype(np.int16)


@pytest.fixture
def data(tmp_path):
    torch.save(COPLENet(features=SMALL, norm="group").state_dict(), tmp_path / "w.pt")
    write(tmp_path / "data" / "images" / "a.nii.gz", scan())
    return tmp_path / "data"


def missing_weights(data):
    return {
        "checkpoint": "none.pt"
    }, r"FileNotFoundError: .*weights not found.*'none\.pt'.*train first.*convert-weights"


def other_weights(data):
    torch.save(COPLENet(features=(16, 32, 64, 128, 256), norm="group").state_dict(), data.parent / "wide.pt")
    message = (
        r"ValueError: .*wide\.pt: found weights of another network .*: features \[16, .*expected \[8, .*--features"
    )
    return {"checkpoint": data.parent / "wide.pt"}, message


def truncated(data):
    path = data / "images" / "a.nii.gz"
    path.write_bytes(path.read_bytes()[:2000])
    return {}, r"RuntimeError: .*images/a\.nii\.gz: cannot be read or prepared: \w+: .*"


def no_reader(data):
    (data / "images" / "a.xyz").write_text("no image")
    return {"image_pattern": "images/{case}.xyz"}, r"RuntimeError: .*a\.xyz: cannot be read or prepared: \w+: .*"


def empty_list(data):
    return {"data": "[]"}, "ValueError: the list of scans is empty"


def unknown_key(data):
    return {"sw_batchsize": 4}, r"ValueError: unknown key 'sw_batchsize' \(did you mean 'sw_batch_size'\?\)"


def unclear_switch(data):
    return {"save_overlay": "maybe"}, "KeyError: 'maybe'"


@pytest.mark.parametrize(
    "fault",
    [
        truncated,
        unknown_key,
        # the exit code is that of any error; each message has a fast test of its own beside its class
        *(
            pytest.param(fault, marks=pytest.mark.slow)
            for fault in (missing_weights, other_weights, no_reader, empty_list)
        ),
        pytest.param(unclear_switch, marks=pytest.mark.slow),
    ],
)
def test_wrong_input(command, data, fault, tmp_path):
    """Model-zoo pulls 789 and 761, and issues of misspelt flags: exit 0 and nothing done."""
    flags, message = fault(data)
    run = command(tmp_path, ("inference",), expect=1, **{"dataset_dir": data, "checkpoint": tmp_path / "w.pt", **flags})
    lines = [line for line in run.output.splitlines() if re.match(message, line)]
    assert lines, run.output
    assert not list(tmp_path.rglob("*_mask*")), "nothing is half written"
    assert not list(tmp_path.rglob("volumes.csv"))


def test_a_scan_that_is_no_ct_warns_and_is_named(command, data, tmp_path):
    write(data / "images" / "eight_bit.nii.gz", np.random.RandomState(0).randint(0, 255, (32, 32, 3)).astype(np.uint8))
    run = command(tmp_path, ("inference",), dataset_dir=data, checkpoint=tmp_path / "w.pt")
    warned = [line for line in run.output.splitlines() if "is it a chest CT in Hounsfield units" in line]
    assert len(warned) == 1
    assert "eight_bit.nii.gz" in warned[0]
    assert (tmp_path / "eval" / "images" / "eight_bit_mask.nii.gz").is_file()
