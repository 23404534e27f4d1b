"""The networks that ``planes.py`` measures: small COPLE-Nets trained on planes around the lung nodules of some patients.

Run it as ``python tests/benchmarks/plane_networks.py --data ../shared/data --output FOLDER``. Every network sees the same planes
in the same order: a slice of a box, at a random place of an empty plane or of a slice of lung that has no lesion.
"""
# ruff: noqa: E402 - the search path has to be mended before the first import that could be hidden

from __future__ import annotations

import argparse
import csv
import sys
import time
from dataclasses import dataclass
from pathlib import Path

# the folder of this script would hide modules that have the names of its neighbours
sys.path[:] = [path for path in sys.path if Path(path) != Path(__file__).resolve().parent]

import nibabel
import nrrd
import numpy as np
import torch

from monai_margincal.losses import MarginCalibrationTverskyLoss
from monai_margincal.networks import COPLENet

#: side of the planes to train on
PLANE = 32
#: planes of a batch
BATCH = 16
#: patients whose boxes are never trained on
HELD_OUT = 110
#: the scan whose lungs surround boxes in training, and the one that does so in testing
TRAINING_SCAN, TEST_SCAN = "lung1", "lung2"
#: name -> norm, whether the channel gates (squeeze and excitation) are there
NETWORKS = {
    "group": ("group", True),
    "batch": ("batch", True),
    "instance": ("instance", True),
    "group, no gates": ("group", False),
    "batch, no gates": ("batch", False),
    "instance, no gates": ("instance", False),
}
FEATURES = (8, 16, 32, 64, 128)


@dataclass(frozen=True)
class Box:
    """A nodule and what lies around it: image in [0, 1] and label, both (X, Y, Z)."""

    case: str
    patient: str
    image: np.ndarray
    label: np.ndarray


def scaled(hounsfield: np.ndarray) -> np.ndarray:
    """The bundle's window: level -650, width 1500."""
    return np.clip((hounsfield.astype(np.float32) + 1400) / 1500, 0, 1)


