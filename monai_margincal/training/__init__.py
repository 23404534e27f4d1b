"""What training needs besides MONAI's engines: a session, a warm-up loss, one seed per epoch, whole checkpoints, pictures."""

from __future__ import annotations

from .epoch_seed import EpochSeedHandler
from .loss_controller import LossControllerHandler
from .loss_parts import LossPartsHandler
from .session import TrainingSession
from .training_state import TrainingState
from .validation_picture import ValidationPictureHandler
from .warm_up import WarmUpHandler, WarmUpLoss
from .whole_files import WholeFileCheckpointSaver

__all__ = [
    "EpochSeedHandler",
    "LossControllerHandler",
    "LossPartsHandler",
    "TrainingSession",
    "TrainingState",
    "ValidationPictureHandler",
    "WarmUpHandler",
    "WarmUpLoss",
    "WholeFileCheckpointSaver",
]
