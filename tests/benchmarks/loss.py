"""Time and memory of a forward and backward pass of segmentation losses, side by side.

    python tests/benchmarks/loss.py --output results/        # a GPU if there is one, else the CPU with smaller shapes
    python tests/benchmarks/loss.py --device cpu --threads 2 --shapes 2x14x96x96x64

Prints one table per shape and dtype, and writes loss.csv and loss.png. The contenders of one shape take turns, round after round,
so that a busy machine slows all of them; of each the shortest time counts. Compare ratios, and only within one run.
"""
# ruff: noqa: E402 - the search path has to be mended before the first import that could be hidden

from __future__ import annotations

import argparse
import csv
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path

# the folder of this script would hide modules of the standard library that have the names of its neighbours
sys.path[:] = [
    str(Path(__file__).resolve().parents[1]),
    *(p for p in sys.path if Path(p) != Path(__file__).resolve().parent),
]

os.environ.setdefault("KINETO_LOG_LEVEL", "5")  # the profiler that measures memory is talkative

import torch
import torch.nn.functional as F
from monai.losses import DiceCELoss, FocalLoss, GeneralizedDiceFocalLoss, TverskyLoss
from ops.memory import peak_allocation

from monai_margincal import (
    LovaszSoftmaxLoss,
    MarginCalibrationDiceLoss,
    MarginCalibrationLoss,
    MarginCalibrationTverskyLoss,
)
from monai_margincal.margins import logit_margins

GPU_SHAPES = ["64x2x512x512", "16x5x768x960", "2x14x192x192x192", "1x105x128x128x128", "6x2x224x336"]
CPU_SHAPES = ["2x2x512x512", "2x5x256x320", "1x14x96x96x64", "1x105x32x32x32", "6x2x224x336"]
OURS, REFERENCE, COPY = "MarginCalibrationLoss", "F.cross_entropy", "copy of the logits"
#: seconds that one contender may take for all its rounds
PATIENCE = {"cuda": 1.0, "cpu": 12.0}


def released_formula(classes: int, device: torch.device) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """What the authors' released code computes, step by step: top two by topk, one-hot in float64, weighted BCE."""
    rho_0k, rho_k0 = (
        torch.linspace(0.01, 0.5, classes, device=device),
        torch.linspace(0.5, 0.01, classes, device=device),
    )

    def loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        rows = logits.movedim(1, -1).reshape(-1, classes)
        largest = torch.topk(rows, 2, dim=1).values
        margins = rows - torch.where(rows == largest[:, :1], largest[:, 1:], largest[:, :1])
        positive = F.one_hot(labels.flatten(), classes).double()
        shifted = margins + (1 - positive) * rho_0k - positive * rho_k0
        weight = torch.full((classes,), float(classes), device=device)
        return F.binary_cross_entropy_with_logits(shifted.float(), positive.float(), pos_weight=weight)

    return loss


