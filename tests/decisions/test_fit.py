"""Offsets that are fitted: against brute force over the grid, and honest about what they are worth."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from monai_margincal.decisions import ClassOffsets, fit_class_offsets
from monai_margincal.decisions import votes as collected
from monai_margincal.decisions.case_votes import GRID
from monai_margincal.decisions.cross_fit import jackknife_error, searched
from monai_margincal.decisions.cross_fit import matrices as matrices_of
from monai_margincal.decisions.goal import Goal
from monai_margincal.decisions.votes import AllVotes, Votes

# steps of a tenth put logits exactly where the grid decides; the odd ones lie between
LOGIT = st.one_of(st.integers(-60, 60).map(lambda tenth: tenth / 10), st.floats(-6, 6, width=32))

CLASSES = st.integers(2, 4)


@st.composite
def cases(draw, classes=CLASSES, most=4):
    """Some cases of a few voxels."""
    c = draw(classes)
    found = []
    for _ in range(draw(st.integers(1, most))):
        n = draw(st.integers(1, 12))
        logits = draw(st.lists(st.lists(LOGIT, min_size=n, max_size=n), min_size=c, max_size=c))
        labels = draw(st.lists(st.integers(0, c - 1), min_size=n, max_size=n))
        found.append((torch.tensor(logits, dtype=torch.float32), torch.tensor(labels)))
    return c, found


def looked_at(found, classes):
    votes = Votes(classes)
    for logits, labels in found:
        votes.add(logits, labels)
    return AllVotes(votes)


def matrix(decided, labels, classes):
    """Literally: one voxel after the other."""
    found = np.zeros((classes, classes), np.int64)
    for predicted, true in zip(decided.tolist(), labels.tolist(), strict=True):
        found[true, predicted] += 1
    return found


def foreground(matrices, dice=False):
    """Foreground mean of one pooled matrix, a class that occurs nowhere counting as 1."""
    total = sum(matrices)
    scores = []
    for k in range(1, len(total)):
        hit, union = total[k, k], total[k].sum() + total[:, k].sum() - total[k, k]
        scores.append(1.0 if union == 0 else 2 * hit / (union + hit) if dice else hit / union)
    return float(np.mean(scores))


@settings(max_examples=60, deadline=None)
@given(given=cases())
def test_what_is_kept_of_a_case_gives_its_matrix_under_any_offsets(given):
    classes, found = given
    logits, labels = found[0]
    (votes,) = looked_at(found[:1], classes).votes.cases
    generator = np.random.default_rng(0)
    for _ in range(4):
        offsets = [0.0, *generator.choice(GRID.numpy(), classes - 1).tolist()]
        expected = matrix(ClassOffsets(offsets)(logits, dim=0), labels, classes)
        np.testing.assert_array_equal(votes.confusion(offsets), expected)
        k = int(generator.integers(1, classes))
        curve = votes.confusions(offsets, k)
        for place, value in enumerate(GRID.tolist()):
            offsets[k] = value
            np.testing.assert_array_equal(curve[place], votes.confusion(offsets))


@settings(max_examples=40, deadline=None)
@given(given=cases(classes=st.just(2)), score=st.sampled_from(["iou", "dice"]))
def test_two_classes_are_exact(given, score):
    _, found = given
    votes = looked_at(found, 2)
    offsets = searched(votes, range(len(found)), Goal(score, pooled=True), [1])
    best = max(
        foreground([matrix(ClassOffsets([0, b])(x, dim=0), y, 2) for x, y in found], score == "dice")
        for b in GRID.tolist()
    )
    reached = foreground([matrix(ClassOffsets(offsets)(x, dim=0), y, 2) for x, y in found], score == "dice")
    assert reached == pytest.approx(best, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(given=cases(), score=st.sampled_from(["iou", "dice"]), pooled=st.booleans())
def test_the_score_on_the_cases_never_falls(given, score, pooled):
    classes, found = given
    votes, goal = looked_at(found, classes), Goal(score, pooled)
    offsets = searched(votes, range(len(found)), goal, list(range(1, classes)))
    scores = [float(goal(matrices_of(votes, o))) for o in ([0.0] * classes, offsets)]
    assert scores[1] >= scores[0]


def lesions(number, seed=0, shift=1.0, n=4000):
    """Cases whose lesion logits are too low by ``shift``: an offset of the lesion helps on all of them."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(number):
        labels = (torch.rand(n, generator=generator) < 0.02).long()
        gap = 3 * (2 * labels - 1) + 2 * torch.randn(n, generator=generator) - shift
        yield torch.stack([torch.zeros(n), gap]), labels


