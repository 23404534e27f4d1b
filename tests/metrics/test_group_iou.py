"""Scores by group: against a confusion matrix by NumPy, in one process and in two."""

from __future__ import annotations

import csv
import socket

import numpy as np
import pytest
import torch
import torch.distributed as dist
from ignite.engine import Engine
from monai.data import DataLoader, Dataset
from monai.engines import SupervisedEvaluator

from monai_margincal.metrics import GroupIoUHandler

NAMES = ["background", "shaft", "wrist"]


def items(void=255):
    g = torch.Generator().manual_seed(0)
    for index in range(7):
        label = torch.randint(0, 3 if index % 2 else 2, (1, 6, 5), generator=g)
        label[0, 0, :2] = void
        pred = torch.randint(0, 3, (1, 6, 5), generator=g)
        yield {"pred": pred.to(torch.uint8), "label": label.float(), "sequence": f"film{index % 3}"}


def run(data, file, **options):
    engine = Engine(lambda _, batch: batch)
    handler = GroupIoUHandler(3, file, NAMES, **{"ignore_index": 255, **options})
    handler.attach(engine)
    engine.run([data[start : start + 2] for start in range(0, len(data), 2)] or [[]])
    with file.open() as text:
        return list(csv.DictReader(text))


def by_numpy(data):
    truth, pred = (np.concatenate([np.asarray(item[key]).ravel() for item in data]) for key in ("label", "pred"))
    counted = truth != 255
    truth, pred = truth[counted], pred[counted]
    iou = [((truth == k) & (pred == k)).sum() / ((truth == k) | (pred == k)).sum() for k in range(3)]
    recall = [((truth == k) & (pred == k)).sum() / (truth == k).sum() if (truth == k).any() else 1.0 for k in range(3)]
    return iou, np.mean(iou[1:]), np.mean(recall[1:])


def test_every_row_is_one_confusion_matrix(tmp_path):
    data = list(items())
    rows = run(data, tmp_path / "scores.csv")
    assert [row["sequence"] for row in rows] == ["film0", "film1", "film2", "all"]
    assert [int(row["images"]) for row in rows] == [3, 2, 2, 7]
    for row in rows:
        own = [item for item in data if row["sequence"] in ("all", item["sequence"])]
        iou, mean, accuracy = by_numpy(own)
        assert [float(row[f"iou_{name}"]) for name in NAMES] == pytest.approx(iou, abs=1e-6)
        assert float(row["mean_iou"]) == pytest.approx(mean, abs=1e-6)
        assert float(row["pixel_accuracy"]) == pytest.approx(accuracy, abs=1e-6)


def test_absent_classes_are_one_or_left_out(tmp_path):
    label = torch.tensor([[[0, 1, 1]]])
    data = [{"pred": label, "label": label, "sequence": "a"}]
    (row, _) = run(data, tmp_path / "one.csv")
    assert (row["iou_wrist"], row["mean_iou"]) == ("1.0", "1.0")
    data[0]["pred"] = torch.tensor([[[0, 0, 1]]])
    (row, _) = run(data, tmp_path / "left_out.csv", absent="exclude")
    assert (row["iou_wrist"], row["mean_iou"], row["pixel_accuracy"]) == ("", "0.5", "0.5")


def test_a_void_class_inside_the_range_has_no_score(tmp_path):
    data = list(items(void=0))
    rows = run(data, tmp_path / "scores.csv", ignore_index=0)
    assert {row["iou_background"] for row in rows} == {""}
    assert all(row["mean_iou"] for row in rows)


def test_images_without_a_group_are_in_the_last_row_only(tmp_path):
    data = [{key: value for key, value in item.items() if key != "sequence"} for item in items()]
    (row,) = run(data, tmp_path / "scores.csv")
    assert (row["sequence"], row["images"]) == ("all", "7")
    data[0]["group"] = "patient"
    assert [row["sequence"] for row in run(data, tmp_path / "scores.csv")] == ["patient", "all"]


def test_groups_come_from_the_batch_of_an_evaluator(tmp_path):
    """Its output holds image, label and prediction alone."""
    data = [{**item, "image": item["pred"].float()} for item in items()]
    evaluator = SupervisedEvaluator(
        device="cpu",
        val_data_loader=DataLoader(Dataset(data), batch_size=2),
        network=torch.nn.Identity(),
        val_handlers=[GroupIoUHandler(3, tmp_path / "evaluator.csv", NAMES, ignore_index=255)],
    )
    evaluator.run()
    run(data, tmp_path / "scores.csv")
    assert (tmp_path / "evaluator.csv").read_text() == (tmp_path / "scores.csv").read_text()


def test_a_second_run_begins_anew(tmp_path):
    data = list(items())
    engine = Engine(lambda _, batch: batch)
    GroupIoUHandler(3, tmp_path / "scores.csv", NAMES, ignore_index=255).attach(engine)
    engine.run([data])
    first = (tmp_path / "scores.csv").read_text()
    engine.run([data])
    assert (tmp_path / "scores.csv").read_text() == first


def test_what_cannot_work_is_named_before_the_run(tmp_path):
    with pytest.raises(ValueError, match=r"absent must be one of \('one', 'exclude'\), found 'zero'"):
        GroupIoUHandler(3, tmp_path / "scores.csv", absent="zero")
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match=r"scores\.csv: cannot be written"):
        GroupIoUHandler(3, tmp_path / "file" / "scores.csv").attach(Engine(lambda _, batch: batch))


def worker(rank, port, folder):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    engine = Engine(lambda _, batch: batch)
    GroupIoUHandler(3, folder / "two.csv", NAMES, ignore_index=255).attach(engine)
    engine.run([list(items())[rank::2]])
    dist.destroy_process_group()


def test_two_processes_give_the_table_of_one(tmp_path):
    run(list(items()), tmp_path / "one.csv")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    torch.multiprocessing.spawn(worker, args=(port, tmp_path), nprocs=2)
    assert (tmp_path / "two.csv").read_text() == (tmp_path / "one.csv").read_text()
