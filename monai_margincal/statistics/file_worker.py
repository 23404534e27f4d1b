"""Worker process that counts label files: one JSON line in per file, one JSON line out.

It is started as ``python -m monai_margincal.statistics.file_worker`` and not by `multiprocessing`, so it never imports the
user's main module: counting with workers needs no ``if __name__ == "__main__"`` guard.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Serve until standard input closes."""
    # Libraries print to standard output; the answers go where only this function writes.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    from ..counting.label_file import count_file

    for line in sys.stdin:
        task = json.loads(line)
        try:
            record = count_file(Path(task["path"]), task["ids"], task["ignore_index"])
            answer: dict[str, Any] = {"record": record.to_dict()}
        except (ValueError, OSError, TypeError) as error:
            answer = {"error": str(error), "missing": isinstance(error, FileNotFoundError)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
