"""Where the large real files lie that some tests need: beside the project's root, or where MARGINCAL_SHARED says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_candidate = Path(os.environ.get("MARGINCAL_SHARED", Path(__file__).resolve().parents[2] / "shared"))

#: Folder with ``data/``, ``golden/`` and ``schema/``, or None where it is absent.
SHARED: Path | None = _candidate if (_candidate / "data" / "README.md").is_file() else None

needs_shared = pytest.mark.skipif(SHARED is None, reason=f"real data not found at {_candidate} (set MARGINCAL_SHARED)")
GOLDEN = Path(__file__).parent / "golden"
