"""Networks: COPLE-Net for CT slices, and the way from published weights to it."""

from __future__ import annotations

from .convert import convert_coplenet_state_dict, coplenet_config_of
from .coplenet import COPLENet

__all__ = ["COPLENet", "convert_coplenet_state_dict", "coplenet_config_of"]
