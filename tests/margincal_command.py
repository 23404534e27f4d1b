"""The command line as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from typing import Any


def margincal(*words: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run `margincal` with some words; options are those of `subprocess.run`."""
    command = [sys.executable, "-m", "monai_margincal", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)
