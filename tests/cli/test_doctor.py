"""`margincal doctor` names what it found."""

from __future__ import annotations

import torch

from monai_margincal.cli import main


def test_doctor(capsys):
    assert main(["doctor"]) == 0
    output = capsys.readouterr().out
    assert torch.__version__ in output
    assert "GPU" in output
    for package in ("monai", "nibabel", "SimpleITK", "triton"):
        assert package in output