def boxes(data: Path) -> tuple[list[Box], list[Box]]:
    """Boxes to train on and boxes to test on; no patient has any in both."""
    folder = data / "lidc_nodules"
    with (folder / "cases.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    patients = sorted({row["patient_id"] for row in rows})
    held_out = set(np.random.default_rng(0).permutation(patients)[:HELD_OUT])
    parts: tuple[list[Box], list[Box]] = ([], [])
    for row in rows:
        image, label = (
            np.asanyarray(nibabel.load(folder / kind / f"{row['case']}.nii.gz").dataobj)
            for kind in ("images", "labels")
        )
        box = Box(row["case"], row["patient_id"], scaled(image), label.astype(np.uint8))
        parts[row["patient_id"] in held_out].append(box)
    return parts


def lungs(data: Path, scan: str) -> tuple[np.ndarray, np.ndarray]:
    """Slices without lesion of a whole chest CT, (n, X, Y), and which of their voxels are air of the lung, as a mask."""
    from scipy import ndimage

    image = nrrd.read(str(data / "lung_ct" / f"{scan}_image.nrrd"))[0]
    label = nrrd.read(str(data / "lung_ct" / f"{scan}_label.nrrd"))[0]
    planes = np.moveaxis(image, -1, 0)[~label.any(axis=(0, 1))]
    air = np.stack([_inner_air(plane, ndimage) for plane in planes])
    enough = air.sum(axis=(1, 2)) > 5000
    return scaled(planes[enough]), air[enough]


def _inner_air(plane: np.ndarray, ndimage: object) -> np.ndarray:
    """Air that the body encloses, its rim of 10 voxels left out."""
    parts, _ = ndimage.label(plane < -500)  # type: ignore[attr-defined]
    edge = np.unique(np.concatenate([parts[0], parts[-1], parts[:, 0], parts[:, -1]]))
    inner = (parts > 0) & ~np.isin(parts, edge)
    return ndimage.binary_erosion(ndimage.binary_closing(inner, iterations=5), iterations=10)  # type: ignore[attr-defined]


def placed(
    box: np.ndarray, label: np.ndarray, plane: np.ndarray, corner: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """A slice of a box put into a plane with its first voxel at ``corner``, which may lie outside, and the label alike."""
    image, truth = plane.copy(), np.zeros(plane.shape, np.uint8)
    target = tuple(
        slice(max(c, 0), min(c + n, side)) for c, n, side in zip(corner, box.shape, plane.shape, strict=True)
    )
    source = tuple(slice(t.start - c, t.stop - c) for t, c in zip(target, corner, strict=True))
    image[target], truth[target] = box[source], label[source]
    return image, truth


class Stream:
    """Batches of planes (B, 1, PLANE, PLANE), the same for every network."""

    def __init__(self, train: list[Box], data: Path, seed: int) -> None:
        self.boxes = train
        self.planes, self.air = lungs(data, TRAINING_SCAN)
        self.random = np.random.default_rng(seed)

    def batch(self, size: int) -> tuple[torch.Tensor, torch.Tensor]:
        pairs = [self._pair() for _ in range(size)]
        image, label = (torch.from_numpy(np.stack(part))[:, None] for part in zip(*pairs, strict=True))
        return image.contiguous(memory_format=torch.channels_last), label

    def _pair(self) -> tuple[np.ndarray, np.ndarray]:
        draw = self.random
        box = self.boxes[draw.integers(len(self.boxes))]
        z = draw.integers(box.image.shape[2])
        # the middle of the box, where the nodule is, comes to lie anywhere in the plane
        corner = tuple(int(draw.integers(PLANE)) - n // 2 for n in box.image.shape[:2])
        image, label = placed(box.image[..., z], box.label[..., z], self._surroundings(), corner)
        for axis in (0, 1):
            if draw.random() < 0.5:
                image, label = np.flip(image, axis), np.flip(label, axis)
        if draw.random() < 0.5:
            image, label = image.T, label.T
        return np.ascontiguousarray(image), np.ascontiguousarray(label).astype(np.int64)

    def _surroundings(self) -> np.ndarray:
        draw = self.random
        if draw.random() < 0.5:
            return np.zeros((PLANE, PLANE), np.float32)
        n = draw.integers(len(self.planes))
        x, y = (int(np.clip(c - PLANE // 2, 0, 512 - PLANE)) for c in draw.choice(np.argwhere(self.air[n])))
        return self.planes[n, x : x + PLANE, y : y + PLANE]


def network(name: str) -> COPLENet:
    """An untrained network, of which a channel gate that is to be left out lets everything through."""
    norm, gated = NETWORKS[name]
    made = COPLENet(features=FEATURES, norm=norm)
    if not gated:
        for module in list(made.modules()):
            if hasattr(module, "gate") and hasattr(module, "second"):
                module.gate = torch.nn.Identity()
    return made


def trained(name: str, train: list[Box], data: Path, steps: int, seed: int = 0) -> COPLENet:
    """Tversky compound in base e, AdamW from 2e-3 to 0."""
    torch.manual_seed(seed)
    learner = network(name).to(memory_format=torch.channels_last).train()
    background = sum(int((box.label == 0).sum()) for box in train)
    lesion = sum(int((box.label > 0).sum()) for box in train)
    loss = MarginCalibrationTverskyLoss(class_counts=[background, lesion], base="e", batch=True)
    optimizer = torch.optim.AdamW(learner.parameters(), 2e-3, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: (1 - step / steps) ** 0.9)
    stream, start, recent = Stream(train, data, seed), time.process_time(), 0.0
    for step in range(steps):
        image, label = stream.batch(BATCH)
        optimizer.zero_grad()
        value = loss(learner(image), label)
        value.backward()
        optimizer.step()
        schedule.step()
        recent += value.item()
        if (step + 1) % 100 == 0:
            print(f"{name}: step {step + 1}, loss {recent / 100:.4f}, {time.process_time() - start:.0f} s", flush=True)
            recent = 0.0
    return learner.eval()


def main() -> None:
    """Train and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--output", type=Path, required=True, help="folder for NAME.pt")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--networks", nargs="+", choices=list(NETWORKS), default=list(NETWORKS))
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    train, test = boxes(options.data)
    print(f"{len(train)} boxes to train on, {len(test)} held out, of {HELD_OUT} patients")
    for name in options.networks:
        torch.save(trained(name, train, options.data, options.steps).state_dict(), options.output / f"{name}.pt")


if __name__ == "__main__":
    main()
