"""Train a shipped bundle on a folder of images and labels of your own.

The weights go into OUTPUT/models, counts, metrics and TensorBoard's files into OUTPUT/eval. Images and labels are matched by
name; --image-pattern and --label-pattern say where they lie. Every key of the bundle's training can be given with --set, another
loss with --loss.

  margincal train data/ -o run1
  margincal train data/ -o run2 --loss margin_dice --set epochs=50 --set val_cases=0.3
  margincal train data/ -o run3 --image-pattern "{case}/ct.nii.gz" --label-pattern "{case}/lesion.nii.gz"
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from .answer import Answer, add_json_argument
from .bundle_command import add_bundle_arguments, bundle_root, run_bundle


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("data", metavar="DIR", help="folder of images and labels")
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="folder of weights and metrics")
    parser.add_argument("--loss", metavar="NAME", help="a file of the bundle's configs/losses, without the ending")
    parser.add_argument("--image-pattern", metavar="PATTERN", help='where images lie, for example "images/{case}.*"')
    parser.add_argument("--label-pattern", metavar="PATTERN", help='where labels lie, for example "labels/{case}.*"')
    add_bundle_arguments(parser)
    add_json_argument(
        parser,
        {
            "command": "what was run",
            "state": "the last complete state, for --set resume_from=, or null",
            "best_metric": "of the validation: the foreground mean IoU",
            "best_metric_epoch": "the epoch that it is from",
        },
    )


def run(arguments: argparse.Namespace) -> Answer:
    """Run the bundle's training.

    Raises:
        ValueError: the bundle has no loss of that name; the message lists those that it has.
        FileNotFoundError: there is no such folder.
    """
    root, data, output = bundle_root(arguments.bundle), Path(arguments.data).expanduser(), Path(arguments.output)
    if not data.is_dir():
        raise FileNotFoundError(f"{data}: found no such folder, expected images and labels in it")
    configs = ["train.json"]
    if arguments.loss:
        known = sorted(path.stem for path in (root / "configs" / "losses").glob("*.json"))
        if arguments.loss not in known:
            raise ValueError(f"--loss: found {arguments.loss!r}, expected one of {known}")
        configs.append(f"losses/{arguments.loss}.json")
    keys = {
        "dataset_dir": str(data.absolute()),
        "ckpt_dir": str(output.absolute() / "models"),
        "output_dir": str(output.absolute() / "eval"),
    }
    flags = {"image_pattern": "--image-pattern", "label_pattern": "--label-pattern", "ckpt_dir": "--output"}
    for key in ("image_pattern", "label_pattern"):
        if getattr(arguments, key):
            keys[key] = getattr(arguments, key)
    command, status = run_bundle(arguments, root, configs, keys, flags=flags)
    if arguments.dry_run:
        return Answer(command, {"command": command, **_training(None)})
    return Answer(data={"command": command, **_training(output / "models")}, status=status)


def _training(models: Path | None) -> dict[str, Any]:
    """What the last state in a folder knows of the best validation."""
    states = sorted(models.glob("checkpoint_epoch=*.pt"), key=os.path.getmtime) if models is not None else []
    if not states:
        return {"state": None, "best_metric": None, "best_metric_epoch": None}
    import torch

    known = torch.load(states[-1], map_location="cpu", weights_only=True)["validation"]
    return {"state": str(states[-1]), **{key: known[key] for key in ("best_metric", "best_metric_epoch")}}
