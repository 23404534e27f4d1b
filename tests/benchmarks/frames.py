"""How many frames of 1280 x 1024 the instrument bundle segments in a second, and where the time goes.

Run it as ``python tests/benchmarks/frames.py --output docs/benchmarks/cpu``; it prints the machine with its load and the table of
``docs/benchmarks/frames.md``, and writes ``frames.csv``. Each row works in a process of its own with its number of threads:

* *whole*, *windows*: from a prepared frame on the CPU to its class map, by the bundle's network and inferer, on the whole frame
  or in windows of 768 x 768, those of training, that overlap by a quarter; the best of the repeats counts.
* *read*: a frame of an H.264 video to a normalised tensor, by the bundle's own chain of transforms.
* *write*: mask, overlay and the frame of the film.

Weights do not change the time. Wall times depend on what else runs; the processor's time, user and system, does so less.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np

BUNDLE = Path(__file__).resolve().parents[2] / "bundles" / "surgical_instrument_coplenet"
STEPS = ("whole", "windows", "read", "write")
FIELDS = ("threads", "step", "seconds", "cpu_seconds", "frames_per_second", "load")
#: frames of the video that is read and written
LENGTH = 12


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, help="folder of frames.csv")
    parser.add_argument("--size", type=int, nargs=2, default=[1280, 1024], metavar=("WIDTH", "HEIGHT"))
    parser.add_argument("--features", type=int, nargs=5, default=[16, 32, 64, 128, 256])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        print(json.dumps(measure(arguments)))
        return
    rows = []
    for threads in arguments.threads:
        for step in STEPS if threads == arguments.threads[0] else STEPS[:2]:
            words = [sys.executable, __file__, *sys.argv[1:], "--step", step, "--threads", str(threads)]
            done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
            rows.append({"threads": threads, "step": step, **json.loads(done.stdout.splitlines()[-1])})
            print(rows[-1], flush=True)
    arguments.output.mkdir(parents=True, exist_ok=True)
    with (arguments.output / "frames.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(rows)
    print(
        f"\n{processor()}, {os.cpu_count()} cores, frames of {' x '.join(map(str, arguments.size))}, {arguments.features}\n"
    )
    print(
        "| threads | step | seconds a frame | processor seconds | frames per second | load |\n|---:|---|---:|---:|---:|---:|"
    )
    for row in rows:
        print(
            f"| {row['threads']} | {row['step']} | {row['seconds']:.3g} | {row['cpu_seconds']:.3g} | "
            f"{row['frames_per_second']:.3g} | {row['load']:.1f} |"
        )


def measure(arguments: argparse.Namespace) -> dict[str, float]:
    import torch

    torch.set_num_threads(arguments.threads[-1])
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        call, frames = prepared(arguments, Path(folder))
        call()
        best = (float("inf"), float("inf"))
        for _ in range(arguments.repeats):
            wall, processor_time = time.perf_counter(), time.process_time()
            call()
            now = (time.perf_counter() - wall, time.process_time() - processor_time)
            best = (min(best[0], now[0]), min(best[1], now[1]))
    seconds, cpu_seconds = (value / frames for value in best)
    return {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "frames_per_second": 1 / seconds,
        "load": os.getloadavg()[0],
    }


def prepared(arguments: argparse.Namespace, folder: Path) -> tuple[Callable[[], object], int]:
    """What is measured, and how many frames it works on."""
    import torch
    from monai.bundle import ConfigParser

    config = ConfigParser()
    config.read_config(str(BUNDLE / "configs" / "inference.json"))
    width, height = arguments.size
    config.update(
        {
            "bundle_root": str(BUNDLE),
            "device": "cpu",
            "features": arguments.features,
            "roi_size": [768, 768] if arguments.step == "windows" else [0, 0],
            "dataset_dir": str(folder),
            "output_dir": str(folder / "out"),
            "image_pattern": "{case}.mp4",
            "outputs": ["frame_mask", "frame_overlay", "frame_film"],
            "offsets": None,
        }
    )
    if arguments.step in ("whole", "windows"):
        network = config.get_parsed_content("network").eval()
        inferer = config.get_parsed_content("inferer")
        frame = torch.randn(1, 3, width, height)

        def segment() -> None:
            with torch.no_grad():
                inferer(frame, network)

        return segment, 1
    write_video(folder / "clip.mp4", width, height)
    dataset = config.get_parsed_content("dataset")
    if arguments.step == "read":
        return lambda: [dataset[number] for number in range(LENGTH)], LENGTH
    from monai.data import MetaTensor

    from monai_margincal.outputs import SaveImageOutputsd

    outputs = config.get_parsed_content("saving")
    save = SaveImageOutputsd("pred", outputs)
    mask = torch.zeros(1, width, height, dtype=torch.uint8)
    mask[:, width // 4 : width // 2, height // 4 : height // 2] = 1
    names = [item["image"] for item in dataset.data]

    def write() -> None:
        for name in names:
            save({"pred": MetaTensor(mask, meta={"filename_or_obj": name})})
        outputs.finish()

    return write, LENGTH


def write_video(path: Path, width: int, height: int) -> None:
    """A shipped frame that moves, as H.264."""
    from PIL import Image

    from monai_margincal.outputs.h264_film import H264Film
    from monai_margincal.samples import sample_dir

    with Image.open(Path(sample_dir("instruments"), "images", "davinci_0001.png")) as picture:
        still = np.asarray(picture.convert("RGB").resize((width, height)))
    film = H264Film(path, Fraction(25), Fraction(1, 25))
    for number in range(LENGTH):
        film.append(np.roll(still, 8 * number, axis=1), Fraction(number, 25))
    film.finish()


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    name = next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor()
    )
    return f"{name}, {platform.system()}"


if __name__ == "__main__":
    main()
