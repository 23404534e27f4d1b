"""Which keys of a configuration do something."""

from __future__ import annotations

import pytest

from monai_margincal.bundle import unused_keys

CONFIG = {
    "imports": ["$import glob"],
    "bundle_root": ".",
    "pattern": "*.nii",
    "epochs": 3,
    "lr": 0.1,
    "shared": {"a": [1, 2]},
    "copy": {"nested": "%shared#a"},
    "left_over": {"_target_": "Compose", "transforms": "@copy"},
    "train": {"trainer": {"max_epochs": "@epochs", "lr": "$@lr * 2"}},
    "initialize": [{"_target_": "monai_margincal.bundle.refuse_unknown_keys", "entries": ["shared"]}],
    "eval_run": ["$print(@pattern)"],
    "run": ["$@train#trainer"],
}


def test_a_config_whose_keys_are_all_used():
    assert unused_keys(CONFIG) == []


@pytest.mark.parametrize("value", [3, "text", [1, 2], None, {"_target_": "Compose", "transforms": []}])
def test_a_key_that_nothing_refers_to(value):
    assert unused_keys({**CONFIG, "epochz": value}) == ["epochz"]
    assert unused_keys({**CONFIG, "epochz": value}, entries=["epochz"]) == []


@pytest.mark.parametrize("reference", ["@epochz", "$@epochz + 1", "%epochz", "$@epochz#0", "@epochz::0"])
def test_every_form_of_reference_counts(reference):
    assert unused_keys({**CONFIG, "epochz": [3], "lr": reference}) == []


def test_a_key_does_not_use_itself():
    assert unused_keys({**CONFIG, "epochz": "$@epochz"}) == ["epochz"]
    assert unused_keys({**CONFIG, "pattern_": "an e-mail a@pattern"}) == ["pattern_"]
