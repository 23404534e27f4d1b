"""nnU-Net: a trainer of its own with the loss, from planning to a checkpoint, on real crops."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest

pytest.importorskip("nnunetv2", reason="runs where nnU-Net is installed, see tests/clients/run")

import torch
from nnunetv2.experiment_planning.plan_and_preprocess_api import extract_fingerprints, plan_experiments, preprocess

from monai_margincal.samples import sample_dir

SAMPLES = Path(sample_dir("lung_ct"))
NAME = "Dataset901_Lesions"


PAGE = Path(__file__).parents[2] / "docs" / "howto" / "nnunet.md"
(CODE,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch) -> Path:
    """Three small crops in nnU-Net's layout, planned and preprocessed for its 2D network."""
    for folder in ("raw", "preprocessed", "results"):
        (tmp_path / folder).mkdir()
        monkeypatch.setenv(f"nnUNet_{folder}", str(tmp_path / folder))
    monkeypatch.setenv("nnUNet_n_proc_DA", "1")
    raw = tmp_path / "raw" / NAME
    for number, corner in enumerate((32, 64, 96)):
        for kind, folder, ending in (("images", "imagesTr", "_0000"), ("labels", "labelsTr", "")):
            scan = nibabel.load(SAMPLES / kind / "lung2.nii.gz")
            part = np.asarray(scan.dataobj)[corner : corner + 64, 64:128, 6:18]
            (raw / folder).mkdir(parents=True, exist_ok=True)
            nibabel.save(nibabel.Nifti1Image(part, scan.affine), raw / folder / f"case{number}{ending}.nii.gz")
    (raw / "dataset.json").write_text(
        json.dumps(
            {
                "channel_names": {"0": "CT"},
                "labels": {"background": 0, "lesion": 1},
                "numTraining": 3,
                "file_ending": ".nii.gz",
            }
        )
    )
    extract_fingerprints([901], num_processes=1, check_dataset_integrity=True)
    plans = plan_experiments([901])
    preprocess([901], plans, configurations=["2d"], num_processes=[1])
    monkeypatch.setenv("nnUNet_n_proc_DA", "0")  # augment in this process; the planner refuses it
    return raw


@pytest.mark.slow
def test_a_trainer_with_the_loss_runs_an_epoch(dataset: Path, tmp_path: Path) -> None:
    prepared = tmp_path / "preprocessed" / NAME
    plans = json.loads(next(prepared.glob("nnUNet*lans.json")).read_text())
    plans["continue_training"] = False
    plans["configurations"]["2d"]["batch_size"] = 4
    names: dict[str, Any] = {}
    exec(compile(CODE, PAGE.name, "exec"), names)
    description = json.loads((dataset / "dataset.json").read_text())
    trainer = names["MarginCalibrationTrainer"](plans, "2d", "all", description, torch.device("cpu"))
    trainer.num_epochs, trainer.num_iterations_per_epoch, trainer.num_val_iterations_per_epoch = 1, 2, 1
    trainer.initialize()
    before = {name: value.clone() for name, value in trainer.network.state_dict().items()}
    trainer.run_training()
    assert np.isfinite(trainer.logger.get_value("train_losses", step=-1))
    assert any(not torch.equal(value, before[name]) for name, value in trainer.network.state_dict().items())
    assert (Path(trainer.output_folder) / "checkpoint_final.pth").is_file()
