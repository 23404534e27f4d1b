"""A controller of the loss watches the steps of a MONAI trainer, and its statistics are saved with the network."""

from __future__ import annotations

import torch
from monai.engines import SupervisedTrainer
from monai.handlers import CheckpointSaver

from monai_margincal import LossControllerHandler
from monai_margincal.losses import BoundWeights, MarginCalibrationLoss


def test_training_with_a_handler_learns_and_goes_on_from_a_checkpoint(tmp_path):
    """A MONAI trainer with the handler: weights move after the first step, checkpoints hold the controller."""
    torch.manual_seed(0)
    network = torch.nn.Conv2d(1, 3, 1)
    loss = MarginCalibrationLoss(margins=([0.0] * 3, [0.0] * 3))
    controller = BoundWeights(loss, warmup=1)
    labels = torch.randint(3, (2, 1, 8, 8))
    data = [{"image": labels.float() + 0.1 * torch.randn(2, 1, 8, 8), "label": labels}] * 30
    trainer = SupervisedTrainer(
        device=torch.device("cpu"),
        max_epochs=1,
        train_data_loader=data,
        network=network,
        optimizer=torch.optim.Adam(network.parameters(), 0.15),
        loss_function=loss,
        decollate=False,
        train_handlers=[
            LossControllerHandler(controller),
            CheckpointSaver(str(tmp_path), {"network": network, "loss_controller": controller}, save_final=True),
        ],
    )
    trainer.run()
    assert int(controller.statistics.updates) == 30
    assert float(controller.statistics.iou.mean()) > 0.4
    assert float(loss.positive_weight.min()) > 0
    (file,) = tmp_path.glob("*.pt")
    state = torch.load(file, weights_only=True)["loss_controller"]
    torch.testing.assert_close(state["statistics.average"], controller.statistics.average)
