"""Counts in processes of their own, of which one is killed at a moment; what is left of them afterwards.

By hand, 20 moments each: ``python tests/dying_counts.py 20``.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import nibabel as nib
import numpy as np

#: a count of files by the command line, and one after transforms, whose workers `multiprocessing` starts
COUNTS = {
    "files": "from monai_margincal.cli import main; raise SystemExit(main(['count', sys.argv[1], '--workers', '2']))",
    "transforms": """
if __name__ == "__main__":
    import glob
    from monai.transforms import LoadImaged
    from monai_margincal import count_labels
    data = [{"label": path} for path in glob.glob(sys.argv[1])]
    try:
        count_labels(data, transform=LoadImaged("label"), num_workers=2)
    except (RuntimeError, ValueError) as error:
        sys.exit(str(error))
""",
}
#: seconds from the start in which something is killed: both counts have begun, and none is at its end
BEGIN, END = {"files": 0.1, "transforms": 0.5}, {"files": 2.5, "transforms": 9.0}


#: what the command line of a worker holds
WORKER = {"files": "file_worker", "transforms": "spawn_main"}


@dataclass(frozen=True)
class Outcome:
    """How a count ended: status, standard error, seconds after the kill, processes that were left two seconds later."""

    code: int
    errors: str
    seconds: float
    left: list[str]


def make_labels(folder: Path, number: int = 1000) -> str:
    """Many names of one label that takes a moment to count."""
    label = (np.random.default_rng(0).random((256, 256, 60)) < 0.3).astype(np.uint8)
    nib.save(nib.Nifti1Image(label, np.eye(4)), folder / "000.nii.gz")
    for index in range(1, number):
        os.link(folder / "000.nii.gz", folder / f"{index:03d}.nii.gz")
    return f"{folder}/*.nii.gz"


def processes(marker: str) -> dict[int, str]:
    """Command lines of the living processes that inherited a mark in their environment."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if marker.encode() in (folder / "environ").read_bytes():
                found[int(folder.name)] = (folder / "cmdline").read_bytes().decode().replace("\0", " ")
        except OSError:
            continue
    return found


def run_and_kill(kind: str, pattern: str, victim: str, number: int, moment: float) -> Outcome:
    """Start a count; after some seconds send a signal to the process itself (``"parent"``) or to one of its workers."""
    mark = f"{random.getrandbits(64):x}"
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "count_it.py")
        script.write_text(f"import sys\n{COUNTS[kind]}")
        run = subprocess.Popen(
            [sys.executable, str(script), pattern],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "DYING_COUNT": mark, "OMP_NUM_THREADS": "1"},
        )
        time.sleep(moment)
        victims = [run.pid]
        deadline = time.monotonic() + 30
        while victim == "worker":
            workers = [
                # not what the imports of the main process start for a moment
                pid
                for pid, words in processes(mark).items()
                if pid != run.pid and WORKER[kind] in words
            ]
            victims = random.sample(workers, 1) if workers else []
            if victims or run.poll() is not None or time.monotonic() > deadline:
                break
            time.sleep(0.01)
        for pid in victims:
            os.kill(pid, number)
        began = time.monotonic()
        try:
            _, errors = run.communicate(timeout=120)
        finally:
            run.kill()
        seconds = time.monotonic() - began
        deadline = time.monotonic() + 2
        while processes(mark) and time.monotonic() < deadline:
            time.sleep(0.05)
        left = processes(mark)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        return Outcome(run.returncode, errors, seconds, list(left.values()))


def main(moments: int) -> None:
    """Say of every moment how the count ended."""
    with tempfile.TemporaryDirectory() as folder:
        pattern = make_labels(Path(folder))
        for kind in sys.argv[2:] or COUNTS:
            for victim, name in [
                ("worker", "SIGKILL"),
                ("worker", "SIGTERM"),
                ("parent", "SIGTERM"),
                ("parent", "SIGHUP"),
                ("parent", "SIGINT"),
                ("parent", "SIGKILL"),
            ]:
                if kind == "transforms" and name == "SIGINT":
                    continue  # the script is the user's, and so is its traceback
                for _ in range(moments):
                    moment = random.uniform(BEGIN[kind], END[kind])
                    outcome = run_and_kill(kind, pattern, victim, signal.Signals[name], moment)
                    bad = outcome.seconds > 5 or outcome.left or "Traceback" in outcome.errors
                    print(
                        "BAD" if bad else "ok ",
                        f"{kind:<10} {victim} {name} {moment:.2f}: {outcome.code}, {outcome.seconds:.1f} s,",
                        f"{len(outcome.left)} left, {outcome.errors if bad else outcome.errors[:70]!r}",
                        flush=True,
                    )


if __name__ == "__main__":
    main(int(sys.argv[1]))
