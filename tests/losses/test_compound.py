"""The compounds are the weighted sum of their parts, on the same voxels."""

from __future__ import annotations

import copy
import inspect

import pytest
import torch
from monai.data import MetaTensor
from monai.losses import DeepSupervisionLoss, DiceLoss, TverskyLoss

from monai_margincal import MarginCalibrationDiceLoss, MarginCalibrationLoss, MarginCalibrationTverskyLoss
from monai_margincal.losses.margin_options import MarginOptions

COUNTS = [9000, 900, 90]


def problem(seed=0, channels=3, spatial=(5, 4)):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(2, channels, *spatial, generator=generator)
    labels = torch.randint(0, max(channels, 2), (2, 1, *spatial), generator=generator)
    return logits.requires_grad_(), labels


def one_hot(labels, classes=3):
    return torch.nn.functional.one_hot(labels[:, 0], classes).movedim(-1, 1).float()


COMPOUNDS = {
    "dice": (MarginCalibrationDiceLoss, "lambda_dice", {"jaccard": True, "smooth_nr": 0.1, "batch": True}, DiceLoss),
    "dice squared": (
        MarginCalibrationDiceLoss,
        "lambda_dice",
        {"squared_pred": True, "weight": [1.0, 2.0, 3.0]},
        DiceLoss,
    ),
    "tversky": (
        MarginCalibrationTverskyLoss,
        "lambda_tversky",
        {"alpha": 0.2, "beta": 0.9, "smooth_dr": 0.1},
        TverskyLoss,
    ),
}
compounds = pytest.mark.parametrize(
    ("compound", "weight", "settings", "part"), COMPOUNDS.values(), ids=COMPOUNDS.keys()
)


@compounds
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("background", [True, False])
def test_weighted_sum_of_the_parts(compound, weight, settings, part, reduction, background):
    """HiLab-git/PyMIC/pull/22: a combined loss computed wrongly."""
    if not background and "weight" in settings:
        settings = {**settings, "weight": settings["weight"][1:]}
    logits, labels = problem()
    common = {"include_background": background, "reduction": reduction}
    loss = compound(lambda_margin=0.3, class_counts=COUNTS, **{weight: 1.7}, **settings, **common)
    margin = MarginCalibrationLoss(class_counts=COUNTS, **common)(logits, labels)
    overlap = part(softmax=True, to_onehot_y=True, **settings, **common)(logits, labels)
    torch.testing.assert_close(loss(logits, labels), 0.3 * margin + 1.7 * overlap)
    torch.testing.assert_close(loss(logits, one_hot(labels)), loss(logits, labels))


def test_tversky_defaults_are_the_papers():
    logits, labels = problem()
    loss = MarginCalibrationTverskyLoss(lambda_margin=0.0, class_counts=COUNTS)(logits, labels)
    torch.testing.assert_close(loss, TverskyLoss(softmax=True, to_onehot_y=True, alpha=0.3, beta=0.7)(logits, labels))


@compounds
@pytest.mark.parametrize("form", ["index", "one-hot"])
@pytest.mark.parametrize("ignore_index", [255, -1, 0, 2])
def test_ignored_voxels_are_out_of_both_parts(compound, weight, settings, part, form, ignore_index):
    """The same as if the voxels were not there; NaN logits in them reach nothing."""
    logits, labels = problem(spatial=(20,))
    labels[..., :6] = ignore_index
    labels[..., 6:] = torch.where(labels[..., 6:] == ignore_index, 1, labels[..., 6:])
    target = labels
    if form == "one-hot":
        target = one_hot(labels.clamp(0, 2))
        target[..., :6] = ignore_index if not 0 <= ignore_index <= 2 else target[..., :6]
    loss = compound(class_counts=COUNTS, ignore_index=ignore_index, **settings)
    changed = logits.detach().clone()
    changed[..., :6] = torch.nan
    changed.requires_grad_()
    kept = compound(class_counts=COUNTS, **settings)(logits[..., 6:], labels[..., 6:])
    value = loss(changed, target)
    torch.testing.assert_close(value, kept)
    (slopes,) = torch.autograd.grad(value, changed)
    assert (slopes[..., :6] == 0).all()
    assert torch.isfinite(slopes).all()


@compounds
def test_all_ignored(compound, weight, settings, part):
    logits, labels = problem()
    value = compound(class_counts=COUNTS, ignore_index=255, **settings)(logits, torch.full_like(labels, 255))
    assert value.item() == pytest.approx(0, abs=1e-6)
    (slopes,) = torch.autograd.grad(value, logits)
    assert (slopes == 0).all()


