"""Images per second of the bundle's training step, against plain single precision at the same batch.

Run it as ``python tests/benchmarks/training.py --output docs/benchmarks/NAME``; it prints the machine and the table of
``docs/benchmarks/training.md`` and writes ``training.csv``. One step is: the batch goes to the device, forward, loss, backward,
optimiser. The ways:

* *reference*: a plain PyTorch loop, single precision, contiguous memory, AdamW as PyTorch makes it by default.
* *recipe*: the bundle's own ``train.json`` and its trainer, with its defaults for the device; its algorithms are
  deterministic.
* *recipe, cudnn_benchmark* and *recipe, compile* (GPU only): the same with one more key.

All have the same network, loss and batch. They take turns, round after round, so that a busy machine slows all of them; of
each the fastest round counts. On a CPU, for the same reason, it is processor time that counts. Compare ratios, and only within
one run. Reading and augmenting is not in it: what of that a step waits for depends on the scans, the number of workers and
``cache_rate``.
"""
# ruff: noqa: E402 - the search path has to be mended before the first import that could be hidden

from __future__ import annotations

import argparse
import csv
import importlib.util
import math
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# the folder of this script would hide modules that have the names of its neighbours
sys.path[:] = [path for path in sys.path if Path(path) != Path(__file__).resolve().parent]

import monai
import torch
from monai.bundle import ConfigWorkflow

from monai_margincal.bundle import bundle_dir

BUNDLE = Path(bundle_dir("covid19_ct_lesion_coplenet"))
REFERENCE = "reference"
#: way -> keys of train.json
WAYS: dict[str, dict[str, Any]] = {
    REFERENCE: {"amp": False, "channels_last": False},
    "recipe": {},
    "recipe, cudnn_benchmark": {"initialize#0#cudnn_benchmark": True},
    "recipe, compile": {"train#trainer#compile": True},
}
#: nothing is read here; ITK, which reads DICOM, may be absent
WITHOUT_ITK = {"train#loading#0#reader": ["monai_margincal.transforms.NiftiReader"]}
FIELDS = [
    "machine",
    "device",
    "features",
    "norm",
    "loss",
    "patch",
    "images",
    "way",
    "milliseconds",
    "images_per_second",
    "ratio",
    "peak_gib",
]
TARGET = 1.4


class Contender:
    """One way of training: its step, and the state of PyTorch's switches that belongs to it."""

    def __init__(self, way: str, loss: str, keys: dict[str, Any], folder: Path) -> None:
        # what a program starts with; the bundle's `initialize` sets its own
        monai.utils.set_determinism(None)
        torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic = False, False
        workflow = ConfigWorkflow(
            workflow_type="train",
            config_file=[str(BUNDLE / "configs" / f"{name}.json") for name in ("train", f"losses/{loss}")],
            logging_file=False,
            bundle_root=str(BUNDLE),
            output_dir=str(folder),
            ckpt_dir=str(folder),
            class_counts=[990_000, 10_000],
            **{**keys, **WAYS[way], **(WITHOUT_ITK if importlib.util.find_spec("itk") is None else {})},
        )
        if way == REFERENCE:
            self.step = _plain_step(workflow.parser)
        else:
            workflow.initialize()
            trainer = workflow.trainer
            trainer.loss_function.to(keys["device"])
            self.step = lambda batch: trainer._iteration(trainer, batch)
        self.network: torch.nn.Module = workflow.parser.get_parsed_content("network")
        self.switches = torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic

    def seconds(self, batch: dict[str, torch.Tensor], steps: int, device: torch.device) -> tuple[float, float]:
        """Seconds of one step, averaged over so many (on a CPU of all its threads), and GiB beside what is there."""
        torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic = self.switches
        on_gpu = device.type == "cuda"
        before = 0
        if on_gpu:
            torch.cuda.synchronize(device)
            torch.cuda.reset_peak_memory_stats(device)
            before = torch.cuda.memory_allocated(device)
        clock = time.perf_counter if on_gpu else time.process_time
        start = clock()
        for _ in range(steps):
            self.step(batch)
        if on_gpu:
            torch.cuda.synchronize(device)
        spent = (clock() - start) / steps
        return spent, (torch.cuda.max_memory_allocated(device) - before) / 2**30 if on_gpu else math.nan


def _plain_step(parser: Any) -> Callable[[dict[str, torch.Tensor]], None]:
    """The bundle's network and loss in a loop without anything else."""
    network, loss, device = (parser.get_parsed_content(name) for name in ("network", "loss", "device"))
    loss.to(device)
    rate, decay = parser["learning_rate"], parser["optimizer"]["weight_decay"]
    optimizer = torch.optim.AdamW(network.train().parameters(), lr=rate, weight_decay=decay)

    def step(batch: dict[str, torch.Tensor]) -> None:
        image, label = batch["image"].to(device), batch["label"].to(device)
        optimizer.zero_grad()
        loss(network(image), label).backward()
        optimizer.step()

    return step