def plain_form(classes: int, device: torch.device) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Our loss written with whole-size tensor operations and differentiated by autograd; what a compiler may fuse."""
    margins = torch.linspace(0.01, 0.5, classes, device=device)

    def loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        shape = (1, classes, *(1,) * (logits.ndim - 2))
        distance = logit_margins(logits)
        is_true = labels == torch.arange(classes, device=device).view(shape)
        excess = torch.where(is_true, margins.flip(0).view(shape) - distance, distance + margins.view(shape))
        terms = excess.clamp_min(0) + torch.log1p(torch.exp(-excess.abs()))
        return torch.where(is_true, terms, terms / classes).sum(1).mean()

    return loss


def contenders(classes: int, device: torch.device, with_compiler: bool) -> dict[str, Callable]:
    counts = [10 ** (6 - k % 4) for k in range(classes)]
    result = {
        OURS: MarginCalibrationLoss(class_counts=counts).to(device),
        "MarginCalibrationTverskyLoss": MarginCalibrationTverskyLoss(class_counts=counts).to(device),
        "MarginCalibrationDiceLoss": MarginCalibrationDiceLoss(class_counts=counts).to(device),
        "MarginCalibrationTverskyLoss(lambda_margin=0)": MarginCalibrationTverskyLoss(0.0, class_counts=counts).to(
            device
        ),
        REFERENCE: lambda logits, labels: F.cross_entropy(logits, labels[:, 0]),
        "DiceCELoss": DiceCELoss(softmax=True, to_onehot_y=True),
        "GeneralizedDiceFocalLoss": GeneralizedDiceFocalLoss(softmax=True, to_onehot_y=True),
        "FocalLoss": FocalLoss(use_softmax=True, to_onehot_y=True),
        "TverskyLoss": TverskyLoss(softmax=True, to_onehot_y=True),
        "LovaszSoftmaxLoss": LovaszSoftmaxLoss(),
        "released formula": released_formula(classes, device),
        "plain form": plain_form(classes, device),
    }
    if with_compiler:
        result["plain form, torch.compile"] = torch.compile(plain_form(classes, device), dynamic=False)
    return result


def clocked(function: Callable[[], object], device: torch.device) -> float:
    """Seconds of one call; with one CPU thread those that the process had of its core, which other programs do not add to."""
    if device.type == "cuda":
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        function()
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end) / 1e3
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    begin = clock()
    function()
    return clock() - begin


def peak_bytes(function: Callable[[], object], device: torch.device) -> int:
    if device.type != "cuda":
        return peak_allocation(function)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    function()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def measure(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, rounds: int, with_compiler: bool
) -> list[dict]:
    """One row per contender."""
    torch.manual_seed(0)
    logits = (torch.randn(shape, device=device) * 3).to(dtype).requires_grad_()
    labels = torch.randint(0, shape[1], (shape[0], 1, *shape[2:]), device=device)
    size = logits.numel() * logits.element_size()
    target = torch.empty_like(logits)

    def both_passes(loss: Callable) -> Callable[[], object]:
        return lambda: torch.autograd.grad(loss(logits, labels), logits)

    calls: dict[str, Callable[[], object]] = {COPY: lambda: target.copy_(logits.detach())}
    calls.update({name: both_passes(loss) for name, loss in contenders(shape[1], device, with_compiler).items()})
    rows: dict[str, dict] = {}
    for name, call in calls.items():  # warm up; what fails, fails here
        rows[name] = {"loss": name, "seconds": [], "extra_bytes": None, "error": ""}
        try:
            call()
            rows[name]["seconds"].append(clocked(call, device))
            rows[name]["extra_bytes"] = peak_bytes(call, device)
        except (RuntimeError, torch.cuda.OutOfMemoryError) as error:
            rows[name]["error"] = f"{type(error).__name__}: {str(error).splitlines()[0][:80]}"
            if device.type == "cuda":
                torch.cuda.empty_cache()
    for _ in range(rounds):
        for name, call in calls.items():
            row = rows[name]
            if not row["error"] and sum(row["seconds"]) < PATIENCE[device.type]:
                row["seconds"].append(clocked(call, device))
    shortest = {name: min(row["seconds"], default=float("nan")) for name, row in rows.items()}
    for name, row in rows.items():
        row["rounds"] = len(row.pop("seconds"))
        row["milliseconds"] = 1e3 * shortest[name]
        row["to_cross_entropy"] = shortest[name] / shortest[REFERENCE]
        row["to_copy"] = shortest[name] / shortest[COPY]
        row["extra_to_logits"] = float("nan") if row["extra_bytes"] is None else row["extra_bytes"] / size
    return list(rows.values())


def machine(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        model = names[0] if names else model
    return f"{model}, {torch.get_num_threads()} threads"


def versions() -> str:
    try:
        import triton

        kernels = f"triton {triton.__version__}"
    except ImportError:
        kernels = "no triton"
    return f"torch {torch.__version__}, {kernels}, MARGINCAL_KERNEL={os.environ.get('MARGINCAL_KERNEL', 'auto')}"


def print_table(title: str, rows: list[dict]) -> None:
    print(f"\n{title}\n")
    print("| loss, forward + backward | ms | to cross-entropy | to a copy | extra memory / logits |")
    print("|---|---:|---:|---:|---:|")
    for row in rows:
        if row["error"]:
            print(f"| {row['loss']} | {row['error']} | | | |")
        else:
            print(
                f"| {row['loss']} | {row['milliseconds']:.3f} | {row['to_cross_entropy']:.2f} | {row['to_copy']:.1f} | "
                f"{row['extra_to_logits']:.2f} |"
            )


def draw(rows: list[dict], path: Path, title: str) -> None:
    """Bars of the time relative to cross-entropy, one panel per shape and dtype, with the copy of the logits as a line."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    panels = list(dict.fromkeys((row["shape"], row["dtype"]) for row in rows))
    figure, axes = plt.subplots(len(panels), 1, figsize=(9, 2.9 * len(panels)), squeeze=False, layout="constrained")
    for axis, panel in zip(axes[:, 0], panels, strict=True):
        shown = [row for row in rows if (row["shape"], row["dtype"]) == panel and not row["error"]]
        bars = [row for row in shown if row["loss"] != COPY][::-1]
        colors = ["tab:orange" if row["loss"].startswith("MarginCalibration") else "tab:gray" for row in bars]
        drawn = axis.barh([row["loss"] for row in bars], [row["to_cross_entropy"] for row in bars], color=colors)
        axis.bar_label(drawn, fmt="%.2f", padding=3, fontsize=8)
        for row in shown:
            if row["loss"] == COPY:
                axis.axvline(row["to_cross_entropy"], color="black", linestyle="--", label="copy of the logits")
        axis.set_xscale("log")
        axis.margins(x=0.15)
        axis.legend(loc="upper right", fontsize=8)
        axis.set_title(f"{panel[0]}, {panel[1]}", fontsize=10)
    axes[-1, 0].set_xlabel("time of forward + backward, cross-entropy = 1")
    figure.suptitle(title, fontsize=10)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="folder for loss.csv and loss.png; nothing is written without it")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--shapes", nargs="+", help="BxCxspatial, for example 2x14x96x96x64")
    parser.add_argument("--dtypes", nargs="+", choices=["float32", "float16", "bfloat16"])
    parser.add_argument("--threads", type=int, help="CPU threads")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    options = parser.parse_args(arguments)
    device = torch.device(options.device)
    if options.threads:
        torch.set_num_threads(options.threads)
    on_gpu = device.type == "cuda"
    shapes = options.shapes or (GPU_SHAPES if on_gpu else CPU_SHAPES)
    dtypes = options.dtypes or (["float32", "float16", "bfloat16"] if on_gpu else ["float32"])
    about = f"{machine(device)}; {versions()}; {time.strftime('%Y-%m-%d')}"
    print(about)
    rows = []
    for shape in shapes:
        for dtype in dtypes:
            size = tuple(int(part) for part in shape.split("x"))
            found = measure(size, getattr(torch, dtype), device, options.rounds, not options.no_compile)
            print_table(f"{shape}, {dtype}", found)
            rows += [{"shape": shape, "dtype": dtype, **row, "machine": about} for row in found]
            if on_gpu:
                torch.cuda.empty_cache()
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)
        with (options.output / "loss.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        draw(rows, options.output / "loss.png", about)
        print(f"\nwritten: {options.output / 'loss.csv'}, {options.output / 'loss.png'}")


if __name__ == "__main__":
    main()
