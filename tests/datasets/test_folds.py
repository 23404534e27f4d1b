"""Folds: every case once, no group on two sides, balanced, the same whatever the order and the machine."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shared import SHARED, needs_shared

from monai_margincal.datasets import assign_folds, folder_datalist, select_fold

#: number of cases of each group
sizes = st.lists(st.integers(1, 30), min_size=2, max_size=40)
seeds = st.integers(0, 2**32 - 1)


def data_of(sizes):
    return [
        {"case": f"{group}.{index}", "group": f"g{group}"} for group, size in enumerate(sizes) for index in range(size)
    ]


def fold_of(items):
    return {item["case"]: item["fold"] for item in items}


@settings(deadline=None, max_examples=200)
@given(sizes=sizes, folds=st.integers(2, 12), seed=seeds, shuffle=st.randoms(use_true_random=False))
def test_rules(sizes, folds, seed, shuffle):
    data = data_of(sizes)
    if folds > len(sizes):
        with pytest.raises(ValueError, match=f"folds: found {folds} for {len(sizes)} groups"):
            assign_folds(data, folds, seed)
        return
    items = assign_folds(data, folds, seed)
    assert [{key: item[key] for key in ("case", "group")} for item in items] == data, (
        "every case once, in the same order"
    )
    assert {item["fold"] for item in items} == set(range(folds)), "no fold is empty"
    assert len({(item["group"], item["fold"]) for item in items}) == len(sizes), "a group lies in one fold"
    numbers = Counter(item["fold"] for item in items).values()
    assert max(numbers) - min(numbers) <= max(sizes)
    again = list(data)
    shuffle.shuffle(again)
    assert fold_of(assign_folds(again, folds, seed)) == fold_of(items), "the order does not matter"


@given(number=st.integers(2, 40), folds=st.integers(2, 8), seed=seeds)
def test_without_groups_every_case_is_drawn_alone(number, folds, seed):
    if folds <= number:
        items = assign_folds([{"case": str(index)} for index in range(number)], folds, seed)
        numbers = Counter(item["fold"] for item in items).values()
        assert max(numbers) - min(numbers) <= 1


def test_the_folds_are_frozen():
    """The same on every machine and version, or a reported number means nothing."""
    data = [{"case": case} for case in "abcdefgh"]
    assert "".join(str(item["fold"]) for item in assign_folds(data, 3)) == "22111000"
    assert "".join(str(item["fold"]) for item in assign_folds(data, 3, seed=1)) == "12102100"


def test_another_seed_gives_other_folds():
    data = data_of([3] * 20)
    assert len({tuple(fold_of(assign_folds(data, 5, seed)).values()) for seed in range(20)}) == 20


def test_select_fold():
    items = assign_folds(data_of([3, 2, 2, 1, 5]), 3)
    held_out = [select_fold(items, fold) for fold in range(3)]
    assert sorted(item["case"] for parts in held_out for item in parts["validation"]) == sorted(
        i["case"] for i in items
    )
    for fold, parts in enumerate(held_out):
        assert {item["fold"] for item in parts["validation"]} == {fold}
        assert [item for item in items if item["fold"] != fold] == parts["training"]


@needs_shared
def test_five_folds_of_real_patients():
    root = SHARED / "data" / "lidc_nodules"
    data = folder_datalist(root, groups=root / "cases.csv")
    items = assign_folds(data, 5)
    assert sorted(Counter(item["fold"] for item in items).values()) == [159, 159, 160, 160, 160]
    patients = [{item["group"] for item in items if item["fold"] == fold} for fold in range(5)]
    assert sum(map(len, patients)) == len(set().union(*patients)) == 439
    random.Random(0).shuffle(data)
    assert fold_of(assign_folds(data, 5)) == fold_of(items)


@pytest.mark.parametrize(
    ("folds", "error", "message"),
    [
        (1, ValueError, "folds: found 1 for 3 groups, expected 2 or more folds"),
        (4, ValueError, "folds: found 4 for 3 groups"),
        (-2, ValueError, "folds: found -2"),
        (2.0, TypeError, "folds: found 2.0, expected a number of folds, a whole number"),
        (True, TypeError, "folds: found True"),
        ("5", TypeError, "folds: found '5'"),
    ],
)
def test_wrong_numbers_of_folds(folds, error, message):
    with pytest.raises(error, match=message):
        assign_folds(data_of([1, 2, 3]), folds)


def test_what_is_wrong_is_named():
    with pytest.raises(ValueError, match="found no group for 'b', expected one for every case, as 1 have"):
        assign_folds([{"case": "a", "group": "p"}, {"case": "b"}], 2)
    with pytest.raises(ValueError, match="found 3 for 2 cases"):
        assign_folds([{"case": "a"}, {"case": "b"}], 3)
    items = assign_folds(data_of([1, 2, 3]), 3)
    with pytest.raises(
        ValueError, match=r"here: found no fold 3 beside another one, expected one of the folds \[0, 1, 2\]"
    ):
        select_fold(items, 3, "here")
    with pytest.raises(ValueError, match=r"found no fold 0 beside another one, expected one of the folds \[0\]"):
        select_fold([{"case": "a", "fold": 0}], 0)
    with pytest.raises(ValueError, match="found the fold None for the case 'z', expected a whole number"):
        select_fold([*items, {"case": "z"}], 0)
    with pytest.raises(TypeError, match="fold: found '0', expected the number of a fold"):
        select_fold(items, "0")
    with pytest.raises(ValueError, match=r"group 'g1' in 'fold 1' \('1.1'\) and in 'fold 7' \('1.0'\)"):
        select_fold([{**item, "fold": 7} if item["case"] == "1.0" else {**item, "fold": 1} for item in items], 1)
