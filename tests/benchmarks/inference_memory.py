"""Peak memory of segmenting one whole scan on the CPU with the bundle, from file to saved mask.

Run it as ``python tests/benchmarks/inference_memory.py``; it prints the table of ``docs/benchmarks/inference.md``. Every run is a
process of its own, whose largest resident set is what counts. A convolution of one pixel stands for the network, which keeps the
time short: what is looked at is what grows with the scan. ``--features 16 32 64 128 256`` takes the bundle's own network.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

WAYS: dict[str, dict[str, Any]] = {
    "whole slices": {"lung_crop": "false"},
    "whole slices, stitched on the CPU": {"lung_crop": "false", "inferer#device": "cpu"},
    "whole slices, and the probability map": {"lung_crop": "false", "outputs": "mask,volumes,probability"},
    "lungs": {"lung_crop": "true"},
}
ONE_PIXEL = {"_target_": "torch.nn.Conv2d", "in_channels": 1, "out_channels": 2, "kernel_size": 1}


def measure(scan: Path, features: list[int] | None = None, **flags: Any) -> dict[str, float]:
    """Segment one scan in a process of its own: its peak in GiB, what it has before it starts, and the seconds."""
    done = subprocess.run(
        [sys.executable, __file__, "--one", json.dumps({"scan": str(scan), "features": features, "flags": flags})],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{flags} failed:\n{done.stderr[-2000:]}")
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def _one(scan: str, features: list[int] | None, flags: dict[str, Any]) -> dict[str, float]:
    import monai

    from monai_margincal.bundle import bundle_dir

    root = Path(bundle_dir("covid19_ct_lesion_coplenet"))
    # weights do not change the memory: none are loaded
    network = {"features": features} if features else {"network_def": ONE_PIXEL}
    with tempfile.TemporaryDirectory() as folder:
        workflow = monai.bundle.ConfigWorkflow(
            str(root / "configs" / "inference.json"), workflow_type="infer", logging_file=False, bundle_root=str(root),
            dataset_dir=str(Path(scan).parent), image_pattern="{case}.nii.gz", output_dir=folder, handlers=[], device="cpu",
            num_workers=0, **network, **flags,
        )  # fmt: skip
        workflow.initialize()
        before, start = _peak_gib(), time.perf_counter()
        workflow.run()
        seconds = time.perf_counter() - start
        assert list(Path(folder).rglob("*_mask.nii.gz"))
    return {"peak_gib": _peak_gib(), "start_gib": before, "seconds": seconds}


def _peak_gib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def drawn_scan(folder: Path, slices: int, plane: int = 512) -> Path:
    """A drawn chest with noise as a compressed file; slices repeat, which no memory depends on."""
    import nibabel

    x, y = np.meshgrid(np.linspace(-1, 1, plane), np.linspace(-1, 1, plane), indexing="ij")
    chest = np.where((x / 0.85) ** 2 + (y / 0.7) ** 2 < 1, 40, -1000)
    for side in (-0.4, 0.4):
        chest[((x - side) / 0.3) ** 2 + (y / 0.5) ** 2 < 1] = -850
    base = (chest[..., None] + np.random.default_rng(0).normal(0, 15, (plane, plane, 8))).astype(np.int16)
    volume = np.concatenate([base] * (-(-slices // 8)), axis=-1)[..., :slices]
    path = folder / f"scan_{slices}" / "scan.nii.gz"
    path.parent.mkdir()
    nibabel.save(nibabel.Nifti1Image(volume, np.diag([-0.7, -0.7, 1.0, 1.0])), path)
    return path


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--slices", type=int, nargs="+", default=[150, 300, 600])
    parser.add_argument("--plane", type=int, default=512)
    parser.add_argument("--features", type=int, nargs=5)
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--one", help=argparse.SUPPRESS)  # the process of one run
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(_one(**json.loads(arguments.one))))
        return
    print("| scan | what | peak GiB | of it before the scan | bytes per voxel | s |\n|---|---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for slices in arguments.slices:
            scan = drawn_scan(Path(folder), slices, arguments.plane)
            for way in arguments.ways:
                found = measure(scan, arguments.features, **WAYS[way])
                per_voxel = (found["peak_gib"] - found["start_gib"]) * 2**30 / (arguments.plane**2 * slices)
                print(
                    f"| {arguments.plane} x {arguments.plane} x {slices} | {way} | {found['peak_gib']:.2f} | "
                    f"{found['start_gib']:.2f} | {per_voxel:.1f} | {found['seconds']:.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