@compounds
def test_class_that_was_not_annotated(compound, weight, settings, part):
    """MIC-DKFZ/nnUNet/issues/1683."""
    logits, labels = problem()
    labels[0].clamp_(max=1)
    mask = torch.tensor([[True, True, False], [True, True, True]])
    loss = compound(class_counts=COUNTS, **settings)
    value = loss(logits, labels, mask)
    (slopes,) = torch.autograd.grad(value, logits)
    assert (slopes[0, 2] == 0).all()
    assert (slopes[1, 2] != 0).any()
    changed = logits.detach().clone()
    changed[0, 2] = 30.0
    torch.testing.assert_close(loss(changed, labels, mask), value)
    none = loss(logits, labels, torch.zeros(2, 3, dtype=torch.bool))
    assert none.item() == pytest.approx(0, abs=1e-6)
    assert (torch.autograd.grad(none, logits)[0] == 0).all()


@compounds
def test_one_channel(compound, weight, settings, part, recwarn):
    settings = {name: value for name, value in settings.items() if name != "weight"}
    logits, labels = problem(channels=1)
    loss = compound(class_counts=[90, 10], include_background=False, **settings)
    margin = MarginCalibrationLoss(class_counts=[90, 10], include_background=False)(logits, labels)
    torch.testing.assert_close(loss(logits, labels), margin + part(sigmoid=True, **settings)(logits, labels.float()))
    assert not [w for w in recwarn if "single channel" in str(w.message)]


@compounds
def test_half_precision_and_containers(compound, weight, settings, part):
    logits, labels = problem()
    loss = compound(class_counts=COUNTS, **settings)
    half = logits.detach().half()
    assert loss(half, labels).dtype == torch.float32
    torch.testing.assert_close(loss(half, labels), loss(half.float(), labels))
    same = copy.deepcopy(loss).half()
    assert same.margin_calibration.margin_negative.dtype == torch.float32
    other = compound(class_counts=[5, 5, 5], **settings)
    other.load_state_dict(loss.state_dict())
    torch.testing.assert_close(other(logits, labels), loss(logits, labels))
    assert type(loss(MetaTensor(logits), MetaTensor(labels))) is torch.Tensor
    if "weight" not in settings:  # MONAI looks at its weights' values
        assert copy.deepcopy(loss).to("meta")(logits.to("meta"), labels.to("meta")).shape == ()
    assert torch.isfinite(DeepSupervisionLoss(loss)([logits, logits[:, :, ::2]], labels.float()))


@pytest.mark.parametrize("compound", [MarginCalibrationDiceLoss, MarginCalibrationTverskyLoss])
def test_signature_shows_every_argument_of_the_margin_part(compound):
    """Editors and the check of a bundle's configs read names and defaults there; type checkers read `MarginOptions`."""
    margin = inspect.signature(MarginCalibrationLoss).parameters
    shown = inspect.signature(compound).parameters
    assert list(MarginOptions.__annotations__) == list(margin)
    for name, one in margin.items():
        assert (shown[name].default, shown[name].annotation) == (one.default, one.annotation)
        assert MarginOptions.__annotations__[name].__forward_arg__ == one.annotation
    assert not any(one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL) for one in shown.values())
    assert list(shown)[:2] == [
        "lambda_margin",
        "lambda_dice" if compound is MarginCalibrationDiceLoss else "lambda_tversky",
    ]


def test_unknown_argument():
    with pytest.raises(TypeError, match="'tao'"):
        MarginCalibrationDiceLoss(class_counts=COUNTS, tao=1.0)


@pytest.mark.parametrize("name", ["lambda_margin", "lambda_dice"])
def test_negative_weight_of_a_part(name):
    with pytest.raises(ValueError, match=f"{name} must be >= 0, found -1"):
        MarginCalibrationDiceLoss(class_counts=COUNTS, **{name: -1})


def test_reduction_none():
    with pytest.raises(ValueError, match=r"'none' has no meaning .* expected 'mean' or 'sum'"):
        MarginCalibrationTverskyLoss(class_counts=COUNTS, reduction="none")


def test_labels_are_checked():
    logits, labels = problem()
    with pytest.raises(ValueError, match=r"label value\(s\) 7, expected class ids \[0, 1, 2\]"):
        MarginCalibrationDiceLoss(class_counts=COUNTS)(logits, torch.full_like(labels, 7))
    with pytest.raises(ValueError, match="to_onehot_y=True"):
        MarginCalibrationDiceLoss(class_counts=COUNTS, to_onehot_y=True)(logits, one_hot(labels))
