"""Messages of Python functions in the words of a command line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monai_margincal.hints import did_you_mean, in_flags

FLAGS = {"num_classes": "--num-classes", "ids": "--ids", "ignore_index": "--ignore-index", "num_workers": "--workers"}
SETTINGS = {"resume_from": "--set resume_from=", "image_pattern": "--image-pattern"}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("say ignore_index=255.", "say --ignore-index 255."),
        ("declare ids=[0, 255], or write it", "declare --ids 0 255, or write it"),
        ("num_classes=3 or ids=[...].", "--num-classes 3 or --ids ...."),
        ("num_workers is -1, expected 0 or more", "--workers is -1, expected 0 or more"),
        ("ValueError: ids is empty: expected one", "ValueError: --ids is empty: expected one"),
        ("`ids` and `num_classes`", "--ids and --num-classes"),
        ("the ids are those that occur", "the ids are those that occur"),
        ("ids of all files", "ids of all files"),
        ("/data/num_classes/a.nii: damaged", "/data/num_classes/a.nii: damaged"),
        ("num_classes=2/a.nii: damaged", "num_classes=2/a.nii: damaged"),
        ("num_classes.json: no such file", "num_classes.json: no such file"),
        ("a-num_classes=2", "a-num_classes=2"),
    ],
)
def test_words_of_an_option(message: str, expected: str) -> None:
    assert in_flags(message, FLAGS) == expected


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("give resume_from=/a/b=2.pt", "give --set resume_from=/a/b=2.pt"),
        ("give resume_from='/a b/c.pt' again", "give --set resume_from='/a b/c.pt' again"),
        ("--image_pattern: found 7, expected a text", "--image-pattern: found 7, expected a text"),
        ("--resume_from: found 7, expected a path", "--set resume_from: found 7, expected a path"),
    ],
)
def test_words_of_a_key(message: str, expected: str) -> None:
    assert in_flags(message, SETTINGS) == expected


@given(st.text())
def test_nothing_else_changes(message: str) -> None:
    assert in_flags(message, {}) == message
    assert in_flags(message, {"no_such_word_in_any_text": "--x"}) == message


def test_no_advice_for_a_word_like_no_other() -> None:
    assert did_you_mean("zzz", ["--num-classes"]) == ""
    assert did_you_mean("--num_classes", ["--names", "--num-classes"]) == " (did you mean '--num-classes'?)"
