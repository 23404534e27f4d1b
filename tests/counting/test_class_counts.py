"""ClassCounts: exact, keyed by id, the same whatever the order, whole in JSON."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from monai_margincal.counting.as_class_counts import as_class_counts
from monai_margincal.counting.class_counts import ClassCounts

NAMES = ["background", "lesion", "vessel"]


def random_counts(ids: list[int], case: str):
    return st.lists(st.integers(0, 2**40), min_size=len(ids), max_size=len(ids)).map(
        lambda values: ClassCounts(values, ids, cases={case: values}, source=case, ignored=values[0] % 7)
    )


ids_lists = st.lists(st.integers(-5, 10**6), min_size=1, max_size=5, unique=True)


@st.composite
def three_counts(draw):
    return [draw(random_counts(draw(ids_lists), case)) for case in "abc"]


@given(three_counts())
@settings(deadline=None, max_examples=60)
def test_merging_does_not_depend_on_order_or_grouping(parts):
    a, b, c = parts
    whole = (a + b) + c
    assert whole == a + (b + c) == (c + a) + b == sum([b, c, a])
    assert whole.total == a.total + b.total + c.total
    assert whole.ignored == a.ignored + b.ignored + c.ignored
    for label in whole.ids:
        assert whole.count_of(label) == sum(part.count_of(label) for part in parts if label in part.ids)


@given(three_counts())
@settings(deadline=None, max_examples=20)
def test_json_keeps_everything(tmp_path_factory, parts):
    path = tmp_path_factory.mktemp("json") / "counts.json"
    whole = sum(parts)
    whole.to_json(path)
    assert ClassCounts.from_json(path) == whole
    whole.to_json(path)  # an older file of the same kind is replaced
    assert [p.name for p in path.parent.iterdir()] == ["counts.json"]


def test_counts_stay_exact_where_floats_and_int32_do_not():
    one = ClassCounts([2**24 + 1, 2**31 + 1])
    total = sum([one] * 3)
    assert total.counts.tolist() == [3 * 2**24 + 3, 3 * 2**31 + 3]
    assert total.counts.dtype == np.int64
    assert total.total == 3 * (2**24 + 2**31 + 2)


def test_overflow_is_an_error_and_not_a_wrap():
    almost = ClassCounts([2**63 - 1, 0])
    with pytest.raises(ValueError, match="fit into int64"):
        almost + ClassCounts([1, 0])


def test_classes_are_known_by_id_not_by_position():
    shuffled = ClassCounts(
        [3, 10, 1], ids=[517, 0, 12], names=["lobe", "background", "airway"], cases={"a": [3, 10, 1]}
    )
    assert shuffled.ids == (0, 12, 517)
    assert shuffled.names == ("background", "airway", "lobe")
    assert shuffled.counts.tolist() == [10, 1, 3]
    assert shuffled.cases == {"a": (10, 1, 3)}
    merged = shuffled + ClassCounts([5, 7], ids=[0, 517])
    assert merged.count_of(517) == 10
    assert merged.count_of(12) == 1
    assert merged.names == ("background", "airway", "lobe")


def test_counts_cannot_be_changed_in_place():
    counts = ClassCounts([1, 2])
    with pytest.raises(ValueError, match="read-only"):
        counts.counts[0] = 5
    with pytest.raises(AttributeError):
        counts.extra = 1


def test_frequencies():
    assert ClassCounts([3, 1]).frequencies.tolist() == [0.75, 0.25]
    assert np.isnan(ClassCounts([0, 0]).frequencies).all()


@pytest.mark.parametrize(
    "value",
    [
        [980, 20],
        (980, 20),
        np.array([980, 20], dtype=np.uint16),
        torch.tensor([980, 20]),
        [980.0, np.int64(20)],
        {0: 980, 1: 20},
        {"1": 20, "0": 980},
        ClassCounts([980, 20]),
        ClassCounts([980, 20]).to_dict(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_form_of_the_argument(value):
    assert as_class_counts(value) == ClassCounts([980, 20])


def test_a_path_is_read(tmp_path):
    ClassCounts([5, 1], names=NAMES[:2]).to_json(tmp_path / "counts.json")
    assert as_class_counts(str(tmp_path / "counts.json")).names == ("background", "lesion")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"counts": []}, "counts is empty"),
        ({"counts": [0.98, 0.02]}, "not frequencies"),
        ({"counts": [5, -1]}, "must not be negative, found -1"),
        ({"counts": [5, float("nan")]}, "must be integers"),
        ({"counts": [1, 2], "ids": [3, 3]}, r"ids must be distinct, found \[3\]"),
        ({"counts": [1, 2], "ids": [3]}, "counts has 2 entries, but ids has 1"),
        ({"counts": [1, 2], "names": ["a"]}, "counts has 2 entries, but names has 1"),
        ({"counts": [1, 2], "names": ["a", "a"]}, r"names must be distinct, found \['a'\]"),
        ({"counts": [1, 2], "names": "ab"}, "names must be non-empty strings"),
        ({"counts": {0: 1}, "ids": [0]}, "carries its ids"),
        ({"counts": [1, 2], "cases": {"x": [1, 1]}}, r"add up to \[1, 1\], but counts is \[1, 2\]"),
        ({"counts": [1, 2], "cases": {"x": [1]}}, "has 1 counts: expected 2"),
        ({"counts": [1], "ignored": -1}, "ignored must not be negative"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        ClassCounts(**arguments)


@pytest.mark.parametrize("counts", ["12", [True, 1], [None, 1], 5])
def test_wrong_types(counts):
    with pytest.raises(TypeError, match="integers"):
        ClassCounts(counts)


def test_as_class_counts_rejects_what_it_cannot_read():
    with pytest.raises(TypeError, match="class_counts is a float"):
        as_class_counts(0.5)
    with pytest.raises(ValueError, match="expected label ids"):
        as_class_counts({"lesion": 5})


def test_merging_refuses_to_count_a_case_twice():
    a = ClassCounts([5, 1], cases={"case_1": [5, 1]})
    with pytest.raises(ValueError, match="'case_1'"):
        a + a
    assert (a.prefixed("x/") + a.prefixed("y/")).cases == {"x/case_1": (5, 1), "y/case_1": (5, 1)}


def test_merging_refuses_two_names_of_one_id():
    """Swapped label orders are how wrong organs get reported (wasserth/TotalSegmentator#173)."""
    with pytest.raises(ValueError, match="'left' in one count and 'right' in the other"):
        ClassCounts([5, 1], names=["background", "left"]) + ClassCounts([5, 1], names=["background", "right"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "expected a JSON file of class counts"),
        ("[1, 2]", "found format 'list'"),
        ('{"counts": [1]}', "found format None"),
        (json.dumps({**ClassCounts([1]).to_dict(), "version": 9}), "found version 9, expected 1"),
        (json.dumps({k: v for k, v in ClassCounts([1]).to_dict().items() if k != "ids"}), r"\['ids'\] are missing"),
        (json.dumps({**ClassCounts([1]).to_dict(), "counts": [-1]}), "must not be negative"),
    ],
)
def test_bad_files_are_named(tmp_path, content, message):
    path = tmp_path / "bad.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=message) as caught:
        ClassCounts.from_json(path)
    assert str(path) in str(caught.value)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.json"):
        ClassCounts.from_json(tmp_path / "nothing.json")


