"""MarginCalibrationLoss as a MONAI loss: what users reported of other losses, and what this one must do."""

from __future__ import annotations

import copy
import inspect
import pickle
import time

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from losses.golden import CASES, IDS, has_proper_margins, tensor
from losses.oracle import oracle
from monai.bundle import ConfigParser
from monai.data import MetaTensor
from monai.losses import DeepSupervisionLoss, DiceCELoss, DiceLoss, TverskyLoss

import monai_margincal
from monai_margincal import ClassCounts, ClassMargins, MarginCalibrationLoss, class_margins

BUFFERS = ("margin_negative", "margin_positive", "negative_weight", "positive_weight")


def logits_and_labels(*shape, classes=None, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(shape, generator=generator, dtype=dtype) * 2
    labels = torch.randint(0, classes or max(shape[1], 2), (shape[0], 1, *shape[2:]), generator=generator)
    return logits.requires_grad_(), labels


def gradient(loss, logits, *arguments):
    (result,) = torch.autograd.grad(loss(logits, *arguments), logits)
    return result


class TestValue:
    @pytest.mark.parametrize("case", [c for c in CASES if has_proper_margins(c)], ids=lambda c: c["id"])
    def test_golden_through_the_module(self, case):
        logits, labels = tensor(case["logits"]), torch.tensor(case["labels"])
        margins = ClassMargins(numbers(case["rho_0k"]), numbers(case["rho_k0"]))
        loss = MarginCalibrationLoss(margins=margins, negative_weight=1.0, ignore_index=case["ignore_index"]).double()
        expected = case["recommended_loss"] if case["paper_loss"] is None else case["paper_loss"]
        assert abs(loss(logits, labels).item() - expected) <= 1e-12 * max(1.0, abs(expected))

    @pytest.mark.parametrize(
        "name", ["class_absent_from_counts", "mu_negative", "mu_singular_exact", "single_class_c1", "n_k_equals_n"]
    )
    def test_golden_margins_that_turn_the_loss_around_are_refused(self, name):
        case = CASES[IDS.index(name)]
        with pytest.raises(ValueError, match=r"finite and >= 0|C >= 2 classes"):
            MarginCalibrationLoss(margins=(numbers(case["rho_0k"]), numbers(case["rho_k0"])))

    @given(
        seed=st.integers(0, 2**31),
        channels=st.integers(1, 5),
        normalization=st.sampled_from(["sum", "counts"]),
        negative=st.sampled_from(["mean", 1.0, 0.3, "per class"]),
        background=st.booleans(),
    )
    @settings(deadline=None, max_examples=40)
    def test_literal_transcription_from_counts(self, seed, channels, normalization, negative, background):
        rng = np.random.default_rng(seed)
        classes = max(channels, 2)
        counts = rng.integers(50, 100_000, classes).tolist()
        positive = rng.uniform(0, 2, classes).tolist()
        negative = rng.uniform(0, 2, classes).tolist() if negative == "per class" else negative
        loss = MarginCalibrationLoss(
            include_background=background,
            class_counts=counts,
            tau=2.0,
            normalization=normalization,
            positive_weight=positive,
            negative_weight=negative,
        ).double()
        logits, labels = rng.normal(0, 3, (2, channels, 6)), rng.integers(0, classes, (2, 6))
        margins = class_margins(counts, tau=2.0, normalization=normalization)
        weights = [1 / classes] * classes if negative == "mean" else np.broadcast_to(negative, classes)
        expected, _, _ = oracle(
            logits,
            labels,
            margins.negative.tolist(),
            margins.positive.tolist(),
            weights,
            positive,
            include_background=background,
        )
        assert loss(torch.tensor(logits), torch.tensor(labels)).item() == pytest.approx(expected.mean(), rel=1e-12)

    def test_one_channel_equals_two(self):
        logits, labels = logits_and_labels(2, 1, 4, 5)
        both = torch.cat([torch.zeros_like(logits), logits], dim=1)
        loss = MarginCalibrationLoss(class_counts=[90, 10])
        one, two = loss(logits, labels), loss(both, labels)
        torch.testing.assert_close(one, two, rtol=0, atol=0)
        torch.testing.assert_close(loss(logits, labels.float()), two)  # a probability of 0 or 1

    def test_base_e_is_base_2_of_scaled_logits(self):
        """log2(1 + 2^z) = ln(1 + e^(z ln 2)) / ln 2."""
        logits, labels = logits_and_labels(2, 3, 7)
        ln2 = float(np.log(2.0))
        margins = ClassMargins([0.1, 0.5, 1.0], [0.2, 0.3, 0.0])
        scaled = ClassMargins((margins.negative * ln2).tolist(), (margins.positive * ln2).tolist())
        base2 = MarginCalibrationLoss(margins=margins)(logits, labels)
        natural = MarginCalibrationLoss(margins=scaled, base="e")(logits * ln2, labels)
        torch.testing.assert_close(base2, natural / ln2)

    def test_hard_one_hot_equals_indices(self):
        logits, labels = logits_and_labels(2, 4, 3, 5)
        one_hot = torch.nn.functional.one_hot(labels[:, 0], 4).movedim(-1, 1)
        loss = MarginCalibrationLoss(class_counts=[5000, 300, 200, 100])
        expected = loss(logits, labels)
        for dtype in (torch.float32, torch.int64, torch.uint8, torch.bool, torch.float16):
            torch.testing.assert_close(loss(logits, one_hot.to(dtype)), expected)

    def test_printed_sum_raises_a_wrong_top_class_near_a_tie_from_five_classes_on(self):
        """The defect of the printed equation, and why 1/C is the default.

        Near a tie of a wrong top class t with the true class, dL/ds_t is about (4 - C)/2 for the printed sum: negative from C = 5
        on, so descent RAISES the wrong class. With 1/C it is positive.
        """
        for classes in range(3, 9):
            logits = torch.full((1, classes, 1), -1e-6, dtype=torch.float64)
            logits[0, 1] = 0.0  # t, on top by a hair
            logits[0, 0] = -1e-7  # the true class
            logits.requires_grad_()
            labels = torch.zeros(1, 1, 1, dtype=torch.long)
            printed = gradient(MarginCalibrationLoss(margins=0.0, negative_weight=1.0), logits, labels)[0, 1, 0].item()
            default = gradient(MarginCalibrationLoss(margins=0.0), logits, labels)[0, 1, 0].item()
            assert printed == pytest.approx((4 - classes) / 2, abs=1e-5)
            assert default > 0
            assert default == pytest.approx(3 / (2 * classes), abs=1e-5)


def numbers(values):
    return tensor(values).tolist()


class TestNumerics:
    """NaN, infinity and half precision: what users reported of other losses."""

    @pytest.mark.parametrize(
        ("dtype", "size"),
        [
            (torch.float16, 6e4),
            (torch.float32, 1e30),
            (torch.bfloat16, 1e30),
            (torch.float64, 1e200),
            (torch.float32, 3e38),
        ],
    )
    def test_huge_logits(self, dtype, size):
        """pytorch/pytorch/issues/40497: the log of a value that became 0."""
        signs = torch.tensor([[1, -1, 0], [-1, 1, -1], [1, 1, 1], [-1, -1, 1]], dtype=torch.float64).T[
            None
        ]  # (1, 3, 4)
        for labels in (torch.tensor([[0, 1, 2, 0]]), torch.tensor([[1, 0, 0, 2]])):
            logits = (signs * size).to(dtype).requires_grad_()
            value = MarginCalibrationLoss(class_counts=[90, 9, 1])(logits, labels)
            value.backward()
            assert torch.isfinite(value)
            assert torch.isfinite(logits.grad).all()

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
    @pytest.mark.parametrize("form", ["index", "soft"])
    def test_infinite_logits_count_as_very_large(self, dtype, form):
        for infinite in ([1], [0, 1], [0, 1, 2]):
            for sign in (1, -1):
                logits = torch.zeros(1, 3, 2, dtype=dtype)
                logits[:, infinite] = sign * torch.inf
                logits.requires_grad_()
                target = torch.tensor([[1, 2]])
                if form == "soft":
                    target = torch.nn.functional.one_hot(target, 3).movedim(-1, 1)
                value = MarginCalibrationLoss(class_counts=[90, 9, 1])(logits, target)
                value.backward()
                assert torch.isfinite(value)
                assert torch.isfinite(logits.grad).all()
        logits = torch.tensor([[[torch.inf], [0.0], [-torch.inf]]], dtype=dtype)
        value = MarginCalibrationLoss(margins=0.0)(logits, torch.tensor([[0]]))
        assert value.item() == 0  # the infinite logit is the true class's

    def test_nan_in_a_valid_voxel_is_not_hidden(self):
        logits, labels = logits_and_labels(1, 3, 4)
        with torch.no_grad():
            logits[0, 0, 0] = torch.nan
        assert MarginCalibrationLoss(class_counts=[9, 5, 3])(logits, labels).isnan()

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_half_precision_is_computed_in_float32(self, dtype):
        """ultralytics/ultralytics/pull/24554."""
        logits, labels = logits_and_labels(2, 3, 8, 8)
        half = logits.detach().to(dtype).requires_grad_()
        loss = MarginCalibrationLoss(class_counts=[900, 90, 10])
        assert loss(half, labels).dtype == torch.float32
        torch.testing.assert_close(loss(half, labels), loss(half.float(), labels), rtol=0, atol=0)
        assert gradient(loss, half, labels).dtype == dtype

    def test_under_autocast(self):
        network = torch.nn.Conv2d(1, 3, 3, padding=1)
        image, labels = torch.randn(2, 1, 8, 8), torch.randint(0, 3, (2, 1, 8, 8))
        loss = MarginCalibrationLoss(class_counts=[900, 90, 10])
        with torch.autocast("cpu", torch.bfloat16):
            logits = network(image)
            assert logits.dtype == torch.bfloat16
            value = loss(logits, labels)
        assert value.dtype == torch.float32
        value.backward()
        assert torch.isfinite(network.weight.grad).all()
        torch.testing.assert_close(value, loss(logits.float(), labels))

    def test_scaled_half_gradient_is_rounded_once(self):
        """A GradScaler's factor is applied before the gradient becomes float16: over 2^20 voxels it would be 0 otherwise."""
        logits, labels = logits_and_labels(1, 2, 64, 64, 64)
        half = logits.detach().half().requires_grad_()
        loss = MarginCalibrationLoss(class_counts=[9, 1])
        (scaled,) = torch.autograd.grad(loss(half, labels) * 2.0**16, half)
        exact = gradient(loss, half.detach().float().requires_grad_(), labels) * 2.0**16
        torch.testing.assert_close(scaled.float(), exact, rtol=6e-4, atol=1e-7)

    @pytest.mark.parametrize("learning_rate", [1.0, 100.0])
    def test_three_hundred_steps_with_a_one_voxel_class(self, learning_rate):
        """Project-MONAI/research-contributions/issues/27: NaN after a while."""
        torch.manual_seed(0)
        network = torch.nn.Conv2d(1, 3, 3, padding=1)
        image, labels = torch.randn(1, 1, 8, 8), torch.zeros(1, 1, 8, 8, dtype=torch.long)
        labels[0, 0, 2:5, 2:5], labels[0, 0, 7, 7] = 1, 2
        loss = MarginCalibrationLoss(class_counts=ClassCounts(np.bincount(labels.flatten().numpy())))
        optimizer = torch.optim.SGD(network.parameters(), lr=learning_rate)
        for _ in range(300):
            optimizer.zero_grad()
            value = loss(network(image), labels)
            value.backward()
            optimizer.step()
            assert torch.isfinite(value)
        assert all(torch.isfinite(p).all() for p in network.parameters())

    def test_mispredicted_foreground_keeps_its_gradient(self):
        """Project-MONAI/MONAI/issues/807, MIC-DKFZ/nnUNet/issues/1395: 8 lesion voxels in 128^3, everything called background."""
        labels = torch.zeros(1, 1, 128, 128, 128, dtype=torch.uint8)
        labels[0, 0, 60:62, 60:62, 60:62] = 1
        logits = torch.zeros(1, 2, 128, 128, 128)
        logits[:, 0] = 30.0
        logits.requires_grad_()
        counts = [128**3 - 8, 8]
        for loss in (
            MarginCalibrationLoss(class_counts=counts),
            monai_margincal.MarginCalibrationDiceLoss(class_counts=counts),
        ):
            slopes = gradient(loss, logits, labels)[:, :, 60:62, 60:62, 60:62] * 128**3
            assert (slopes[:, 1] < -1).all()
            assert (slopes[:, 0] > 1).all()

    def test_logits_on_another_scale(self):
        """kaidic/LDAM-DRW/issues/20, /13, /2: NaN with unnormalised logits."""
        logits, labels = logits_and_labels(2, 3, 9)
        assert torch.isfinite(MarginCalibrationLoss(class_counts=[90, 9, 1])(logits * 1e3, labels))
        assert "tau" in MarginCalibrationLoss.__doc__
        assert "never normalised" in MarginCalibrationLoss.__doc__


class TestShapes:
    """Shapes, layouts and weights: what users reported of other losses."""

    @pytest.mark.parametrize("wrong", [3, 5])
    @pytest.mark.parametrize("background", [True, False])
    @pytest.mark.parametrize("what", ["margins", "positive_weight", "negative_weight"])
    @pytest.mark.parametrize("kind", [list, torch.tensor])
    def test_lengths(self, what, wrong, background, kind):
        """Project-MONAI/MONAI/issues/7729: always one entry per class, and the message says so."""
        values = kind([1.0] * wrong)
        given_values = {what: (values, values) if what == "margins" else values}
        loss = MarginCalibrationLoss(include_background=background, **{"margins": 0.0, **given_values})
        logits, labels = logits_and_labels(1, 4, 5)
        flag = "" if background else "background .* include_background=False"
        with pytest.raises(
            ValueError, match=rf"has the shape \({wrong},\).*\(1, 4, 5\).*expected \(4,\), one entry.*{flag}"
        ):
            loss(logits, labels)
        right = kind([1.0] * 4)
        given_values = {what: (right, right) if what == "margins" else right}
        MarginCalibrationLoss(include_background=background, **{"margins": 0.0, **given_values})(logits, labels)

    def test_lengths_disagree_at_once(self):
        with pytest.raises(ValueError, match=r"'margin_negative': 3.*'positive_weight': 2.*include_background=False"):
            MarginCalibrationLoss(include_background=False, class_counts=[9, 5, 2], positive_weight=[1.0, 2.0])

    @pytest.mark.parametrize(
        ("target", "settings_"),
        [
            ((1, 2, 5), {}),
            ((1, 4, 6), {}),
            ((2, 4, 5), {}),
            ((1, 5, 1), {}),
            ((1, 4, 5), {"to_onehot_y": True}),
            ((5,), {}),
        ],
    )
    def test_message_holds_both_shapes(self, target, settings_):
        """Project-MONAI/MONAI/pull/7587: ValueError, as documented, with both shapes."""
        loss = MarginCalibrationLoss(margins=0.0, **settings_)
        with pytest.raises(ValueError) as error:
            loss(torch.randn(1, 4, 5), torch.zeros(target))
        assert str(tuple(target)) in str(error.value)
        assert "(1, 4, 5)" in str(error.value)

    def test_two_classes_without_background_learn(self):
        """Project-MONAI/MONAI/issues/2509: the loss was 0 there."""
        logits, labels = logits_and_labels(2, 2, 4, 4)
        loss = MarginCalibrationLoss(include_background=False, class_counts=[90, 10])
        slopes = gradient(loss, logits, labels)
        assert (slopes.abs() > 0).all()

    def test_background_competes_although_it_is_left_out(self):
        """Project-MONAI/MONAI/issues/5413: the channel was dropped before the softmax."""
        logits, labels = logits_and_labels(2, 3, 6)
        counts = [900, 90, 10]
        left_out = MarginCalibrationLoss(include_background=False, class_counts=counts)(logits, labels)
        zero_weight = MarginCalibrationLoss(
            class_counts=counts, positive_weight=[0.0, 1, 1], negative_weight=[0.0, 1 / 3, 1 / 3]
        )(logits, labels)
        torch.testing.assert_close(left_out, zero_weight, rtol=0, atol=0)
        with torch.no_grad():
            logits[:, 0] += 50
        raised = MarginCalibrationLoss(include_background=False, class_counts=counts)(logits, labels)
        assert raised > left_out

    @pytest.mark.parametrize("spatial", [(4, 4, 4), (4,), (3, 5), (4, 2)])
    def test_weights_run_along_the_class_dimension(self, spatial):
        """kornia/kornia/pull/3033: spatial sizes equal to C must not attract the weights."""
        logits, labels = logits_and_labels(4, 4, *spatial)
        terms = [torch.rand(4).tolist() for _ in range(4)]
        loss = MarginCalibrationLoss(margins=terms[:2], negative_weight=terms[2], positive_weight=terms[3])
        expected, _, _ = oracle(logits.detach().flatten(2).numpy(), labels.flatten(1).numpy(), *terms)
        assert loss(logits, labels).item() == pytest.approx(expected.mean(), rel=1e-5)

    def test_every_form_of_the_same_labels(self):
        """Project-MONAI/tutorials/issues/95: (B, 1, D, H, W) float labels."""
        logits, labels = logits_and_labels(2, 3, 4, 3, 2)
        loss = MarginCalibrationLoss(class_counts=[900, 90, 10])
        expected = loss(logits, labels)
        for dtype in (
            torch.uint8,
            torch.int8,
            torch.int16,
            torch.uint16,
            torch.int32,
            torch.uint32,
            torch.float16,
            torch.float64,
        ):
            for target in (labels.to(dtype), labels[:, 0].to(dtype)):
                torch.testing.assert_close(loss(logits, target), expected, rtol=0, atol=0)
                to_onehot = MarginCalibrationLoss(to_onehot_y=True, class_counts=[900, 90, 10])
                torch.testing.assert_close(to_onehot(logits, target), expected, rtol=0, atol=0)
        torch.testing.assert_close(loss(logits, MetaTensor(labels)), expected, rtol=0, atol=0)

    def test_overlapping_channels_are_refused(self):
        """Project-MONAI/MONAI/pull/5292, OSUPCVLab/SegFormer3D/issues/17: BraTS TC, WT, ET were argmaxed."""
        regions = torch.zeros(1, 3, 4, 4)
        regions[0, 1, :3], regions[0, 0, :2], regions[0, 2, :1] = 1, 1, 1
        with pytest.raises(ValueError, match=r"sums from 0 to 3 in 12 voxel.*BraTS"):
            MarginCalibrationLoss(margins=0.0)(torch.randn(1, 3, 4, 4), regions)

    @pytest.mark.parametrize("value", [-0.5, 1.5, torch.nan])
    def test_soft_labels_outside_the_unit_interval(self, value):
        target = torch.full((1, 2, 3), 0.5)
        target[0, 0, 1] = value
        with pytest.raises(ValueError, match=r"expected one-hot or soft labels in \[0, 1\]"):
            MarginCalibrationLoss(margins=0.0)(torch.randn(1, 2, 3), target)

    def test_reduction_none_keeps_the_place(self):
        logits, labels = logits_and_labels(2, 3, 4, 5)
        labels[0, 0, 1, 2] = 255
        counts = [900, 90, 10]
        voxels = MarginCalibrationLoss(class_counts=counts, reduction="none", ignore_index=255)(logits, labels)
        assert voxels.shape == (2, 1, 4, 5)
        assert voxels[0, 0, 1, 2] == 0
        total = MarginCalibrationLoss(class_counts=counts, reduction="sum", ignore_index=255)(logits, labels)
        mean = MarginCalibrationLoss(class_counts=counts, ignore_index=255)(logits, labels)
        torch.testing.assert_close(voxels.sum(), total)
        torch.testing.assert_close(total / 39, mean)

    def test_unknown_reduction(self):
        with pytest.raises(ValueError, match="avg"):
            MarginCalibrationLoss(margins=0.0, reduction="avg")


class TestIgnored:
    """Ignored voxels and partial labels: what users reported of other losses."""

    @pytest.mark.parametrize("form", ["index", "one-hot"])
    @pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
    def test_all_ignored(self, form, reduction):
        """pytorch/pytorch/issues/70348, /116349, /75181."""
        logits = torch.randn(2, 3, 4).fill_(torch.nan).requires_grad_()
        target = torch.full((2, 1 if form == "index" else 3, 4), 255)
        value = MarginCalibrationLoss(class_counts=[9, 5, 2], ignore_index=255, reduction=reduction)(logits, target)
        assert (value == 0).all()
        value.sum().backward()
        assert (logits.grad == 0).all()

    @pytest.mark.parametrize("junk", [torch.nan, torch.inf, -torch.inf, 1e38])
    @pytest.mark.parametrize("form", ["index", "one-hot"])
    @pytest.mark.parametrize("factor", [1.0, torch.inf])
    def test_an_ignored_voxel_changes_nothing(self, junk, form, factor):
        logits, labels = logits_and_labels(2, 3, 6)
        if form == "one-hot":
            labels = torch.nn.functional.one_hot(labels[:, 0], 3).movedim(-1, 1).float()
        labels[0, :, 2:4] = 255
        loss = MarginCalibrationLoss(class_counts=[90, 9, 1], ignore_index=255)
        expected, slopes = loss(logits, labels), gradient(loss, logits, labels)
        changed = logits.detach().clone()
        changed[0, :, 2] = junk
        changed[0, 1, 3] = junk
        changed.requires_grad_()
        assert torch.equal(loss(changed, labels), expected)
        assert torch.equal(gradient(loss, changed, labels), slopes)
        (scaled,) = torch.autograd.grad(loss(changed, labels), changed, torch.tensor(factor))
        assert (scaled[0, :, 2:4] == 0).all()

    @pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.float32])
    def test_undeclared_label(self, dtype):
        """kornia/kornia/issues/839, yiyixuxu/polyloss-pytorch/issues/4: 255 was used as an index."""
        logits, labels = logits_and_labels(1, 3, 8)
        labels = labels.to(dtype)
        labels[0, 0, 1], labels[0, 0, 5] = 255, 17
        counts = ClassCounts([90, 9, 1], names=["background", "liver", "tumour"])
        with pytest.raises(
            ValueError, match=r"label\(s\) 17, 255: expected class indices 0 ... 2 \(0 background, 1 liver, 2 tu"
        ):
            MarginCalibrationLoss(class_counts=counts)(logits, labels)
        with pytest.raises(ValueError, match=r"label\(s\) 17: expected class indices 0 ... 2 .* or ignore_index=255"):
            MarginCalibrationLoss(class_counts=counts, ignore_index=255)(logits, labels)

    def test_mask_of_0_and_255(self):
        logits, labels = logits_and_labels(1, 2, 8)
        with pytest.raises(ValueError, match=r"255: expected .* divided by 255 first"):
            MarginCalibrationLoss(margins=0.0)(logits, labels * 255)

    def test_negative_label_that_is_not_the_ignored_one(self):
        """pytorch/pytorch/issues/12670."""
        logits, labels = logits_and_labels(1, 3, 8)
        labels[0, 0, :2] = torch.tensor([-4, -1])
        with pytest.raises(ValueError, match=r"label\(s\) -4: expected class indices 0 ... 2 or ignore_index=-1"):
            MarginCalibrationLoss(margins=0.0, ignore_index=-1)(logits, labels)

    @pytest.mark.parametrize("value", [0.5, torch.nan, torch.inf, 1e20])
    def test_labels_that_are_no_whole_numbers(self, value):
        logits, labels = logits_and_labels(1, 3, 8)
        labels = labels.float()
        labels[0, 0, 3] = value
        with pytest.raises(ValueError, match=f"undeclared label.* {value:g}".replace("+", r"\+")):
            MarginCalibrationLoss(margins=0.0)(logits, labels)

    def test_many_undeclared_labels_are_not_all_listed(self):
        with pytest.raises(ValueError, match=r"21, \.\.\. \(98 in all\)"):
            MarginCalibrationLoss(margins=0.0)(torch.randn(1, 2, 100), torch.arange(100)[None])

    @pytest.mark.parametrize("form", ["index", "one-hot"])
    def test_an_ignored_class_still_competes(self, form):
        """pytorch/pytorch/issues/63004: ignore_index in 0 ... C - 1 drops voxels, not the class."""
        logits, labels = logits_and_labels(2, 3, 7)
        one_hot = torch.nn.functional.one_hot(labels[:, 0], 3).movedim(-1, 1)
        target = labels if form == "index" else one_hot
        loss = MarginCalibrationLoss(class_counts=[900, 90, 10], ignore_index=0)
        voxels = MarginCalibrationLoss(class_counts=[900, 90, 10], reduction="none")(logits, target)
        torch.testing.assert_close(loss(logits, target), voxels[labels != 0].mean())
        slopes = gradient(loss, logits, target)
        assert (slopes[:, 0][labels[:, 0] != 0] != 0).all()
        assert (slopes.movedim(1, -1)[labels[:, 0] == 0] == 0).all()

    def test_one_hot_zero_vector_with_ignored_background(self):
        logits = torch.randn(1, 3, 2)
        target = torch.tensor([[[0, 0], [0, 1], [0, 0]]])
        loss = MarginCalibrationLoss(margins=0.0, ignore_index=0)
        torch.testing.assert_close(loss(logits, target), loss(logits[..., 1:], target[..., 1:]))

    def test_class_that_was_not_annotated(self):
        """MIC-DKFZ/nnUNet/issues/1683: that logit gets no gradient, and its value does not matter."""
        logits, labels = logits_and_labels(2, 4, 9, classes=3)
        mask = torch.tensor([[True, True, True, False], [True, True, True, True]])
        loss = MarginCalibrationLoss(class_counts=[9000, 900, 90, 10])
        value, slopes = loss(logits, labels, mask), torch.autograd.grad(loss(logits, labels, mask), logits)[0]
        assert (slopes[0, 3] == 0).all()
        assert (slopes[1, 3] != 0).all()
        for junk in (50.0, -50.0, torch.nan, torch.inf):
            changed = logits.detach().clone()
            changed[0, 3] = junk
            torch.testing.assert_close(loss(changed, labels, mask), value, rtol=0, atol=0)
        assert torch.equal(loss(logits, labels, torch.ones(2, 4, dtype=torch.bool)), loss(logits, labels))

    def test_label_of_a_class_that_was_not_annotated(self):
        logits, labels = logits_and_labels(1, 3, 9)
        mask = torch.tensor([[True, True, False]])
        one_hot = torch.nn.functional.one_hot(labels[:, 0], 3).movedim(-1, 1)
        for target in (labels, one_hot):
            with pytest.raises(ValueError, match=r"class\(es\) \[2\] in a case where class_mask"):
                MarginCalibrationLoss(margins=0.0)(logits, target, mask)

    def test_case_with_one_annotated_class_counts_as_ignored(self):
        logits, labels = logits_and_labels(2, 3, 5)
        labels[0] = 1
        mask = torch.tensor([[False, True, False], [True, True, True]])
        loss = MarginCalibrationLoss(class_counts=[90, 9, 1])
        torch.testing.assert_close(loss(logits, labels, mask), loss(logits[1:], labels[1:]))
        assert (gradient(loss, logits, labels, mask)[0] == 0).all()

    @pytest.mark.parametrize(
        "mask", [torch.ones(2, 3), torch.ones(3, 2, dtype=torch.bool), torch.ones(3, dtype=torch.bool)]
    )
    def test_shape_of_the_class_mask(self, mask):
        logits, labels = logits_and_labels(2, 3, 5)
        with pytest.raises(ValueError, match=r"class_mask .* expected bool \(2, 3\)"):
            MarginCalibrationLoss(margins=0.0)(logits, labels, mask)


