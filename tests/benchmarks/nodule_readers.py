"""How far one reader agrees with the consensus of several, and how far masks do, on the same nodules and the same grid.

    python tests/benchmarks/nodule_readers.py BOXES CUBES MASKS

BOXES has the consensus of up to four readers on the scan's own grid, CUBES the outline of one of them at 1 mm, of the same
collection; both have ``cases.csv`` with ``patient_id``, and ``images`` and ``labels``. Where a nodule of a cube lies in a box is
found by the correlation of the images, to a fraction of a voxel; cubes without a box that correlates are left out. Consensus and
masks are brought to the grid of the cube. MASKS is the folder that inference wrote. Prints a table in Markdown.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import NamedTuple

import nibabel
import numpy as np
from scipy import ndimage
from scipy.optimize import minimize
from scipy.signal import fftconvolve

#: Hounsfield units that both sets keep
WINDOW = (-1200.0, 400.0)
#: half the side of the cut-out around a nodule by which it is looked for, in mm
HALF_MM = 12
#: below it the images are not of one place
CORRELATION = 0.9
#: the nodule of a cube is in its middle; a place further away, in mm, is another nodule's
MIDDLE_MM = 10.0


class Match(NamedTuple):
    """Where a box lies in a cube: correlation, and the voxel of the box at voxel ``at`` of the cube."""

    correlation: float
    at: np.ndarray
    voxel: np.ndarray
    spacing: np.ndarray

    def on_the_cube(self, voxels: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """A mask of the box on the grid of the cube, of 1 mm; nothing outside the box."""
        grid = np.indices(shape).reshape(3, -1) - self.at[:, None]
        where = self.voxel[:, None] + grid / self.spacing[:, None]
        return ndimage.map_coordinates(voxels.astype(float), where, order=1).reshape(shape) > 0.5


def voxels_of(path: Path) -> np.ndarray:
    """The voxels of a file."""
    return np.asanyarray(nibabel.load(path).dataobj)


def correlations(image: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Pearson's correlation of the part with every place of the image at which it lies inside."""
    centred = part - part.mean()
    ones = np.ones(part.shape)
    products = fftconvolve(image, centred[::-1, ::-1, ::-1], "valid")
    sums, squares = (fftconvolve(power, ones, "valid") for power in (image, image**2))
    return products / np.sqrt(np.maximum(squares - sums**2 / part.size, 1e-6) * (centred**2).sum())


def match(cube: np.ndarray, image: np.ndarray, truth: np.ndarray, spacing: np.ndarray) -> Match:
    """Find the place around the nodule of a box in a cube."""
    extent = (np.array(image.shape) - 1) * spacing
    half = np.minimum(HALF_MM, np.floor(extent / 2)).astype(int)
    margin = half / spacing
    voxel = np.clip(ndimage.center_of_mass(truth), margin, np.array(image.shape) - 1 - margin)
    offsets = np.stack(np.meshgrid(*(np.arange(-n, n + 1) for n in half), indexing="ij"))
    part = ndimage.map_coordinates(image, [voxel[k] + offsets[k] / spacing[k] for k in range(3)], order=1)
    found = correlations(cube, part)
    start = np.array(np.unravel_index(found.argmax(), found.shape)) + half

    def loss(at: np.ndarray) -> float:
        here = ndimage.map_coordinates(cube, offsets + at[:, None, None, None], order=1)
        return -float(np.corrcoef(here.ravel(), part.ravel())[0, 1])

    at = minimize(
        loss, start.astype(float), method="Nelder-Mead", options={"xatol": 0.02, "initial_simplex": start + _SIMPLEX}
    )
    return Match(-at.fun, at.x, voxel, spacing)


_SIMPLEX = np.array([[0, 0, 0], [0.5, 0, 0], [0, 0.5, 0], [0, 0, 0.5]])


def iou(first: np.ndarray, second: np.ndarray) -> tuple[int, int]:
    """Voxels in both and in either."""
    return int((first & second).sum()), int((first | second).sum())


def rows_of(folder: Path) -> list[dict[str, str]]:
    """The cases of a set."""
    with (folder / "cases.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def main(boxes: Path, cubes: Path, masks: Path) -> None:
    """Print the table."""
    mask_of = {path.name.removesuffix("_mask.nii.gz"): path for path in masks.rglob("*_mask.nii.gz")}
    pairs: dict[str, list[tuple[int, int]]] = {}
    for row in rows_of(cubes):
        cube, reader = (voxels_of(cubes / kind / f"{row['case']}.nii.gz") for kind in ("images", "labels"))
        best: tuple[float, Match | None, str] = (CORRELATION, None, "")
        for box in rows_of(boxes):
            if box["patient_id"] != row["patient_id"] or box["case"] not in mask_of:
                continue
            file = nibabel.load(boxes / "images" / f"{box['case']}.nii.gz")
            truth = voxels_of(boxes / "labels" / f"{box['case']}.nii.gz") == 1
            image = np.clip(np.asanyarray(file.dataobj).astype(float), *WINDOW)
            place = match(
                np.clip(cube.astype(float), *WINDOW), image, truth, np.array(file.header.get_zooms()[:3], float)
            )
            away = np.linalg.norm(place.at - (np.array(cube.shape) - 1) / 2)
            if place.correlation > best[0] and away <= MIDDLE_MM:
                best = (place.correlation, place, box["case"])
        if best[1] is None:
            continue
        consensus = best[1].on_the_cube(voxels_of(boxes / "labels" / f"{best[2]}.nii.gz") == 1, cube.shape)
        mask = best[1].on_the_cube(voxels_of(mask_of[best[2]]) == 1, cube.shape)
        outline = reader == 1
        for name, two in {
            "one reader, consensus": (outline, consensus),
            "mask, consensus": (mask, consensus),
            "mask, one reader": (mask, outline),
        }.items():
            pairs.setdefault(name, []).append(iou(*two))
    print("| between | nodules | pooled IoU | mean IoU of a nodule (standard error) |\n|---|---:|---:|---:|")
    for name, counted in pairs.items():
        both, either = np.array(counted).T
        each = both / either
        error = each.std(ddof=1) / np.sqrt(len(each))
        print(f"| {name} | {len(each)} | {both.sum() / either.sum():.3f} | {each.mean():.3f} ({error:.3f}) |")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
