"""What a bundle's training needs beside MONAI's engines: a warm-up loss, seeds per epoch, a complete state in a whole file."""

from __future__ import annotations

from monai_margincal.training.epoch_seed import EpochSeedHandler
from monai_margincal.training.training_state import TrainingState
from monai_margincal.training.warm_up import WarmUpHandler, WarmUpLoss
from monai_margincal.training.whole_files import WholeFileCheckpointSaver

__all__ = ["EpochSeedHandler", "TrainingState", "WarmUpHandler", "WarmUpLoss", "WholeFileCheckpointSaver"]
