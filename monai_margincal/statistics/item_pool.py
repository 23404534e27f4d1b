"""Count the items of a data set in several worker processes, which `multiprocessing` starts so that they find the transforms."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import tempfile
import threading
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import torch

from ..counting.case_record import CaseRecord
from .items import LabelItems, try_count

#: what asks a process to end
_ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
#: of Python 3.11: nothing is put before the search path that was not asked for
_SAFE_PATH = "PYTHONSAFEPATH"


def count_items(
    items: LabelItems, indices: Sequence[int], num_workers: int
) -> Iterator[tuple[int, CaseRecord | Exception]]:
    """Count items and yield each result as it comes, in any order.

    Args:
        items: the items.
        indices: which of them.
        num_workers: worker processes; 0 counts in this one.

    Raises:
        RuntimeError: workers were asked for outside ``if __name__ == "__main__"``, or one of them died.
    """
    if num_workers > 0 and len(indices) > 1:
        yield from _count_in_processes(items, indices, min(num_workers, len(indices)))
        return
    for index in indices:
        yield index, try_count(items, index)


def _count_in_processes(
    items: LabelItems, indices: Sequence[int], num_workers: int
) -> Iterator[tuple[int, CaseRecord | Exception]]:
    advice = (
        "put the call under `if __name__ == '__main__':`, because worker processes import the main module to find the "
        "transforms, or count with num_workers=0"
    )
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise RuntimeError(
            f"count_labels(num_workers={num_workers}) was called while a worker process starts: {advice}"
        )
    # No ProcessPoolExecutor: its thread goes through the processes while further ones are being started, and if one has died
    # by then, that thread can fail, and whoever waits for a result waits forever.
    workers: dict[Connection, SpawnProcess] = {}
    with _ending_by_signals(), tempfile.TemporaryDirectory() as folder:
        try:
            with _spawning():
                sent = _sent(items, folder)
                for _ in range(num_workers):
                    _add_worker(workers, sent)
            # what each worker counts; at first nothing, until it says that it has got the items
            counting: dict[Connection, int | None] = dict.fromkeys(workers)
            left = iter(indices)
            while counting:
                ready = wait(list(counting))
                for worker in [worker for worker in counting if worker in ready]:
                    index, following = counting.pop(worker), next(left, None)
                    place = "nothing yet" if index is None else items.place(index)
                    answer = _exchange(
                        worker, following, advice=f"it was counting {place}; if it could not start, {advice}"
                    )
                    if following is not None:
                        counting[worker] = following
                    if isinstance(answer, _Raised):
                        raise answer.error
                    if index is not None:
                        yield index, answer
        finally:
            # also when the caller stops early: what is being counted or imported is not waited for
            for connection, process in workers.items():
                process.kill()
                process.join()
                connection.close()


def _add_worker(workers: dict[Connection, SpawnProcess], sent: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    with theirs:  # with a second holder nobody would see that the first has died
        process = context.Process(target=_serve, args=(sent, theirs))
        process.start()
    workers[ours] = process


def _exchange(worker: Connection, following: int | None, advice: str) -> Any:
    """What a worker says, for which it gets the next index, or None if there is no more of them."""
    try:
        answer = worker.recv()
        worker.send(following)
    except (EOFError, OSError) as error:
        raise RuntimeError(f"a worker process of count_labels died, {advice}") from error
    return answer


def _sent(items: LabelItems, folder: str) -> Path:
    """Put items where workers find them.

    Through the pipe by which a process is started, whatever does not fit into the pipe's buffer waits for a reader, and waits
    forever if the process was killed before it read: `multiprocessing` itself keeps open the end that would tell of its death.
    """
    path = Path(folder, "items.pickle")
    with path.open("wb") as file:
        pickle.dump(items, file)
    return path


@contextlib.contextmanager
def _ending_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end this process as they would anyhow, but not before what is inside has been tidied up.

    Where the caller has a handler of its own, or this is not the main thread, nothing is changed.
    """
    received: list[int] = []

    def leave(number: int, frame: Any) -> None:
        received.append(number)
        raise SystemExit(128 + number)

    is_main = threading.current_thread() is threading.main_thread()
    numbers = [number for number in _ENDING if is_main and signal.getsignal(number) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)
        for number in received:
            signal.raise_signal(number)


@contextlib.contextmanager
def _spawning() -> Iterator[None]:
    """Start processes that do not look for modules in the working folder, and leave Ctrl-C in the terminal to this one.

    Signals wait until all processes have got what they are to count: one that gets half of it complains with a traceback.
    """
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    has_masks = hasattr(signal, "pthread_sigmask")
    # inherited, until a worker can say which of them it ignores
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, *_ENDING}) if has_masks else None
    try:
        yield
    finally:
        if mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before


class _Raised:
    """An exception that the caller has to see, as it would in its own process."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def _serve(sent: Path, calls: Connection) -> None:
    """Count whatever is asked for, until there is no more or nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
    os.environ.pop(_SAFE_PATH, None)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    with sent.open("rb") as file:
        items = pickle.load(file)
    with contextlib.suppress(EOFError, OSError):
        calls.send(None)
        while (index := calls.recv()) is not None:
            calls.send(_answer(items, index))


def _answer(items: LabelItems, index: int) -> CaseRecord | Exception | _Raised:
    try:
        return try_count(items, index)
    except Exception as error:  # whatever a data set raises
        return _Raised(error)


def _end_with_parent() -> None:
    """Whether the parent goes on or is killed: a worker sees its end, and stops at once."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(0)
