"""A misspelt flag must not be silent."""

from __future__ import annotations

import pytest
from bundle.small_config import small_config
from monai.bundle import ConfigParser, ConfigWorkflow

from monai_margincal.bundle import refuse_unknown_keys


@pytest.mark.parametrize(
    ("key", "meant"), [("epochz", "epochs"), ("shraed", "shared"), ("qqqqqq", None)], ids=["epochz", "shraed", "qqqqqq"]
)
def test_a_misspelt_flag_is_refused_and_the_key_that_was_meant_is_named(key, meant):
    parser = ConfigParser(small_config(**{key: 1}))
    with pytest.raises(RuntimeError) as raised:
        parser.get_parsed_content("initialize::0")
    assert isinstance(raised.value.__cause__, ValueError)
    hint = f" (did you mean '{meant}'?)" if meant else ""
    expected = f"unknown key '{key}'{hint}: nothing in the configuration refers to it"
    assert str(raised.value.__cause__) == expected


def test_good_keys_pass_and_two_bad_ones_are_both_named(tmp_path):
    ConfigParser(small_config()).get_parsed_content("initialize::0")
    with pytest.raises(RuntimeError) as raised:
        ConfigParser(small_config(one=1, two=2)).get_parsed_content("initialize::0")
    assert "unknown keys 'one', 'two': nothing in the configuration refers to them" in str(raised.value.__cause__)


def test_it_need_not_come_first():
    """The text is compared, not what has become of it."""
    parser = ConfigParser(small_config(pattern="$str(@lr)"))
    assert parser.get_parsed_content("train::trainer") == {"max_epochs": 3, "lr": 0.2}
    assert parser.get_parsed_content("pattern") == "0.1"
    parser.get_parsed_content("initialize::0")


@pytest.fixture
def workflow(tmp_path):
    """The configuration as a file beside that of another workflow."""
    ConfigParser.export_config_file(small_config(dataset_dir="x"), tmp_path / "train.json")
    ConfigParser.export_config_file({"cases": None, "data": "@cases", "run": []}, tmp_path / "inference.json")
    return lambda **overrides: ConfigWorkflow(
        str(tmp_path / "train.json"), logging_file=False, workflow_type="train", **overrides
    )


def test_a_client_may_replace_what_used_a_key(workflow):
    """monai.fl and MONAILabel set properties and initialise again: `epochs` then has no effect any more."""
    loaded = workflow()
    loaded.initialize()
    loaded.bundle_root = "elsewhere"
    loaded.max_epochs = 5
    loaded.initialize()
    assert loaded.max_epochs == 5
    workflow(**{"train#trainer": {"max_epochs": 2, "lr": 1.0}}).initialize()


@pytest.mark.parametrize("flag", ["epochz", "cases", "learning"])
def test_a_flag_that_this_workflow_does_not_have(workflow, flag):
    with pytest.raises(RuntimeError) as raised:
        workflow(**{flag: 1}).initialize()
    assert f"unknown key '{flag}'" in str(raised.value.__cause__)


def test_outside_of_a_configuration():
    with pytest.raises(RuntimeError, match="must be called by MONAI's config parser"):
        refuse_unknown_keys()