def test_a_shift_that_all_cases_share_is_found_and_its_gain_is_real():
    offsets = fit_class_offsets(lesions(8, shift=4.0), 2, progress=False)
    known = offsets.fitted_on
    assert 1.0 <= offsets.offsets[1] <= 3.0
    assert known["cross_fitted_gain"] > 0.05
    fresh = list(lesions(20, seed=1, shift=4.0))
    plain = foreground([matrix(x.max(0).indices, y, 2) for x, y in fresh])
    decided = foreground([matrix(offsets(x, dim=0), y, 2) for x, y in fresh])
    assert decided - plain == pytest.approx(known["cross_fitted_gain"], abs=0.05)
    assert known["after"][1] >= known["before"][1]
    assert (known["cases"], known["voxels"]) == (8, 32000)


def test_what_helps_on_paper_only_is_left_at_zero():
    """Noise: offsets fitted on a handful of voxels raise the score there and lower it elsewhere."""
    kept = 0
    for seed in range(12):
        generator = torch.Generator().manual_seed(seed)
        found = [
            (torch.randn(3, 40, generator=generator), torch.randint(0, 3, (40,), generator=generator)) for _ in range(4)
        ]
        offsets = fit_class_offsets(found, 3, progress=False)
        assert offsets.fitted_on["cross_fitted_gain"] >= 0
        assert any(offsets.offsets) == (offsets.fitted_on["cross_fitted_gain"] > 0)
        kept += any(offsets.offsets)
    assert kept < 12


def test_where_argmax_is_best_it_is_kept_but_for_chance():
    """Logits that were moved to where no offset helps: what a fit on six cases finds is chance."""
    many = list(lesions(1, shift=4.0, n=400_000))
    best = searched(looked_at(many, 2), [0], Goal("iou", pooled=True), [1])
    kept = unclear = 0
    for seed in range(60):
        found = [(x + torch.tensor(best)[:, None], y) for x, y in lesions(6, seed=1 + seed, shift=4.0, n=1000)]
        known = fit_class_offsets(found, 2, progress=False).fitted_on
        assert known["cross_fitted_gain"] == 0 or known["cross_fitted_gain"] > 2 * known["standard_error"]
        kept += known["cross_fitted_gain"] > 0
        if "unclear" in known:
            assert 0 < known["unclear"]["gain"] <= 2 * known["unclear"]["standard_error"]
            unclear += 1
    assert kept <= 6
    assert unclear > 6, "a rule that asks for a gain alone would have kept these"


def literal_error(before, after, groups, dice=False):
    """Literally: the gain without one group after the other, and the scatter of these."""
    names = sorted(set(groups))
    gains = []
    for one in names:
        left = [n for n, group in enumerate(groups) if group != one]
        gains.append(foreground([after[n] for n in left], dice) - foreground([before[n] for n in left], dice))
    mean = sum(gains) / len(gains)
    return (sum((gain - mean) ** 2 for gain in gains) * (len(names) - 1) / len(names)) ** 0.5


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 999), classes=CLASSES, number=st.integers(2, 7), score=st.sampled_from(["iou", "dice"]))
def test_the_standard_error_is_that_of_leaving_out_groups(seed, classes, number, score):
    generator = np.random.default_rng(seed)
    before, after = generator.integers(0, 9, (2, number, classes, classes))
    groups = [0, 1, *generator.integers(0, 3, number - 2).tolist()]
    found = jackknife_error(Goal(score, pooled=True), before, after, groups)
    assert found == pytest.approx(literal_error(before, after, groups, score == "dice"), abs=1e-12)


def test_the_error_of_a_mean_of_cases_is_the_textbook_one():
    generator = np.random.default_rng(0)
    before, after = generator.integers(1, 9, (2, 12, 2, 2))
    gains = np.array([foreground([b]) - foreground([a]) for a, b in zip(before, after, strict=True)])
    found = jackknife_error(Goal("iou", pooled=False), before, after, range(12))
    assert found == pytest.approx(gains.std(ddof=1) / 12**0.5)


