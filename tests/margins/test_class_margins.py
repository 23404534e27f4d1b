"""Margins per class: golden vectors, a literal transcription, every singular case of the formula."""

from __future__ import annotations

import json
import math
import warnings

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from shared import GOLDEN

from monai_margincal import ClassCounts, ClassMargins, class_margins

CASES = [c for c in json.loads((GOLDEN / "margin_calibration.json").read_text())["cases"] if c.get("counts")]
REGULAR = [c for c in CASES if c["margins_all_finite"] and all(c["mu_valid"])]
SINGULAR = [c for c in CASES if not (c["margins_all_finite"] and all(c["mu_valid"]))]


@pytest.mark.parametrize("case", REGULAR, ids=lambda case: case["id"])
def test_golden_margins(case):
    raw = class_margins(case["counts"], case["tau"], case["upsilon"], normalization="counts")
    torch.testing.assert_close(raw.negative, torch.tensor(case["rho_0k"], dtype=torch.float64), rtol=1e-12, atol=0)
    # next to the singular upsilon a rounding of the last bit is multiplied by 1e6
    rtol = 1e-7 if case["id"] == "mu_huge_near_singular" else 1e-12
    torch.testing.assert_close(raw.positive, torch.tensor(case["rho_k0"], dtype=torch.float64), rtol=rtol, atol=0)
    normed = class_margins(case["counts"], case["tau"], case["upsilon"])
    torch.testing.assert_close(
        normed.negative, torch.tensor(case["rho_0k_sumnorm_tau"], dtype=torch.float64), rtol=1e-12, atol=0
    )
    torch.testing.assert_close(
        normed.positive / normed.negative, torch.tensor(case["mu_k"], dtype=torch.float64), rtol=rtol, atol=0
    )


def test_no_golden_case_is_left_out():
    assert len(REGULAR) + len(SINGULAR) == len(CASES)
    assert {c["id"] for c in SINGULAR} == {
        "class_absent_from_counts",
        "class_absent_from_counts_but_labelled",
        "mu_negative",
        "mu_negative_dominant_only",
        "mu_singular_exact",
        "single_class_c1",
        "n_k_equals_n",
        "paper_table_tau10_ups0.01",
    }


@pytest.mark.parametrize("case", [c for c in SINGULAR if "absent" in c["id"]], ids=lambda case: case["id"])
def test_golden_absent_class(case):
    with pytest.warns(UserWarning, match=r"no voxel of class '2' was counted"):
        margins = class_margins(case["counts"], case["tau"], case["upsilon"], normalization="counts")
    assert margins.negative[2] == margins.positive[2] == 0
    torch.testing.assert_close(margins.negative[:2], torch.tensor(case["rho_0k"][:2], dtype=torch.float64))
    torch.testing.assert_close(margins.positive[:2], torch.tensor(case["rho_k0"][:2], dtype=torch.float64))


@pytest.mark.parametrize(
    "case", [c for c in SINGULAR if "mu" in c["id"] or "ups" in c["id"]], ids=lambda case: case["id"]
)
@pytest.mark.parametrize("normalization", ["sum", "counts"])
def test_golden_upsilon_out_of_range(case, normalization):
    with pytest.raises(ValueError, match=r"upsilon must be greater than [\d.e-]+ .* found") as caught:
        class_margins(case["counts"], case["tau"], case["upsilon"], normalization)
    # the limit in the message is the limit
    limit = float(str(caught.value).split("greater than ")[1].split()[0])
    assert torch.isfinite(class_margins(case["counts"], case["tau"], limit * 1.001).positive).all()


def literal(counts, tau, upsilon, normalization):
    """The formulas as they stand in print."""
    n = sum(counts)
    r = [math.sqrt(n - k) / k for k in counts]
    rho_0k = [tau * x / (sum(r) if normalization == "sum" else 1) for x in r]
    mu = [(k / n) * math.sqrt(k) / (upsilon * (n - k) - (k / n) * math.sqrt(n - k)) for k in counts]
    return rho_0k, [m * rho for m, rho in zip(mu, rho_0k, strict=True)]


counts_lists = st.lists(st.integers(1, 10**12), min_size=2, max_size=8)


@given(counts_lists, st.floats(1e-3, 100), st.floats(1.01, 50), st.sampled_from(["sum", "counts"]))
@settings(deadline=None, max_examples=80)
def test_against_the_literal_formula(counts, tau, upsilon, normalization):
    margins = class_margins(counts, tau, upsilon, normalization)
    rho_0k, rho_k0 = literal(counts, tau, upsilon, normalization)
    torch.testing.assert_close(margins.negative, torch.tensor(rho_0k, dtype=torch.float64), rtol=1e-9, atol=0)
    # upsilon near its limit amplifies rounding; the literal form has the same fault, hence the tolerance
    torch.testing.assert_close(margins.positive, torch.tensor(rho_k0, dtype=torch.float64), rtol=1e-6, atol=0)


