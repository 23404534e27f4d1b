"""What saved masks of lung nodules are worth: IoU pooled and per nodule, by size and texture, with intervals over patients.

    python tests/benchmarks/nodules.py BOXES MASKS

BOXES has ``cases.csv`` (``case``, ``patient_id``, ``nodule_voxels``, ``texture_class``) and ``labels``; MASKS is the folder that
inference wrote, and its masks choose the cases. Prints a table in Markdown.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import nibabel
import numpy as np

DRAWS = 10_000
TEXTURES = {"1": "solid", "2": "part-solid", "3": "ground glass"}


def overlap(mask: Path, truth: Path) -> tuple[int, int]:
    """Voxels of the nodule in both files, and in either."""
    predicted, true = (np.asanyarray(nibabel.load(path).dataobj) == 1 for path in (mask, truth))
    return int((predicted & true).sum()), int((predicted | true).sum())


def intervals(both: np.ndarray, either: np.ndarray, patients: np.ndarray) -> list[tuple[float, float, float]]:
    """Pooled IoU and mean IoU of a nodule, each with its 95 % bootstrap interval over patients."""
    each = both / either
    member = (patients[:, None] == np.unique(patients)).astype(float)
    sums = np.stack([both, either, each, np.ones(len(each))]) @ member
    drawn = np.random.default_rng(0).integers(member.shape[1], size=(DRAWS, member.shape[1]))
    in_both, in_either, iou, nodules = sums[:, drawn].sum(-1)
    return [
        (value, *np.percentile(draws, [2.5, 97.5]))
        for value, draws in ((both.sum() / either.sum(), in_both / in_either), (each.mean(), iou / nodules))
    ]


def main(boxes: Path, masks: Path) -> None:
    """Print the table."""
    found = {path.name.removesuffix("_mask.nii.gz"): path for path in masks.rglob("*_mask.nii.gz")}
    with (boxes / "cases.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["case"] in found]
    both, either = np.array([overlap(found[r["case"]], boxes / "labels" / f"{r['case']}.nii.gz") for r in rows]).T
    patients = np.array([row["patient_id"] for row in rows])
    size = np.argsort(np.argsort([int(row["nodule_voxels"]) for row in rows], kind="stable"))
    third = size * 3 // len(rows)
    groups = {"all": np.ones(len(rows), bool)}
    groups |= {f"{name} third by voxels": third == k for k, name in enumerate(("smallest", "middle", "largest"))}
    groups |= {name: np.array([row["texture_class"] == key for row in rows]) for key, name in TEXTURES.items()}
    print(
        "| nodules | number | patients | pooled IoU | mean IoU of a nodule | above 0.5 |\n|---|---:|---:|---:|---:|---:|"
    )
    for name, chosen in groups.items():
        if chosen.any():
            scores = intervals(both[chosen], either[chosen], patients[chosen])
            cells = [f"{value:.3f} ({low:.3f} to {high:.3f})" for value, low, high in scores]
            good = ((both / either)[chosen] > 0.5).mean()
            print(f"| {name} | {chosen.sum()} | {len(set(patients[chosen]))} | {' | '.join(cells)} | {good:.0%} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
