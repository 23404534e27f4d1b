"""One process of a two-process run: started by test_distributed with RANK, WORLD_SIZE and a file to meet at."""

from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from monai_margincal import MarginCalibrationLoss, MarginCalibrationTverskyLoss
from monai_margincal.processes import end_process_group, start_process_group

IGNORED = 255


def model():
    torch.manual_seed(0)
    return torch.nn.Conv1d(1, 3, 3, padding=1)


def data():
    generator = torch.Generator().manual_seed(1)
    images = torch.randn(4, 1, 20, generator=generator)
    labels = torch.randint(0, 3, (4, 1, 20), generator=generator)
    return images, labels


def averaged_gradients(loss, images, labels):
    network = DistributedDataParallel(model())
    value = loss(network(images), labels)
    value.backward()
    return value.detach(), [p.grad for p in network.parameters()]


def single_process(loss, images, labels):
    network = model()
    value = loss(network(images), labels)
    value.backward()
    return value.detach(), [p.grad for p in network.parameters()]


def main() -> None:
    rank = int(os.environ["RANK"])
    start_process_group("cpu", init_method=f"file://{sys.argv[1]}", rank=rank, world_size=int(os.environ["WORLD_SIZE"]))
    local = MarginCalibrationLoss(class_counts=[900, 90, 10], ignore_index=IGNORED)
    everywhere = MarginCalibrationLoss(class_counts=[900, 90, 10], ignore_index=IGNORED, global_mean=True)
    images, labels = data()
    mine = slice(2 * rank, 2 * rank + 2)

    # one rank entirely ignored: its loss is 0, its gradients too, and nobody waits for it
    half = labels.clone()
    half[2:] = IGNORED
    value, gradients = averaged_gradients(local, images[mine], half[mine])
    expected_value, expected = single_process(local, images[:2], half[:2])
    torch.testing.assert_close(value, expected_value if rank == 0 else torch.zeros(()))
    torch.testing.assert_close(gradients, [g / 2 for g in expected])
    value, gradients = averaged_gradients(everywhere, images[mine], half[mine])
    torch.testing.assert_close(gradients, expected)

    # different fractions ignored: only the global mean equals one process that sees everything
    uneven = labels.clone()
    uneven[0, 0, :17] = uneven[1, 0, :15] = uneven[3, 0, :2] = IGNORED
    expected_value, expected = single_process(
        MarginCalibrationLoss(class_counts=[900, 90, 10], ignore_index=IGNORED), images, uneven
    )
    value, gradients = averaged_gradients(everywhere, images[mine], uneven[mine])
    everywhere_value = value.clone()
    torch.testing.assert_close(gradients, expected)
    dist.all_reduce(value)
    torch.testing.assert_close(value / 2, expected_value)
    _, of_local_means = averaged_gradients(local, images[mine], uneven[mine])
    assert not torch.allclose(of_local_means[0], expected[0], rtol=1e-3)

    # both parts in one pass: the margin part is averaged in the same way
    compound = MarginCalibrationTverskyLoss(
        1.0, 0.0, class_counts=[900, 90, 10], ignore_index=IGNORED, global_mean=True
    )
    of_compound, gradients_of_compound = averaged_gradients(compound, images[mine], uneven[mine])
    torch.testing.assert_close((of_compound, gradients_of_compound), (everywhere_value, gradients))

    # all ranks entirely ignored
    value, gradients = averaged_gradients(everywhere, images[mine], torch.full_like(half[mine], IGNORED))
    assert value == 0
    assert all((g == 0).all() for g in gradients)

    # compiled and scripted, the same communication
    for way in (torch.compile(everywhere, fullgraph=True, backend="aot_eager"), torch.jit.script(everywhere)):
        logits = model()(images[mine]).detach()
        torch.testing.assert_close(way(logits, uneven[mine]), everywhere(logits, uneven[mine]))

    end_process_group()
    print("every check passed")


if __name__ == "__main__":
    main()
