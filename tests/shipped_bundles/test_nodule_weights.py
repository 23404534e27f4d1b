"""What the page on the nodule weights says is what they do, as a user would run them, on patients of no training."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
import torch
from nodule_list import datalist
from shared import SHARED, needs_shared

from monai_margincal.cli.demo.patients import demo_patients
from monai_margincal.samples import sample_dir

_spec = importlib.util.spec_from_file_location(
    "nodules_benchmark", Path(__file__).parents[1] / "benchmarks" / "nodules.py"
)
benchmark = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(benchmark)

FLAGS = {"features": [16, 32, 64, 128, 256], "norm": "batch", "lung_crop": False, "device": "cpu"}


@pytest.fixture(scope="module")
def page(bundle):
    """What the page says of the shipped weights themselves."""
    text = (bundle / "docs" / "nodules.md").read_text(encoding="utf-8")
    return text.split("### The shipped weights")[1].split("\n#")[0]


def rows_of(text):
    """Row -> all its numbers, of the tables with an IoU."""
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if re.search(r"\| 0\.\d{3} \(", line)]
    return {name: [float(n) for n in re.findall(r"\d+(?:\.\d+)?", " ".join(cells))] for name, *cells in lines}


def measured(command, bundle, capsys, folder, boxes, cases):
    flags = {"dataset_dir": boxes, "cases": cases, "checkpoint": bundle / "models" / "nodules" / "model.pt"}
    run = command(folder, ("inference",), **FLAGS, **flags)
    capsys.readouterr()
    benchmark.main(Path(boxes), run.cwd / "eval")
    return rows_of(capsys.readouterr().out)


def test_held_out_patients_of_the_package_give_the_numbers_of_the_page(command, bundle, page, capsys, tmp_path):
    cases = [patient.case for patient in demo_patients()["held_out"]]
    found = measured(command, bundle, capsys, tmp_path, sample_dir("lidc_nodules"), cases)
    stated = rows_of(page)["one each, those of the package"]
    # another processor may round a few voxels to the other side
    assert stated == pytest.approx(found["all"], abs=3e-3)


@needs_shared
def test_all_nodules_of_held_out_patients_give_the_numbers_of_the_page(command, bundle, page, capsys, tmp_path):
    boxes = SHARED / "data" / "lidc_nodules"
    listed = datalist.boxes(boxes)
    folds = datalist.fold_of_groups(listed)
    cases = [item["case"] for item in listed if folds[item["group"]] == 0]
    found = measured(command, bundle, capsys, tmp_path, str(boxes), cases)
    stated = rows_of(page)
    assert len(cases) == 158
    for name, numbers in found.items():
        assert stated[name] == pytest.approx(numbers, abs=3e-3), name


def test_the_weights_hold_only_finite_numbers(bundle):
    weights = torch.load(bundle / "models" / "nodules" / "model.pt", weights_only=True)
    assert all(torch.isfinite(tensor).all() for tensor in weights.values())
    assert (bundle / "models" / "nodules" / "model.pt").stat().st_size < 25e6, "the limit of the model zoo for one file"
