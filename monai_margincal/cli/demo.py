"""Learn to outline lung nodules and show how well that goes on patients that the network has never seen.

CT boxes around nodules of 190 patients travel with the package. A COPLE-Net is trained on 128 of the patients with the shipped
bundle's own configuration, the decision between nodule and background is fitted on 22 others, and the nodules of the last 40 are
segmented. Their IoU is computed from the saved masks. Takes two to three minutes on two CPU cores; the same seed on the same
machine gives the same numbers.

With --bundle surgical_instrument_coplenet it learns to outline surgical tools in laryngeal endoscopy, on frames that travel with
the package: trained on four sequences, the decision fitted on two others, tested on two more, of the same two patients. It
shows a picture and a film, and takes a little over a minute of processor time.

  margincal demo
  margincal demo --output demo_output --steps 2048 --seed 1
  margincal demo --bundle surgical_instrument_coplenet
"""

from __future__ import annotations

import argparse
import json
import logging
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..counting.text_table import format_table
from ..extras import require
from .answer import Answer, add_json_argument
from .bundle_command import DEFAULT_BUNDLE
from .demo_counts import count_and_show
from .demo_patients import CLASS_NAMES, Patient, demo_patients

if TYPE_CHECKING:
    from ..decisions import ClassOffsets
    from .demo_scores import Scores

#: marks a folder as made by this command, so that a second run may replace its contents
_MARKER = "margincal_demo.json"

FRAMES_BUNDLE = "surgical_instrument_coplenet"
#: bundle -> training steps where nothing else is asked for
_STEPS = {DEFAULT_BUNDLE: 1024, FRAMES_BUNDLE: 256}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument(
        "-o", "--output", metavar="DIR", default="demo_output", help="folder for counts, weights, masks and the picture"
    )
    parser.add_argument(
        "--bundle", metavar="NAME", choices=sorted(_STEPS), default=DEFAULT_BUNDLE, help="the shipped bundle to show"
    )
    parser.add_argument(
        "--steps",
        type=int,
        metavar="N",
        default=argparse.SUPPRESS,
        help="training steps, rounded up to epochs (default: 1024 of 16 slices, 256 of 4 frames)",
    )
    parser.add_argument("--seed", type=int, metavar="N", default=0, help="fixes the result")
    add_json_argument(
        parser,
        {
            "seed": "as given",
            "epochs": "of the training",
            "iou": "of the held-out patients: pooled and mean, each with its 95 % interval, and one value per case; or of the "
            "tool in each held-out sequence of frames and in all of them",
        },
    )


def run(arguments: argparse.Namespace) -> Answer:
    """Counts, margins, training, decision, masks, IoU, picture."""
    steps = getattr(arguments, "steps", _STEPS[arguments.bundle])
    if steps < 1:
        raise ValueError(f"--steps must be at least 1, found {steps}")
    for package in ("scipy", "tensorboard", "matplotlib"):  # checked now, not after the training
        require(package, extra="bundle", purpose="the demo")
    output = _own_folder(Path(arguments.output))
    if not arguments.verbose:
        _quiet()
    show = _show_frames if arguments.bundle == FRAMES_BUNDLE else _show_patients
    data = {"seed": arguments.seed, **show(output, steps, arguments.seed)}
    (output / _MARKER).write_text(json.dumps(data, indent=1) + "\n")
    return Answer(data=data)


def _show_patients(output: Path, steps: int, seed: int) -> dict[str, Any]:
    from . import demo_bundle

    patients = demo_patients()
    print(f"1  Count the labels of the {len(patients['training'])} patients to train on")
    count_and_show(output, [patient.label for patient in patients["training"]], CLASS_NAMES, "voxels")
    epochs = demo_bundle.epochs(steps, len(patients["training"]))
    print(f"2  Train COPLE-Net for {epochs} epochs of {demo_bundle.steps(len(patients['training']))} steps")
    offsets = demo_bundle.train(output, patients, epochs, seed)
    print(f"3  Fit the decision on {len(patients['validation'])} other patients")
    _tell(offsets)
    print(f"4  Segment {len(patients['held_out'])} patients that took no part in this")
    masks = demo_bundle.segment(output, patients["held_out"])
    scores = _score(patients["held_out"], masks)
    _picture(output, patients["held_out"], masks, scores)
    return {"epochs": epochs, "iou": scores.as_dict()}


def _show_frames(output: Path, steps: int, seed: int) -> dict[str, Any]:
    from . import demo_frames
    from .demo_frame_scores import frame_scores

    parts = demo_frames.demo_sequences()
    of = {part: demo_frames.frames_per_sequence(frames) for part, frames in parts.items()}
    print(f"1  Count the labels of {len(parts['training'])} frames to train on: {of['training']}")
    labels = [demo_frames.label_of(frame) for frame in parts["training"]]
    count_and_show(output, labels, demo_frames.CLASS_NAMES, "pixels", ignore_index=demo_frames.VOID)
    epochs = demo_frames.epochs_of(steps, len(parts["training"]))
    print(f"2  Train COPLE-Net for {epochs} epochs")
    offsets = demo_frames.train_frames(output, parts, epochs, seed)
    print(f"3  Fit the decision on {len(parts['validation'])} frames of other sequences: {of['validation']}")
    _tell(offsets)
    print(f"4  Segment {len(parts['held_out'])} frames of sequences that took no part in this: {of['held_out']}")
    masks = demo_frames.segment_frames(output, parts["held_out"])
    scores = frame_scores(demo_frames.frame_confusions(masks))
    print("5  IoU of the tool in the saved masks; pixels that the truth leaves void count nowhere")
    print(
        format_table(
            ["held-out sequence", "frames", "IoU"],
            [[name, str(number), f"{iou:.3f}"] for name, (number, iou) in scores.sequences.items()],
        )
    )
    print("   the same two patients as in training: on others it may do worse")
    demo_frames.save_frames_picture({frame: masks[frame] for frame in scores.shown}, output / "overlay.png")
    (film,) = (output / "masks").glob("film.*")
    print(f"6  Look at {output / 'overlay.png'} and {film}; the masks are in {output / 'masks' / 'images'}")
    return {"epochs": epochs, "iou": {name: iou for name, (_, iou) in scores.sequences.items()}}


def _tell(offsets: ClassOffsets) -> None:
    if any(offsets.offsets):
        print(f"   added to the logits: {offsets}")
    else:
        print("   no offset gains anything on cases that it was not chosen on: the largest logit decides")


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
