"""When pre-training ends: the rule on curves, in a run, and what a curve that had not ended looks like."""

from __future__ import annotations

import copy

import pytest
import torch
from experiments.tiny_study import tiny_config, write_cases
from hypothesis import given
from hypothesis import strategies as st

from monai_margincal.experiments import Study, run_study
from monai_margincal.experiments.runner import load_record
from monai_margincal.experiments.standstill import Standstill, still_rises


@given(st.lists(st.floats(0, 1), max_size=8), st.integers(1, 4), st.floats(0, 0.2))
def test_the_rule_by_hand(scores, points, gain):
    wanted = False
    if len(scores) > points:
        reached = sorted(scores[: len(scores) - points])[-1]
        late = [score for score in scores[len(scores) - points :] if score >= reached + gain]
        wanted = not late and any(score > 0.01 for score in scores)
    assert Standstill(points, gain)(scores) == wanted


def test_a_class_that_is_not_found_yet_does_not_stand_still():
    assert not Standstill(points=2)([0.0] * 10)
    assert Standstill(points=2)([0.0] * 3 + [0.5] * 3)


@pytest.mark.parametrize("wrong", [{"points": 0}, {"points": 2.5}, {"gain": -0.1}, {"gain": 1}])
def test_a_rule_without_sense_is_refused(wrong):
    with pytest.raises(ValueError, match="expected a whole number from 1 and a number from 0"):
        Standstill(**wrong)


@pytest.mark.parametrize(
    ("scores", "rises"),
    [
        ([0.0, 0.2, 0.4, 0.6, 0.8], True),
        ([0.0, 0.7, 0.8, 0.8, 0.8], False),
        ([0.0, 0.8], None),
        ([], None),
        ([0.0, 0.8, 0.8, 0.8, 0.5], False),
    ],
)
def test_a_curve_that_had_not_ended(scores, rises):
    assert still_rises(list(range(0, 100 * len(scores), 100)), scores) is rises


@pytest.fixture
def config(tmp_path):
    config = tiny_config(write_cases(tmp_path / "data"))
    config["blocks"] = [{"tasks": ["slices"], "objectives": ["ce"], "protocols": ["finetune", "scratch"], "seeds": [0]}]
    return config


def test_pretraining_ends_by_the_rule_and_everything_follows(config, tmp_path):
    """The score of a network that does not learn is still after `points` points, as far as it is above nothing."""
    task = config["tasks"]["slices"]
    task["optimizer"]["lr"] = 0.0
    task |= {"pretraining_steps": 50, "pretraining_until": {"points": 2, "gain": 0.001}, "validate_every": 2}
    study = Study(config)
    assert run_study(study, tmp_path / "out").errors == {}
    before = load_record(tmp_path / "out", study.cell("slices", "pretraining", "", 0))["history"]
    assert before["validation_miou"][0] > 0.01, "the random network has to have a score for this test"
    assert before["steps"] == [0, 2, 4]
    assert before["still"] is True
    scratch = load_record(tmp_path / "out", study.cell("slices", "scratch", "ce", 0))["history"]
    assert scratch["steps"][-1] == 4 + 2
    assert scratch["still"] is None
    assert load_record(tmp_path / "out", study.cell("slices", "finetune", "ce", 0))["history"]["steps"] == [0, 2]


def test_a_rule_that_is_not_met_is_recorded(config, tmp_path):
    task = config["tasks"]["slices"]
    task |= {"pretraining_until": {"points": 9}, "validate_every": 1}
    config["blocks"][0]["protocols"] = ["finetune"]
    study = Study(config)
    run_study(study, tmp_path / "out")
    history = load_record(tmp_path / "out", study.cell("slices", "pretraining", "", 0))["history"]
    assert (history["steps"], history["still"]) == ([0, 1, 2, 3], False)


def test_the_rate_falls_without_a_rule_only():
    from monai_margincal.experiments.objectives import Objective
    from monai_margincal.experiments.train import train

    class Stream:
        def batch(self, step):
            return torch.ones(1, 1, 2), torch.zeros(1, 1, 2, dtype=torch.long)

    def last_rate(until):
        network = torch.nn.Conv1d(1, 2, 1)
        optimizer = torch.optim.SGD(network.parameters(), lr=1.0)
        options = {"steps": 4, "device": torch.device("cpu"), "until": until, "validate": lambda *_: (0.0, 0.0)}
        train(network, Objective(torch.nn.CrossEntropyLoss()), Stream(), optimizer, **options)
        return optimizer.param_groups[0]["lr"]

    assert last_rate(None) == 0.0
    assert last_rate(Standstill()) == 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pretraining_until": {"patience": 2}}, r"tasks::slices::pretraining_until: unknown keys \['patience'\]"),
        ({"pretraining_until": {"points": 0}}, "tasks::slices::pretraining_until: found points 0"),
        ({"pretraining_until": {}, "validate_every": None}, "pretraining_until: found no validation curve"),
        (
            {"pretraining_until": {}, "validation": 0},
            "pretraining_until: found no validation curve, expected validation",
        ),
    ],
)
def test_a_wrong_rule_is_named(config, change, message):
    wrong = copy.deepcopy(config)
    wrong["tasks"]["slices"] |= change
    with pytest.raises(ValueError, match=message):
        Study(wrong)
