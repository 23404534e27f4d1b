"""Time and memory of segmenting one whole scan, against the published reference's way of doing it.

Run it as ``python tests/benchmarks/inference.py --output docs/benchmarks/NAME``; it prints the machine and the tables of
``docs/benchmarks/inference.md`` and writes ``inference.csv`` and ``inference.png``. Three questions:

* The network part: a prepared scan is on the device, its class map is wanted. The reference runs MONAI's sliding window over
  blocks of 20 slices of 512 x 512, two at a time, in single precision, and takes the classes of the stitched logits. Ours runs
  the bundle's inferer. Every way works in a process of its own, so that its peak memory is its own; the best of the repeats
  counts, the first call (and compilation) is given beside it.
* End to end: from a ``.nii.gz`` file to the saved mask with the bundle's own configuration, every transform timed.
* Reading alone: the same file by each reader that MONAI has for it; the first is what the bundle gets by default.

On a GPU it takes a 512 x 512 x 300 scan, on a CPU a thinner one; ``--slices`` sets it. Weights do not change the time.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import json
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

#: step of the breakdown -> transforms that belong to it
STEPS = {
    "read": ("LoadImaged", "EnsureChannelFirstd"),
    "orient": ("AffineToRASd", "Orientationd"),
    "crop": ("LungRegionCropd",),
    "window": ("ScaleIntensityRanged",),
    "network": ("network",),
    "invert": ("Invertd",),
    "write": ("SaveImageOutputsd",),
}
#: the three questions, in their order
PARTS = ("network", "file", "readers")
FIELDS = [
    "device",
    "torch",
    "shape",
    "features",
    "part",
    "name",
    "seconds",
    "cpu_seconds",
    "first_seconds",
    "peak_gib",
    "seconds_per_slice",
]


def chest(slices: int, plane: int = 512) -> np.ndarray:
    """A drawn chest with noise, int16 HU, (X, Y, Z): compresses about as badly as a real one."""
    rng = np.random.default_rng(0)
    x, y = np.meshgrid(np.linspace(-1, 1, plane), np.linspace(-1, 1, plane), indexing="ij")
    base = np.full((plane, plane), -1000.0)
    base[(x / 0.85) ** 2 + (y / 0.7) ** 2 < 1] = 40
    for side in (-0.4, 0.4):
        base[((x - side) / 0.3) ** 2 + (y / 0.5) ** 2 < 1] = -850
    volume = np.empty((plane, plane, slices), np.int16)
    for k in range(slices):
        volume[..., k] = base + rng.normal(0, 15, base.shape)
    return volume


def _peak_gib(device: Any) -> float:
    import torch

    if device.type == "cuda":
        return torch.cuda.max_memory_reserved(device) / 2**30
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def _timed(call: Callable[[], Any], device: Any, repeats: int) -> tuple[float, float, float]:
    """Best wall time and best processor time after the first call, and the first call's wall time."""
    import torch

    seconds, processor = [], []
    for _ in range(repeats + 1):
        start, processor_start = time.perf_counter(), time.process_time()
        call()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        seconds.append(time.perf_counter() - start)
        processor.append(time.process_time() - processor_start)
    return min(seconds[1:]), min(processor[1:]), seconds[0]


def network_part(
    way: str, device_name: str, slices: int, plane: int, features: list[int], repeats: int
) -> dict[str, Any]:
    """Time one way from the prepared scan on the device to its class map there."""
    import torch
    from monai.inferers import sliding_window_inference

    from monai_margincal.inferers import VolumeSliceInferer
    from monai_margincal.networks import COPLENet

    device = torch.device(device_name)
    torch.manual_seed(0)
    network = COPLENet(features=features, norm="group").eval().to(device)
    # values of [0, 1] as after windowing, made on the device
    scan = torch.rand(1, 1, plane, plane, slices, device=device)
    if way == "reference":
        stack = scan.movedim(-1, 2).contiguous()
        del scan

        def call() -> Any:
            logits = sliding_window_inference(stack, (20, plane, plane), 2, network)
            return logits.argmax(1, keepdim=True)
    else:
        on_gpu = device.type == "cuda"
        if on_gpu:
            network = network.to(memory_format=torch.channels_last)
        if way == "compiled":
            network = torch.compile(network)
        inferer = VolumeSliceInferer((plane, plane), sw_batch_size=8, decide=True, channels_last=on_gpu)

        def call() -> Any:
            with torch.autocast("cuda", enabled=on_gpu):
                return inferer(scan, network)

    with torch.no_grad():
        best, processor, first = _timed(call, device, repeats)
    return {"seconds": best, "cpu_seconds": processor, "first_seconds": first, "peak_gib": _peak_gib(device)}


