"""A flag of another command is refused, with the command that takes it."""

from __future__ import annotations

import json

import pytest
from monai.bundle import ConfigParser

from monai_margincal.bundle import bundle_dir
from monai_margincal.bundle.other_command import refuse_keys_of_other_commands, takers, used_ids

TRAIN = {
    "epochs": 3,
    "folder": ".",
    "cases": "$[@folder]",
    "list": None,
    "train": {"trainer": {"max": "@epochs"}, "loading": "$@folder", "every": 1},
    "validate": {"data": "@cases", "chain": "@train#loading", "evaluator": ["@validate::data", "@validate#chain"]},
    "run": ["$@train#trainer.run()", "$@validate#evaluator", "$@list", "$@train#every"],
    "initialize": [],
}
EVALUATE = {"weights": "m.pt", "run": ["$@validate#evaluator.run(@weights)"]}
INFERENCE = {"folder": ".", "names": None, "run": ["$print(@folder, @names)"]}


@pytest.fixture
def folder(tmp_path):
    for name, config in (("train", TRAIN), ("evaluate", EVALUATE), ("inference", INFERENCE)):
        (tmp_path / f"{name}.json").write_text(json.dumps(config))
    return tmp_path


def refuse(folder, names, flags, config=None):
    files = [str(folder / f"{name}.json") for name in names]
    parser = ConfigParser.load_config_files(files)
    typed = {"config_file": files[0] if len(files) == 1 else str(files), **flags}
    refuse_keys_of_other_commands(typed, {**parser, **(config or {})}, folder)


@pytest.mark.parametrize("id", ["epochs", "train#trainer#max", "train::trainer", "train#every", "list"])
def test_evaluation_names_the_training_for_what_it_does_not_use(folder, id):
    refuse(folder, ["train"], {id: "1"})
    with pytest.raises(ValueError) as raised:
        refuse(folder, ["train", "evaluate"], {id: "1"})
    assert str(raised.value) == f"key {id!r} has no effect in evaluation: it belongs to training"


@pytest.mark.parametrize(
    "id", ["folder", "cases", "weights", "validate#evaluator#0", "validate#data", "train#loading", "run", "unknown"]
)
def test_what_it_uses_passes_and_so_does_what_others_refuse(folder, id):
    refuse(folder, ["train", "evaluate"], {id: "1"})


def test_a_key_that_another_flag_has_made_idle_passes(folder):
    """As `margincal segment` does with the patterns of names."""
    given = {"folder": "x", "names": "a", "run": ["$print(@folder)"]}
    refuse(folder, ["inference"], {"names": "a", "run": "x"}, given)


def test_a_key_that_the_command_does_not_even_have(folder):
    """MONAI looks the key up by name in a training, so that it counts as known."""
    with pytest.raises(ValueError, match="key 'epochs' has no effect in inference: it belongs to training"):
        refuse(folder, ["inference"], {"epochs": "1"}, {"epochs": 1})


def test_a_key_that_another_flag_uses_passes(folder):
    refuse(folder, ["train", "evaluate"], {"epochs": "1", "weights": "@epochs"}, {"epochs": 1, "weights": "@epochs"})


@pytest.mark.parametrize("flags", [{"run_id": "train"}, {"config_file": None}])
def test_nothing_is_judged_where_it_cannot_be_known(folder, flags):
    refuse(folder, ["train", "evaluate"], {"epochs": "1", **flags})


def test_a_folder_that_is_not_known_is_no_error():
    refuse_keys_of_other_commands({"config_file": "train.json", "epochs": "1"}, TRAIN, None)


def test_references_are_followed_in_both_notations_and_in_circles():
    config = {"run": "@a::b", "a": {"b": ["@c"], "d": "@e"}, "c": "$@a#b + @run", "e": 1}
    assert used_ids(config) == {"run", "a#b", "c"}


@pytest.mark.parametrize("name", ["covid19_ct_lesion_coplenet", "surgical_instrument_coplenet"])
def test_every_key_of_a_shipped_bundle_does_something_in_its_own_command(name):
    from pathlib import Path

    folder = Path(bundle_dir(name), "configs")
    for names in (["train"], ["inference"]):
        config = json.loads((folder / f"{names[0]}.json").read_text())
        refuse(folder, names, dict.fromkeys(config, "1"))
    idle = [
        "epochs",
        "learning_rate",
        "batch_size",
        "patch_size",
        "val_interval",
        "warmup_epochs",
        "resume_from",
        "loss#tau",
    ]
    for id in idle:
        with pytest.raises(ValueError, match=f"key '{id}' has no effect in evaluation: it belongs to training"):
            refuse(folder, ["train", "evaluate"], {id: "1"})
        assert takers(id, folder) == ["training"]
