"""Count many label files, in this process or in several worker processes."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np

from ..counting.case_record import CaseRecord
from ..counting.label_file import count_file
from .file_worker import READY

_PACKAGE = __name__.partition(".")[0]

#: What a worker runs. Its search path is that of this process, except for the working folder, where a file of the user may have
#: a module's name; the package is taken from where this process has it. Failures are reported to this process alone.
_START = f"""
import sys
sys.path[:] = sys.argv[2:]
import os
answers = os.dup(1)
os.dup2(2, 1)
try:
    from importlib.util import module_from_spec, spec_from_file_location
    spec = spec_from_file_location({_PACKAGE!r}, sys.argv[1])
    sys.modules[{_PACKAGE!r}] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[{_PACKAGE!r}])
    from {__name__.rpartition(".")[0]}.file_worker import serve
except BaseException as error:
    os.write(answers, f"{{type(error).__name__}}: {{error}}".encode(errors="backslashreplace"))
    os._exit(1)
serve(answers)
"""


def count_files(
    paths: Sequence[Path], ids: Sequence[int] | None, ignore_index: int | None, num_workers: int
) -> Iterator[tuple[Path, CaseRecord | Exception]]:
    """Count files and yield each result as it comes, in any order.

    Args:
        paths: the label files.
        ids: the declared label values, or None.
        ignore_index: the value that is ignored, or None.
        num_workers: worker processes; 0 counts in this one.

    Yields:
        the path and its `CaseRecord`, or the ValueError or OSError that says what is wrong with the file. A worker that dies
        while it counts a file (memory ran out) is a ValueError of that file.

    Raises:
        RuntimeError: a worker could not start.
    """
    if num_workers > 0 and len(paths) > 1:
        yield from _count_in_workers(paths, ids, ignore_index, min(num_workers, len(paths)))
        return
    for path in paths:
        try:
            yield path, count_file(path, ids, ignore_index)
        except (ValueError, OSError) as error:
            yield path, error


def _count_in_workers(
    paths: Sequence[Path], ids: Sequence[int] | None, ignore_index: int | None, num_workers: int
) -> Iterator[tuple[Path, CaseRecord | Exception]]:
    crew = _Crew()
    options = {"ids": None if ids is None else list(ids), "ignore_index": ignore_index}
    # each thread waits for one worker; whatever is raised in one of them comes out here
    threads = ThreadPoolExecutor(num_workers)
    try:
        futures = {threads.submit(crew.count, path, options): path for path in paths}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        # also when the caller stops early: no further file is begun
        threads.shutdown(wait=False, cancel_futures=True)
        crew.end()
        threads.shutdown()
        crew.bury()


class _Crew:
    """Worker processes, each of which counts one file at a time: as many as there are calls at once, and none after `end`."""

    def __init__(self) -> None:
        self._idle: queue.SimpleQueue[subprocess.Popen[str]] = queue.SimpleQueue()
        self._all: list[subprocess.Popen[str]] = []
        self._is_ended = False
        self._lock = threading.Lock()

    def count(self, path: Path, options: Mapping[str, Any]) -> CaseRecord | Exception:
        """Let a worker count a file.

        Raises:
            RuntimeError: a worker could not start, or there are no more of them.
        """
        try:
            worker = self._idle.get_nowait()
        except queue.Empty:
            worker = self._start()
        line = _ask(worker, json.dumps({"path": str(path), **options}))
        if not line.endswith("\n"):  # not even half an answer is one
            return ValueError(
                f"{path}: the worker process died ({_cause_of_death(worker)}) while it counted this file, expected its counts"
            )
        self._idle.put(worker)
        answer = json.loads(line)
        if "record" in answer:
            return CaseRecord.from_dict(answer["record"])
        return (FileNotFoundError if answer["missing"] else ValueError)(answer["error"])

    def end(self) -> None:
        """Kill all workers, even those that are stopped or in the middle of a file: whoever waits for one goes on."""
        with self._lock:
            self._is_ended = True
        for worker in self._all:
            worker.kill()

    def bury(self) -> None:
        """Give back what the system keeps of the workers once nobody waits for one any more."""
        for worker in self._all:
            worker.wait()
            for pipe in (worker.stdin, worker.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()

    def _start(self) -> subprocess.Popen[str]:
        with self._lock:
            if self._is_ended:
                raise RuntimeError("no worker is started any more: the count has ended")
            try:
                worker = _worker()
            except OSError as error:
                raise RuntimeError(
                    f"a worker process could not start ({error}), expected one: fewer workers may help"
                ) from error
            self._all.append(worker)
        line = _answer(worker)
        if line != f"{READY}\n":
            raise RuntimeError(
                f"a worker process could not start ({line.strip() or _cause_of_death(worker)}), expected one"
            )
        return worker


def _worker() -> subprocess.Popen[str]:
    environment = dict(os.environ)
    # the interpreter itself looks there, for `sitecustomize`
    environment["PYTHONPATH"] = os.pathsep.join(_elsewhere(environment.get("PYTHONPATH", "").split(os.pathsep)))
    environment["PYTHONIOENCODING"] = "utf-8"
    # one core per worker: there are as many workers as cores to use
    environment.setdefault("OMP_NUM_THREADS", "1")
    return subprocess.Popen(
        [sys.executable, "-c", _START, str(Path(__file__).parents[1] / "__init__.py"), *_elsewhere(sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env=environment,
        # Ctrl-C in the terminal is for this process, which then ends its workers
        start_new_session=True,
    )


def _elsewhere(search_path: list[str]) -> list[str]:
    """The entries other than the working folder, unless that is the folder of the libraries: somebody may work there."""
    working_folder, libraries = os.path.realpath(os.curdir), os.path.realpath(Path(np.__file__).parents[1])
    return [entry for entry in search_path if os.path.realpath(entry) != working_folder or working_folder == libraries]


def _ask(worker: subprocess.Popen[str], question: str) -> str:
    """The line that a worker answers, or as much of it as there is if it died."""
    if worker.stdin is not None:
        try:
            worker.stdin.write(f"{question}\n")
            worker.stdin.flush()
        except OSError:
            return ""
    return _answer(worker)


def _answer(worker: subprocess.Popen[str]) -> str:
    try:
        return "" if worker.stdout is None else worker.stdout.readline()
    except (OSError, ValueError):
        return ""


def _cause_of_death(worker: subprocess.Popen[str]) -> str:
    worker.kill()  # it may have closed its output and still be alive
    code = worker.wait()
    if code >= 0:
        return f"exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"{name}, as when memory runs out" if name == "SIGKILL" else name
