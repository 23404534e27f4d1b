"""Switches mean what they say, as values and as text of the command line."""

from __future__ import annotations

import pytest
from monai.bundle import ConfigParser

from monai_margincal.bundle import switches


@pytest.mark.parametrize(("value", "meant"), [(True, True), (False, False), ("true", True), ("False", False)])
def test_values_and_text(value, meant):
    assert switches(amp=value, other=True) == {"amp": meant, "other": True}


@pytest.mark.parametrize("value", ["maybe", "", "1", 1, 0, None, [True]])
def test_anything_else_is_refused_by_name(value):
    with pytest.raises(ValueError, match=r"load_pretrain: found .*, expected true or false"):
        switches(load_pretrain=value)


def test_in_a_configuration():
    parser = ConfigParser(
        {
            "amp": "false",
            "switches": {"_target_": "monai_margincal.bundle.switches", "amp": "@amp"},
            "x": {"_target_": "Compose", "_disabled_": "$not @switches['amp']"},
        }
    )
    assert parser.get_parsed_content("x") is None
    parser.update({"amp": "true"})
    parser.parse(True)
    assert parser.get_parsed_content("x") is not None
