"""Decoders: the threshold against brute force, RankSEG where it is installed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from monai_margincal.experiments.decoders import ArgmaxDecoder, IoUThresholdDecoder, RankSEGDecoder
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


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31 - 1), st.floats(-2, 2))
def test_two_classes_by_brute_force(seed, shift):
    logits, labels = _cases(seed, 2, shift)
    decoder = IoUThresholdDecoder()
    decoder.fit(logits, labels)
    scores = []
    for offset in decoder.grid:
        trial = IoUThresholdDecoder()
        trial.offsets = torch.tensor([0.0, offset])
        scores.append(_miou(trial, logits, labels))
    assert _miou(decoder, logits, labels) == pytest.approx(max(scores))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**31 - 1), st.integers(3, 5), st.floats(-2, 2))
def test_never_worse_than_argmax_where_it_was_fitted(seed, classes, shift):
    logits, labels = _cases(seed, classes, shift)
    decoder = IoUThresholdDecoder()
    decoder.fit(logits, labels)
    assert _miou(decoder, logits, labels) >= _miou(ArgmaxDecoder(), logits, labels) - 1e-9


def test_a_perfect_network_keeps_offset_zero():
    labels = [torch.tensor([0, 1, 2, 0])]
    decoder = IoUThresholdDecoder()
    decoder.fit([5 * torch.nn.functional.one_hot(labels[0], 3).T.float()], labels)
    assert decoder.state() == {"offsets": [0.0, 0.0, 0.0]}


def test_threshold_wants_validation_cases_and_a_fit():
    with pytest.raises(ValueError, match="no validation cases"):
        IoUThresholdDecoder().fit([], [])
    with pytest.raises(RuntimeError, match="call fit"):
        IoUThresholdDecoder()(torch.zeros(2, 3))
    with pytest.raises(ValueError, match="must be positive"):
        IoUThresholdDecoder(step=0.0)


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
