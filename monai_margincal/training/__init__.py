"""What training needs besides MONAI's engines: a session, a warm-up loss, one seed per epoch, checkpoints in whole files."""

from __future__ import annotations

from .epoch_seed import EpochSeedHandler
from .loss_controller import LossControllerHandler
from .session import TrainingSession
from .training_state import TrainingState
from .warm_up import WarmUpHandler, WarmUpLoss
from .whole_files import WholeFileCheckpointSaver

__all__ = [
    "EpochSeedHandler",
    "LossControllerHandler",
    "TrainingSession",
    "TrainingState",
    "WarmUpHandler",
    "WarmUpLoss",
    "WholeFileCheckpointSaver",
]
