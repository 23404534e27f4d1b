"""Which keys of a configuration do something."""

from __future__ import annotations

import pytest
from bundle.small_config import small_config

from monai_margincal.bundle import unused_keys


def test_a_config_whose_keys_are_all_used():
    assert unused_keys(small_config()) == []


@pytest.mark.parametrize("value", [3, "text", [1, 2], None, {"_target_": "Compose", "transforms": []}])
def test_a_key_that_nothing_refers_to(value):
    assert unused_keys(small_config(epochz=value)) == ["epochz"]
    assert unused_keys(small_config(epochz=value), entries=["epochz"]) == []


@pytest.mark.parametrize("reference", ["@epochz", "$@epochz + 1", "%epochz", "$@epochz#0", "@epochz::0"])
def test_every_form_of_reference_counts(reference):
    assert unused_keys(small_config(epochz=[3], lr=reference)) == []


def test_a_key_does_not_use_itself():
    assert unused_keys(small_config(epochz="$@epochz")) == ["epochz"]
    assert unused_keys(small_config(pattern_="an e-mail a@pattern")) == ["pattern_"]
