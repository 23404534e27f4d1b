"""What an override means to one configuration of several."""

from __future__ import annotations

import pytest

from monai_margincal.bundle.check.overrides import applicable, reaches, top_level

CONFIG = {
    "train": {"dataset": {"data": "$@files[:@n]"}},
    "files": "$list(@folder)",
    "folder": "a",
    "n": 3,
    "net": {"width": 2},
    "run": ["$@train#trainer"],
}


@pytest.mark.parametrize("id", ["net", "net#width", "net::width", "net#layers::0"])
def test_top_level(id):
    assert top_level(id) == "net"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"n": 4, "net#width": 8}, ["n", "net#width"]),
        ({"cases": "a"}, []),  # of another workflow
        ({"n": "$@half * 2", "half": 2}, ["n", "half"]),
        ({"half": 2}, []),
        ({"half#part": 2, "n": "@half"}, ["n"]),  # nested in nothing
        ({}, []),
    ],
)
def test_applicable(given, kept):
    assert list(applicable(CONFIG, given)) == kept


@pytest.mark.parametrize(
    ("overrides", "reached"),
    [
        (["folder"], True),
        (["files#0"], True),
        (["n"], True),
        (["train#dataset#data"], True),
        (["train#dataset#data#0"], True),
        (["train"], True),
        (["train#dataset#database"], False),
        (["train#trainer"], False),
        (["net"], False),
        ([], False),
    ],
)
def test_reaches(overrides, reached):
    assert reaches(CONFIG, overrides, ["train::dataset::data", "validate::dataset::data"]) is reached
