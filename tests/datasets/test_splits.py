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


def grouped(sizes):
    return [
        {"case": f"{group}.{index}", "group": f"g{group}"} for group, size in enumerate(sizes) for index in range(size)
    ]


@settings(deadline=None, max_examples=200)
@given(
    sizes=st.lists(st.integers(1, 12), min_size=3, max_size=30),
    shares=st.tuples(st.floats(0.05, 0.4), st.floats(0.05, 0.4)),
    seed=st.integers(0, 2**32 - 1),
    shuffle=st.randoms(use_true_random=False),
)
def test_groups_are_drawn_whole(sizes, shares, seed, shuffle):
    data = grouped(sizes)
    splits = {"training": None, "validation": shares[0], "test": shares[1]}
    try:
        parts = split_datalist(data, splits, seed)
    except ValueError as error:
        assert "no case is left" in str(error) or "leave only" in str(error)  # noqa: PT017 - only some splits raise
        return
    assert sorted(case for part in parts.values() for case in names(part)) == sorted(names(data)), "every case once"
    owners = {(item["group"], part) for part, items in parts.items() for item in items}
    assert len(owners) == len(sizes), "every group in one part"
    left = list(sizes)
    for part in ("validation", "test"):
        wanted = max(1, round(splits[part] * len(data)))
        for group in {item["group"] for item in parts[part]}:
            left[int(group[1:])] = 0
        excess = len(parts[part]) - wanted
        drawn = {sizes[int(item["group"][1:])] for item in parts[part]}
        if excess < 0:
            assert 2 * -excess <= min(size for size in left if size)
        elif excess and len({item["group"] for item in parts[part]}) > 1:
            assert 2 * excess < min(size for size in (*left, max(drawn)) if size)
        assert not any(size <= wanted - len(parts[part]) for size in left if size), "nothing left would have fitted"
    shuffle.shuffle(data)
    again = split_datalist(data, splits, seed)
    assert {part: sorted(names(items)) for part, items in again.items()} == {
        p: sorted(names(i)) for p, i in parts.items()
    }


def test_groups_of_one_case_are_drawn_like_cases():
    alone = [{**item, "group": item["case"]} for item in DATA]
    splits = {"training": None, "validation": 0.3, "test": 0.2}
    for seed in range(5):
        expected = {part: names(items) for part, items in split_datalist(DATA, splits, seed).items()}
        assert {part: names(items) for part, items in split_datalist(alone, splits, seed).items()} == expected


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        (
            {"training": None, "validation": ["0.0"]},
            r"splits: found the group 'g0' in 'validation' \('0.0'\) and in 'training' \('0.1', '0.2'\), expected every group",
        ),
        ({"training": ["0.0"], "validation": ["0.1"]}, r"'g0' in 'training' \('0.0'\) and in 'validation' \('0.1'\)"),
        (
            {"training": None, "test": 0.2, "validation": ["1.1"]},
            r"'g1' in 'validation' .* and in 'training or test' \('1.0'\)",
        ),
        ({"training": None, "validation": 0.2, "test": 0.2}, "the other parts take all 5 cases, 2 groups for 3 parts"),
    ],
)
def test_a_group_on_two_sides_is_refused(splits, message):
    with pytest.raises(ValueError, match=message):
        split_datalist(grouped([3, 2]), splits)


def test_names_may_leave_a_part_of_a_group_out():
    """Where nothing is drawn, what is not named is on no side."""
    parts = split_datalist(grouped([3, 2]), {"training": ["0.0", "0.1"], "validation": ["1.1"]})
    assert [names(part) for part in parts.values()] == [["0.0", "0.1"], ["1.1"]]
    assert names(split_datalist(grouped([3, 2]), {"validation": ["0.0"]})["validation"]) == ["0.0"]


def test_all_cases_or_none_have_a_group():
    with pytest.raises(ValueError, match="data list: found no group for 'b', expected one for every case, as 1 have"):
        split_datalist([{"case": "a", "group": "p"}, {"case": "b"}], {"training": ["a"], "validation": ["b"]})
