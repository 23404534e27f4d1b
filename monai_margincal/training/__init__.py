"""What a bundle's training needs beside MONAI's engines: a warm-up loss, seeds per epoch, a complete state in a whole file."""

from __future__ import annotations

from .epoch_seed import EpochSeedHandler
from .loss_controller import LossControllerHandler
from .training_state import TrainingState
from .warm_up import WarmUpHandler, WarmUpLoss
from .whole_files import WholeFileCheckpointSaver

__all__ = [
    "EpochSeedHandler",
    "LossControllerHandler",
    "TrainingState",
    "WarmUpHandler",
    "WarmUpLoss",
    "WholeFileCheckpointSaver",
]
