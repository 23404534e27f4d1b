"""Worker process that counts label files: one JSON line in per file, one JSON line out.

It is started by `monai_margincal.statistics.file_pool` and not by `multiprocessing`, so it never imports the user's main module:
counting with workers needs no ``if __name__ == "__main__"`` guard.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from ..counting.label_file import count_file

#: the first line of a worker that could import all it needs
READY = "ready"


def serve(answers: int) -> None:
    """Answer until standard input closes, as it does when the process that asks ends, however it ends.

    Args:
        answers: the open file to answer to. It is not standard output, because libraries print there.
    """
    # an interruption is for the process that asks: it ends its workers
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    questions: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(questions,), daemon=True).start()
    _write(answers, READY)
    while True:
        question = json.loads(questions.get())
        try:
            record = count_file(Path(question["path"]), question["ids"], question["ignore_index"])
            answer: dict[str, Any] = {"record": record.to_dict()}
        except Exception as error:  # whatever it is, the process that asks knows the file and names it too
            answer = {"error": str(error), "missing": isinstance(error, FileNotFoundError)}
        _write(answers, json.dumps(answer))


def _listen(questions: queue.SimpleQueue[str]) -> None:
    """Take questions in; end the process at once, even in the middle of a file, when nobody can ask any more."""
    for line in sys.stdin:
        if line.endswith("\n"):
            questions.put(line)
    os._exit(0)


def _write(answers: int, line: str) -> None:
    left = f"{line}\n".encode()
    try:
        while left:
            left = left[os.write(answers, left) :]
    except OSError:  # nobody reads any more
        os._exit(0)
