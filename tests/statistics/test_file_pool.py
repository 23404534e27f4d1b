"""Workers that count files: they import nothing of the user's, and whatever becomes of one, the count ends with a line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import pytest
from dying_counts import BEGIN, END, make_labels, run_and_kill

from monai_margincal.counting import CaseRecord
from monai_margincal.statistics import count_labels, file_pool
from monai_margincal.statistics.file_pool import count_files

SHADOWS = [
    "random.py",
    "json.py",
    "queue.py",
    "os.py",
    "numpy.py",
    "nibabel.py",
    "sitecustomize.py",
    "monai_margincal.py",
]


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    found = []
    for case in range(6):
        found.append(tmp_path / f"{case}.nii.gz")
        nib.save(nib.Nifti1Image(np.full((4, 4, 2), case, np.uint8), np.eye(4)), found[-1])
    return found


@pytest.mark.parametrize("python_path", [None, "", ".", "FOLDER"])
def test_workers_do_not_import_from_the_working_folder(
    tmp_path: Path, paths: list[Path], monkeypatch: pytest.MonkeyPatch, python_path: str | None
) -> None:
    for name in SHADOWS:
        (tmp_path / name).write_text("raise SystemExit('imported from the working folder')")
    before = os.environ.get("PYTHONPATH", "")
    if python_path is not None:
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([python_path.replace("FOLDER", str(tmp_path)), before]))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), *sys.path])
    assert count_labels([path.name for path in paths], num_workers=2).total == 6 * 32


def fake_worker(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Let workers run this in place of what they do."""
    monkeypatch.setattr(file_pool, "_START", f"import os, sys, signal, time\nsys.path[:] = sys.argv[2:]\n{code}")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("raise SystemExit(3)", "exit code 3"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL, as when memory runs out"),
        ("print('ImportError: no numpy')", "ImportError: no numpy"),
        ("os.close(1); time.sleep(60)", "SIGKILL"),
    ],
)
def test_a_worker_that_cannot_start_ends_the_count(
    paths: list[Path], monkeypatch: pytest.MonkeyPatch, code: str, message: str
) -> None:
    fake_worker(monkeypatch, code)
    for on_error in ("raise", "report"):
        with pytest.raises(RuntimeError, match=rf"a worker process could not start \({message}.*\), expected one"):
            count_labels(paths, num_workers=2, on_error=on_error)


def test_no_process_at_all(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any, **options: Any) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", fail)
    with pytest.raises(
        RuntimeError, match=r"could not start \(.*temporarily unavailable\), expected one: fewer workers"
    ):
        count_labels(paths, num_workers=2)


@pytest.mark.parametrize(
    "answer",
    ["", '{"record": {"na', "\x00\x00"],
    ids=["none", "half", "noise"],
)
def test_a_worker_that_is_killed_while_it_answers(
    paths: list[Path], monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    fake_worker(
        monkeypatch,
        "print('ready', flush=True)\nsys.stdin.readline()\n"
        f"print({answer!r}, end='', flush=True)\nos.kill(os.getpid(), signal.SIGTERM)",
    )
    results = dict(count_files(paths, None, None, 2))
    assert set(results) == set(paths)
    for path, error in results.items():
        assert (
            str(error) == f"{path}: the worker process died (SIGTERM) while it counted this file, expected its counts"
        )
    with pytest.raises(ValueError, match=r"\.nii\.gz: the worker process died"):
        count_labels(paths, num_workers=2)


def test_a_file_that_kills_its_worker_is_left_out(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    start = file_pool._START.replace(
        "serve(answers)",
        "import monai_margincal.statistics.file_worker as worker\nreal = worker.count_file\n"
        "worker.count_file = lambda path, *rest: os.kill(os.getpid(), 9) if '3' in path.name else real(path, *rest)\n"
        "serve(answers)",
    )
    monkeypatch.setattr(file_pool, "_START", start)
    results = dict(count_files(paths, None, None, 2))
    assert [path for path, result in results.items() if not isinstance(result, CaseRecord)] == [paths[3]]
    with pytest.warns(UserWarning, match=r"3\.nii\.gz: the worker process died \(SIGKILL, as when memory runs out\)"):
        assert count_labels(paths, num_workers=2, on_error="report").total == 5 * 32


def test_a_stopped_worker_is_ended_with_the_others(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """One worker is stopped, another one fails: the count does not wait for the first."""
    fake_worker(
        monkeypatch,
        "print('ready', flush=True)\nfirst = '/0.nii' in sys.stdin.readline()\n"
        "if first: os.kill(os.getpid(), signal.SIGSTOP)\ntime.sleep(0.3)",
    )
    began = time.monotonic()
    with pytest.raises(ValueError, match=r"the worker process died \(exit code 0\)"):
        count_labels(paths, num_workers=2)
    assert time.monotonic() - began < 5


def test_nothing_is_left_when_the_caller_stops(paths: list[Path]) -> None:
    threads = threading.active_count()
    results = count_files(paths * 50, None, None, 2)
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert threading.active_count() == threads
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    for child in children:
        assert b"file_worker" not in Path(f"/proc/{child}/cmdline").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["files", "transforms"])
@pytest.mark.parametrize(
    ("victim", "number"),
    [
        ("worker", signal.SIGKILL),
        ("worker", signal.SIGTERM),
        ("parent", signal.SIGTERM),
        ("parent", signal.SIGHUP),
        ("parent", signal.SIGKILL),
    ],
)
def test_any_death_at_any_moment(tmp_path: Path, kind: str, victim: str, number: int) -> None:
    """`tests/dying_counts.py` tries more moments."""
    pattern = make_labels(tmp_path)
    for moment in (BEGIN[kind], (BEGIN[kind] + END[kind]) / 2):
        outcome = run_and_kill(kind, pattern, victim, number, moment)
        assert "Traceback" not in outcome.errors
        assert not outcome.left
        assert outcome.seconds < 20
        assert outcome.code == (1 if victim == "worker" else -number) or outcome.code == 0
