"""What a plane of another size than in training does to lesions, and what windows of the trained size cost.

Run ``python tests/benchmarks/plane_networks.py --output FOLDER`` first, then ``python tests/benchmarks/planes.py --weights FOLDER
--output docs/benchmarks/NAME``; it prints the machine and the tables of ``docs/benchmarks/planes.md`` and writes ``planes.csv``.

Scored is one nodule of each held-out patient, in the slice where it is largest, within the voxels of its box. It is presented

* on an *empty* plane of side 24, 32, 48 and 64, the box in the middle (and cut where it is larger), as training pads it;
* in the *lung* of a scan that training has not seen, a plane of the trained side with the box in the middle, and one of side 96
  with the box anywhere.

Each plane goes through the network whole or in windows of the trained size, by the bundle's own inferer.
"""

from __future__ import annotations

import argparse
import csv
import platform
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import monai
import numpy as np
import plane_networks as networks  # it takes the folder out of the search path again
import torch

from monai_margincal.inferers import VolumeSliceInferer
from monai_margincal.networks import COPLENet, record_trained_plane

PLANE = networks.PLANE
EMPTY_SIDES = (24, 32, 48, 64)
LUNG_SIDE = 96
FIELDS = ("network", "around", "side", "way", "pooled", "mean", "small", "lost", "worst_fall", "false", "machine")


@dataclass(frozen=True)
class Planes:
    """Nodules on planes of one size: images and labels (n, side, side), and which voxels belong to the boxes."""

    around: str
    side: int
    image: np.ndarray
    label: np.ndarray
    inside: np.ndarray


def one_per_patient(test: Sequence[networks.Box]) -> list[networks.Box]:
    """The first box of every patient."""
    return list({box.patient: box for box in reversed(test)}.values())[::-1]


def largest_slice(box: networks.Box) -> tuple[np.ndarray, np.ndarray]:
    """Image and label of the slice that holds most of the nodule."""
    z = int(box.label.sum(axis=(0, 1)).argmax())
    return box.image[..., z], box.label[..., z]


def presentations(test: Sequence[networks.Box], data: Path) -> list[Planes]:
    """All planes, the same for every network."""
    slices = [largest_slice(box) for box in test]
    found = [_collected("empty", [_in_the_middle(i, t, side) for i, t in slices]) for side in EMPTY_SIDES]
    draw = np.random.default_rng(0)
    scan, air = networks.lungs(data, networks.TEST_SCAN)
    pairs = [_in_lung(image, label, scan, air, draw) for image, label in slices]
    return [*found, _collected("lung", [near for near, _ in pairs]), _collected("lung", [far for _, far in pairs])]


_Placed = tuple[np.ndarray, np.ndarray, np.ndarray]


def _put(image: np.ndarray, label: np.ndarray, plane: np.ndarray, corner: tuple[int, int]) -> _Placed:
    placed, truth = networks.placed(image, label, plane, corner)
    _, inside = networks.placed(image, np.ones_like(label), plane, corner)
    return placed, truth, inside.astype(bool)