def measure(
    ways: list[str], loss: str, images: int, patch: int, steps: int, rounds: int, device: torch.device, **keys: Any
) -> list[dict[str, Any]]:
    """One row per way."""
    generator = torch.Generator().manual_seed(0)
    image = torch.rand(images, 1, patch, patch, generator=generator)
    batch = {"image": image, "label": (image > 0.99).float()}
    if device.type == "cuda":
        batch = {key: value.pin_memory() for key, value in batch.items()}
    with tempfile.TemporaryDirectory() as folder:
        contenders = {way: Contender(way, loss, {"device": str(device), **keys}, Path(folder)) for way in ways}
        found: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
        for contender in contenders.values():
            contender.seconds(batch, 3 if device.type == "cuda" else 1, device)  # compiles, searches, allocates
        for _ in range(rounds):
            for way, contender in contenders.items():
                found[way].append(contender.seconds(batch, steps, device))
    best = {way: min(seconds for seconds, _ in times) for way, times in found.items()}
    return [
        {
            "way": way,
            "images": images,
            "patch": patch,
            "milliseconds": 1e3 * best[way],
            "images_per_second": images / best[way],
            "ratio": best[REFERENCE] / best[way] if REFERENCE in best else math.nan,
            "peak_gib": max(gib for _, gib in found[way]),
        }
        for way in ways
    ]


def machine(device: torch.device) -> str:
    """What it ran on, in one line."""
    if device.type == "cuda":
        name = torch.cuda.get_device_name(device)
    else:
        info = Path("/proc/cpuinfo")
        model = (
            [x.split(":")[1].strip() for x in info.read_text().splitlines() if x.startswith("model name")]
            if info.exists()
            else []
        )
        name = f"{model[0] if model else platform.machine()}, {torch.get_num_threads()} thread(s)"
    return f"{name}; torch {torch.__version__}, MONAI {monai.__version__}; {time.strftime('%Y-%m-%d')}"


def main(arguments: list[str] | None = None) -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="folder for training.csv; nothing is written without it")
    parser.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
    parser.add_argument(
        "--images", type=int, nargs="+", help="images in a batch; several are measured one after the other"
    )
    parser.add_argument("--patch", type=int, help="side of an image in pixels")
    parser.add_argument("--features", type=int, nargs=5, default=[16, 32, 64, 128, 256])
    parser.add_argument("--norm", default="group", choices=["group", "batch"])
    parser.add_argument("--loss", default="margin_dice", help="a file of the bundle's configs/losses")
    parser.add_argument("--steps", type=int, help="steps of a round")
    parser.add_argument("--rounds", type=int, help="rounds of each way")
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), help="the reference is always among them")
    options = parser.parse_args(arguments)
    device = torch.device(options.device)
    on_gpu = device.type == "cuda"
    ways = options.ways or (list(WAYS) if on_gpu else [REFERENCE, "recipe"])
    ways = [REFERENCE, *(way for way in ways if way != REFERENCE)]
    title = machine(device)
    print(title)
    if not on_gpu:
        print(
            "On a CPU the recipe has no mixed precision, no channels-last and no fused optimiser: it is held to cost nothing, "
            f"and the target of {TARGET} is a GPU's."
        )
    keys = {"features": options.features, "norm": options.norm}
    rows: list[dict[str, Any]] = []
    print(
        "\n| images | patch | way | ms per step | images/s | to the reference | GiB |\n|---:|---:|---|---:|---:|---:|---:|"
    )
    for images in options.images or ([8, 32] if on_gpu else [4]):
        found = measure(
            ways,
            options.loss,
            images,
            options.patch or (256 if on_gpu else 128),
            options.steps or (20 if on_gpu else 2),
            options.rounds or (5 if on_gpu else 3),
            device,
            **keys,
        )
        for row in found:
            peak = f"{row['peak_gib']:.2f}" if on_gpu else "not measured"
            print(
                f"| {row['images']} | {row['patch']} | {row['way']} | {row['milliseconds']:.1f} | "
                f"{row['images_per_second']:.1f} | {row['ratio']:.2f} | {peak} |"
            )
        about = {"loss": options.loss, "norm": options.norm, "features": "-".join(map(str, options.features))}
        about |= {"machine": title, "device": str(device)}
        rows += [{**about, **row} for row in found]
    if on_gpu:
        reached = [row["ratio"] >= TARGET for row in rows if row["way"] == "recipe"]
        print(f"\nthe recipe's target of {TARGET}: reached for {sum(reached)} of {len(reached)} batch sizes")
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)
        with (options.output / "training.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()} for row in rows)
        print(f"\nwrote {options.output / 'training.csv'}")


if __name__ == "__main__":
    main()
