"""Counting shared between the processes of a gloo group: one total on every rank, no hang."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import pytest

from monai_margincal.statistics import count_labels

WORKER = """
import json, sys
from datetime import timedelta
import numpy as np
import torch.distributed as dist
from monai.data import DataLoader, Dataset, DistributedSampler
from monai_margincal.processes import end_process_group, start_process_group
from monai_margincal.statistics import count_labels, scan_labels

start_process_group("cpu", timeout=timedelta(seconds=120))
answers = []
for folder, mode in json.loads(sys.argv[1]):
    files = folder + "/*.nii.gz"
    try:
        if mode == "loader":
            data = Dataset([{"label": np.array([[k % 3, 1]])} for k in range(5)], dict)
            sampler = DistributedSampler(data, even_divisible=False, shuffle=True)
            counts = count_labels(DataLoader(data, batch_size=2, sampler=sampler), num_classes=3)
        elif mode == "report":
            counts = scan_labels(files, num_classes=3, on_error="report").counts
        else:
            counts = count_labels(files, num_classes=3, cache_dir=folder + "/cache" if mode == "cached" else None)
        answers.append([counts.counts.tolist(), {name: list(values) for name, values in counts.cases.items()}])
    except ValueError as error:
        answers.append(str(error))
print(json.dumps([dist.get_rank(), answers]), flush=True)
dist.barrier()
end_process_group()
"""


def run_ranks(size: int, jobs: list[tuple[Path, str]]) -> list[list[Any]]:
    """The answers of every rank to every job; all jobs in one group, because starting one takes long."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = []
    for rank in range(size):
        environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1"}
        environment |= {"MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-c", WORKER, json.dumps([(str(folder), mode) for folder, mode in jobs])]
        processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment))
    try:
        outputs = [process.communicate(timeout=300)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    answers = dict(json.loads(line) for output in outputs for line in output.splitlines() if line.startswith("["))
    assert set(answers) == set(range(size))
    return [answers[rank] for rank in range(size)]


def make(folder: Path, count: int) -> Path:
    folder.mkdir()
    for case in range(count):
        array = np.random.default_rng(case).integers(0, 3, (6, 5, 4 + case)).astype(np.uint8)
        nib.save(nib.Nifti1Image(array, np.eye(4)), folder / f"case_{case}.nii.gz")
    return folder


def alone(folder: Path) -> list[Any]:
    counts = count_labels(f"{folder}/*.nii.gz", num_classes=3)
    return [counts.counts.tolist(), {name: list(values) for name, values in (counts.cases or {}).items()}]


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_rank_has_the_same_total_and_nobody_hangs(tmp_path: Path, size: int) -> None:
    """Uneven shares, an empty share, one cache for all, a fault that one rank meets, a shared loader."""
    five, two, faulty = (make(tmp_path / name, cases) for name, cases in (("five", 5), ("two", 2), ("faulty", 4)))
    (faulty / "case_1.nii.gz").write_bytes(b"")
    jobs = [(five, "files"), (two, "files"), (five, "cached"), (faulty, "files"), (faulty, "report"), (five, "loader")]
    (faulty / "case_1.nii.gz").rename(tmp_path / "aside")
    without_fault = alone(faulty)
    (tmp_path / "aside").rename(faulty / "case_1.nii.gz")
    for answers in run_ranks(size, jobs):
        assert answers[0] == answers[2] == alone(five)
        assert answers[1] == alone(two)
        assert "case_1.nii.gz: found" in answers[3]
        assert answers[4] == without_fault
        assert answers[5][0] == [2, 7, 1]
        assert len(answers[5][1]) == 5