class TestAbsentClass:
    """Classes that are absent: what users reported of other losses."""

    def test_count_of_zero(self):
        """The released code makes infinite margins of it."""
        with pytest.warns(UserWarning, match="no voxel of class '2 spleen'") as caught:
            loss = MarginCalibrationLoss(class_counts=ClassCounts([90, 10, 0], names=["background", "liver", "spleen"]))
        assert len(caught) == 1
        assert caught[0].filename == __file__
        assert loss.margin_negative[2] == loss.margin_positive[2] == 0
        logits, labels = logits_and_labels(1, 3, 5)
        assert torch.isfinite(loss(logits, labels))

    def test_class_absent_from_the_batch_is_only_pushed_down(self):
        """bermanmaxim/LovaszSoftmax/issues/20: no gradient may pull towards a class that is not there."""
        logits, labels = logits_and_labels(2, 3, 50, classes=2)
        slopes = gradient(MarginCalibrationLoss(margins=0.0), logits, labels)[:, 2]
        not_on_top = logits.argmax(1) != 2
        second = logits.topk(2, dim=1).indices[:, 1] == 2
        assert (slopes[not_on_top & ~second] > 0).all()


class TestState:
    """Buffers, devices and state: what users reported of other losses."""

    def make(self, **settings_):
        return MarginCalibrationLoss(class_counts=ClassCounts([98765, 1234, 56], names=["a", "b", "c"]), **settings_)

    def test_buffers(self):
        """Project-MONAI/MONAI/issues/8866, /8819, pull/8872."""
        loss = self.make()
        assert tuple(loss.state_dict()) == BUFFERS
        assert not list(loss.parameters())
        assert all(not b.requires_grad and b.dtype == torch.float32 and b.shape == (3,) for b in loss.buffers())

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_half_keeps_float32(self, dtype):
        loss = self.make()
        before = {name: buffer.clone() for name, buffer in loss.named_buffers()}
        for moved in (copy.deepcopy(loss).to(dtype), torch.nn.Sequential(copy.deepcopy(loss)).to(dtype=dtype)[0]):
            for name, buffer in moved.named_buffers():
                assert buffer.dtype == torch.float32
                assert torch.equal(buffer, before[name])
        assert copy.deepcopy(loss).half().float().margin_positive.dtype == torch.float32

    def test_double_gives_the_margins_as_computed(self):
        loss = self.make().half().double()
        exact = class_margins([98765, 1234, 56])
        assert torch.equal(loss.margin_negative, exact.negative)
        assert torch.equal(loss.margin_positive, exact.positive)
        assert torch.equal(loss.negative_weight, torch.full((3,), 1 / 3, dtype=torch.float64))
        changed = self.make()
        changed.margin_negative[1] = 7.0
        assert changed.double().margin_negative[1] == 7.0

    def test_copies_and_state(self):
        loss, other = self.make(), MarginCalibrationLoss(class_counts=[5, 5, 5])
        logits, labels = logits_and_labels(1, 3, 5)
        expected = loss(logits, labels)
        for same in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
            assert torch.equal(same(logits, labels), expected)
            assert repr(same) == repr(loss)
        other.load_state_dict(loss.state_dict(), strict=True)
        assert torch.equal(other(logits, labels), expected)
        with pytest.raises(RuntimeError, match="size mismatch for margin_negative"):
            MarginCalibrationLoss(class_counts=[5, 5]).load_state_dict(loss.state_dict())

    def test_meta_device(self):
        loss = self.make().to("meta")
        assert all(buffer.is_meta for buffer in loss.buffers())
        logits = torch.randn(2, 3, 4, device="meta", requires_grad=True)
        value = loss(logits, torch.zeros(2, 1, 4, dtype=torch.long, device="meta"))
        value.backward()
        assert value.shape == ()
        assert logits.grad.shape == logits.shape
        assert "margin_negative=..." in repr(loss)

    def test_handler_changes_margins_between_steps(self):
        loss = self.make()
        logits, labels = logits_and_labels(1, 3, 5)
        before = loss(logits, labels)
        before.backward()
        loss.margin_positive += 1.0
        loss.negative_weight = torch.tensor([1.0, 2.0, 3.0])
        after = loss(logits, labels)
        expected, _, _ = oracle(
            logits.detach().numpy(),
            labels[:, 0].numpy(),
            loss.margin_negative.tolist(),
            loss.margin_positive.tolist(),
            [1.0, 2.0, 3.0],
            [1.0] * 3,
        )
        assert after.item() == pytest.approx(expected.mean(), rel=1e-5)
        loss.margin_positive[1] = -1.0
        with pytest.raises(ValueError, match=r"margin_positive must be finite and >= 0, found"):
            loss(logits, labels)

    def test_forward_changes_nothing(self):
        """Project-MONAI/MONAI/issues/8117, pull/8665."""
        loss, fresh = MarginCalibrationLoss(margins=0.5), MarginCalibrationLoss(margins=0.5)
        first, second = logits_and_labels(1, 3, 5), logits_and_labels(1, 5, 7, seed=1)
        in_order = loss(*first), loss(*second)
        reverse = fresh(*second), fresh(*first)
        assert torch.equal(in_order[0], reverse[1])
        assert torch.equal(in_order[1], reverse[0])
        assert loss.state_dict().keys() == fresh.state_dict().keys()

    def test_repr_shows_margins_and_names(self):
        text = repr(self.make(ignore_index=255, include_background=False, base="e"))
        for part in ("classes=[a, b, c]", "margin_negative=[", "negative_weight=0.3333", "ignore_index=255", "base=e"):
            assert part in text
        assert "include_background=False" in text
        assert "ids=[0, 7]" in repr(MarginCalibrationLoss(class_counts={0: 90, 7: 10}))

    def test_ids_with_gaps_in_messages(self):
        logits, _ = logits_and_labels(1, 2, 3)
        with pytest.raises(ValueError, match=r"0 \.\.\. 1 \(0 for id 0, 1 for id 7\)"):
            MarginCalibrationLoss(class_counts={0: 90, 7: 10})(logits, torch.tensor([[[0, 7, 7]]]))


