"""Dividing a data list: numbers, shares, names and words; whatever cannot be is refused where it stands."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monai_margincal.experiments.task_cases import select_task_cases

DATA = [{"case": f"c{i:02d}", "image": "", "label": ""} for i in range(20)]


def _select(training, validation, test, seed=0, split_seed=0):
    parts = {"training": training, "validation": validation, "test": test}
    chosen = select_task_cases(
        DATA, parts, split_seed=split_seed, seed=seed, where="tasks::t", digest=lambda item: item["case"]
    )
    return {part: [item["case"] for item in getattr(chosen, part)] for part in parts}


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 99), st.integers(0, 99), st.sampled_from([0.2, 3, "rest"]), st.sampled_from([0, 0.2, 5]))
def test_parts_share_no_case_and_only_training_follows_the_seed(seed, split_seed, training, validation):
    parts = _select(training, validation, 0.3, seed, split_seed)
    used = [case for names in parts.values() for case in names]
    assert len(used) == len(set(used))
    wanted = {0.2: 4, 3: 3, "rest": 20 - 6 - {0: 0, 0.2: 4, 5: 5}[validation]}
    assert [len(parts[part]) for part in ("training", "validation", "test")] == [
        wanted[training],
        {0: 0, 0.2: 4, 5: 5}[validation],
        6,
    ]
    other = _select(training, validation, 0.3, seed + 1, split_seed)
    assert (other["test"], other["validation"]) == (parts["test"], parts["validation"])


def test_a_share_is_at_least_one_case():
    assert len(_select("rest", 0.01, 0.01)["validation"]) == 1


def test_validation_on_the_training_cases_has_to_be_said():
    parts = _select(["c03"], "training", ["c05"])
    assert parts == {"training": ["c03"], "validation": ["c03"], "test": ["c05"]}


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((5, 0.2, 1.5), "tasks::t::test: found 1.5, expected a number of cases, a share of all cases between 0 and 1"),
        ((5, True, 5), "tasks::t::validation: found True, expected a number"),
        ((5, "rest", 5), "tasks::t::validation: found 'rest', expected .*or 'training'"),
        (("all", 5, 5), "tasks::t::training: found 'all', expected .*or 'rest'"),
        ((5, None, 5), "tasks::t::validation: found None, expected a number"),
        ((5, -1, 5), "tasks::t::validation: found -1 cases, expected a number from 0 to the 15 that are left"),
        ((15, 5, 5), "tasks::t::training: found 15 cases, expected a number from 1 to the 10 that are left"),
        ((5, 5, 0), "tasks::t::test: found 0 cases, expected a number from 1 to the 20"),
        ((["c01"], ["c01"], 5), "tasks::t::validation: found the case 'c01', which is in training too"),
        (
            (["c01"], 2, ["c02", "c01"]),
            "tasks::t::test: found the case 'c01', which is in training too; expected every",
        ),
        ((["who"], 2, 2), r"tasks::t::training: found the cases \['who'\], expected distinct names"),
        ((["c01", "c01"], 2, 2), "expected distinct names"),
        (([], 2, 2), r"found the cases \[\], expected distinct names"),
    ],
)
def test_errors_name_the_place(parts, message):
    with pytest.raises(ValueError, match=message):
        _select(*parts)
