"""The golden vectors of the margin-calibrated loss."""

from __future__ import annotations

import json
from pathlib import Path

import torch

CASES = json.loads((Path(__file__).parents[1] / "golden" / "margin_calibration.json").read_text())["cases"]
IDS = [case["id"] for case in CASES]


def numbers(values):
    """Nested lists with "nan", "inf", "-inf" as strings -> floats."""
    return [numbers(value) for value in values] if isinstance(values, list) else float(values)


def tensor(values) -> torch.Tensor:
    return torch.tensor(numbers(values), dtype=torch.float64)


def has_proper_margins(case) -> bool:
    """Finite and >= 0: what the package accepts."""
    return all(bool((m.isfinite() & (m >= 0)).all()) for m in (tensor(case["rho_0k"]), tensor(case["rho_k0"])))
