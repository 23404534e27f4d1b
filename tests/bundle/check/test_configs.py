"""Which files make a workflow, and what is read from their text."""

from __future__ import annotations

import json

import pytest
from monai.bundle import ConfigParser

from monai_margincal.bundle.check.configs import config_file, repeated_keys, switched_off, value_at, workflows


@pytest.fixture
def root(tmp_path):
    (tmp_path / "configs").mkdir()
    files = {
        "train.json": {"epochs": 3, "device": "cuda", "net": {"width": 2}},
        "evaluate.json": {"epochs": 0},
        "inference.yaml": {"folder": "$@bundle_root + '/out'"},
        "metadata.json": {"version": "1.2"},
    }
    for name, content in files.items():
        (tmp_path / "configs" / name).write_text(json.dumps(content))
    return tmp_path


def test_the_workflows_whose_files_are_there(root):
    assert [(workflow.kind, workflow.place) for workflow in workflows(root)] == [
        ("train", "configs/train.json"),
        ("train", "configs/train.json + configs/evaluate.json"),
        ("infer", "configs/inference.yaml"),
    ]
    assert config_file(root, "multi_gpu_train") is None


def test_files_and_overrides_are_merged_in_this_order(root):
    train, evaluate, inference = workflows(root)
    assert train.parser().get_parsed_content("epochs") == 3
    assert evaluate.parser().get_parsed_content("epochs") == 0
    given = type(train)(root, "train", train.files, {"epochs": 9, "net#width": 4})
    assert given.parser().get_parsed_content("epochs") == 9
    assert given.parser().get_parsed_content("net#width") == 4
    assert inference.parser().get_parsed_content("folder") == f"{root}/out"
    assert inference.parser().get_parsed_content("_meta_#version") == "1.2"


def test_checks_take_the_cpu(root):
    train, _, inference = workflows(root)
    assert train.parser().get_parsed_content("device").type == "cpu"
    assert "device" not in inference.parser()


def test_a_nested_override_of_what_is_not_there(root):
    train = next(workflows(root))
    with pytest.raises(KeyError, match="nothing"):
        type(train)(root, "train", train.files, {"nothing#width": 4}).parser()


def test_keys_that_stand_twice(root):
    assert repeated_keys(root) == []
    (root / "configs" / "train.json").write_text('{"net": {"width": 1, "width": 2}}')
    (root / "configs" / "broken.json").write_text("{")
    (root / "configs" / "logging.conf").write_text("a: 1, a: 2")
    (finding,) = repeated_keys(root)
    assert str(finding) == "error: configs/train.json: found Duplicate key: `width`, expected every key once"


@pytest.mark.parametrize(
    ("disabled", "off"),
    [(True, True), (False, False), ("true", True), (" True ", True), ("$1 > 0", True), ("yes", False), (None, False)],
)
def test_switched_off_as_monai_reads_it(disabled, off):
    parser = ConfigParser({"crop": {"_target_": "Compose", "_disabled_": disabled}})
    assert switched_off(parser, "crop") is off
    parser = ConfigParser({"crop": {"_target_": "Compose", "_disabled_": disabled}})
    assert (parser.get_parsed_content("crop") is None) is off, "MONAI says the same"


def test_a_value_and_none():
    parser = ConfigParser({"a": "@b", "b": 3, "c": None})
    assert [value_at(parser, id) for id in "abcd"] == [3, 3, None, None]