def patients(number, scans, seed=0):
    """Scans of patients of whom each has its own best offset: what is chosen on one says nothing of another."""
    generator = torch.Generator().manual_seed(seed)
    for patient in range(number):
        shift = 2.5 if patient % 2 else -2.5
        for _ in range(scans):
            labels = (torch.rand(600, generator=generator) < 0.1).long()
            gap = 4 * (2 * labels - 1) + torch.randn(600, generator=generator) - shift
            yield torch.stack([torch.zeros(600), gap]), labels, f"patient {patient}"


def test_scans_of_a_patient_are_no_evidence_of_one_another():
    """Four scans each of six patients: taken for 24 patients their gain looks clear, and is not."""
    found = list(patients(6, 4))
    cases = [(x, y) for x, y, _ in found]
    alone = fit_class_offsets(cases, 2, progress=False).fitted_on
    together = fit_class_offsets(cases, 2, progress=False, groups=[name for *_, name in found]).fitted_on
    assert (together["cases"], together["groups"], together["folds"]) == (24, 6, 5)
    assert "groups" not in alone
    assert alone["cross_fitted_gain"] > 0
    assert together["cross_fitted_gain"] == 0
    assert together["unclear"]["standard_error"] > 1.5 * alone["standard_error"]


def test_a_group_is_in_one_fold():
    """Cases of a group that come one after the other, so that single cases would lie in all folds."""
    found = list(patients(4, 3))
    names = [name for *_, name in found]
    votes = Votes(2)
    for x, y, name in found:
        votes.add(x, y, group=name)
    cases = AllVotes(votes)
    assert cases.num_groups == 4
    assert cases.groups == [n // 3 for n in range(12)]
    # one case each of the same patients, whole: the same folds choose the same offsets
    joined = [
        (torch.cat([x for x, _, n in found if n == name], dim=1), torch.cat([y for _, y, n in found if n == name]))
        for name in dict.fromkeys(names)
    ]
    grouped = fit_class_offsets([(x, y) for x, y, _ in found], 2, progress=False, groups=names)
    whole = fit_class_offsets(joined, 2, progress=False)
    assert grouped.offsets == whole.offsets
    for key in ("cross_fitted_gain", "standard_error"):
        assert grouped.fitted_on[key] == pytest.approx(whole.fitted_on[key], abs=1e-12)


def test_one_group_proves_nothing():
    with pytest.warns(UserWarning, match="found one group of cases, expected two or more: the gain cannot"):
        offsets = fit_class_offsets(lesions(3, shift=4.0), 2, progress=False, groups=["a"] * 3)
    assert offsets.offsets == (0.0, 0.0)


@pytest.mark.parametrize("groups", [["a"], ["a"] * 4])
def test_groups_of_other_cases_are_refused(groups):
    with pytest.raises(ValueError, match=rf"groups: found {len(groups)}, expected one for each of the 3 cases"):
        fit_class_offsets(lesions(3), 2, progress=False, groups=groups)


def test_a_clear_class_keeps_its_offset_beside_one_that_is_not():
    """The second lesion is in two cases of ten: what its offset gains is mostly chance, and would drown the first."""
    found = []
    for number, (logits, labels) in enumerate(lesions(10, shift=4.0)):
        generator = torch.Generator().manual_seed(100 + number)
        third = torch.randn(1, len(labels), generator=generator) - 3
        truth = labels.clone()
        if number % 5 == 0:
            truth[torch.randperm(len(labels), generator=generator)[:40]] = 2
        found.append((torch.cat([logits, third]), truth))
    offsets = fit_class_offsets(found, 3, progress=False)
    assert offsets.offsets[1] > 0
    assert offsets.fitted_on["cross_fitted_gain"] > 2 * offsets.fitted_on["standard_error"] > 0


def test_an_unclear_gain_is_that_of_all_offsets_together():
    """Two lesions, each of them in some cases only: given up one after the other, the last may gain nothing by itself."""
    told = 0
    for seed in range(25):
        generator = torch.Generator().manual_seed(seed)
        found = [
            (2 * torch.randn(3, 60, generator=generator), torch.randint(0, 3, (60,), generator=generator))
            for _ in range(5)
        ]
        known = fit_class_offsets(found, 3, progress=False).fitted_on
        if "unclear" in known:
            assert known["unclear"]["gain"] > 0
            told += 1
    assert told


def test_one_class_may_keep_its_offset_and_another_not():
    found = []
    for logits, labels in lesions(6, shift=4.0):
        third = torch.full_like(logits[:1], -9.0)  # never there, never near
        found.append((torch.cat([logits, third]), labels))
    offsets = fit_class_offsets(found, 3, progress=False)
    assert offsets.offsets[1] > 0
    assert offsets.offsets[2] == 0


def test_a_class_that_no_case_has_is_no_place_for_the_mistakes_of_others():
    found = []
    for logits, labels in lesions(6, shift=0.0):
        third = logits[1:] - 1.0  # follows class 1: with an offset it would take half of its false positives
        found.append((torch.cat([logits, third]), labels))
    assert fit_class_offsets(found, 3, progress=False).offsets[2] == 0


def test_one_case_proves_nothing():
    with pytest.warns(UserWarning, match="found one case, expected two or more: the gain cannot be cross-fitted"):
        offsets = fit_class_offsets(lesions(1), 2, progress=False)
    assert offsets.offsets == (0.0, 0.0)


def test_a_sigmoid_is_two_classes():
    found = list(lesions(4))
    both = fit_class_offsets(found, 2, progress=False)
    single = fit_class_offsets([(x[1:] - x[:1], y) for x, y in found], 2, progress=False)
    assert both == single


def test_ignored_voxels_and_shapes():
    found = list(lesions(4, n=100))
    marked = []
    for x, y in found:
        more = torch.cat([x, 100 * torch.randn(2, 20)], dim=1).reshape(2, 10, 12)
        marked.append((more, torch.cat([y, torch.full((20,), 255)]).reshape(1, 10, 12)))
    expected = fit_class_offsets(found, 2, progress=False)
    assert fit_class_offsets(marked, 2, ignore_index=255, progress=False) == expected


def test_thinned_to_what_memory_allows(monkeypatch):
    found = list(lesions(6, shift=4.0, n=50_000))
    everything = fit_class_offsets(found, 2, progress=False)
    monkeypatch.setattr(collected, "MOST_BYTES", looked_at(found, 2).votes.num_bytes // 3)
    with pytest.warns(
        UserWarning, match="the offsets are chosen on one in 4 of the voxels that they can move: all of them"
    ):
        thinned = fit_class_offsets(iter(found), 2, progress=False)
    assert thinned.offsets[1] == pytest.approx(everything.offsets[1], abs=0.5)
    assert thinned.fitted_on["voxels"] == pytest.approx(300_000, rel=0.01)


@pytest.mark.parametrize(
    ("logits", "labels", "message"),
    [
        ((1, 3, 5), (5,), r"case 0: found logits of shape \(1, 3, 5\), expected one case, channel first, of 3 classes"),
        ((2, 5), (5,), r"case 0: found logits of shape \(2, 5\), expected one case, channel first, of 3 classes"),
        (
            (3, 5),
            (4,),
            r"case 0: found labels of shape \(4,\) for logits of shape \(3, 5\), expected \(5,\) or \(1, 5\)",
        ),
    ],
)
def test_shapes_that_would_be_misread_are_refused(logits, labels, message):
    with pytest.raises(ValueError, match=message):
        fit_class_offsets([(torch.zeros(logits), torch.zeros(labels))], 3, progress=False)


def test_other_faults_are_named():
    good = (torch.zeros(2, 3), torch.zeros(3))
    with pytest.raises(ValueError, match="cases: found none, expected at least one"):
        fit_class_offsets([], 2)
    with pytest.raises(ValueError, match=r"case 1, labels: found the label value\(s\) 7, expected class ids \[0, 1\]"):
        fit_class_offsets([good, (torch.zeros(2, 3), torch.tensor([0, 1, 7]))], 2, progress=False)
    with pytest.raises(ValueError, match=r"case 0: found a logit that is not a number \(NaN\)"):
        fit_class_offsets([(torch.full((2, 3), torch.nan), torch.zeros(3))], 2, progress=False)
    for options, message in (
        ({"num_classes": 1}, "num_classes: found 1, expected 2 or more"),
        ({"num_classes": 2, "score": "f1"}, "score: found 'f1', expected 'iou' or 'dice'"),
        ({"num_classes": 2, "folds": 1}, "folds: found 1, expected 2 or more"),
    ):
        with pytest.raises(ValueError, match=message):
            fit_class_offsets([good], **options)


def test_the_same_from_a_list_and_from_a_stream():
    found = list(lesions(5))
    assert fit_class_offsets(found, 2, progress=False) == fit_class_offsets(iter(found), 2, progress=False)
