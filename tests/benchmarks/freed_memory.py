"""What keeping freed memory is worth on a CPU: processor time, page faults and peak memory with and without it.

Run it as ``python tests/benchmarks/freed_memory.py``; it prints the table of ``docs/benchmarks/inference.md``. Every run is a
process of its own, and the two ways take turns. Processor time counts, that of the kernel separately, because other programs
may use the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from monai.inferers import SlidingWindowInferer

from monai_margincal.inferers import VolumeSliceInferer
from monai_margincal.losses import MarginCalibrationTverskyLoss
from monai_margincal.networks import COPLENet
from monai_margincal.processes import keep_freed_memory


def windows_of_a_photograph() -> Callable[[], Any]:
    """One pass over the windows of a photograph, as in the study of the retina."""
    network = COPLENet(in_channels=3, out_channels=6, features=[8, 16, 32, 64, 128]).eval()
    inferer, image = SlidingWindowInferer(192, sw_batch_size=4, overlap=0.25), torch.rand(1, 3, 1072, 712)

    def run() -> None:
        with torch.no_grad():
            inferer(image, network)

    return run


def slices_of_a_scan() -> Callable[[], Any]:
    """One pass over 16 whole slices, as the bundle for lesions infers."""
    network = COPLENet(features=[16, 32, 64, 128, 256]).eval()
    inferer, scan = VolumeSliceInferer(), torch.rand(1, 1, 512, 512, 16)

    def run() -> None:
        with torch.no_grad():
            inferer(scan, network)

    return run


def training_step() -> Callable[[], Any]:
    """One step on patches of the bundle's size."""
    network = COPLENet(features=[16, 32, 64, 128, 256])
    optimizer = torch.optim.AdamW(network.parameters(), 1e-4)
    loss_function = MarginCalibrationTverskyLoss(class_counts=[99, 1], batch=True)
    image, label = torch.rand(4, 1, 256, 256), torch.randint(0, 2, (4, 1, 256, 256))

    def run() -> None:
        optimizer.zero_grad()
        loss_function(network(image), label).backward()
        optimizer.step()

    return run


#: what is run -> what makes it
WORK = {
    "inference, 1072 x 712 in windows of 192 x 192": windows_of_a_photograph,
    "inference, 16 slices of 512 x 512": slices_of_a_scan,
    "training step, 4 patches of 256 x 256": training_step,
}
WAYS = ("returned", "kept")


def one(work: str, way: str, repeats: int) -> dict[str, float]:
    """Run it in this process, after two runs that do not count."""
    if way == "kept" and not keep_freed_memory():
        raise RuntimeError("memory cannot be kept: another C library than glibc, or MALLOC_* is set")
    torch.manual_seed(0)
    run = WORK[work]()
    run()
    run()
    before, started = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    for _ in range(repeats):
        run()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "seconds": (time.perf_counter() - started) / repeats,
        "user": (after.ru_utime - before.ru_utime) / repeats,
        "kernel": (after.ru_stime - before.ru_stime) / repeats,
        "faults": (after.ru_minflt - before.ru_minflt) / repeats,
        "peak_gib": after.ru_maxrss / 2**20,
    }


def measure(work: str, way: str, repeats: int) -> dict[str, float]:
    """Run it in a process of its own."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    asked = json.dumps({"work": work, "way": way, "repeats": repeats})
    done = subprocess.run(
        [sys.executable, __file__, "--one", asked], env=environment, capture_output=True, text=True, check=True
    )
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", nargs="+", default=list(WORK), choices=list(WORK))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--one", help=argparse.SUPPRESS)  # the process of one run
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(one(**json.loads(arguments.one))))
        return
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    from benchmarks.inference import machine  # not in the processes that are measured

    print(f"{machine()}\n")
    print(
        "| work | freed memory | processor s | of it kernel | page faults | peak GiB |\n|---|---|---:|---:|---:|---:|"
    )
    for work in arguments.work:
        best: dict[str, dict[str, float]] = {}
        for _ in range(arguments.rounds):
            for way in WAYS:
                found = measure(work, way, arguments.repeats)
                if way not in best or found["user"] + found["kernel"] < best[way]["user"] + best[way]["kernel"]:
                    best[way] = found
        for way in WAYS:
            row = best[way]
            print(
                f"| {work} | {way} | {row['user'] + row['kernel']:.2f} | {row['kernel']:.2f} | {row['faults']:,.0f} | "
                f"{row['peak_gib']:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
