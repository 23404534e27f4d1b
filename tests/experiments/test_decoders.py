"""Decoders: offsets against the product's own, RankSEG where it is installed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from monai_margincal.decisions import fit_class_offsets
from monai_margincal.experiments.decoders import ArgmaxDecoder, ClassOffsetDecoder, RankSEGDecoder
from monai_margincal.experiments.scores import foreground_iou
from monai_margincal.metrics import confusion_matrix


def _cases(seed: int, classes: int, shift: float = 0.0) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    generator = torch.Generator().manual_seed(seed)
    labels = [torch.randint(classes, (6, 7), generator=generator) for _ in range(2)]
    logits = [
        1.5 * torch.nn.functional.one_hot(label, classes).movedim(-1, 0).float()
        + torch.randn(classes, 6, 7, generator=generator)
        for label in labels
    ]
    for case in logits:
        case[0] += shift
    return logits, labels


def _miou(decoder, logits, labels) -> float:
    classes = logits[0].shape[0]
    total = sum(confusion_matrix(decoder(x)[None], y[None], classes) for x, y in zip(logits, labels, strict=True))
    return float(foreground_iou(np.asarray(total)))


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**31 - 1), st.integers(2, 4), st.floats(-2, 2))
def test_offsets_are_those_of_the_product(seed, classes, shift):
    logits, labels = _cases(seed, classes, shift)
    decoder = ClassOffsetDecoder()
    decoder.fit(logits, labels)
    fitted = fit_class_offsets(zip(logits, labels, strict=True), classes, progress=False)
    assert decoder.state()["offsets"] == pytest.approx(fitted.offsets)
    assert decoder.state()["cross_fitted_gain"] == pytest.approx(fitted.fitted_on["cross_fitted_gain"], abs=1e-6)
    assert torch.equal(decoder(logits[0]), fitted(logits[0], dim=0))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**31 - 1), st.integers(2, 5), st.floats(-2, 2))
def test_never_worse_than_argmax_where_it_was_fitted(seed, classes, shift):
    logits, labels = _cases(seed, classes, shift)
    decoder = ClassOffsetDecoder()
    decoder.fit(logits, labels)
    assert _miou(decoder, logits, labels) >= _miou(ArgmaxDecoder(), logits, labels) - 1e-9


def test_an_offset_that_only_one_case_wants_stays_0():
    """What the threshold of the first case gains is lost on the second: fitted on both it would gain, cross-fitted not."""
    shy = torch.stack([torch.zeros(10), torch.tensor([-1.0] * 6 + [-9.0] * 4)])
    sure = torch.stack([torch.zeros(10), torch.tensor([5.0] * 2 + [-1.0] * 8)])
    labels = [torch.tensor([1] * 6 + [0] * 4), torch.tensor([1] * 2 + [0] * 8)]
    decoder = ClassOffsetDecoder()
    decoder.fit([shy, sure], labels)
    assert decoder.state() == {"offsets": [0.0, 0.0], "cross_fitted_gain": 0.0, "standard_error": 0.0}


def test_one_validation_case_leaves_argmax_without_a_warning(recwarn):
    logits, labels = _cases(0, 3, shift=2.0)
    decoder = ClassOffsetDecoder()
    decoder.fit(logits[:1], labels[:1])
    assert decoder.state() == {"offsets": [0.0, 0.0, 0.0], "cross_fitted_gain": 0.0, "standard_error": 0.0}
    assert not recwarn.list


def test_offsets_want_validation_cases_and_a_fit():
    with pytest.raises(ValueError, match="no validation cases"):
        ClassOffsetDecoder().fit([], [])
    with pytest.raises(RuntimeError, match="call fit"):
        ClassOffsetDecoder()(torch.zeros(2, 3))
    assert ClassOffsetDecoder().state() == {"offsets": None, "cross_fitted_gain": None, "standard_error": None}
    with pytest.raises(ValueError, match="folds: found 1, expected 2 or more"):
        ClassOffsetDecoder(folds=1)


def test_rankseg_finds_the_temperature_and_gives_class_indices():
    pytest.importorskip("rankseg")
    logits, labels = _cases(0, 3)
    decoder = RankSEGDecoder()
    decoder.fit(logits, labels)
    plain = decoder.temperature
    decoder.fit([2 * case for case in logits], labels)
    assert decoder.temperature == pytest.approx(2 * plain, rel=0.12)
    prediction = decoder(logits[0])
    assert prediction.shape == labels[0].shape
    assert set(prediction.unique().tolist()) <= {0, 1, 2}


def test_rankseg_beats_argmax_on_the_expected_iou_of_an_uncertain_object():
    """Foreground probability 0.4 everywhere in a region: argmax sees nothing, the best IoU takes the region."""
    pytest.importorskip("rankseg")
    probability = torch.full((8, 8), 0.02)
    probability[2:6, 2:6] = 0.45
    probability[3:5, 3:5] = 0.9
    logits = torch.stack([torch.zeros(8, 8), torch.logit(probability)])
    assert int((RankSEGDecoder()(logits) == 1).sum()) > int((ArgmaxDecoder()(logits) == 1).sum())


def test_rankseg_refuses_unknown_metrics():
    with pytest.raises(ValueError, match="metric must be 'IoU' or 'dice', found 'acc'"):
        RankSEGDecoder(metric="acc")
