"""`margincal convert-weights`: a published checkpoint becomes weights that load strictly; nothing unsafe is read."""

from __future__ import annotations

import json
import pickle

import pytest
import torch
from shared import GOLDEN

from monai_margincal import COPLENet, coplenet_config_of
from monai_margincal.cli import main


def published_checkpoint():
    """A file of the layout that was published for MONAI 0.2: every tensor of the golden list, under its wrapper."""
    listed = json.loads((GOLDEN / "coplenet_monai02.json").read_text())["parameters"]
    tensors = {
        name: torch.zeros(shape, dtype=torch.int64 if name.endswith("tracked") else torch.float32)
        for name, shape in listed
    }
    return {"model_state_dict": tensors, "epoch": 7}


def test_published_weights_load_strictly(tmp_path, capsys):
    torch.save(published_checkpoint(), tmp_path / "coplenet_pretrained_monai_dict.pt")
    arguments = ["convert-weights", str(tmp_path / "coplenet_pretrained_monai_dict.pt"), str(tmp_path / "model.pt")]
    assert main(arguments) == 0
    assert "features=(32, 64, 128, 256, 512)" in capsys.readouterr().out.replace("[", "(").replace("]", ")")
    state_dict = torch.load(tmp_path / "model.pt", weights_only=True)
    COPLENet(**coplenet_config_of(state_dict)).load_state_dict(state_dict)
    assert main(arguments) == 1
    assert "exists and is not overwritten" in capsys.readouterr().err


class Malicious:
    def __reduce__(self):
        return print, ("code of the file was run",)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda path: path.write_bytes(pickle.dumps(Malicious())), "found no file of plain tensors"),
        (lambda path: path.write_bytes(b""), "found no file of plain tensors"),
        (lambda path: torch.save({"encoder.weight": torch.zeros(2)}, path), "encoder.weight"),
    ],
    ids=["pickle", "empty", "other network"],
)
def test_other_files_are_refused_with_their_name(tmp_path, capsys, write, message):
    write(tmp_path / "weights.pt")
    assert main(["convert-weights", str(tmp_path / "weights.pt"), str(tmp_path / "model.pt")]) == 1
    output = capsys.readouterr()
    assert message in output.err
    assert "weights.pt" in output.err
    assert "code of the file was run" not in output.out
    assert not (tmp_path / "model.pt").exists()


def test_missing_file(tmp_path, capsys):
    assert main(["convert-weights", str(tmp_path / "no.pt"), str(tmp_path / "model.pt")]) == 1
    assert "no.pt: no such file" in capsys.readouterr().err
