"""Which cases belong together: by a table, a mapping, a pattern of their names; what cannot be known is an error."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monai_margincal.datasets import assign_groups, require_separate_groups

DATA = [{"case": "film_1_001"}, {"case": "film_1_002"}, {"case": "film_2_001"}]


def groups(data, **given_groups):
    return [item.get("group") for item in assign_groups(data, **given_groups)]


def test_no_groups_change_nothing():
    assert assign_groups(DATA) == DATA


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("{group}_*", ["film_1", "film_1", "film_2"]),
        ("{group}", ["film_1_001", "film_1_002", "film_2_001"]),
        ("film_{group}_*", ["1", "1", "2"]),
        ("*_{group}", ["1_001", "1_002", "2_001"]),
        ("*_*_{group}", ["001", "002", "001"]),
        ("{group}_00*", ["film_1", "film_1", "film_2"]),
    ],
)
def test_patterns(pattern, found):
    assert groups(DATA, group_pattern=pattern) == found


@given(
    group=st.text(st.characters(blacklist_characters="|", blacklist_categories=("Cs",)), min_size=1),
    rest=st.text(st.characters(blacklist_categories=("Cs",)).filter(lambda sign: sign != "|")),
)
def test_a_sign_that_stands_between_group_and_rest_divides_any_name(group, rest):
    assert groups([{"case": f"{group}|{rest}"}], group_pattern="{group}|*") == [group]


@given(name=st.text("ab.*+?()[]{}\\^$|", min_size=1))
def test_signs_of_regular_expressions_stand_for_themselves(name):
    pattern = name.replace("*", "x") + "{group}"
    if pattern.count("{group}") == 1:
        assert groups([{"case": name.replace("*", "x") + "7"}], group_pattern=pattern) == ["7"]


def test_a_mapping_may_hold_more_and_numbers():
    mapping = {"film_1_001": 7, "film_1_002": np.int64(7), "film_2_001": "8", "other": ""}
    del mapping["other"]
    assert groups(DATA, groups={**mapping, "more": "9"}) == ["7", "7", "8"]
    assert groups([{"case": 7}], groups={7: "p"}) == ["p"]


def test_a_table_and_names_of_files(tmp_path):
    (tmp_path / "t.csv").write_text("case,patient\nscan.1,01\nscan.2,1a\n")
    data = [{"image": f"{tmp_path}/scan.1.nii.gz"}, {"image": [f"{tmp_path}/scan.2.nii.gz", "other.nii"]}]
    assert groups(data, groups=tmp_path / "t.csv") == ["01", "1a"]
    assert groups(data, groups=str(tmp_path / "t.csv"), group_column="patient") == ["01", "1a"]


@pytest.mark.parametrize(
    ("given_groups", "error", "message"),
    [
        ({"group_pattern": "{group}_1_*"}, ValueError, "no group in the case names 'film_2_001', expected names like"),
        ({"group_pattern": "*_*"}, ValueError, r"found '\*_\*', expected {group} in it once"),
        ({"group_pattern": "{group}_{group}"}, ValueError, "expected {group} in it once"),
        ({"group_pattern": 7}, TypeError, "group_pattern: found 7, expected a text"),
        ({"group_pattern": "{group}_*", "groups": {}}, ValueError, "beside `groups`, expected one of the two"),
        ({"group_column": "patient"}, ValueError, "group_column: found 'patient' without a table"),
        ({"groups": {"a": "p"}, "group_column": "x"}, ValueError, "group_column: found 'x' beside a mapping"),
        (
            {"groups": {"film_1_001": "p"}},
            ValueError,
            "no group for 'film_1_002', 'film_2_001', expected one for every case",
        ),
        ({"groups": {case["case"]: " " for case in DATA}}, ValueError, "an empty group for the case 'film_1_001'"),
        ({"groups": {"film_1_001": 7.0}}, TypeError, "found 7.0 for the case 'film_1_001', expected a text or a whole"),
        ({"groups": {"film_1_001": float("nan")}}, TypeError, "found nan for the case 'film_1_001'"),
        ({"groups": {"film_1_001": True}}, TypeError, "found True for the case"),
    ],
)
def test_what_is_wrong_is_named(given_groups, error, message):
    with pytest.raises(error, match=message):
        assign_groups(DATA, **given_groups)


@pytest.mark.parametrize("spelt", ["7", "7.0", "07", "7."])
def test_a_number_is_written_in_one_way(spelt):
    """A spreadsheet takes the zeros of one patient's number and leaves those of the other file."""
    cases = [case["case"] for case in DATA]
    with pytest.raises(ValueError, match=f"groups: found the groups '007' and {spelt!r}, which are the same number"):
        assign_groups(DATA, dict(zip(cases, ["007", spelt, "8"], strict=True)))
    assert groups(DATA, groups=dict(zip(cases, ["007", "007", "70"], strict=True))) == ["007", "007", "70"]


def test_lost_zeros_of_a_case_are_pointed_at(tmp_path):
    (tmp_path / "t.csv").write_text("case,patient\n7,p\n")
    expected = (
        r"t\.csv: found no group for '007', expected one for every case; it has '7': have leading zeros been lost\?"
    )
    with pytest.raises(ValueError, match=expected):
        assign_groups([{"case": "007"}], tmp_path / "t.csv")


def test_two_sources_that_disagree():
    data = [{"case": "a", "group": "p"}]
    assert groups(data, groups={"a": "p"}) == ["p"]
    with pytest.raises(ValueError, match="case 'a' in the group 'p', expected 'q', as the table says"):
        assign_groups(data, {"a": "q"})
    with pytest.raises(ValueError, match="case 'a' in the group 'p', expected 'a', as the pattern says"):
        assign_groups(data, group_pattern="{group}")


def test_separate_groups():
    p, q = {"case": "a", "group": "p"}, {"case": "b", "group": "q"}
    require_separate_groups({"training": [p, {"case": "x"}], "validation": [q], "test": [{"case": "x"}]})
    more = [{"case": f"c{index}", "group": 7} for index in range(7)]
    parts = {"training": [p, q, *more], "validation": [{"case": "d", "group": "7"}], "test": [q]}
    message = (
        "here: found the group '7' in 'training' ('c0', 'c1', 'c2', 'c3', 'c4' and 2 more) and in 'validation' ('d'), "
        "and 1 more in two parts, expected every group in one part"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        require_separate_groups(parts, "here")
