"""The demo of the lesion bundle: nodules of patients that took no part in the training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...counting.text_table import format_table
from ...outputs.segmentation_view import load_view, save_overlay
from . import nodules_bundle
from .counts import count_and_show
from .decision import tell_decision
from .nodule_scores import Scores, score
from .patients import CLASS_NAMES, Patient, demo_patients


def show(output: Path, steps: int, seed: int) -> dict[str, Any]:
    """Count, train, fit the decision, segment, score and draw, telling of each; what ``--json`` gives."""
    patients = demo_patients()
    print(f"1  Count the labels of the {len(patients['training'])} patients to train on")
    count_and_show(output, [patient.label for patient in patients["training"]], CLASS_NAMES, "voxels")
    epochs = nodules_bundle.epochs(steps, len(patients["training"]))
    print(f"2  Train COPLE-Net for {epochs} epochs of {nodules_bundle.steps(len(patients['training']))} steps")
    offsets = nodules_bundle.train(output, patients, epochs, seed)
    print(f"3  Fit the decision on {len(patients['validation'])} other patients")
    tell_decision(offsets)
    print(f"4  Segment {len(patients['held_out'])} patients that took no part in this")
    masks = nodules_bundle.segment(output, patients["held_out"])
    scores = _score(patients["held_out"], masks)
    _picture(output, patients["held_out"], masks, scores)
    return {"epochs": epochs, "iou": scores.as_dict()}


def _score(patients: list[Patient], masks: dict[str, Path]) -> Scores:
    scores = score({patient.case: (masks[patient.case], patient.label) for patient in patients})
    print(f"5  IoU of the saved masks, {len(patients)} nodules of as many patients")
    print(
        format_table(
            ["nodules of patients never seen", "IoU", "95 % interval"],
            [
                [name, f"{value:.3f}", f"{low:.3f} to {high:.3f}"]
                for name, (value, low, high) in {
                    "all voxels together": scores.pooled,
                    "mean of the nodules": scores.mean,
                }.items()
            ],
        )
    )
    print("   interval: over patients drawn again and again; another training would move it too")
    return scores


def _picture(output: Path, patients: list[Patient], masks: dict[str, Path], scores: Scores) -> None:
    shown = scores.best_middle_worst()
    of = {patient.case: patient for patient in patients}
    views = [
        load_view(
            f"{of[case].name}, {of[case].diameter_mm:.0f} mm",
            of[case].image,
            of[case].label,
            masks[case],
            caption=f"{what}, IoU {scores.cases[case]:.2f}",
        )
        for case, what in shown.items()
    ]
    save_overlay(
        views,
        output / "overlay.png",
        class_names=CLASS_NAMES,
        window=nodules_bundle.WINDOW,
        image_name="CT",
        one_column_each=True,
    )
    print(f"6  Look at {output / 'overlay.png'}; the masks are in {output / 'masks'}")
