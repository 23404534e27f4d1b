"""The published layouts of COPLE-Net, filled by the rule of tests/golden/README.md."""

from __future__ import annotations

import json

import numpy as np
import torch
from shared import GOLDEN


def golden_weights(name: str) -> dict[str, torch.Tensor]:
    """Fill the published parameters, in float64."""
    weights = {}
    listed = json.loads((GOLDEN / f"coplenet_{name}.json").read_text())["parameters"]
    for i, (key, shape) in enumerate(sorted(listed)):
        if key.endswith("num_batches_tracked"):
            weights[key] = torch.full(shape, i, dtype=torch.int64)
            continue
        t = torch.sin(0.7 * torch.arange(int(np.prod(shape)), dtype=torch.float64) + i).reshape(shape)
        if key.endswith("running_var"):
            t = 2 + 0.5 * t.abs()
        elif t.ndim == 1 and not key.endswith("bias") and "running_mean" not in key:
            t = 1 + 0.2 * t
        elif t.ndim > 1:
            t = t * 0.7 / t[0].numel() ** 0.5
        else:
            t = 0.1 * t
        weights[key] = t
    return weights
