"""What the log says before the first epoch."""

from __future__ import annotations

import logging

import pytest
import torch
from monai.losses import DiceLoss
from training.test_session import training

from monai_margincal import ClassCounts, class_margins
from monai_margincal.losses import MarginCalibrationLoss, MarginCalibrationTverskyLoss
from monai_margincal.training import WarmUpLoss
from monai_margincal.training.opening import opening_text

COUNTS = ClassCounts(
    [9_000_000, 999_900, 100],
    names=["background", "liver", "metastasis"],
    cases={"a": [5_000_000, 999_900, 0], "b": [4_000_000, 0, 100]},
)


def rows(text):
    header, _, *lines = text.splitlines()
    return header, lines


def test_every_class_has_its_counts_and_margins():
    options = {"tau": 2.0, "upsilon": 0.5, "normalization": "counts"}
    text = opening_text(MarginCalibrationLoss(class_counts=COUNTS, base=2, **options), COUNTS, "argmax")
    header, lines = rows(text)
    assert header.split() == ["class", "voxels", "share", "cases", "rho_0k", "(negative)", "rho_k0", "(positive)"]
    assert lines[1].split()[:5] == ["1", "liver", "999,900", "9.999%", "1/2"]
    assert lines[2].split()[:7] == ["2", "metastasis", "100", "10", "per", "million", "1/2"]
    margins = class_margins(COUNTS, **options)
    for line, negative, positive in zip(lines[:3], margins.negative.tolist(), margins.positive.tolist(), strict=True):
        assert [float(cell) for cell in line.split()[-2:]] == pytest.approx([negative, positive], rel=5e-3)
    assert len({len(line) for line in [header, *lines[:3]]}) == 1, "columns stand below each other"
    assert lines[3] == "loss: MarginCalibrationLoss, base 2, margins from tau 2, upsilon 0.5, normalization counts"
    assert lines[4] == "decision: argmax"


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (DiceLoss(), "DiceLoss"),
        (torch.nn.functional.cross_entropy, "cross_entropy"),
        (MarginCalibrationLoss(margins=1.0), "MarginCalibrationLoss, base e, margins given"),
        (
            MarginCalibrationTverskyLoss(0.5, 2.0, margins=0.0),
            "MarginCalibrationTverskyLoss, base e, margins given, 0.5 margin + 2 tversky",
        ),
        (WarmUpLoss(torch.nn.L1Loss(), 0, torch.nn.MSELoss()), "L1Loss"),
        (WarmUpLoss(torch.nn.L1Loss(), 3, torch.nn.MSELoss()), "MSELoss for 3 epochs, then L1Loss"),
    ],
)
def test_every_loss_is_named(loss, words):
    assert opening_text(loss, None, "argmax") == f"loss: {words}\ndecision: argmax"


def test_counts_without_cases_and_a_loss_without_margins_have_no_columns_for_them():
    header, lines = rows(opening_text(DiceLoss(), ClassCounts([3, 0]), "argmax"))
    assert header.split() == ["class", "voxels", "share"]
    assert lines[1].split() == ["1", "0", "0.000%"]


def test_margins_of_another_number_of_classes_are_left_out():
    header, _ = rows(opening_text(MarginCalibrationLoss(class_counts=[1, 2]), COUNTS, "argmax"))
    assert "rho" not in header


def test_it_is_said_once_and_again_after_a_resume(tmp_path, caplog):
    def said(caplog):
        return [record.getMessage() for record in caplog.records if record.getMessage().startswith("trains on")]

    with caplog.at_level(logging.INFO):
        trainer, _ = training(tmp_path, 2, class_counts=[90, 10])
        trainer.logger.setLevel(logging.INFO)
        trainer.run()
        trainer.state.max_epochs = 3
        trainer.run()
        assert len(said(caplog)) == 1
        caplog.clear()
        trainer, _ = training(tmp_path, 4, class_counts=[90, 10], resume_from=str(tmp_path / "checkpoint_epoch=3.pt"))
        trainer.logger.setLevel(logging.INFO)
        trainer.run()
    (text,) = said(caplog)
    assert "0          90  90.000%" in text
    assert text.endswith("loss: MSELoss\ndecision: argmax")
