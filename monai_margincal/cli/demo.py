"""Learn to outline lung nodules and show how well that goes on patients that the network has never seen.

CT boxes around nodules of 190 patients travel with the package. A COPLE-Net is trained on 128 of the patients with the shipped
bundle's own configuration, the decision between nodule and background is fitted on 22 others, and the nodules of the last 40 are
segmented. Their IoU is computed from the saved masks. Takes two to three minutes on two CPU cores; the same seed on the same
machine gives the same numbers.

  margincal demo
  margincal demo --output demo_output --steps 2048 --seed 1
"""

from __future__ import annotations

import argparse
import json
import logging
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from ..counting.text_table import format_table
from ..extras import require
from .answer import Answer, add_json_argument
from .demo_patients import CLASS_NAMES, Patient, demo_patients

if TYPE_CHECKING:
    from .demo_scores import Scores

#: marks a folder as made by this command, so that a second run may replace its contents
_MARKER = "margincal_demo.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument(
        "-o", "--output", metavar="DIR", default="demo_output", help="folder for counts, weights, masks and the picture"
    )
    parser.add_argument(
        "--steps", type=int, metavar="N", default=1024, help="training steps of 16 slices, rounded up to epochs of 32"
    )
    parser.add_argument("--seed", type=int, metavar="N", default=0, help="fixes the result")
    add_json_argument(
        parser,
        {
            "seed": "as given",
            "epochs": "of the training",
            "iou": "of the held-out patients: pooled and mean, each with its 95 % interval, and one value per case",
        },
    )


def run(arguments: argparse.Namespace) -> Answer:
    """Counts, margins, training, decision, masks, IoU, picture."""
    if arguments.steps < 1:
        raise ValueError(f"--steps must be at least 1, found {arguments.steps}")
    for package in ("scipy", "tensorboard", "matplotlib"):  # checked now, not after the training
        require(package, extra="bundle", purpose="the demo")
    output = _own_folder(Path(arguments.output))
    if not arguments.verbose:
        _quiet()
    from . import demo_bundle

    patients = demo_patients()
    _count(output, patients["training"])
    epochs = demo_bundle.epochs(arguments.steps, len(patients["training"]))
    print(f"2  Train COPLE-Net for {epochs} epochs of {demo_bundle.steps(len(patients['training']))} steps")
    offsets = demo_bundle.train(output, patients, epochs, arguments.seed)
    print(f"3  Fit the decision on {len(patients['validation'])} other patients")
    if any(offsets.offsets):
        print(f"   added to the logits: {offsets}")
    else:
        print("   no offset gains anything on patients that it was not chosen on: the largest logit decides")
    print(f"4  Segment {len(patients['held_out'])} patients that took no part in this")
    masks = demo_bundle.segment(output, patients["held_out"])
    scores = _score(patients["held_out"], masks)
    _picture(output, patients["held_out"], masks, scores)
    data = {"seed": arguments.seed, "epochs": epochs, "iou": scores.as_dict()}
    (output / _MARKER).write_text(json.dumps(data, indent=1) + "\n")
    return Answer(data=data)


def _own_folder(output: Path) -> Path:
    """Make the folder; refuse one that holds anything but an earlier demo."""
    if output.exists() and not output.is_dir():
        raise FileExistsError(f"{output} is a file, expected a folder that is new, empty or of an earlier demo")
    if output.is_dir() and any(output.iterdir()) and not (output / _MARKER).is_file():
        raise FileExistsError(f"{output} holds other files, expected a folder that is new, empty or of an earlier demo")
    output.mkdir(parents=True, exist_ok=True)
    (output / _MARKER).write_text("{}")
    return output


def _quiet() -> None:
    """Silence MONAI and Ignite, whose reports would tear the progress bar apart."""
    logging.disable(logging.ERROR)
    warnings.filterwarnings("ignore", module=r"(monai|torch|ignite)\.")


def _count(output: Path, patients: list[Patient]) -> None:
    from ..margins import class_margins
    from ..statistics import count_labels

    print(f"1  Count the labels of the {len(patients)} patients to train on")
    labels = [patient.label for patient in patients]
    counts = count_labels(labels, num_classes=len(CLASS_NAMES), progress=False, names=CLASS_NAMES)
    counts.to_json(output / "counts.json")
    margins = class_margins(counts)
    rows = zip(counts.labels, counts.counts, counts.frequencies, margins.negative, margins.positive, strict=True)
    print(
        format_table(
            ["class", "voxels", "share", "margin rho_0k", "margin rho_k0"],
            [[label, f"{n:,}", f"{share:.2%}", f"{a:.3g}", f"{b:.3g}"] for label, n, share, a, b in rows],
        )
    )


def _score(patients: list[Patient], masks: dict[str, Path]) -> Scores:
    from .demo_scores import score

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
    from ..outputs.segmentation_view import load_view, save_overlay
    from .demo_bundle import WINDOW

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
        views, output / "overlay.png", class_names=CLASS_NAMES, window=WINDOW, image_name="CT", one_column_each=True
    )
    print(f"6  Look at {output / 'overlay.png'}; the masks are in {output / 'masks'}")
