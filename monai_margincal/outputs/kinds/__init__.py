"""The kinds of output, one per module: a new file in this folder is known without being listed anywhere."""

from __future__ import annotations

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
