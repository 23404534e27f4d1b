"""Thousands of damaged scans: each is read as its header says, where it says, or refused by name before MONAI's readers."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from monai.transforms import Compose, EnsureChannelFirstd, LoadImaged
from mutants import KINDS, Files, mutants, write

from monai_margincal.datasets import ScanDataset
from monai_margincal.errors import CaseError
from monai_margincal.formats import describe_label
from monai_margincal.transforms import AffineToRASd

#: as a bundle reads
READ = Compose(
    [
        LoadImaged("image", reader="monai_margincal.transforms.NiftiReader"),
        AffineToRASd("image"),
        EnsureChannelFirstd("image"),
    ]
)
SCANS = [kind for kind in KINDS if kind not in ("png", "seg")]


def check(folder: Path, files: Files) -> str:
    path = write(folder, files)
    started = time.monotonic()
    try:
        image = ScanDataset([{"image": str(path)}], READ)[0]["image"]
    except CaseError as error:
        assert str(error).startswith(str(folder)), error  # noqa: PT017 - thousands of cases, most of which raise
        outcome = "refused"
    else:
        described = describe_label(path)
        assert np.array_equal(image[0].numpy(), np.squeeze(described.load()).astype(np.float32).reshape(image[0].shape))
        if described.affine is not None:
            assert np.allclose(image.affine, described.affine, rtol=1e-5, atol=1e-5), (image.affine, described.affine)
        outcome = "read"
    # the first scan of all waits for ITK's libraries
    assert time.monotonic() - started < 20.0
    return outcome


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", SCANS)
def test_damaged_bytes(tmp_path: Path, kind: str) -> None:
    make, header = KINDS[kind]
    (tmp_path / "whole").mkdir()
    files = make(tmp_path / "whole")
    assert check(tmp_path / "damaged", files) == "read"
    outcomes = [check(tmp_path / "damaged", damaged) for damaged in mutants(files, header, 100, seed=len(kind) + 1)]
    assert outcomes.count("refused") > 20
