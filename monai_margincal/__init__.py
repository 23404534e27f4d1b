"""Distribution-aware margin calibration for medical image segmentation, inside MONAI.

Public names are imported on first use, so that ``import monai_margincal`` costs nothing: reading a class-count file needs no
torch, and computing a loss needs neither an image reader nor a GPU compiler.

Example:
    >>> import monai_margincal
    >>> counts = monai_margincal.ClassCounts([980, 20], names=["background", "lesion"])
    >>> counts.total
    1000
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

#: public name -> module that defines it
_EXPORTS = {
    "ClassCounts": "counting",
    "ClassMargins": "margins",
    "class_margins": "margins",
    "generalization_bound": "margins",
    "miou_lower_bound": "margins",
    "rho_margin_loss": "margins",
    "calibrated_log_loss": "margins",
    "MarginCalibrationLoss": "losses",
    "MarginCalibrationDiceLoss": "losses",
    "MarginCalibrationTverskyLoss": "losses",
    "LovaszSoftmaxLoss": "losses",
    "BoundWeights": "losses",
    "IoUCalibratedMargins": "losses",
    "LossControllerHandler": "training",
    "CountLabels": "transforms",
    "CountLabelsd": "transforms",
    "count_labels": "statistics",
    "scan_labels": "statistics",
    "ClassOffsets": "decisions",
    "ClassOffsetsHandler": "decisions",
    "DecideClass": "decisions",
    "DecideClassd": "decisions",
    "fit_class_offsets": "decisions",
    "DatasetIoU": "metrics",
    "DatasetIoUHandler": "metrics",
    "COPLENet": "networks",
    "convert_coplenet_state_dict": "networks",
    "coplenet_config_of": "networks",
}

__all__ = ["__version__", *_EXPORTS]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'monai_margincal' has no attribute {name!r}")
    value = getattr(import_module(f".{_EXPORTS[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
