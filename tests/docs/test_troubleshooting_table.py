"""The table of messages: each is raised here by what the page says it comes from, and the page quotes it word for word."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest
import torch

from monai_margincal import COPLENet, MarginCalibrationLoss, class_margins, count_labels, fit_class_offsets
from monai_margincal.datasets import folder_datalist
from monai_margincal.extras import require
from monai_margincal.samples import sample_dir

PAGE = Path(__file__).parents[2] / "docs" / "troubleshooting.md"
LOGITS = torch.zeros(1, 2, 4, 4)


def _loss(target: torch.Tensor, counts: tuple[int, ...] = (9, 1)) -> Callable[[], Any]:
    return lambda: MarginCalibrationLoss(class_counts=counts)(LOGITS, target)


def _count(values: Any, dtype: Any) -> Callable[[], Any]:
    def count() -> None:
        nibabel.save(nibabel.Nifti1Image(np.array([[values]], dtype), np.eye(4)), "label.nii.gz")
        count_labels("label.nii.gz", num_classes=2, progress=False)

    return count


def _truncated() -> None:
    whole = Path(sample_dir("lung_ct"), "labels", "lung2.nii.gz").read_bytes()
    Path("cut.nii.gz").write_bytes(whole[:1500])
    count_labels("cut.nii.gz", num_classes=2, progress=False)


def _twice() -> None:
    _count([0, 1], np.uint8)()
    count_labels(["label.nii.gz", "label.nii.gz"], num_classes=2, progress=False)


def _no_label() -> None:
    Path("images").mkdir()
    nibabel.save(nibabel.Nifti1Image(np.zeros((2, 2, 2), np.uint8), np.eye(4)), "images/a.nii.gz")
    folder_datalist(".")


#: in the order of the page
CAUSES: list[Callable[[], Any]] = [
    _loss(torch.full((1, 1, 4, 4), 255)),
    _loss(torch.ones(1, 2, 4, 4)),
    _loss(torch.zeros(1, 1, 5, 5)),
    _loss(torch.zeros(1, 1, 4, 4), (9, 1, 1)),
    lambda: MarginCalibrationLoss(),
    lambda: MarginCalibrationLoss(class_counts=[9, 1, 0]),
    lambda: class_margins([900, 100], upsilon=0.0001, normalization="counts"),
    lambda: class_margins([900, 0]),
    _count([0, 255], np.uint8),
    _count([0, 0.5], np.float32),
    _truncated,
    lambda: count_labels("nothing/*.nii.gz", num_classes=2, progress=False),
    _twice,
    _no_label,
    lambda: require("a_package_that_nobody_has", extra="dicom", purpose="this"),
    lambda: COPLENet(features=(4, 8, 16, 32, 64))(900 * torch.rand(1, 1, 32, 32)),
    lambda: fit_class_offsets([(LOGITS[0], torch.zeros(4, 4))], num_classes=2, progress=False),
]


def rows() -> list[list[str]]:
    """The quoted pieces of each row's message."""
    table = re.findall(r"^\| (`.*?) \| ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [re.findall(r"`([^`]+)`", cell) for cell in table]


def test_every_row_has_its_cause() -> None:
    assert len(rows()) == len(CAUSES)


@pytest.mark.parametrize(("pieces", "cause"), list(zip(rows(), CAUSES, strict=True)), ids=range(len(CAUSES)))
def test_the_message_is_quoted_as_it_is(
    pieces: list[str], cause: Callable[[], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            cause()
            said = " ".join(str(warning.message) for warning in caught)
        except (ValueError, OSError, ImportError) as error:
            said = str(error)
    for piece in pieces:
        assert piece in said
