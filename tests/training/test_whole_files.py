"""At any moment one complete checkpoint: while the next is written, when that fails, when names stay the same."""

from __future__ import annotations

import stat

import pytest
import torch
from ignite.engine import Engine

from monai_margincal.training import WholeFileCheckpointSaver

INTERVAL = {"save_interval": 1, "n_saved": 1}
BEST = {"save_key_metric": True, "key_metric_name": "iou", "key_metric_filename": "model.pt"}


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def run(tmp_path):
    """Three epochs; the network holds the epoch's number, the metric of it is what is given."""

    def run(metrics=(0.1, 0.2, 0.3), **options):
        network = torch.nn.Linear(1, 1, bias=False)
        trainer = Engine(lambda engine, batch: None)

        @trainer.on("EPOCH_STARTED")
        def _(engine):
            network.weight.data.fill_(engine.state.epoch)
            engine.state.metrics["iou"] = metrics[engine.state.epoch - 1]

        WholeFileCheckpointSaver(str(tmp_path), {"network": network}, **options).attach(trainer)
        trainer.run([0], max_epochs=3)

    return run


def saved_epoch(path):
    return torch.load(path, weights_only=True)["weight"].item()


@pytest.mark.parametrize(
    ("options", "left"),
    [
        (INTERVAL, {"network_epoch=3.pt": 3}),
        ({**INTERVAL, "n_saved": 2}, {"network_epoch=2.pt": 2, "network_epoch=3.pt": 3}),
        (BEST, {"model.pt": 3}),
        ({"save_final": True, "final_filename": "last.pt"}, {"last.pt": 3}),
    ],
    ids=["interval", "two", "best", "final"],
)
def test_leaves_what_monai_s_saver_leaves(run, tmp_path, options, left):
    run(**options)
    assert names(tmp_path) == list(left)
    assert {name: saved_epoch(tmp_path / name) for name in left} == left


def test_the_best_stays(run, tmp_path):
    run(metrics=(0.1, 0.5, 0.3), **BEST)
    assert saved_epoch(tmp_path / "model.pt") == 2


@pytest.mark.parametrize(("options", "name"), [(INTERVAL, "network_epoch=1.pt"), (BEST, "model.pt")])
def test_the_old_file_is_whole_while_the_next_is_written(run, tmp_path, monkeypatch, options, name):
    """Half of the second file is written, then the disk is full: MONAI's saver has deleted the first by then."""
    save = torch.save

    def half(value, file):
        if value["weight"].item() < 2:
            return save(value, file)
        assert saved_epoch(tmp_path / name) == 1
        file.write(b"half a file")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", half)
    with pytest.raises(OSError, match="No space left"):
        run(**options)
    assert names(tmp_path) == [name]
    assert saved_epoch(tmp_path / name) == 1


def test_others_may_read_as_any_new_file(run, tmp_path):
    run(**INTERVAL)
    (tmp_path / "plain").write_text("")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert len(modes) == 1


def test_a_full_disk_is_named(run, tmp_path, monkeypatch):
    def fail(*arguments):
        raise RuntimeError("[enforce fail at inline_container.cc:745] . PytorchStreamWriter failed writing file data/0")

    monkeypatch.setattr(torch, "save", fail)
    with pytest.raises(OSError, match=r"network_epoch=1\.pt: cannot be written: RuntimeError: .*failed writing"):
        run(**INTERVAL)
    assert list(tmp_path.iterdir()) == []
