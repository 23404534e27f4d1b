"""The handler through which a controller of the loss follows the training."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from ..losses.iou_calibration import LossController

__all__ = ["LossControllerHandler"]


class LossControllerHandler:
    """Ignite handler for MONAI trainers that shows a controller every step, after its backward pass.

    Save the controller along with the network: ``CheckpointSaver(save_dict={"network": ..., "loss_controller": controller})``.

    Args:
        controller: `IoUCalibratedMargins` or `BoundWeights`.
        output_transform: from ``engine.state.output`` to (logits, labels); default: the entries "pred" and "label".

    Example:
        >>> from types import SimpleNamespace
        >>> import torch
        >>> from monai_margincal.losses import BoundWeights, MarginCalibrationLoss
        >>> controller = BoundWeights(MarginCalibrationLoss(margins=([0.0, 0.0], [0.0, 0.0])))
        >>> handler = LossControllerHandler(controller)
        >>> output = {"pred": torch.zeros(1, 2, 4), "label": torch.zeros(1, 1, 4)}
        >>> handler(SimpleNamespace(state=SimpleNamespace(output=output)))  # a trainer calls it
        >>> int(controller.statistics.updates)
        1
    """

    def __init__(
        self,
        controller: LossController,
        output_transform: Callable[[Any], tuple[torch.Tensor, torch.Tensor]] | None = None,
    ) -> None:
        self.controller = controller
        self.output_transform = output_transform or _pred_and_label

    def attach(self, engine: Any) -> None:
        """Register with a `monai.engines` trainer."""
        from monai.engines import IterationEvents

        # after MODEL_COMPLETED the post-processing may have turned logits into labels
        engine.add_event_handler(IterationEvents.BACKWARD_COMPLETED, self)

    def __call__(self, engine: Any) -> None:
        """Show the controller the step that the engine has just done."""
        logits, target = self.output_transform(engine.state.output)
        self.controller.update(logits.detach(), target)


def _pred_and_label(output: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return output["pred"], output["label"]