class TestInMonai:
    def test_argument_names(self):
        """Project-MONAI/MONAI/issues/7065: one name for one thing across losses."""
        ours = {}
        for loss in (
            MarginCalibrationLoss,
            monai_margincal.MarginCalibrationDiceLoss,
            monai_margincal.MarginCalibrationTverskyLoss,
            monai_margincal.LovaszSoftmaxLoss,
        ):
            ours[loss.__name__] = inspect.signature(loss.__init__).parameters
            assert list(inspect.signature(loss.forward).parameters)[:3] == ["self", "input", "target"]
        margin = ours["MarginCalibrationLoss"]
        assert list(margin)[1:13] == [
            "include_background",
            "to_onehot_y",
            "class_counts",
            "margins",
            "tau",
            "upsilon",
            "normalization",
            "positive_weight",
            "negative_weight",
            "base",
            "reduction",
            "ignore_index",
        ]
        monai_names = {
            n: p for loss in (DiceLoss, TverskyLoss, DiceCELoss) for n, p in inspect.signature(loss).parameters.items()
        }
        shared = {"include_background", "to_onehot_y", "reduction", "ignore_index"}
        for name in ("MarginCalibrationDiceLoss", "MarginCalibrationTverskyLoss"):
            assert set(margin) - {"self"} <= set(ours[name])
            own = set(ours[name]) - set(margin) - {"lambda_margin", "lambda_dice", "lambda_tversky"}
            assert own <= set(monai_names)
        for name in shared:
            for parameters in (margin, ours["MarginCalibrationDiceLoss"]):
                if name in monai_names:
                    assert parameters[name].default == monai_names[name].default

    def test_deep_supervision(self):
        loss = DeepSupervisionLoss(MarginCalibrationLoss(to_onehot_y=True, class_counts=[90, 9, 1]), weights=[1.0, 0.5])
        labels = torch.randint(0, 3, (2, 1, 8, 8)).float()
        heads = [torch.randn(2, 3, 8, 8, requires_grad=True), torch.randn(2, 3, 4, 4, requires_grad=True)]
        loss(heads, labels).backward()
        assert all((head.grad.abs().sum() > 0) for head in heads)

    @pytest.mark.parametrize(
        "dotted", ["monai_margincal.MarginCalibrationLoss", "monai_margincal.losses.MarginCalibrationLoss"]
    )
    def test_from_a_bundle_config(self, dotted, tmp_path):
        path = tmp_path / "counts.json"
        ClassCounts([980, 20], names=["background", "lesion"]).to_json(path)
        parser = ConfigParser(
            {
                "counts": str(path),
                "loss": {"_target_": dotted, "class_counts": "@counts", "to_onehot_y": True, "ignore_index": 255},
            }
        )
        loss = parser.get_parsed_content("loss")
        assert isinstance(loss, MarginCalibrationLoss)
        assert loss.class_names == ("background", "lesion")

    def test_meta_tensors_give_a_plain_tensor(self):
        """Project-MONAI/tutorials/issues/814, pull/786."""
        logits, labels = logits_and_labels(1, 3, 4, 4)
        value = MarginCalibrationLoss(margins=0.0)(MetaTensor(logits), MetaTensor(labels))
        assert type(value) is torch.Tensor
        value.backward()
        assert type(logits.grad) is torch.Tensor
        assert torch.equal(value, MarginCalibrationLoss(margins=0.0)(logits, labels))

    @pytest.mark.slow
    def test_meta_tensors_cost_nothing(self):
        logits, labels = logits_and_labels(2, 4, 64, 64, 32)
        loss = MarginCalibrationLoss(margins=0.0)
        wrapped = MetaTensor(logits.detach()).requires_grad_(), MetaTensor(labels)

        def seconds(x, y):
            start = time.perf_counter()
            loss(x, y).backward()
            return time.perf_counter() - start

        slow, fast = [], []
        for _ in range(15):  # side by side, so that a busy machine slows both
            slow.append(seconds(*wrapped))
            fast.append(seconds(logits, labels))
        assert min(slow) <= 1.05 * min(fast) + 5e-4  # half a millisecond for the clock


