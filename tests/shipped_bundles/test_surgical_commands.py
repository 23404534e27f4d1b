"""The instrument bundle as a user runs it, for each task: from the data set's folders to scores and masks."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from instrument_frames import name_of, write_endovis2017
from metrics_rows import last_metrics
from PIL import Image

from monai_margincal.cli import main
from monai_margincal.datasets import instrument_class_names, read_datalist
from monai_margincal.margins import class_margins

BUNDLE = Path(__file__).resolve().parents[2] / "bundles" / "surgical_instrument_coplenet"
TASKS = ("binary", "parts", "types")
TRAINING = {"epochs": 2, "patch_size": [24, 24], "batch_size": 4, "learning_rate": 0.001}
#: the four upper rows of every label that is used are void
VOID_ROWS = 4


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return write_endovis2017(tmp_path_factory.mktemp("endovis"))


@pytest.fixture(scope="module", params=TASKS)
def run_of_task(request, root, command, tmp_path_factory):
    """A folder in which a network was trained on fold 1 of a task and evaluated; the task; the log of both."""
    folder = tmp_path_factory.mktemp(request.param)
    whole = folder / "whole.json"
    options = ["--task", request.param, "--split", "fold", "--held-out", "1", "--output", str(whole)]
    assert main(["datalist", "endovis2017", str(root), *options]) == 0
    flags = {"bundle": BUNDLE, "task": request.param, "datalist_file": few(whole, folder / "list.json")}
    trained = command(folder, ("train",), **flags, **TRAINING)
    return folder, request.param, trained, command(folder, ("train", "evaluate"), **flags)


def few(source, target):
    """Two frames of every sequence, with labels of which a part is void."""
    sections = read_datalist(source)
    for name, items in sections.items():
        sections[name] = [item for item in items if item["case"].endswith(("frame020", "frame100"))]
        for item in sections[name]:
            values = np.array(Image.open(item["label"]))
            values[:VOID_ROWS] = 255
            item["label"] = str(target.parent / f"void_{item['case']}.png")
            Image.fromarray(values).save(item["label"])
    target.write_text(json.dumps(sections))
    return target


def labels(folder, section):
    items = read_datalist(folder / "list.json")[section]
    return {item["case"]: np.asarray(Image.open(item["label"])) for item in items}


def test_training_counts_classes_and_not_void(run_of_task):
    folder, task, trained, _ = run_of_task
    assert trained.output.count("train_loss: ") == 2 * 3  # 12 frames, 4 at a time
    counts = json.loads((folder / "eval" / "class_counts.json").read_text())
    names = instrument_class_names(task)
    assert counts["names"] == names
    values = np.concatenate([label.ravel() for label in labels(folder, "training").values()])
    assert counts["counts"] == np.bincount(values[values != 255], minlength=len(names)).tolist()
    weights = torch.load(folder / "models" / "model.pt", weights_only=True)
    assert {tensor.shape[0] for name, tensor in weights.items() if name.endswith("bias")} >= {len(names)}


def test_rarer_classes_have_larger_margins(run_of_task):
    folder, _, _, _ = run_of_task
    counts = json.loads((folder / "eval" / "class_counts.json").read_text())["counts"]
    assert min(counts) > 0, "every class is in the training frames"
    margins = class_margins(counts).negative.tolist()
    assert sorted(range(len(counts)), key=counts.__getitem__) == sorted(
        range(len(counts)), key=margins.__getitem__, reverse=True
    )


def test_training_writes_the_decision_of_its_weights_without_void(run_of_task, root, command):
    folder, task, _, _ = run_of_task
    decision = json.loads((folder / "models" / "decision.json").read_text())
    assert decision["class_names"] == instrument_class_names(task)
    assert len(decision["offsets"]) == len(decision["class_names"])
    run = command(
        folder, ("inference",), bundle=BUNDLE, task=task, output_dir="decided", image_pattern="{case}.png",
        dataset_dir=root / "instrument_dataset_1" / "left_frames", cases="frame020",
    )  # fmt: skip
    assert "models/decision.json" in run.output


def test_scores_are_those_of_the_saved_masks(run_of_task, root, command):
    """By NumPy, from the masks of inference and the labels, by sequence and pooled."""
    folder, task, _, evaluated = run_of_task
    names, truth = instrument_class_names(task), labels(folder, "validation")
    masks = {}
    for number in (1, 3):
        command(
            folder, ("inference",), bundle=BUNDLE, task=task, output_dir=f"masks{number}", image_pattern="{case}.png",
            dataset_dir=root / f"instrument_dataset_{number}" / "left_frames", cases="frame020,frame100",
            decision="argmax",
        )  # fmt: skip
        for frame in (20, 100):
            path = folder / f"masks{number}" / name_of(frame).replace(".png", "_mask.png")
            masks[f"{number}_frame{frame:03d}"] = np.asarray(Image.open(path))
    with (folder / "eval" / "scores.csv").open() as file:
        rows = {row["sequence"]: row for row in csv.DictReader(file)}
    assert set(rows) == {"instrument_dataset_1", "instrument_dataset_3", "all"}
    for sequence, row in rows.items():
        cases = [case for case in truth if sequence == "all" or sequence.endswith(case.split("_")[0])]
        assert int(row["images"]) == len(cases) > 0
        true, predicted = (np.concatenate([maps[case].ravel() for case in cases]) for maps in (truth, masks))
        true, predicted = true[true != 255], predicted[true != 255]
        ious, recalls = [], []
        for index, name in enumerate(names):
            union = ((true == index) | (predicted == index)).sum()
            both, own = ((true == index) & (predicted == index)).sum(), (true == index).sum()
            ious.append(both / union if union else 1.0)
            recalls.append(both / own if own else 1.0)
            assert float(row[f"iou_{name}"]) == pytest.approx(ious[-1], abs=1e-6)
        assert float(row["mean_iou"]) == pytest.approx(np.mean(ious[1:]), abs=1e-6)
        assert float(row["pixel_accuracy"]) == pytest.approx(np.mean(recalls[1:]), abs=1e-6)
    assert len({mask.tobytes() for mask in masks.values()}) > 1, "one answer for all frames would prove nothing"
    metrics = last_metrics(folder / "eval" / "metrics.csv")
    for word in ("iou", "dice"):
        assert metrics[f"val_{word}"] == pytest.approx(float(rows["all"][f"mean_{word}"]), abs=1e-6)
    assert re.search(r"scores by sequence, also in eval/scores\.csv:\s+sequence +images +mean_iou", evaluated.output)