@given(counts_lists, st.floats(0.1, 10))
@settings(deadline=None, max_examples=50)
def test_rarer_classes_get_larger_negative_margins_that_sum_to_tau(counts, tau):
    assume(len(set(counts)) == len(counts))
    margins = class_margins(counts, tau, upsilon=2.0)
    assert float(margins.negative.sum()) == pytest.approx(tau)
    order = sorted(range(len(counts)), key=counts.__getitem__)
    values = margins.negative[order]
    assert bool((values[:-1] >= values[1:]).all())


@given(counts_lists, st.integers(2, 1000))
@settings(deadline=None, max_examples=30)
def test_raw_counts_shrink_with_the_data_and_normalised_ones_do_not(counts, factor):
    more = [k * factor for k in counts]
    raw, raw_more = (class_margins(c, upsilon=2.0, normalization="counts").negative for c in (counts, more))
    torch.testing.assert_close(raw_more, raw / math.sqrt(factor), rtol=1e-9, atol=0)
    normed, normed_more = (class_margins(c, upsilon=2.0).negative for c in (counts, more))
    torch.testing.assert_close(normed_more, normed, rtol=1e-9, atol=0)


def test_order_of_classes_does_not_matter():
    shuffled = class_margins(ClassCounts([5, 1000, 90], ids=[7, 0, 3]))
    ordered = class_margins(ClassCounts([1000, 90, 5], ids=[0, 3, 7]))
    assert shuffled.ids == ordered.ids == (0, 3, 7)
    assert torch.equal(shuffled.negative, ordered.negative)
    assert torch.equal(shuffled.positive, ordered.positive)


def test_absent_class_takes_no_share_of_tau():
    with pytest.warns(UserWarning, match=r"'2 probe'") as caught:
        margins = class_margins(ClassCounts([900, 100, 0], names=["background", "shaft", "probe"]), tau=3.0)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert float(margins.negative.sum()) == pytest.approx(3.0)
    assert margins.negative[2] == 0


def test_present_classes_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        class_margins([980, 20])


def test_tau_zero_gives_no_margins():
    margins = class_margins([980, 20], tau=0)
    assert margins.negative.tolist() == margins.positive.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"counts": [100]}, "at least 2 classes, found 1"),
        ({"counts": [100, 0]}, r"class '0' fills everything \(100 voxels\)"),
        ({"counts": [0, 0]}, "nothing was counted"),
        ({"counts": [98, 2], "tau": -1}, "tau must be finite and >= 0, found -1"),
        ({"counts": [98, 2], "tau": math.nan}, "tau must be finite"),
        ({"counts": [98, 2], "upsilon": math.inf}, "upsilon must be finite"),
        ({"counts": [98, 2], "upsilon": 0}, "upsilon must be greater than"),
        ({"counts": [98, 2], "normalization": "mean"}, "'sum' or 'counts', found 'mean'"),
        ({"counts": [0.98, 0.02]}, "not frequencies"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        class_margins(**arguments)


@pytest.mark.parametrize(
    ("negative", "positive", "message"),
    [
        ([0.1, -0.1], [0, 0], "negative margins must be finite and >= 0"),
        ([0.1, 0.1], [0, math.nan], "positive margins must be finite"),
        ([0.1, math.inf], [0, 0], "negative margins must be finite"),
        ([0.1, 0.1], [0, 0, 0], "found 2 negative and 3 positive"),
        ([0.1], [0.1], "C >= 2"),
        (0.1, [0.1], r"shape \(\)"),
    ],
)
def test_explicit_margins_are_checked(negative, positive, message):
    with pytest.raises(ValueError, match=message):
        ClassMargins(negative, positive)


def test_margins_are_not_tied_to_the_tensor_that_they_came_from():
    source = torch.ones(2, dtype=torch.float64)
    margins = ClassMargins(source, source)
    source[0] = 9
    assert margins.negative.tolist() == [1, 1]


def test_to_dict_pastes_into_json():
    margins = class_margins(ClassCounts([980, 20], names=["background", "lesion"]))
    again = ClassMargins(*json.loads(json.dumps(margins.to_dict()))["margins"])
    assert torch.equal(again.negative, margins.negative)
    assert torch.equal(again.positive, margins.positive)
