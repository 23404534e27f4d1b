"""Networks: COPLE-Net for CT slices, and the conversion of published weights to it."""

from __future__ import annotations

from .checkpoint_loader import COPLENetCheckpointLoader
from .convert import convert_coplenet_state_dict, coplenet_config_of
from .coplenet import COPLENet
from .trained_plane import record_trained_plane, trained_plane

__all__ = [
    "COPLENet",
    "COPLENetCheckpointLoader",
    "convert_coplenet_state_dict",
    "coplenet_config_of",
    "record_trained_plane",
    "trained_plane",
]