def _in_the_middle(image: np.ndarray, label: np.ndarray, side: int) -> _Placed:
    corner = tuple((side - n) // 2 for n in image.shape)
    return _put(image, label, np.zeros((side, side), np.float32), corner)  # type: ignore[arg-type]


def _in_lung(
    image: np.ndarray, label: np.ndarray, scan: np.ndarray, air: np.ndarray, draw: np.random.Generator
) -> tuple[_Placed, _Placed]:
    """The box at the same place of the same slice: in the middle of a small plane and anywhere in a large one."""
    n = int(draw.integers(len(scan)))
    margin = PLANE // 2
    candidates = np.argwhere(air[n][margin:-margin, margin:-margin]) + margin
    centre = draw.choice(candidates)
    corner = centre - np.array(image.shape) // 2
    whole = _put(image, label, scan[n], tuple(corner))
    small = np.clip(centre - margin, 0, 512 - PLANE)
    # the small plane lies within the large one
    large = [int(draw.integers(max(0, s + PLANE - LUNG_SIDE), min(s, 512 - LUNG_SIDE) + 1)) for s in small]
    return _cut(whole, small, PLANE), _cut(whole, large, LUNG_SIDE)


def _cut(whole: _Placed, corner: Sequence[int], side: int) -> _Placed:
    x, y = (slice(int(first), int(first) + side) for first in corner)
    image, label, inside = whole
    return image[x, y], label[x, y], inside[x, y]


def _collected(around: str, parts: Sequence[_Placed]) -> Planes:
    image, label, inside = (np.stack(part) for part in zip(*parts, strict=True))
    return Planes(around, image.shape[-1], image, label, inside)


def ways(planes: Planes) -> Iterator[tuple[str, VolumeSliceInferer]]:
    """Name and inferer of each way in which the network may see these planes."""
    yield "whole", VolumeSliceInferer(0, decide=True)
    if planes.side != PLANE:
        yield "windows", VolumeSliceInferer(decide=True)
    if planes.side == LUNG_SIDE:
        yield "windows, overlap 0.5", VolumeSliceInferer(overlap=0.5, decide=True)


def marked(network: COPLENet, planes: Planes, inferer: VolumeSliceInferer) -> np.ndarray:
    """What the network finds, (n, side, side), truth values."""
    volume = torch.from_numpy(planes.image).movedim(0, -1)[None, None]
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of planes of another size: they are what is measured
        return inferer(volume, network)[0, 0].movedim(-1, 0).numpy() == 1


def overlaps(found: np.ndarray, planes: Planes) -> tuple[np.ndarray, float]:
    """IoU of every nodule in its box, and of all of them together."""
    truth, found = planes.label == 1, found & planes.inside
    both, either = (part.sum(axis=(1, 2)) for part in (found & truth, found | truth))
    return both / np.maximum(either, 1), float(both.sum() / either.sum())


def score(name: str, network: COPLENet, all_planes: Sequence[Planes]) -> list[dict[str, Any]]:
    """One row per presentation."""
    record_trained_plane(network, (PLANE, PLANE))
    rows, reference = [], {}
    for planes in all_planes:
        voxels = planes.label.sum(axis=(1, 2))
        small = voxels <= np.quantile(voxels, 1 / 3)
        for way, inferer in ways(planes):
            found = marked(network, planes, inferer)
            iou, pooled = overlaps(found, planes)
            if planes.side == PLANE:
                reference[planes.around] = iou
            rows.append(
                {"network": name, "around": planes.around, "side": planes.side, "way": way}
                | {"pooled": pooled, "mean": iou.mean(), "small": iou[small].mean(), "iou": iou, "small_ones": small}
                | {"false": (found & ~planes.inside).sum(axis=(1, 2)).mean()}
            )
    for row in rows:
        before, small = reference[row["around"]], row.pop("small_ones")
        seen, after = small & (before >= 0.5), row.pop("iou")
        row["lost"] = float((after[seen] < 0.1).mean())
        row["worst_fall"] = float((before - after)[seen].max())
    return rows


def seconds_per_slice(network: COPLENet, side: int, windows: Sequence[int], rounds: int = 3) -> dict[int, float]:
    """Processor seconds of one slice of this side, whole (0) and in windows; the ways take turns, the fastest round counts."""
    volume = torch.rand(1, 1, side, side, 2, generator=torch.Generator().manual_seed(0))
    best: dict[int, float] = {}
    for _ in range(rounds):
        for window in windows:
            record_trained_plane(network, (window or side,) * 2)
            start = time.process_time()
            with torch.no_grad():
                VolumeSliceInferer(decide=True)(volume, network)
            spent = (time.process_time() - start) / volume.shape[-1]
            best[window] = min(spent, best.get(window, spent))
    return best


def machine() -> str:
    """What it ran on, in one line."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    name = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    versions = f"torch {torch.__version__}, MONAI {monai.__version__}"
    return f"{name}, {torch.get_num_threads()} thread(s); {versions}; {time.strftime('%Y-%m-%d')}"


def main(arguments: list[str] | None = None) -> None:
    """Score, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument(
        "--weights", type=Path, help="folder of plane_networks.py; without it only the time is measured"
    )
    parser.add_argument("--networks", nargs="+", choices=list(networks.NETWORKS), default=list(networks.NETWORKS))
    parser.add_argument(
        "--side", type=int, default=512, help="side of the slice whose time is measured; 0 measures none"
    )
    parser.add_argument("--output", type=Path, help="folder for planes.csv; nothing is written without it")
    options = parser.parse_args(arguments)
    title = machine()
    print(title)
    rows: list[dict[str, Any]] = []
    if options.weights:
        all_planes = presentations(one_per_patient(networks.boxes(options.data)[1]), options.data)
        print(
            "\n| network | around | side | way | pooled | mean | small third | small lost | worst fall | false outside |"
        )
        print("|---|---|---:|---|---:|---:|---:|---:|---:|---:|")
        for name in options.networks:
            network = networks.network(name)
            network.load_state_dict(torch.load(options.weights / f"{name}.pt", weights_only=True))
            for row in score(name, network.eval(), all_planes):
                numbers = (f"{row[key]:.3f}" for key in ("pooled", "mean", "small", "lost", "worst_fall"))
                about = (str(row[key]) for key in ("network", "around", "side", "way"))
                print(f"| {' | '.join([*about, *numbers])} | {row['false']:.1f} |", flush=True)
                rows.append({**row, "machine": title})
    if options.side:
        network = COPLENet(features=(16, 32, 64, 128, 256), norm="group").eval()
        for window, spent in seconds_per_slice(network, options.side, (0, 256, 128, 64)).items():
            print(
                f"{options.side} x {options.side}, {f'windows of {window}' if window else 'whole'}: {spent:.2f} processor s"
            )
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)
        with (options.output / "planes.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(
                {k: round(float(v), 4) if isinstance(v, float) else v for k, v in row.items()} for row in rows
            )
        print(f"\nwrote {options.output / 'planes.csv'}")


if __name__ == "__main__":
    main()
