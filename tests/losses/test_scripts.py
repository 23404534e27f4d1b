"""TorchScript: every option of the loss, scripted, saved and loaded, gives what eager gives."""

from __future__ import annotations

import io

import pytest
import torch

from monai_margincal import MarginCalibrationDiceLoss, MarginCalibrationLoss, MarginCalibrationTverskyLoss


def assert_scripted_like_eager(module: torch.nn.Module, logits: torch.Tensor, *arguments) -> None:
    """Script, save, load, call: value and gradient must be those of the eager module."""
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(module), buffer)
    buffer.seek(0)
    scripted = torch.jit.load(buffer)
    expected_logits = logits.detach().clone().requires_grad_()
    expected = module(expected_logits, *arguments)
    expected.sum().backward()
    for _ in range(3):  # the profiling executor rewrites the graph after the first calls
        found_logits = logits.detach().clone().requires_grad_()
        found = scripted(found_logits, *arguments)
        found.sum().backward()
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
        torch.testing.assert_close(found_logits.grad, expected_logits.grad, rtol=1e-6, atol=1e-7)


OPTIONS = {
    "default": {"class_counts": [900, 90, 10]},
    "include_background": {"class_counts": [900, 90, 10], "include_background": False},
    "to_onehot_y": {"class_counts": [900, 90, 10], "to_onehot_y": True},
    "shared margins": {"margins": (0.5, 0.25)},
    "margins per class": {"margins": ([0.1, 0.2, 0.3], [0.0, 1.0, 2.0])},
    "tau": {"class_counts": [900, 90, 10], "tau": 3.0, "upsilon": 2.0},
    "normalization": {"class_counts": [900, 90, 10], "normalization": "counts"},
    "weights": {"margins": 0.0, "positive_weight": [1.0, 2.0, 3.0], "negative_weight": 1.0},
    "negative_weight": {"margins": 0.0, "negative_weight": [0.1, 0.2, 0.3]},
    "base": {"class_counts": [900, 90, 10], "base": "e"},
    "sum": {"margins": 0.0, "reduction": "sum"},
    "none": {"margins": 0.0, "reduction": "none"},
    "ignore_index": {"margins": 0.0, "ignore_index": 255},
    "ignored class": {"margins": 0.0, "ignore_index": 1},
    "global_mean": {"margins": 0.0, "global_mean": True},
    "backend": {"margins": 0.0, "backend": "eager"},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_every_option(options):
    """Project-MONAI/MONAI/issues/1592, pull/1645, /3938: not scriptable, or only in its default mode."""
    logits, labels = torch.randn(2, 3, 4, 5), torch.randint(0, 3, (2, 1, 4, 5))
    if options.get("ignore_index") == 255:
        labels[0, 0, 0] = 255
    loss = MarginCalibrationLoss(**options)
    assert_scripted_like_eager(loss, logits, labels)
    assert_scripted_like_eager(loss, logits, labels.float())
    if "to_onehot_y" not in options and options.get("ignore_index") != 255:
        assert_scripted_like_eager(loss, logits, torch.nn.functional.one_hot(labels[:, 0], 3).movedim(-1, 1))
    mask = torch.tensor([[True, True, True], [True, True, False]])
    labels[1].clamp_(max=1)
    assert_scripted_like_eager(loss, logits, labels, mask)


def test_one_channel():
    assert_scripted_like_eager(MarginCalibrationLoss(margins=0.5), torch.randn(2, 1, 7), torch.randint(0, 2, (2, 1, 7)))


def test_errors_come_through():
    scripted = torch.jit.script(MarginCalibrationLoss(margins=0.0))
    with pytest.raises(RuntimeError, match=r"label value\(s\) 255, expected class ids \[0, 1, 2\]"):
        scripted(torch.randn(1, 3, 4), torch.full((1, 1, 4), 255))


COMPOUNDS = {
    "dice": (MarginCalibrationDiceLoss, {"weight": [1.0, 2.0, 3.0], "jaccard": True}),
    "dice squared": (MarginCalibrationDiceLoss, {"squared_pred": True, "batch": True, "weight": 2.0}),
    "tversky": (MarginCalibrationTverskyLoss, {"include_background": False, "ignore_index": 255}),
    "tversky, global_mean": (MarginCalibrationTverskyLoss, {"global_mean": True, "soft_label": True}),
}


@pytest.mark.parametrize(("made", "options"), COMPOUNDS.values(), ids=COMPOUNDS.keys())
def test_compounds(made, options):
    logits, labels = torch.randn(2, 3, 4, 5), torch.randint(0, 2, (2, 1, 4, 5))
    loss = made(margins=0.5, **options)
    assert_scripted_like_eager(loss, logits, labels)
    assert_scripted_like_eager(loss, logits, torch.nn.functional.one_hot(labels[:, 0], 3).movedim(-1, 1).float())
    assert_scripted_like_eager(loss, logits, labels, torch.tensor([[True, True, False], [True, True, True]]))


class _LosesItsOption(MarginCalibrationLoss):
    """Wrong only when scripted."""

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        if torch.jit.is_scripting():
            return (input * 0).sum()
        else:  # noqa: RET505 - TorchScript leaves out only an else branch
            return super().forward(input, target)


class _NotScriptable(MarginCalibrationLoss):
    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return sum(value for value in globals().values())


@pytest.mark.parametrize("broken", [_LosesItsOption, _NotScriptable])
def test_the_helper_can_fail(broken):
    """Project-MONAI/MONAI/issues/6497: the script test of the CI had stopped raising."""
    logits, labels = torch.randn(2, 3, 4), torch.randint(0, 3, (2, 1, 4))
    with pytest.raises((AssertionError, RuntimeError, torch.jit.frontend.NotSupportedError)):
        assert_scripted_like_eager(broken(margins=0.0), logits, labels)