def end_to_end(device_name: str, scan: Path, features: list[int], lung_crop: bool, folder: Path) -> dict[str, float]:
    """Time every step of the bundle's configuration for one file."""
    import torch
    from monai.bundle import ConfigParser
    from monai.data import decollate_batch, list_data_collate

    from monai_margincal.bundle import bundle_dir

    root = Path(bundle_dir("covid19_ct_lesion_coplenet"))
    parser = ConfigParser()
    parser.read_config(str(root / "configs" / "inference.json"))
    parser.update(
        {
            "dataset_dir": str(scan.parent),
            "image_pattern": "{case}.nii.gz",
            "output_dir": str(folder),
            "device": device_name,
            "features": features,
            "lung_crop": lung_crop,
        }
    )
    if importlib.util.find_spec("itk") is None:  # it reads DICOM series, and the scan is a NIfTI file
        parser.update({"preprocessing#transforms#0#reader": ["monai_margincal.transforms.NiftiReader"]})
    before, inferer, after, network = (
        parser.get_parsed_content(name) for name in ("preprocessing", "inferer", "postprocessing", "network")
    )
    device = torch.device(device_name)
    on_gpu = device.type == "cuda"
    network = network.eval().to(memory_format=torch.channels_last if on_gpu else torch.contiguous_format)
    spent = dict.fromkeys(STEPS, 0.0)

    def timed(name: str, call: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = call()
        if on_gpu:
            torch.cuda.synchronize(device)
        step = next(step for step, names in STEPS.items() if name in names)
        spent[step] += time.perf_counter() - start
        return result

    def segment(image: Any) -> Any:
        with torch.no_grad(), torch.autocast("cuda", enabled=on_gpu):
            return inferer(image.to(device), network)

    for _ in range(2):  # the first scan pays for what is loaded once
        spent = dict.fromkeys(STEPS, 0.0)
        item: Any = {"image": str(scan)}
        for transform in before.transforms:
            item = timed(type(transform).__name__, lambda t=transform, i=item: t(i))
        batch = list_data_collate([item])
        batch["pred"] = timed("network", lambda b=batch: segment(b["image"]))
        (item,) = decollate_batch(batch)
        for transform in after.transforms:
            item = timed(type(transform).__name__, lambda t=transform, i=item: t(i))
    return {step: seconds for step, seconds in spent.items() if seconds or step != "crop"}


def readers(scan: Path, repeats: int = 2) -> dict[str, dict[str, float]]:
    """Time reading one file with every reader, best of the repeats after the first; they must agree voxel by voxel."""
    import torch
    from monai.data import ITKReader, NibabelReader
    from monai.transforms import LoadImage

    taken, images = {}, []
    for name, reader in (("nibabel", NibabelReader), ("ITK", ITKReader)):
        load = LoadImage(reader=reader)
        images.append(load(scan))
        best, processor, first = _timed(lambda load=load: load(scan), torch.device("cpu"), repeats)
        taken[name] = {"seconds": best, "cpu_seconds": processor, "first_seconds": first}
    if not torch.equal(images[0].as_tensor(), images[1].as_tensor()):
        raise ValueError(f"{scan}: found different voxels by nibabel and by ITK")
    return taken


def machine() -> str:
    """What it ran on, in one line."""
    import monai
    import torch

    if torch.cuda.is_available():
        name = torch.cuda.get_device_name()
    else:
        model = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
        name = (
            f"{model[0].split(':')[1].strip() if model else platform.processor()}, {torch.get_num_threads()} thread(s)"
        )
    return f"{name}; Python {platform.python_version()}, torch {torch.__version__}, MONAI {monai.__version__}"


def _chart(rows: list[dict[str, Any]], path: Path, title: str) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from monai_margincal.palette import SERIES, SKY_BLUE

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    network = [row for row in rows if row["part"] == "network"]
    left.barh([row["name"] for row in network], [row["seconds"] for row in network], color=SKY_BLUE)
    left.set(xlabel="seconds", title="network part")
    left.invert_yaxis()
    runs = sorted({row["part"] for row in rows} - {"network", "reader"})
    colours = dict(zip(STEPS, SERIES, strict=True))
    for index, run in enumerate(runs):
        start = 0.0
        for row in rows:
            if row["part"] == run:
                label = row["name"] if index == 0 else None  # the lung crop, which has every step
                right.barh(index, row["seconds"], left=start, color=colours[row["name"]], label=label)
                start += row["seconds"]
    right.set(yticks=range(len(runs)), yticklabels=runs, xlabel="seconds", title="file to saved mask")
    if runs:
        right.legend(fontsize=7, ncols=2)
    figure.suptitle(title, fontsize=8)
    figure.savefig(path, dpi=110)


def _network_rows(ways: list[str], common: dict[str, Any], slices: int) -> list[dict[str, Any]]:
    print(
        f"\n| network part, {common['shape']} | steady s | processor s | first s | peak GiB | s per slice |"
        "\n|---|---|---|---|---|---|"
    )
    rows = []
    for way in ways:
        done = subprocess.run(
            [sys.executable, __file__, *sys.argv[1:], "--one", way], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"the way {way!r} failed:\n{done.stderr[-2000:]}")
        row = {**common, "part": "network", "name": way, **json.loads(done.stdout.splitlines()[-1])}
        row["seconds_per_slice"] = row["seconds"] / slices
        rows.append(row)
        columns = ("seconds", "cpu_seconds", "first_seconds", "peak_gib", "seconds_per_slice")
        print(f"| {way} | " + " | ".join(f"{row[name]:.3f}" for name in columns) + " |")
    return rows


def _drawn_scan(folder: Path, slices: int, plane: int) -> Path:
    import nibabel

    folder.mkdir()
    image = nibabel.Nifti1Image(chest(slices, plane), np.diag([-0.7, -0.7, 1.0, 1.0]))
    nibabel.save(image, folder / "chest.nii.gz")
    return folder / "chest.nii.gz"


def _file_rows(
    device: str, scan: Path, features: list[int], output: Path, common: dict[str, Any]
) -> list[dict[str, Any]]:
    print("\n| file to saved mask | total | " + " | ".join(STEPS) + " |\n|" + "---|" * (len(STEPS) + 2))
    rows = []
    for lung_crop in (False, True):
        spent = end_to_end(device, scan, features, lung_crop, output)
        run = "lung crop" if lung_crop else "whole"
        rows += [{**common, "part": run, "name": step, "seconds": seconds} for step, seconds in spent.items()]
        cells = [f"{spent[step]:.2f}" if step in spent else "-" for step in STEPS]
        print(f"| {run} | {sum(spent.values()):.2f} | " + " | ".join(cells) + " |")
    return rows


def _reader_rows(scan: Path, common: dict[str, Any]) -> list[dict[str, Any]]:
    by_reader = readers(scan)
    print("\n| reading alone, by | s | processor s |\n|---|---|---|")
    for name, taken in by_reader.items():
        print(f"| {name} | {taken['seconds']:.2f} | {taken['cpu_seconds']:.2f} |")
    return [{**common, "part": "reader", "name": name, **taken} for name, taken in by_reader.items()]


def main() -> None:
    """Measure, print, write."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    on_gpu = torch.cuda.is_available()
    parser.add_argument("--device", default="cuda:0" if on_gpu else "cpu")
    parser.add_argument("--slices", type=int, default=300 if on_gpu else 24)
    parser.add_argument("--plane", type=int, default=512)
    parser.add_argument("--features", type=int, nargs=5, default=[16, 32, 64, 128, 256])
    parser.add_argument("--repeats", type=int, default=3 if on_gpu else 1)
    parser.add_argument("--ways", nargs="+", default=["reference", "ours", *(["compiled"] if on_gpu else [])])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="which of the three questions")
    parser.add_argument("--scan", type=Path, help="a real .nii.gz instead of the drawn chest, for the end-to-end part")
    parser.add_argument("--output", type=Path, default=Path("inference_benchmark"))
    parser.add_argument("--one", help=argparse.SUPPRESS)  # the process of one way
    arguments = parser.parse_args()
    size = {"slices": arguments.slices, "plane": arguments.plane, "features": arguments.features}
    if arguments.one:
        print(json.dumps(network_part(arguments.one, arguments.device, repeats=arguments.repeats, **size)))
        return

    title = machine()
    print(title)
    common = {
        "device": title.split(";")[0],
        "torch": torch.__version__,
        "shape": f"{arguments.plane}x{arguments.plane}x{arguments.slices}",
        "features": "-".join(map(str, arguments.features)),
    }
    rows: list[dict[str, Any]] = []
    if "network" in arguments.parts:
        rows += _network_rows(arguments.ways, common, arguments.slices)
    if {"file", "readers"} & set(arguments.parts):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            scan = arguments.scan or _drawn_scan(folder / "data", arguments.slices, arguments.plane)
            if "file" in arguments.parts:
                rows += _file_rows(arguments.device, scan, arguments.features, folder / "out", common)
            if "readers" in arguments.parts:
                rows += _reader_rows(scan, common)

    arguments.output.mkdir(parents=True, exist_ok=True)
    with (arguments.output / "inference.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {key: round(value, 5) if isinstance(value, float) else value for key, value in row.items()} for row in rows
        )
    _chart(rows, arguments.output / "inference.png", title)
    print(f"\nwrote {arguments.output / 'inference.csv'} and inference.png")


if __name__ == "__main__":
    main()
