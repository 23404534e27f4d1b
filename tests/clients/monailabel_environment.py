"""Let MONAI Label 0.8.5 be imported beside pydicom 3 and a CPU build of torch; where it is missing, skip."""

from __future__ import annotations

import re
import sys
import types
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pydicom
import pytest
import torch

if find_spec("monailabel") is None:
    pytest.skip("runs where MONAI Label is installed, see tests/clients/run", allow_module_level=True)

# pydicom-seg 0.4.1, which MONAI Label imports, asks for a module that pydicom 3 no longer has; one name of it is used
storage = types.ModuleType("pydicom._storage_sopclass_uids")
storage.SegmentationStorage = pydicom.uid.SegmentationStorage
sys.modules.setdefault(storage.__name__, storage)

# MONAI Label imports torchvision to draw grids of images. Beside a CPU build of torch PyPI's torchvision finds its own operators
# missing and refuses to be imported; declared without a body they do no harm, because nothing here calls them.
try:
    import_module("torchvision")
except RuntimeError:
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]
    declared = Path(find_spec("torchvision").origin).with_name("_meta_registrations.py").read_text()
    operators = torch.library.Library("torchvision", "FRAGMENT")
    for name in sorted({*re.findall(r'(?:register_meta\("|torchvision::)(\w+)"', declared)}):
        operators.define(f"{name}() -> ()")
    import_module("torchvision")
