"""Train and run a lesion segmentation on the shipped CT, from label counts to a saved mask.

Two crops of real chest CTs travel with the package. A small COPLE-Net is trained on one of them with the shipped bundle's own
configuration and then segments both. The IoU on the training case shows that it learns; the IoU on the held-out case is what
one training scan is worth. Takes one to five minutes on two CPU cores; the same seed gives the same result.
"""

from __future__ import annotations

import argparse
import json
import logging
import warnings
from pathlib import Path
from typing import Any

from ..extras import require
from .table import format_table

BUNDLE = "covid19_ct_lesion_coplenet"
TRAINING_CASE, HELD_OUT_CASE = "lung2", "lung1"
#: marks a folder as made by this command, so that a second run may replace its contents
_MARKER = "margincal_demo.json"

#: what makes the bundle's training small enough for two CPU cores; everything else is the bundle's default
_SMALL: dict[str, Any] = {
    "features": [8, 16, 32, 64, 128],
    "patch_size": [192, 192],
    "roi_size": [192, 192],
    "batch_size": 1,
    "slices_per_volume": 6,
    "learning_rate": 1e-3,
    "num_workers": 0,
    "cache_rate": 1.0,
    "train#dataset#progress": False,
    "validate#dataset#progress": False,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("--output", default="demo_output", help="folder for counts, weights, masks and the picture")
    parser.add_argument("--steps", type=int, default=120, help="training steps of six slices each")
    parser.add_argument("--seed", type=int, default=0, help="fixes the result")


def run(arguments: argparse.Namespace) -> None:
    """Counts, margins, training, inference, IoU, picture."""
    if arguments.steps < 1:
        raise ValueError(f"--steps must be at least 1, found {arguments.steps}")
    for package in ("scipy", "tensorboard", "matplotlib"):  # checked now, not after the training
        require(package, extra="bundle", purpose="the demo")
    output = _own_folder(Path(arguments.output))
    _quiet()
    counts = _count(output)
    _train(output, arguments.steps, arguments.seed)
    masks = _segment(output)
    rows = _evaluate(masks, counts)
    _picture(output, masks, rows)
    (output / _MARKER).write_text(json.dumps({"seed": arguments.seed, "steps": arguments.steps, "iou": rows}, indent=1))


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


def _case(kind: str, case: str) -> str:
    from ..samples import sample_dir

    return str(Path(sample_dir("lung_ct"), kind, f"{case}.nii.gz"))


def _count(output: Path) -> Any:
    from ..margins import class_margins
    from ..statistics import count_labels

    print(f"1  Count the labels of the training case {TRAINING_CASE}")
    counts = count_labels(
        [_case("labels", TRAINING_CASE)], num_classes=2, progress=False, names=["background", "lesion"]
    )
    counts.to_json(output / "counts.json")
    margins = class_margins(counts)
    rows = zip(counts.labels, counts.counts, counts.frequencies, margins.negative, margins.positive, strict=True)
    print(
        format_table(
            ["class", "voxels", "share", "margin rho_0k", "margin rho_k0"],
            [[label, f"{n:,}", f"{share:.2%}", f"{a:.3g}", f"{b:.3g}"] for label, n, share, a, b in rows],
        )
    )
    return counts


def _workflow(configs: list[str], workflow_type: str, **overrides: Any) -> Any:
    """Prepare the configurations of the shipped bundle as `python -m monai.bundle run` does."""
    from monai.bundle import ConfigWorkflow

    from ..bundle import bundle_dir

    root = Path(bundle_dir(BUNDLE))
    workflow = ConfigWorkflow(
        config_file=[str(root / "configs" / config) for config in configs],
        meta_file=str(root / "configs" / "metadata.json"),
        logging_file=False,
        workflow_type=workflow_type,
        bundle_root=str(root),
        **overrides,
    )
    workflow.initialize()
    return workflow


def _train(output: Path, steps: int, seed: int) -> None:
    from ignite.engine import Events
    from monai.handlers import from_engine
    from tqdm import tqdm

    print(f"2  Train COPLE-Net for {steps} steps with the bundle {BUNDLE}")
    workflow = _workflow(
        ["train.json", "losses/margin_dice.json"],
        "train",
        ckpt_dir=str(output / "models"),
        output_dir=str(output / "training"),
        train_cases=[TRAINING_CASE],
        val_cases=[HELD_OUT_CASE],
        class_counts=str(output / "counts.json"),
        epochs=steps,
        val_interval=steps,
        seed=seed,
        **{"train#save_interval": steps},
        **_SMALL,
    )
    trainer = workflow.trainer
    loss_of = from_engine("loss", first=True)
    # None: no bar when the output is not a terminal
    with tqdm(total=steps, unit="step", disable=None) as bar:

        @trainer.on(Events.ITERATION_COMPLETED)
        def show(engine: Any) -> None:
            bar.set_postfix(loss=f"{float(loss_of(engine.state.output)):.3f}", refresh=False)
            bar.update()

        workflow.run()
    workflow.finalize()


def _segment(output: Path) -> dict[str, str]:
    from ..samples import sample_dir

    print("3  Segment both cases")
    workflow = _workflow(
        ["inference.json"],
        "infer",
        dataset_dir=sample_dir("lung_ct"),
        output_dir=str(output / "masks"),
        checkpoint=str(output / "models" / "model.pt"),
        features=_SMALL["features"],
        roi_size=_SMALL["roi_size"],
        num_workers=0,
    )
    workflow.run()
    workflow.finalize()
    found = {path.name.split("_")[0]: str(path) for path in sorted((output / "masks").rglob("*.nii.gz"))}
    return {case: found[case] for case in (TRAINING_CASE, HELD_OUT_CASE)}


def _evaluate(masks: dict[str, str], counts: Any) -> dict[str, dict[str, float]]:
    """IoU per class from the saved files, read back from disk."""
    import nibabel
    import numpy as np
    import torch

    from ..metrics import DatasetIoU

    rows: dict[str, dict[str, float]] = {}
    for case, mask in masks.items():
        metric = DatasetIoU(num_classes=2, include_background=True)
        prediction, truth = (
            torch.from_numpy(np.asanyarray(nibabel.load(path).dataobj).astype(np.uint8))[None, None]  # type: ignore[attr-defined]
            for path in (mask, _case("labels", case))
        )
        metric(prediction, truth)
        metric.aggregate()
        rows[case] = {name: float(value) for name, value in zip(counts.names, metric.per_class, strict=True)}
    print("4  IoU of the saved masks")
    print(
        format_table(
            ["case", *counts.names],
            [[f"{case} ({_role(case)})", *(f"{value:.4f}" for value in row.values())] for case, row in rows.items()],
        )
    )
    return rows


def _role(case: str) -> str:
    return "training case" if case == TRAINING_CASE else "held out"


def _picture(output: Path, masks: dict[str, str], rows: dict[str, dict[str, float]]) -> None:
    from ..outputs.segmentation_view import load_view, save_overlay

    views = [
        load_view(
            f"{case}, {_role(case)}",
            _case("images", case),
            _case("labels", case),
            mask,
            caption=f"lesion IoU {rows[case]['lesion']:.2f}, whole volume",
        )
        for case, mask in masks.items()
    ]
    save_overlay(
        views, output / "overlay.png", class_names=("background", "lesion"), window=(-1400.0, 100.0), image_name="CT"
    )
    print(f"5  Look at {output / 'overlay.png'}")
    for case, mask in masks.items():
        print(f"   mask of {case}: {mask}")
