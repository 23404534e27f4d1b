"""Lightning: the loss in a LightningModule's step, on real crops, and its buffers through a checkpoint."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lightning", reason="runs where Lightning is installed, see tests/clients/run")

import lightning
import torch
from monai.data import DataLoader, Dataset
from monai.transforms import (
    Compose,
    EnsureChannelFirstd,
    EnsureTyped,
    LoadImaged,
    RandCropByLabelClassesd,
    ScaleIntensityRanged,
    SqueezeDimd,
)

from monai_margincal import count_labels
from monai_margincal.samples import sample_dir

SAMPLES = Path(sample_dir("lung_ct"))


PAGE = Path(__file__).parents[2] / "docs" / "howto" / "lightning.md"
CODE = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


def page_names() -> dict[str, Any]:
    """What the page defines before it trains."""
    names: dict[str, Any] = {}
    exec(compile(CODE[0], PAGE.name, "exec"), names)
    return names


@pytest.fixture
def loader() -> DataLoader:
    keys = ("image", "label")
    transform = Compose(
        [
            LoadImaged(keys),
            EnsureChannelFirstd(keys),
            ScaleIntensityRanged("image", -1400, 100, 0, 1, clip=True),
            RandCropByLabelClassesd(keys, "label", (64, 64, 1), num_classes=2, num_samples=4, warn=False),
            SqueezeDimd(keys, dim=-1, update_meta=False),
            EnsureTyped(keys, track_meta=False),
        ]
    ).set_random_state(0)
    data = [{key: str(SAMPLES / f"{key}s" / "lung2.nii.gz") for key in keys}] * 8
    return DataLoader(Dataset(data, transform), batch_size=1)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_the_loss_trains_in_a_lightning_module(loader: DataLoader, tmp_path: Path, precision: str) -> None:
    lightning.seed_everything(0)
    counts = count_labels(str(SAMPLES / "labels" / "lung2.nii.gz"), num_classes=2)
    lesions = page_names()["Lesions"]
    losses = []

    class Watched(lesions):
        def training_step(self, batch, index):
            losses.append(float(super().training_step(batch, index).detach()))
            return super().training_step(batch, index)

    module = Watched(counts.counts.tolist())
    trainer = lightning.Trainer(
        max_epochs=2, accelerator="cpu", precision=precision, logger=False, enable_progress_bar=False,
        enable_model_summary=False, default_root_dir=tmp_path, enable_checkpointing=False,
    )  # fmt: skip
    trainer.fit(module, loader)
    assert len(losses) == 16
    assert sum(losses[-4:]) < sum(losses[:4])
    assert torch.isfinite(trainer.callback_metrics["train_loss"])

    trainer.save_checkpoint(tmp_path / "last.ckpt")
    restored = lesions.load_from_checkpoint(tmp_path / "last.ckpt", weights_only=True)
    state = module.state_dict()
    assert set(restored.state_dict()) == set(state)
    assert all(torch.equal(value, state[name]) for name, value in restored.state_dict().items())


@pytest.mark.slow
def test_the_page_runs_as_it_stands(loader: DataLoader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = [{key: str(SAMPLES / f"{key}s" / "lung2.nii.gz") for key in ("image", "label")}]
    names = {"train_files": files, "train_loader": loader, "val_loader": loader}
    for code in CODE:
        exec(compile(code, PAGE.name, "exec"), names)
    assert 0 <= float(names["trainer"].callback_metrics["val_iou"]) <= 1
    assert names["offsets"].fitted_on["cases"] == 32
    assert (tmp_path / "decision.json").is_file()
