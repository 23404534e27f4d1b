"""What the demo of the instrument bundle does with it: train, fit the decision, segment, all by flags on its own keys."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...decisions import ClassOffsets
from ...samples import sample_dir
from .workflow import demo_workflow, run_training

if TYPE_CHECKING:
    from ...outputs.compared_case import ComparedCase

BUNDLE = "surgical_instrument_coplenet"
SAMPLES = "larynx_tools"
CLASS_NAMES = ("other", "tool")
VOID = 255

_RUN = "prediction"

#: sequences of both patients in each part; every other sequence is trained on
_DECISION = ("patient1_seq1", "patient2_seq5")
_HELD_OUT = ("patient1_seq2", "patient2_seq6")

#: what training and inference must agree on
_SHARED: dict[str, Any] = {
    "features": [8, 16, 32, 64, 128],
    "class_names": list(CLASS_NAMES),
    "void_label": VOID,
    "num_workers": 0,
}
_TRAINING: dict[str, Any] = {"patch_size": [128, 128], "batch_size": 4, "learning_rate": 2e-3, "cache_rate": 1.0}


def demo_sequences() -> dict[str, list[str]]:
    """The names of the frames to train on, to fit the decision on, and held out; no sequence is in two parts.

    Example:
        >>> {part: len(frames) for part, frames in demo_sequences().items()}
        {'training': 61, 'validation': 21, 'held_out': 39}
    """
    parts: dict[str, list[str]] = {"training": [], "validation": [], "held_out": []}
    for path in sorted(Path(sample_dir(SAMPLES), "images").iterdir()):
        sequence = sequence_of(path.stem)
        part = "held_out" if sequence in _HELD_OUT else "validation" if sequence in _DECISION else "training"
        parts[part].append(path.stem)
    return parts


def sequence_of(frame: str) -> str:
    """The sequence of a frame.

    Example:
        >>> sequence_of("patient1_seq2_0089")
        'patient1_seq2'
    """
    return frame.rpartition("_")[0]


def epochs_of(steps: int, frames: int) -> int:
    """Epochs that have at least so many steps."""
    return math.ceil(steps / math.ceil(frames / _TRAINING["batch_size"]))


def train_frames(output: Path, parts: dict[str, list[str]], epochs: int, seed: int) -> ClassOffsets:
    """Train, validate once at the end, and return the decision that was fitted on the validation frames."""
    workflow = demo_workflow(
        BUNDLE,
        "train",
        SAMPLES,
        ckpt_dir=str(output / "models"),
        output_dir=str(output / "training"),
        train_cases=parts["training"],
        val_cases=parts["validation"],
        class_counts=str(output / "counts.json"),
        epochs=epochs,
        # the last weights are kept, not the best of many
        val_interval=epochs,
        seed=seed,
        **{"train#save_interval": epochs, "train#dataset#progress": False, "validate#dataset#progress": False},
        **_SHARED,
        **_TRAINING,
    )
    run_training(workflow, epochs * math.ceil(len(parts["training"]) / _TRAINING["batch_size"]))
    return ClassOffsets.from_json(output / "models" / "decision.json")


def segment_frames(output: Path, frames: list[str]) -> dict[str, Path]:
    """Write the masks of frames and a film of them; frame -> mask."""
    shared = {key: value for key, value in _SHARED.items() if key != "void_label"}
    workflow = demo_workflow(
        BUNDLE,
        "inference",
        SAMPLES,
        output_dir=str(output / "masks"),
        checkpoint=str(output / "models" / "model.pt"),
        cases=frames,
        outputs=["frame_mask", "frame_film"],
        # the frames are seconds apart
        **{"saving#frame_film": {"fps": 2, "width": 512}},
        **shared,
    )
    workflow.run()
    workflow.finalize()
    return {frame: output / "masks" / "images" / f"{frame}_mask.png" for frame in frames}


def frame_confusions(masks: dict[str, Path]) -> dict[str, np.ndarray]:
    """Compare masks with the truth, both read from disk; frame -> confusion matrix of the pixels that are not void."""
    from ...outputs.compared_case import panel_confusion

    return {frame: panel_confusion(case, _RUN, len(CLASS_NAMES), VOID) for frame, case in _cases(masks).items()}


def save_frames_picture(masks: dict[str, Path], path: Path) -> None:
    """Draw frames with truth and prediction."""
    from ...outputs.comparison_picture import save_comparison

    save_comparison(list(_cases(masks).values()), path, CLASS_NAMES, VOID)


def _cases(masks: dict[str, Path]) -> dict[str, ComparedCase]:
    from ...outputs.compared_case import compared_case

    root = Path(sample_dir(SAMPLES))
    return {
        frame: compared_case(
            root / "images" / f"{frame}.jpg",
            label_of(frame),
            {_RUN: mask},
            len(CLASS_NAMES),
            ignore_index=VOID,
        )
        for frame, mask in masks.items()
    }


def label_of(frame: str) -> Path:
    """The true mask of a frame."""
    return Path(sample_dir(SAMPLES), "labels", f"{frame}.png")


def frames_per_sequence(frames: list[str]) -> str:
    """How many frames of which sequences, for people.

    Example:
        >>> frames_per_sequence(["patient1_seq2_0089", "patient1_seq2_0092", "patient2_seq6_0023"])
        'patient1_seq2 (2), patient2_seq6 (1)'
    """
    return ", ".join(f"{name} ({number})" for name, number in Counter(map(sequence_of, frames)).items())
