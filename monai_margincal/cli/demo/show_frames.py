"""The demo of the instrument bundle: tools in laryngeal endoscopy, trained on some sequences, tested on two others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...counting.text_table import format_table
from . import frames_bundle
from .counts import count_and_show
from .decision import tell_decision
from .frame_scores import frame_scores


def show(output: Path, steps: int, seed: int) -> dict[str, Any]:
    """Count, train, fit the decision, segment, score and draw, telling of each; what ``--json`` gives."""
    parts = frames_bundle.demo_sequences()
    of = {part: frames_bundle.frames_per_sequence(frames) for part, frames in parts.items()}
    print(f"1  Count the labels of {len(parts['training'])} frames to train on: {of['training']}")
    labels = [frames_bundle.label_of(frame) for frame in parts["training"]]
    count_and_show(output, labels, frames_bundle.CLASS_NAMES, "pixels", ignore_index=frames_bundle.VOID)
    epochs = frames_bundle.epochs_of(steps, len(parts["training"]))
    print(f"2  Train COPLE-Net for {epochs} epochs")
    offsets = frames_bundle.train_frames(output, parts, epochs, seed)
    print(f"3  Fit the decision on {len(parts['validation'])} frames of other sequences: {of['validation']}")
    tell_decision(offsets)
    print(f"4  Segment {len(parts['held_out'])} frames of sequences that took no part in this: {of['held_out']}")
    masks = frames_bundle.segment_frames(output, parts["held_out"])
    scores = frame_scores(frames_bundle.frame_confusions(masks))
    print("5  IoU of the tool in the saved masks; pixels that the truth leaves void count nowhere")
    print(
        format_table(
            ["held-out sequence", "frames", "IoU"],
            [[name, str(number), f"{iou:.3f}"] for name, (number, iou) in scores.sequences.items()],
        )
    )
    print("   the same two patients as in training: on others it may do worse")
    frames_bundle.save_frames_picture({frame: masks[frame] for frame in scores.shown}, output / "overlay.png")
    (film,) = (output / "masks").glob("film.*")
    print(f"6  Look at {output / 'overlay.png'} and {film}; the masks are in {output / 'masks' / 'images'}")
    return {"epochs": epochs, "iou": {name: iou for name, (_, iou) in scores.sequences.items()}}
