"""The script that lists what the nodule weights were trained with; it has no ending by which Python would find it."""

from __future__ import annotations

import importlib.machinery
import importlib.util
from pathlib import Path

_loader = importlib.machinery.SourceFileLoader(
    "nodule_datalist", str(Path(__file__).parents[1] / ".ci" / "nodule_datalist")
)
datalist = importlib.util.module_from_spec(importlib.util.spec_from_loader(_loader.name, _loader))
_loader.exec_module(datalist)
