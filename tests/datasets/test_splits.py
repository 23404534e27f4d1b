"""Splits: no overlap, no empty part, the same for the same seed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monai_margincal.datasets import select_cases, split_datalist

DATA = [{"case": name, "image": f"{name}.nii"} for name in "abcdefghij"]


def names(part):
    return [item["case"] for item in part]


@settings(deadline=None, max_examples=100)
@given(n=st.integers(2, 40), fraction=st.floats(0.01, 0.9), seed=st.integers(0, 2**32 - 1))
def test_fraction_and_rest_cover_everything_once(n, fraction, seed):
    data = [{"case": f"{i:02}"} for i in range(n)]
    if round(fraction * n) == n:
        return
    parts = split_datalist(data, {"training": None, "validation": fraction}, seed=seed)
    assert sorted(names(parts["training"]) + names(parts["validation"])) == names(data)
    assert len(parts["validation"]) == max(1, round(fraction * n))
    assert names(parts["training"]) == sorted(names(parts["training"])), "the order of the data is kept"
    assert parts == split_datalist(data, {"training": None, "validation": fraction}, seed=seed)


def test_the_split_is_frozen():
    """The same cases on every machine and version, or a reported number means nothing."""
    assert names(split_datalist(DATA, {"training": None, "validation": 0.3})["validation"]) == ["c", "e", "i"]
    assert names(split_datalist(DATA, {"training": None, "validation": 0.3}, seed=1)["validation"]) == ["c", "g", "j"]


def test_lists_fractions_and_rest_together():
    parts = split_datalist(DATA, {"training": None, "validation": ["j", "a"], "test": 0.5}, seed=3)
    assert names(parts["validation"]) == ["j", "a"]
    assert [len(part) for part in parts.values()] == [3, 2, 5]
    assert list(parts) == ["training", "validation", "test"]
    assert sorted(name for part in parts.values() for name in names(part)) == list("abcdefghij")


def test_a_single_name_and_numeric_names():
    data = [{"case": "1"}, {"case": "2"}]
    assert names(split_datalist(data, {"training": None, "validation": "2"})["training"]) == ["1"]
    assert names(split_datalist(data, {"training": [1], "validation": (2,)})["validation"]) == ["2"]


def test_two_cases_give_one_each():
    parts = split_datalist(DATA[:2], {"training": None, "validation": 0.2})
    assert [len(part) for part in parts.values()] == [1, 1]


@pytest.mark.parametrize(
    ("splits", "error", "message"),
    [
        (
            {"training": None, "validation": 1.0},
            ValueError,
            "no case is left for part 'training': the other parts take all 10",
        ),
        (
            {"training": ["a"], "validation": ["b", "a"]},
            ValueError,
            "case 'a' is named in two parts, 'training' and 'validation'",
        ),
        ({"training": None, "validation": ["k"]}, ValueError, r"distinct case names out of \['a', .*, found \['k'\]"),
        ({"training": None, "validation": []}, ValueError, r"distinct case names .*, found \[\]"),
        ({"training": None, "validation": ["a", "a"]}, ValueError, r"distinct case names .*, found \['a', 'a'\]"),
        (
            {"training": 0.8, "validation": 0.3},
            ValueError,
            r"'validation' needs 3 of 10 cases \(fraction 0.3\), .* leave only 2",
        ),
        ({"training": None, "validation": 0.0}, ValueError, r"'validation' must lie in \(0, 1\], found 0.0"),
        ({"training": None, "validation": float("nan")}, ValueError, "found nan"),
        ({"training": None, "validation": None}, ValueError, "only one part can be None"),
        (
            {"training": None, "validation": 2},
            TypeError,
            "'validation' must be a list of case names, a float fraction or None, found 2",
        ),
        ({"training": None, "validation": True}, TypeError, "found True"),
    ],
)
def test_bad_splits_are_refused(splits, error, message):
    with pytest.raises(error, match=message):
        split_datalist(DATA, splits)


def test_one_case_cannot_be_split():
    with pytest.raises(ValueError, match="no case is left for part 'training'"):
        split_datalist(DATA[:1], {"training": None, "validation": 0.2})


def test_select_cases():
    assert names(select_cases(DATA, ["c", "a"])) == ["c", "a"]
    assert names(select_cases(DATA, "c")) == ["c"]
    with pytest.raises(ValueError, match=r"found \['z'\]"):
        select_cases(DATA, ["z"])
