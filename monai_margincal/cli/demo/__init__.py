"""Learn to outline lung nodules and show how well that goes on patients that the network has never seen.

CT boxes around nodules of 190 patients travel with the package. A COPLE-Net is trained on 128 of the patients with the shipped
bundle's own configuration, the decision between nodule and background is fitted on 22 others, and the nodules of the last 40 are
segmented. Their IoU is computed from the saved masks. Takes three to four minutes on two CPU cores; the same seed on the same
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

from ...extras import require
from ..answer import Answer, add_json_argument
from ..bundle_command import DEFAULT_BUNDLE

#: marks a folder as made by this command, so that a second run may replace its contents
_MARKER = "margincal_demo.json"

FRAMES_BUNDLE = "surgical_instrument_coplenet"
#: bundle -> training steps where nothing else is asked for
_STEPS = {DEFAULT_BUNDLE: 1024, FRAMES_BUNDLE: 256}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.set_defaults(runs_networks=True)
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
    if arguments.bundle == FRAMES_BUNDLE:
        from .show_frames import show
    else:
        from .show_nodules import show
    data = {"seed": arguments.seed, **show(output, steps, arguments.seed)}
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
