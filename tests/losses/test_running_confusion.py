"""The running confusion matrix: against a literal average, under DDP, with everything that does not count."""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import distributed
from torch import multiprocessing as mp

from monai_margincal.losses.running_confusion import RunningConfusion


def _literal(steps, classes, momentum):
    """Weighted mean of the steps' confusion shares, written out."""
    weights = np.array([momentum ** (len(steps) - 1 - i) for i in range(len(steps))])
    matrices = []
    for logits, labels in steps:
        matrix = np.zeros((classes, classes))
        for y, k in zip(labels.flatten().tolist(), logits.argmax(1).flatten().tolist(), strict=True):
            matrix[y, k] += 1
        matrices.append(matrix / matrix.sum())
    return np.tensordot(weights / weights.sum(), np.array(matrices), 1)


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 5), st.integers(1, 6), st.floats(0, 0.99), st.integers(0, 2**31 - 1))
def test_is_the_weighted_mean_of_the_steps(classes, number, momentum, seed):
    generator = torch.Generator().manual_seed(seed)
    steps = [
        (
            torch.randn(2, classes, 3, 4, generator=generator),
            torch.randint(classes, (2, 1, 3, 4), generator=generator),
        )
        for _ in range(number)
    ]
    running = RunningConfusion(classes, momentum)
    for logits, labels in steps:
        running.update(logits, labels)
    expected = _literal(steps, classes, momentum)
    np.testing.assert_allclose(running.matrix.numpy(), expected, atol=1e-12)
    hit = np.diagonal(expected)
    union = expected.sum(0) + expected.sum(1) - hit
    np.testing.assert_allclose(running.union.numpy(), union, atol=1e-12)
    np.testing.assert_allclose(
        running.iou.numpy(), np.where(union > 0, hit / np.where(union > 0, union, 1), 1), atol=1e-12
    )
    np.testing.assert_allclose(running.frequencies.numpy(), expected.sum(1), atol=1e-12)


def test_every_form_of_the_target_counts_alike():
    logits = torch.randn(2, 3, 4, 5, generator=torch.Generator().manual_seed(0))
    labels = torch.randint(3, (2, 4, 5), generator=torch.Generator().manual_seed(1))
    one_hot = torch.nn.functional.one_hot(labels, 3).movedim(-1, 1)
    forms = [labels, labels[:, None], labels[:, None].float(), labels.to(torch.uint8), one_hot, one_hot.float()]
    found = []
    for target in forms:
        running = RunningConfusion(3)
        running.update(logits, target)
        found.append(running.matrix)
    assert all(torch.equal(matrix, found[0]) for matrix in found)


def test_one_logit_is_two_classes():
    running = RunningConfusion(2)
    running.update(torch.tensor([[[1.0, -1.0, 2.0, -3.0]]]), torch.tensor([[1, 1, 0, 0]]))
    assert running.matrix.tolist() == [[0.25, 0.25], [0.25, 0.25]]


def test_ignored_voxels_change_nothing_and_an_ignored_step_is_no_step():
    running = RunningConfusion(2, ignore_index=255)
    logits = torch.tensor([[[2.0, 0.0, 5.0], [0.0, 1.0, 9.0]]])
    running.update(logits, torch.tensor([[0, 1, 255]]))
    before = running.average.clone()
    assert running.matrix.tolist() == [[0.5, 0.0], [0.0, 0.5]]
    running.update(logits, torch.full((1, 3), 255))
    assert torch.equal(running.average, before)
    assert int(running.updates) == 1
    assert torch.isfinite(running.average).all()


def test_before_the_first_step_the_iou_is_one():
    running = RunningConfusion(3)
    assert running.iou.tolist() == [1.0, 1.0, 1.0]
    assert running.union.tolist() == [0.0, 0.0, 0.0]


def test_keeps_no_graph():
    running = RunningConfusion(2)
    logits = torch.randn(1, 2, 4, requires_grad=True)
    running.update(logits, torch.zeros(1, 4))
    assert not running.average.requires_grad


def test_state_goes_on():
    first, second, third = (RunningConfusion(2, 0.9) for _ in range(3))
    data = [(torch.randn(1, 2, 6), torch.randint(2, (1, 6))) for _ in range(4)]
    for logits, labels in data:
        first.update(logits, labels)
    for logits, labels in data[:2]:
        second.update(logits, labels)
    third.load_state_dict(second.state_dict())
    for logits, labels in data[2:]:
        third.update(logits, labels)
    assert torch.equal(first.average, third.average)
    assert int(third.updates) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_classes": 1}, "num_classes must be >= 2, found 1"),
        ({"num_classes": 2, "momentum": 1.0}, r"momentum must be in \[0, 1\), found 1.0"),
    ],
)
def test_refuses_values_outside_their_range(arguments, message):
    with pytest.raises(ValueError, match=message):
        RunningConfusion(**arguments)


def test_refuses_other_channels():
    with pytest.raises(ValueError, match="logits have 3 channels: expected those of 2 classes"):
        RunningConfusion(2).update(torch.zeros(1, 3, 4), torch.zeros(1, 4))


def _rank(rank: int, port: int, data, folder: str) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    distributed.init_process_group("gloo", rank=rank, world_size=2)
    running = RunningConfusion(3)
    for logits, labels in data:
        running.update(logits[rank : rank + 1], labels[rank : rank + 1])
    torch.save(running.state_dict(), f"{folder}/{rank}.pt")
    distributed.destroy_process_group()


def test_two_processes_hold_what_one_would(tmp_path):
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    generator = torch.Generator().manual_seed(3)
    data = [
        (torch.randn(2, 3, 8, generator=generator), torch.randint(3, (2, 8), generator=generator)) for _ in range(3)
    ]
    # forked: a spawned process would import everything again
    mp.start_processes(_rank, args=(port, data, str(tmp_path)), nprocs=2, start_method="fork")
    whole = RunningConfusion(3)
    for logits, labels in data:
        whole.update(logits, labels)
    for rank in range(2):
        state = torch.load(tmp_path / f"{rank}.pt", weights_only=True)
        torch.testing.assert_close(state["average"], whole.average)
        assert int(state["updates"]) == 3