def test_a_file_of_the_user_is_not_overwritten(tmp_path):
    precious = tmp_path / "notes.json"
    precious.write_text('{"mine": 1}')
    with pytest.raises(FileExistsError, match=r"notes\.json exists"):
        ClassCounts([1]).to_json(precious)
    assert precious.read_text() == '{"mine": 1}'


def test_reading_counts_needs_no_torch(tmp_path):
    ClassCounts([5, 1]).to_json(tmp_path / "counts.json")
    code = (
        "import sys; from monai_margincal import ClassCounts; ClassCounts.from_json(sys.argv[1]);"
        "heavy = {'torch', 'monai', 'itk', 'SimpleITK', 'matplotlib', 'triton'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "counts.json")], check=True)


_HEAD = '{"format": "monai_margincal.class_counts", "version": 1, "ids": [0, 1], "counts": [3, 4]'


@pytest.mark.parametrize(
    "content",
    [
        "3",
        "null",
        '"text"',
        "[" * 100_000,
        "",
        _HEAD,
        _HEAD.replace("[0, 1]", "3") + "}",
        _HEAD.replace("[3, 4]", "{}") + "}",
        *(f'{_HEAD}, "{key}": 3}}' for key in ("names", "cases", "source")),
        *(f'{_HEAD}, "cases": {cases}}}' for cases in ('{"a": 3}', '{"a": [3]}', '{"a": null}', "[3]")),
        f'{_HEAD}, "ignored": null}}',
        f'{_HEAD}, "names": [1, 2]}}',
    ],
)
def test_every_wrong_content_is_an_error_that_names_the_file(tmp_path, content):
    path = tmp_path / "counts.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"^/.*/counts\.json: "):
        ClassCounts.from_json(path)
    with pytest.raises(FileExistsError, match=r"^/.*/counts\.json exists and is not a file of class counts"):
        ClassCounts([1]).to_json(path)
