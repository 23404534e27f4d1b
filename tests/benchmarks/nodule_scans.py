"""What masks of lung nodules are worth where a nodule is rare: nodules found, and what is marked elsewhere, scan by scan.

    python tests/benchmarks/nodule_scans.py MASKS [LABELS --label "{case}_label.nrrd"]

MASKS is the folder that inference wrote. LABELS holds the truth, one file for each mask; without it the scans count as free of
nodules. A nodule is found if one of its voxels is marked; a false positive is a marked piece (26 neighbours) that touches no
nodule. Prints a table in Markdown, a row for each scan if there are no more than ten, and one for all.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import itk
import numpy as np
from scipy import ndimage

ENDING = "_mask.nii.gz"
#: diameter in mm of the ball that a piece must fill to be counted as large: below it nodules are not followed up
LARGE_MM = 6.0


class Marks(NamedTuple):
    """What is marked in one scan: nodules, nodules found, pieces elsewhere, large ones among them, their ml, litres scanned."""

    nodules: int
    found: int
    pieces: int
    large: int
    false_ml: float
    litres: float


def marks(mask: np.ndarray, truth: np.ndarray, voxel_mm3: float) -> Marks:
    """Count pieces of a mask and of the truth, both of one shape, not 0 where something is marked."""
    around = np.ones((3,) * mask.ndim)
    nodules, number = ndimage.label(truth, around)
    pieces, marked = ndimage.label(mask, around)
    sizes = np.bincount(pieces.ravel(), minlength=marked + 1) * voxel_mm3
    elsewhere = np.setdiff1d(np.arange(1, marked + 1), np.unique(pieces[nodules > 0]))
    found = np.unique(nodules[pieces > 0])
    return Marks(
        nodules=number,
        found=int((found > 0).sum()),
        pieces=len(elsewhere),
        large=int((sizes[elsewhere] >= np.pi / 6 * LARGE_MM**3).sum()),
        false_ml=float(sizes[elsewhere].sum() / 1e3),
        litres=mask.size * voxel_mm3 / 1e6,
    )


def main(masks: Path, labels: Path | None, label: str) -> None:
    """Print the table."""
    rows = {}
    for path in sorted(masks.rglob(f"*{ENDING}")):
        case = path.name.removesuffix(ENDING).removesuffix("_image")
        image = itk.imread(str(path))
        mask = itk.array_from_image(image) > 0
        truth = np.zeros_like(mask)
        if labels is not None:
            truth = itk.array_from_image(itk.imread(str(labels / label.format(case=case)))) > 0
        rows[case] = marks(mask, truth, float(np.prod(list(image.GetSpacing()))))
    total = Marks(*(sum(row[k] for row in rows.values()) for k in range(len(Marks._fields))))
    print(
        f"| scan | nodules found | marked elsewhere, pieces | of {LARGE_MM:.0f} mm or more | ml |\n|---|---:|---:|---:|---:|"
    )
    for name, row in [*(rows.items() if len(rows) <= 10 else ()), (f"all {len(rows)}", total)]:
        print(f"| {name} | {row.found} of {row.nodules} | {row.pieces} | {row.large} | {row.false_ml:.2f} |")
    print(f"\n{total.litres:.2f} l in all, {len(rows)} scans with {total.pieces / len(rows):.2f} pieces elsewhere each")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("masks", type=Path)
    parser.add_argument("labels", type=Path, nargs="?")
    parser.add_argument("--label", default="{case}.nii.gz")
    arguments = parser.parse_args()
    main(arguments.masks, arguments.labels, arguments.label)