class TestArguments:
    def test_nothing_given(self):
        with pytest.raises(ValueError, match=r"found neither of .*count_labels"):
            MarginCalibrationLoss()

    def test_both_given(self):
        with pytest.raises(ValueError, match=r"found both of class_counts and margins"):
            MarginCalibrationLoss(class_counts=[9, 1], margins=0.0)

    def test_scale_beside_explicit_margins(self):
        with pytest.raises(ValueError, match=r"tau=2.0, .*beside explicit margins"):
            MarginCalibrationLoss(margins=0.0, tau=2.0)

    @pytest.mark.parametrize(
        "margins", [-0.1, (0.1, -0.1), ([0.1, torch.inf], [0.0, 0.0]), (0.1, torch.nan), torch.inf]
    )
    def test_margins_that_turn_the_loss_around(self, margins):
        with pytest.raises(ValueError, match="finite and >= 0"):
            MarginCalibrationLoss(margins=margins)

    @pytest.mark.parametrize("margins", ["0", [0.1], [0.1, 0.2, 0.3], {"negative": 0}])
    def test_margins_in_no_known_form(self, margins):
        with pytest.raises(ValueError, match="a pair"):
            MarginCalibrationLoss(margins=margins)

    def test_forms_of_margins(self):
        logits, labels = logits_and_labels(1, 2, 4)
        per_class = MarginCalibrationLoss(margins=([0.5, 0.5], [0.25, 0.25]))(logits, labels)
        for margins in ((0.5, 0.25), [0.5, [0.25, 0.25]], torch.tensor([[0.5, 0.5], [0.25, 0.25]])):
            torch.testing.assert_close(MarginCalibrationLoss(margins=margins)(logits, labels), per_class)

    @pytest.mark.parametrize("weight", [-1.0, torch.nan, [1.0, torch.inf], []])
    def test_weights(self, weight):
        for name in ("positive_weight", "negative_weight"):
            with pytest.raises(ValueError, match=f"{name} must be finite and >= 0"):
                MarginCalibrationLoss(margins=0.0, **{name: weight})

    def test_unknown_words(self):
        with pytest.raises(ValueError, match="negative_weight must be 'mean' or numbers, found 'sum'"):
            MarginCalibrationLoss(margins=0.0, negative_weight="sum")
        with pytest.raises(ValueError, match="base must be 2 or 'e', found 10"):
            MarginCalibrationLoss(margins=0.0, base=10)
        with pytest.raises(TypeError, match="positive_weight must be a number"):
            MarginCalibrationLoss(margins=0.0, positive_weight="mean")
        with pytest.raises(TypeError, match="ignore_index must be an integer"):
            MarginCalibrationLoss(margins=0.0, ignore_index=255.0)
        with pytest.raises(ValueError, match="global_mean=True needs reduction='mean'"):
            MarginCalibrationLoss(margins=0.0, global_mean=True, reduction="sum")

    def test_input_is_no_logits(self):
        with pytest.raises(TypeError, match=r"torch\.int64.*floating-point logits"):
            MarginCalibrationLoss(margins=0.0)(torch.zeros(1, 2, 3, dtype=torch.long), torch.zeros(1, 1, 3))
        with pytest.raises(ValueError, match=r"\(3,\): expected logits"):
            MarginCalibrationLoss(margins=0.0)(torch.zeros(3), torch.zeros(3))
        with pytest.raises(TypeError, match=r"expected a torch.Tensor, found ndarray"):
            MarginCalibrationLoss(margins=0.0)(torch.zeros(1, 2, 3), np.zeros((1, 1, 3)))
