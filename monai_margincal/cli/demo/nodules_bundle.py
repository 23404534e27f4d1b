"""What the demo does with the shipped bundle: train, fit the decision, segment, all by flags on its own configuration."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from ...decisions import ClassOffsets
from ..bundle_command import DEFAULT_BUNDLE as BUNDLE
from .patients import CLASS_NAMES, SAMPLES, Patient
from .workflow import demo_workflow, run_training

#: Hounsfield units shown as black and white, those that the bundle maps to 0 and 1
WINDOW = (-1400.0, 100.0)

#: what training and inference must agree on
_SHARED: dict[str, Any] = {
    "features": [16, 32, 64, 128, 256],
    "norm": "batch",
    "class_names": list(CLASS_NAMES),
    # the boxes are cut out of lungs, there is nothing left to crop
    "lung_crop": False,
    "num_workers": 0,
}
_TRAINING: dict[str, Any] = {
    "patch_size": [48, 48],
    "batch_size": 4,
    "slices_per_volume": 4,
    "learning_rate": 2e-3,
    "channels_last": True,
    "cache_rate": 1.0,
    # of so few patients the largest nodule would otherwise decide for all
    "train#handlers#0#offsets#pooled": False,
    "train#dataset#progress": False,
    "validate#dataset#progress": False,
}


def steps(patients: int) -> int:
    """Training steps of an epoch."""
    return math.ceil(patients / _TRAINING["batch_size"])


def epochs(wanted_steps: int, patients: int) -> int:
    """Epochs that have at least so many steps."""
    return math.ceil(wanted_steps / steps(patients))


def train(output: Path, patients: dict[str, list[Patient]], epochs: int, seed: int) -> ClassOffsets:
    """Train, validate once at the end, and return the decision that was fitted on the validation patients."""
    workflow = _workflow(
        "train",
        ckpt_dir=str(output / "models"),
        output_dir=str(output / "training"),
        train_cases=[patient.case for patient in patients["training"]],
        val_cases=[patient.case for patient in patients["validation"]],
        class_counts=str(output / "counts.json"),
        epochs=epochs,
        # the last weights are kept, not the best of many: nothing is chosen on the patients that the decision is fitted on
        val_interval=epochs,
        seed=seed,
        **{"train#save_interval": epochs},
        **_TRAINING,
    )
    run_training(workflow, epochs * steps(len(patients["training"])))
    return ClassOffsets.from_json(output / "models" / "decision.json")


def segment(output: Path, patients: list[Patient]) -> dict[str, Path]:
    """Write the masks of the patients; case -> file."""
    workflow = _workflow(
        "inference",
        output_dir=str(output / "masks"),
        checkpoint=str(output / "models" / "model.pt"),
        cases=[patient.case for patient in patients],
    )
    workflow.run()
    workflow.finalize()
    found = {path.name.removesuffix("_mask.nii.gz"): path for path in (output / "masks").rglob("*_mask.nii.gz")}
    return {patient.case: found[patient.case] for patient in patients}


def _workflow(name: str, **overrides: Any) -> Any:
    return demo_workflow(BUNDLE, name, SAMPLES, **_SHARED, **overrides)
