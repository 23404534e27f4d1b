"""Lightning: the loss in a LightningModule's step, on real crops, and its buffers through a checkpoint."""

from __future__ import annotations

from pathlib import Path

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

from monai_margincal import COPLENet, MarginCalibrationDiceLoss, count_labels
from monai_margincal.samples import sample_dir

SAMPLES = Path(sample_dir("lung_ct"))


class Lesions(lightning.LightningModule):
    """What a user writes: network, loss, optimiser."""

    def __init__(self, class_counts: list[int]) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.network = COPLENet(features=(8, 16, 32, 64, 128), norm="group", dropout=(0.0,) * 5)
        self.loss = MarginCalibrationDiceLoss(class_counts=class_counts, to_onehot_y=True, batch=True)
        self.losses: list[float] = []

    def training_step(self, batch, index):
        loss = self.loss(self.network(batch["image"]), batch["label"])
        self.log("train_loss", loss)
        self.losses.append(float(loss.detach()))
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


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
    module = Lesions(counts.counts.tolist())
    trainer = lightning.Trainer(
        max_epochs=2, accelerator="cpu", precision=precision, logger=False, enable_progress_bar=False,
        enable_model_summary=False, default_root_dir=tmp_path, enable_checkpointing=False,
    )  # fmt: skip
    trainer.fit(module, loader)
    assert len(module.losses) == 16
    assert sum(module.losses[-4:]) < sum(module.losses[:4])
    assert torch.isfinite(trainer.callback_metrics["train_loss"])

    trainer.save_checkpoint(tmp_path / "last.ckpt")
    restored = Lesions.load_from_checkpoint(tmp_path / "last.ckpt", weights_only=True)
    state = module.state_dict()
    assert set(restored.state_dict()) == set(state)
    assert all(torch.equal(value, state[name]) for name, value in restored.state_dict().items())
