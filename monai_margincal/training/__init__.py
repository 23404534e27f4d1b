"""What a training run from a bundle needs beside MONAI's engines: a warm-up loss, seeds per epoch, a complete state to resume."""

from __future__ import annotations

from monai_margincal.training.epoch_seed import EpochSeedHandler
from monai_margincal.training.training_state import TrainingState
from monai_margincal.training.warm_up import WarmUpHandler, WarmUpLoss

__all__ = ["EpochSeedHandler", "TrainingState", "WarmUpHandler", "WarmUpLoss"]
