"""Count many label files, in this process or in several worker processes."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..counting.case_record import CaseRecord
from ..counting.label_file import count_file


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
        the path and its `CaseRecord`, or the ValueError or OSError that says what is wrong with the file.
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
    todo: queue.SimpleQueue[Path] = queue.SimpleQueue()
    for path in paths:
        todo.put(path)
    done: queue.SimpleQueue[tuple[Path, CaseRecord | Exception]] = queue.SimpleQueue()
    processes = [_start_worker() for _ in range(num_workers)]
    stopping = threading.Event()

    def serve(process: subprocess.Popen[str]) -> None:
        while not stopping.is_set():
            try:
                path = todo.get_nowait()
            except queue.Empty:
                return
            result = _ask(process, path, ids, ignore_index)
            done.put((path, result))
            if process.poll() is not None and not stopping.is_set():
                # the worker died on this file: the others finish the rest, or its successor does
                process = _start_worker()
                processes.append(process)

    threads = [threading.Thread(target=serve, args=(process,), daemon=True) for process in processes]
    try:
        for thread in threads:
            thread.start()
        for _ in paths:
            yield done.get()
    finally:
        # also when the caller stops early: no further file is begun
        stopping.set()
        for process in processes:
            process.terminate()
        for thread in threads:
            thread.join()
        for process in processes:
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()


def _start_worker() -> subprocess.Popen[str]:
    package_parent = str(Path(__file__).resolve().parents[2])
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [package_parent, environment.get("PYTHONPATH")]))
    # one core per worker: there are as many workers as cores to use
    environment.setdefault("OMP_NUM_THREADS", "1")
    return subprocess.Popen(
        [sys.executable, "-m", "monai_margincal.statistics.file_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env=environment,
    )


def _ask(
    process: subprocess.Popen[str], path: Path, ids: Sequence[int] | None, ignore_index: int | None
) -> CaseRecord | Exception:
    question = {
        "path": str(path),
        "ids": None if ids is None else list(ids),
        "ignore_index": ignore_index,
    }
    line = ""
    if process.stdin is not None and process.stdout is not None:
        try:
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except (BrokenPipeError, ValueError):
            line = ""
    if not line:
        process.wait()
        return ValueError(
            f"{path}: the worker process died with exit code {process.returncode} while it counted this file"
        )
    answer = json.loads(line)
    if "record" in answer:
        return CaseRecord.from_dict(answer["record"])
    return (FileNotFoundError if answer["missing"] else ValueError)(answer["error"])
