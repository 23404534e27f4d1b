"""One rank of the bundle's training: started by test_multi_gpu_training with RANK, a folder and a kind of check."""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from pathlib import Path

import monai.bundle
import torch
import torch.distributed as dist
from ignite.engine import Events

from monai_margincal.processes import end_process_group, start_process_group

BUNDLE = Path(__file__).resolve().parents[2] / "bundles" / "covid19_ct_lesion_coplenet"
RANK = int(os.environ.get("RANK", "0"))

#: the same patch of a volume whenever it is asked for, so that what a batch holds is known
FIXED_PATCHES = [
    {"_target_": "CenterSpatialCropd", "keys": ["image", "label"], "roi_size": [32, 32, 1]},
    {"_target_": "SqueezeDimd", "keys": ["image", "label"], "dim": -1, "update_meta": False},
    {"_target_": "EnsureTyped", "keys": ["image", "label"], "track_meta": False},
]

#: plain descent, since AdamW's first steps make a sign, and a whole learning rate, of any rounding error
FIXED_BATCHES = {
    "train#random_transforms": FIXED_PATCHES,
    "network_def#dropout": [0.0] * 5,
    "num_classes": 3,
    "class_names": ["background", "lesion", "not drawn"],
    "class_counts": [8000, 1000, 1000],
    "optimizer#_target_": "torch.optim.SGD",
    "learning_rate": 0.05,
    "epochs": 2,
    "val_interval": 2,
    "loss#ignore_index": 2,
}


def train(folder: Path, name: str, processes: int = 2, loss: str | None = None, **overrides):
    """Train with the bundle's configurations; the workflow, and what the loss was in every step of this rank."""
    configs = ["train", *([f"losses/{loss}"] if loss else []), *(["multi_gpu_train"] if processes > 1 else [])]
    settings = {
        "bundle_root": str(BUNDLE), "dataset_dir": str(folder / "data"), "output_dir": str(folder / name / "eval"),
        "ckpt_dir": str(folder / name / "models"), "device": "cpu", "features": [8, 16, 32, 64, 128], "num_workers": 0,
        "patch_size": [32, 32], "slices_per_volume": 2, "train_cases": [f"t{i}" for i in range(4)],
        "val_cases": ["v0", "v1", "v2"], "lung_crop": False, "batch_size": 2 // processes, **overrides,
    }  # fmt: skip
    workflow = monai.bundle.ConfigWorkflow(
        workflow_type="train",
        config_file=[str(BUNDLE / "configs" / f"{config}.json") for config in configs],
        logging_file=False,
        **settings,
    )
    workflow.initialize()
    losses = []
    workflow.trainer.add_event_handler(
        Events.ITERATION_COMPLETED, lambda engine: losses.append(engine.state.output[0]["loss"])
    )
    workflow.run()
    return workflow, losses


def meet(folder: Path) -> None:
    """Start the process group, one for all runs of a worker; whoever waits longer than a minute for the other fails."""
    place = f"file://{folder / 'meeting'}"
    start_process_group("cpu", init_method=place, rank=RANK, world_size=2, timeout=timedelta(seconds=60))


def everybody(value):
    """The values of both ranks, in their order."""
    values = [None, None]
    dist.all_gather_object(values, value)
    return values


def averages(folder: Path) -> None:
    """What is averaged over all processes and what over each one's own voxels; unlike shares of the images are ignored.

    One process with batches of 2 against two processes with batches of 1 each.
    """
    kinds = {
        "margin": (True, {"loss": "margin"}),
        "margin per rank": (False, {"loss": "margin", "train#global_mean": False}),
        "dice per image": (True, {"loss": "margin_dice", "loss#batch": False}),
        "dice per batch": (False, {"loss": "margin_dice"}),
        "tversky per image": (True, {"loss#batch": False}),
        "tversky per batch": (False, {}),
    }
    alone = {}
    for name, (_, overrides) in kinds.items():
        workflow, losses = train(
            folder, f"{name} {RANK}", 1, **FIXED_BATCHES, **overrides, **{"train#dataloader#shuffle": False}
        )
        alone[name] = (workflow.network_def.state_dict(), losses, workflow.evaluator.state.metrics["val_iou"])
    meet(folder)
    for name, (equal, overrides) in kinds.items():
        workflow, mine = train(
            folder, name, **FIXED_BATCHES, **overrides, **{"train#dataloader#sampler#shuffle": False}
        )
        weights, losses, iou = alone[name]
        found = workflow.network_def.state_dict()
        apart = max((found[key] - weights[key]).abs().max().item() for key in weights)
        metrics = workflow.evaluator.state.metrics
        both = everybody((mine, apart, metrics))
        curve = [sum(step) / 2 for step in zip(*(values[0] for values in both), strict=True)]
        off = max(abs(a - b) for a, b in zip(curve, losses, strict=True))
        print(f"{name}: weights {apart:.1e} apart, curve {off:.1e}, IoU {metrics['val_iou']:.4f} and {iou:.4f}")
        assert both[0][1:] == both[1][1:], "the ranks do not agree"
        assert len(curve) == 4
        if equal:
            assert apart < 1e-6
            assert off < 1e-6
            assert abs(metrics["val_iou"] - iou) < 1e-3
        else:
            assert apart > 1e-4


def resume(folder: Path) -> None:
    """The recipe with everything that draws: random crops, dropout, shuffling; stopped after two of four epochs."""
    recipe = {"epochs": 4, "warmup_epochs": 1, "early_stop_patience": 10, "class_counts": [9000, 1000]}
    meet(folder)
    _, whole = train(folder, "whole", **recipe)
    _, first = train(folder, "parts", **recipe, **{"train#trainer#max_epochs": 2})
    models = folder / "parts" / "models"
    again, second = train(folder, "parts", **recipe, resume_from=str(models / "checkpoint_epoch=2.pt"))
    assert first + second == whole
    assert everybody(again.evaluator.state.best_metric) == [again.evaluator.state.best_metric] * 2
    for name in ("checkpoint_epoch=4.pt", "model.pt"):
        ends = [torch.load(folder / run / "models" / name, weights_only=True) for run in ("whole", "parts")]
        ends = [end.get("network", end) for end in ends]
        assert all(torch.equal(a, b) for a, b in zip(ends[0].values(), ends[1].values(), strict=True)), name
    losses = everybody(whole)
    assert losses[0] != losses[1], "the ranks draw different crops"


def early_stop(folder: Path) -> None:
    """With a learning rate of 0 no validation is better than the first: every rank stops after the same epoch."""
    meet(folder)
    stopped, _ = train(folder, "stop", epochs=9, early_stop_patience=2, learning_rate=0.0, class_counts=[9000, 1000])
    assert stopped.trainer.state.epoch == 3
    assert stopped.trainer.should_terminate


if __name__ == "__main__":
    globals()[sys.argv[2]](Path(sys.argv[1]))
    end_process_group()
    print("every check passed")
