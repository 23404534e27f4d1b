"""Which decision a run takes, and what it says of it."""

from __future__ import annotations

import logging

import pytest
import torch

from monai_margincal.decisions import ClassOffsets
from monai_margincal.decisions.bake import baked_weights
from monai_margincal.decisions.weights_digest import weights_digest
from monai_margincal.networks import COPLENet
from monai_margincal.workflows import chosen_offsets
from monai_margincal.workflows.chosen_offsets import choose_decision, digest_of_file

NAMES = ["background", "lesion"]


@pytest.fixture
def weights(tmp_path):
    path = tmp_path / "model.pt"
    torch.save({"bias": torch.tensor([0.5])}, path)
    return path


def fitted_for(state):
    return ClassOffsets([0, 1.5], NAMES, {"weights": weights_digest(state)})


def test_beside_the_weights_that_it_was_fitted_for(weights, caplog):
    mine = fitted_for({"bias": torch.tensor([0.5])})
    mine.to_json(weights.parent / "decision.json")
    with caplog.at_level(logging.INFO):
        assert chosen_offsets(None, weights, NAMES) == mine
    assert caplog.messages == [
        f"decision: {weights.parent / 'decision.json'}: ClassOffsets(background: +0, lesion: +1.5)"
    ]


def test_of_other_weights_it_is_left_aside_or_by_name_taken_with_a_warning(weights, caplog):
    path = weights.parent / "decision.json"
    other = fitted_for({"bias": torch.tensor([0.25])})
    other.to_json(path)
    with caplog.at_level(logging.WARNING):
        assert chosen_offsets(None, weights, NAMES) is None
        assert chosen_offsets(str(path), weights, NAMES) == other
    assert (
        caplog.messages[0] == f"decision: the largest logit, since {path} was fitted for other weights than {weights}"
    )
    assert caplog.messages[1].startswith(f"decision: {path}: ClassOffsets(")
    assert caplog.messages[1].endswith(f"; {path} was fitted for other weights than {weights}")


def test_weights_with_offsets_in_them_are_not_given_more(tmp_path, caplog):
    """Where the file says nothing of the weights, only the mark of the weights themselves tells."""
    network = torch.nn.Conv2d(3, 2, 1)
    torch.save(baked_weights(network.state_dict(), ClassOffsets([0, 1]))[0], tmp_path / "baked.pt")
    ClassOffsets([0, 1]).to_json(tmp_path / "decision.json")
    with caplog.at_level(logging.WARNING):
        assert chosen_offsets(None, tmp_path / "baked.pt", NAMES) is None
    assert caplog.messages == [f"decision: the largest logit, since {tmp_path / 'baked.pt'} has offsets in it already"]


def test_none_there_or_none_wanted(weights, caplog):
    with caplog.at_level(logging.INFO):
        assert chosen_offsets(None, weights, NAMES) is None
        ClassOffsets([0, 1]).to_json(weights.parent / "decision.json")
        assert chosen_offsets("argmax", weights, NAMES) is None
    assert caplog.messages == [
        f"decision: the largest logit, since there is no {weights.parent / 'decision.json'}",
        "decision: the largest logit, as asked for",
    ]


def test_without_a_word_on_the_weights_or_without_weights_nothing_is_compared(weights):
    path = weights.parent / "decision.json"
    ClassOffsets([0, 1]).to_json(path)
    assert choose_decision(None, weights, NAMES)[2] is False
    fitted_for({"bias": torch.tensor([0.25])}).to_json(path)
    assert choose_decision(None, weights.parent / "engine.ts", NAMES).offsets is not None


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        (ClassOffsets([0, 1, 2]), r"d\.json: found offsets of 3 classes, expected \['background', 'lesion'\]"),
        (
            ClassOffsets([0, 1], ["background", "liver"]),
            r"d\.json: found offsets of \['background', 'liver'\], expected",
        ),
    ],
)
def test_other_classes_are_refused(offsets, message, tmp_path):
    offsets.to_json(tmp_path / "d.json")
    with pytest.raises(ValueError, match=message):
        chosen_offsets(tmp_path / "d.json", tmp_path / "model.pt", NAMES)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.json: no such file, expected a JSON file of class offsets"):
        chosen_offsets(tmp_path / "none.json", tmp_path / "model.pt", NAMES)


def test_the_digest_of_a_file_is_that_of_the_network_that_loads_it(tmp_path):
    """Half precision, a complete state of a training, names of a wrapped network; not a file of anything else."""
    network = COPLENet(features=(4, 8, 16, 32, 64))
    halves = {
        name: value.half() if value.is_floating_point() else value for name, value in network.state_dict().items()
    }
    loaded = COPLENet(features=(4, 8, 16, 32, 64))
    loaded.load_state_dict(halves)
    torch.save(halves, tmp_path / "half.pt")
    torch.save({"network": halves, "epoch": 3}, tmp_path / "state.pt")
    torch.save({f"module.{name}": value for name, value in halves.items()}, tmp_path / "wrapped.pt")
    for name in ("half", "state", "wrapped"):
        assert digest_of_file(tmp_path / f"{name}.pt") == weights_digest(loaded.state_dict()), name
    torch.save({"epoch": 3}, tmp_path / "epoch.pt")
    (tmp_path / "text.pt").write_text("no weights")
    assert [digest_of_file(tmp_path / f"{name}.pt") for name in ("epoch", "text", "none")] == [None] * 3
