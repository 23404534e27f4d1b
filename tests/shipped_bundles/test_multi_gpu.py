"""Two processes with gloo on the CPU: training, evaluation, one log."""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nibabel
import numpy as np
import pytest
import torch
from metrics_rows import last_metrics

from monai_margincal.decisions import ClassOffsets
from monai_margincal.decisions.weights_digest import weights_digest

TESTS = Path(__file__).resolve().parents[1]
BUNDLE = TESTS.parent / "bundles" / "covid19_ct_lesion_coplenet"


def launch(cwd, processes, *configs, **overrides):
    """Run the configs in so many processes; what they print."""
    quick = {} if "evaluate" in configs else {"patch_size": [32, 32], "slices_per_volume": 2, "batch_size": 1}
    arguments = {
        "config_file": [str(BUNDLE / "configs" / f"{name}.json") for name in configs],
        "bundle_root": str(BUNDLE), "output_dir": "eval", "ckpt_dir": "models", "dataset_dir": str(cwd / "data"),
        "features": [8, 16, 32, 64, 128], "num_workers": 0,
        "val_cases": ["c0", "c2", "c3"], "device": "cpu", **quick, **overrides,
    }  # fmt: skip
    start = ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={processes}"] if processes > 1 else []
    path = os.pathsep.join(filter(None, [str(TESTS / "threads_at_exit"), os.environ.get("PYTHONPATH")]))
    line = [sys.executable, *start, "-m", "monai.bundle", "run"]
    for key, value in arguments.items():
        line += [f"--{key}", str(value)]
    done = subprocess.run(
        line, cwd=cwd, capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": path},
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("two")
    for index in range(6):
        image = np.random.RandomState(index).randint(-1000, 200, (48, 40, 3)).astype(np.int16)
        label = np.zeros(image.shape, np.uint8)
        if index != 3:
            label[10 : 14 + 2 * index, 12:20, 1] = 1
        for kind, array in (("images", image), ("labels", label)):
            (root / "data" / kind).mkdir(parents=True, exist_ok=True)
            nibabel.save(nibabel.Nifti1Image(array, np.eye(4)), root / "data" / kind / f"c{index}.nii.gz")
    return root


@pytest.fixture(scope="module")
def trained(folder):
    return launch(folder, 2, "train", "multi_gpu_train", epochs=2, early_stop_patience=5, warmup_epochs=1)


@pytest.mark.slow
def test_training_in_two_processes(trained, folder):
    """Model-zoo issues 158 and 545, Project-MONAI/MONAI#5354; each rank draws, one saves and logs."""
    code, output = trained
    assert code == 0, output
    assert "threads of gloo at exit" not in output
    assert re.findall(r"Epoch: (\d)/2, Iter: (\d)/2", output) == [("1", "1"), ("1", "2"), ("2", "1"), ("2", "2")]
    assert len(re.findall(r"Epoch\[2\] Metrics -- .*\bval_iou: ", output)) == 1
    assert output.count("Saved checkpoint at epoch: 2") == 1
    weights = torch.load(folder / "models" / "model.pt", weights_only=True)
    assert not any(key.startswith("module.") for key in weights), "every client reads a plain state dict"
    decision = ClassOffsets.from_json(folder / "models" / "decision.json")
    assert decision.fitted_on["weights"] == weights_digest(weights)
    assert decision.fitted_on["cases"] == 3
    writers = {path.name.split(".")[-2] for path in (folder / "eval").glob("events.out.tfevents*")}
    assert len(writers) == 1, "trainer, evaluator and pictures of one rank"


@pytest.mark.slow
def test_evaluation_in_two_processes_gives_the_metrics_of_one(trained, folder):
    results = []
    for processes, configs in ((1, ("train", "evaluate")), (2, ("train", "evaluate", "multi_gpu_evaluate"))):
        places = {"output_dir": f"eval{processes}", "decision": f"decision{processes}.json"}
        code, output = launch(folder, processes, *configs, **places)
        assert code == 0, output
        assert "threads of gloo at exit" not in output
        results.append(list(last_metrics(folder / f"eval{processes}" / "metrics.csv").items()))
        with (folder / f"eval{processes}" / "val_iou_raw.csv").open() as file:
            results[-1] += sorted(csv.reader(file))
    assert results[0] == results[1]
    assert (folder / "decision1.json").read_text() == (folder / "decision2.json").read_text()
    assert len(results[0]) >= 5 + 4


@pytest.mark.slow
def test_fewer_cases_than_processes_are_named(trained, folder):
    code, output = launch(folder, 2, "train", "evaluate", "multi_gpu_evaluate", val_cases=["c0"])
    assert code != 0
    assert "the dataset length is less than the number of participating ranks" in output


@pytest.mark.slow
def test_an_error_of_one_process_ends_all(folder, tmp_path):
    """The second process cannot read its scan, while the first waits for the second's part of the metric."""
    shutil.copytree(folder / "data", tmp_path / "data")
    broken = tmp_path / "data" / "images" / "c2.nii.gz"
    broken.write_bytes(broken.read_bytes()[:2000])
    code, output = launch(tmp_path, 2, "train", "multi_gpu_train", epochs=1)
    assert code != 0
    # the other one may have time to say that the connection was closed
    (line,) = re.findall(r"^\[rank1\]: error: (.*)$", output, re.MULTILINE)
    assert line.startswith(str(broken))
