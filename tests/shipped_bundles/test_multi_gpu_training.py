"""Training in two processes against one: what is averaged over both, a resumed run, a stop of all, an error that ends all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nibabel
import numpy as np
import pytest
import torch.distributed as dist

WORKER = Path(__file__).with_name("training_worker.py")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not dist.is_available() or not dist.is_gloo_available(), reason="torch was built without gloo"),
]


@pytest.fixture
def folder(tmp_path):
    """Four training cases, of which three have voxels to be ignored (class 2), and three for validation."""
    ignored = {"t0": 30, "t1": 4, "t3": 17}
    for index, case in enumerate(["t0", "t1", "t2", "t3", "v0", "v1", "v2"]):
        image = np.random.RandomState(index).randint(-1000, 200, (32, 32, 3)).astype(np.int16)
        label = np.zeros(image.shape, np.uint8)
        label[8 : 14 + index, 12:20, :] = 1
        image[label == 1] = 50
        for kind, array in (("images", image), ("labels", label)):
            (tmp_path / "data" / kind).mkdir(parents=True, exist_ok=True)
            nibabel.save(nibabel.Nifti1Image(array, np.eye(4)), tmp_path / "data" / kind / f"{case}.nii.gz")
        if case in ignored:
            label[:, : ignored[case]] = 2
            (tmp_path / "ignoring").mkdir(exist_ok=True)
            nibabel.save(nibabel.Nifti1Image(label, np.eye(4)), tmp_path / "ignoring" / f"{case}.nii.gz")
    return tmp_path


def two_processes(folder, check):
    processes = []
    for rank in range(2):
        environment = {"RANK": str(rank), "LOCAL_RANK": str(rank), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        processes.append(
            subprocess.Popen(
                [sys.executable, str(WORKER), str(folder), check],
                env={**os.environ, **environment, "CUDA_VISIBLE_DEVICES": ""},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    try:
        outputs = [process.communicate(timeout=240)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0, 0], "\n".join(outputs)
    assert all("every check passed" in output for output in outputs)


def test_the_margin_part_is_that_of_one_process_with_the_whole_batch(folder):
    for path in (folder / "ignoring").iterdir():
        path.rename(folder / "data" / "labels" / path.name)
    two_processes(folder, "averages")


def test_a_resumed_run_goes_on_to_the_bit(folder):
    two_processes(folder, "resume")


def test_early_stopping_stops_every_process(folder):
    two_processes(folder, "early_stop")
