"""Time and memory of counting label files, against what people use and against decompression alone.

Run it as ``python tests/benchmarks/label_statistics.py``; it prints the tables of ``docs/benchmarks/statistics.md`` and the
machine. All methods count the same files in one run, each in a process of its own, after one file that warms it up; the best
time counts, because nothing else makes a program faster than it is. The files are real label maps (lung lesions, spleen, lung
lobes, 62 abdominal structures) enlarged to 512 x 512 x 64 and more by repeating voxels, turned and shifted so that no two are
equal; without the shared data, spheres take their place.
"""

from __future__ import annotations

import argparse
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

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
#: file of a real label map, type it is stored in here
SOURCES = [
    ("lung_ct/lung1_label.nrrd", "uint8"),
    ("lung_ct/lung2_label.nrrd", "int16"),
    ("spleen_ct/spleen_8_label.nii.gz", "uint8"),
    ("chest_labelmaps/crop_ct_interactiveLobeSegmentation.nrrd", "uint16"),
    ("abdomen_ct/example_seg_fast_force_split.nii.gz", "uint8"),
]


def _enlarged(array: np.ndarray, shape: tuple[int, int, int]) -> np.ndarray:
    index = [np.arange(size) * old // size for size, old in zip(shape, array.shape, strict=True)]
    return array[np.ix_(*index)]


def _spheres(number: int) -> np.ndarray:
    grid = np.indices((128, 128, 32)).astype(np.float32)
    rng = np.random.default_rng(number)
    array = np.zeros((128, 128, 32), np.uint8)
    for label in range(1, 6):
        centre = rng.uniform(0.2, 0.8, 3) * array.shape
        array[sum((axis - c) ** 2 for axis, c in zip(grid, centre, strict=True)) < rng.uniform(5, 25) ** 2] = label
    return array


def make_files(folder: Path, count: int) -> list[Path]:
    """Write ``count`` compressed NIfTI label files of 512 x 512 x 64 and more."""
    import nibabel as nib
    import SimpleITK as sitk

    loaded: dict[str, np.ndarray] = {}
    paths = []
    for number in range(count):
        name, dtype = SOURCES[number % len(SOURCES)]
        if (SHARED / name).exists():
            if name not in loaded:
                loaded[name] = sitk.GetArrayFromImage(sitk.ReadImage(str(SHARED / name))).transpose()
            array = loaded[name]
        else:
            array = _spheres(number)
        turn = number // len(SOURCES)
        array = np.roll(_enlarged(array, (512, 512, 64 + 8 * turn)), 5 * turn, axis=1)
        array = array[:: -1 if turn % 2 else 1]
        path = folder / f"case_{number:02d}.nii.gz"
        nib.save(nib.Nifti1Image(np.ascontiguousarray(array.astype(dtype)), np.diag([0.7, 0.7, 2.5, 1.0])), path)
        paths.append(path)
    return paths


def isal_stream(paths: list[Path]) -> Any:
    from isal import igzip

    buffer = bytearray(1 << 19)
    for path in paths:
        with igzip.open(path) as stream:
            while stream.readinto(buffer):
                pass


def isal_whole(paths: list[Path]) -> Any:
    from isal import isal_zlib

    for path in paths:
        isal_zlib.decompress(path.read_bytes(), 31)


def zlib_stream(paths: list[Path]) -> Any:
    import gzip

    buffer = bytearray(1 << 19)
    for path in paths:
        with gzip.open(path) as stream:
            while stream.readinto(buffer):
                pass


def ours(paths: list[Path]) -> Any:
    from monai_margincal.statistics import count_labels

    return _as_dict(count_labels(paths, progress=False))


def _as_dict(counts: Any) -> dict[int, int]:
    return dict(zip(counts.ids, counts.counts.tolist(), strict=True))


def _add_bincount(total: dict[int, int], array: np.ndarray) -> None:
    counts = np.bincount(array.reshape(-1))
    for value in np.flatnonzero(counts).tolist():
        total[value] = total.get(value, 0) + int(counts[value])


def nibabel_bincount(paths: list[Path]) -> Any:
    import nibabel as nib

    total: dict[int, int] = {}
    for path in paths:
        _add_bincount(total, np.asanyarray(nib.load(path).dataobj).ravel(order="K"))
    return total


def simpleitk_bincount(paths: list[Path]) -> Any:
    import SimpleITK as sitk

    total: dict[int, int] = {}
    for path in paths:
        _add_bincount(total, sitk.GetArrayFromImage(sitk.ReadImage(str(path))))
    return total


def _add_unique(total: dict[int, int], array: np.ndarray) -> None:
    values, counts = np.unique(array, return_counts=True)
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        total[int(value)] = total.get(int(value), 0) + count


def loadimage_unique(paths: list[Path]) -> Any:
    from monai.transforms import LoadImage

    load = LoadImage()
    total: dict[int, int] = {}
    for path in paths:
        _add_unique(total, load(path).numpy())
    return total


def fdata_unique(paths: list[Path]) -> Any:
    import nibabel as nib

    total: dict[int, int] = {}
    for path in paths:
        _add_unique(total, nib.load(path).get_fdata())
    return total


def monai_label_stats(paths: list[Path]) -> Any:
    """MONAI's own label statistics of Auto3DSeg, without connected components; it needs an image: the label again."""
    from monai.auto3dseg import LabelStats
    from monai.transforms import LoadImage

    load, analyzer = LoadImage(ensure_channel_first=True), LabelStats("image", "label", do_ccp=False)
    for path in paths:
        label = load(path)
        analyzer({"image": label, "label": label[0]})


#: name in the table, function, share of the files that it counts (the slowest would take minutes)
METHODS: list[tuple[str, Callable[[list[Path]], Any], float]] = [
    ("isal alone, into one reused buffer", isal_stream, 1.0),
    ("isal alone, each file into memory", isal_whole, 1.0),
    ("zlib (Python's gzip) alone, into one reused buffer", zlib_stream, 1.0),
    ("**count_labels**", ours, 1.0),
    ("nibabel + np.bincount", nibabel_bincount, 1.0),
    ("SimpleITK + np.bincount", simpleitk_bincount, 1.0),
    ("MONAI LoadImage + np.unique", loadimage_unique, 0.5),
    ("nibabel get_fdata + np.unique", fdata_unique, 0.5),
    ("MONAI auto3dseg LabelStats, do_ccp=False", monai_label_stats, 0.25),
]


#: So many of them, at the top, are quick enough to be measured several times.
QUICK = 4


def _child(method: int, paths: list[Path], repeats: int) -> None:
    """Measure one method in this process and print its result as JSON."""
    _, function, _ = METHODS[method]
    function(paths[:1])
    times, result = [], None
    for _ in range(repeats):
        started = time.perf_counter()
        result = function(paths)
        times.append(time.perf_counter() - started)
    print(json.dumps({"seconds": times, "peak_mib": _peak_mib(), "counts": result}))


def _peak_mib() -> float:
    """Largest resident memory of this process so far; what its parent used is not in it, as it is in getrusage."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(method: int, paths: list[Path], repeats: int) -> dict[str, Any]:
    """Run one method in a process of its own."""
    arguments = [str(method), str(repeats), *map(str, paths)]
    command = [sys.executable, __file__, "--child", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def machine() -> str:
    """Processor, cores, memory and versions, in one line."""
    import isal
    import monai
    import nibabel
    import SimpleITK
    import torch

    info = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    model = next(
        (line.split(":")[1].strip() for line in info.splitlines() if line.startswith("model name")),
        platform.processor(),
    )
    cores = info.count("processor\t") or "?"
    return (
        f"{model}, {cores} cores, {platform.system()}, Python {platform.python_version()}, numpy {np.__version__}, "
        f"torch {torch.__version__}, monai {monai.__version__}, nibabel {nibabel.__version__}, "
        f"SimpleITK {SimpleITK.Version_VersionString()}, isal {isal.__version__}"
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--child", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if options.child:
        method, repeats, *names = options.child
        _child(int(method), [Path(name) for name in names], int(repeats))
        return
    print(machine(), "\n")
    with tempfile.TemporaryDirectory() as folder:
        paths = make_files(Path(folder), options.files)
        import nibabel as nib

        voxels = [int(np.prod(nib.load(path).shape)) for path in paths]
        sizes = [path.stat().st_size for path in paths]
        print(f"{len(paths)} files, {sum(voxels) / 1e6:.0f} million voxels, {sum(sizes) / 1e6:.1f} MB compressed\n")
        print("| method | ms per file | million voxels / s | against isal into one buffer | peak memory, MiB |")
        print("|---|---:|---:|---:|---:|")
        parts = [paths[: max(5, int(len(paths) * share))] for _, _, share in METHODS]
        measured: list[dict[str, Any]] = [{} for _ in METHODS]
        for turn in range(options.rounds):
            # in turns, so that whatever else the machine does meets all of them; the slow ones once
            for number, part in enumerate(parts):
                if turn == 0 or number < QUICK:
                    found = measure(number, part, options.repeats if number < QUICK else 1)
                    if not measured[number] or min(found["seconds"]) < min(measured[number]["seconds"]):
                        measured[number] = found
        # the files of one kind come round in the same order, so a part of them is like the whole
        per_voxel = [min(m["seconds"]) / sum(voxels[: len(part)]) for m, part in zip(measured, parts, strict=True)]
        truths = [
            m["counts"] for m, part in zip(measured, parts, strict=True) if m["counts"] and len(part) == len(paths)
        ]
        assert all(counts == truths[0] for counts in truths)
        for (name, _, _), cost, found in zip(METHODS, per_voxel, measured, strict=True):
            print(
                f"| {name} | {cost * sum(voxels) / len(paths) * 1e3:.1f} | {1e-6 / cost:.0f} | "
                f"{cost / per_voxel[0]:.2f} | {found['peak_mib']:.0f} |"
            )
        print(
            "\n| slices of 512 x 512 (uint8, lobes) | ms | ms per 100 slices | peak memory, MiB |\n|---:|---:|---:|---:|"
        )
        for slices in (125, 250, 500, 1000):
            path = Path(folder) / f"tall_{slices}.nii.gz"
            source = np.asanyarray(nib.load(paths[3]).dataobj).astype(np.uint8)
            nib.save(nib.Nifti1Image(_enlarged(source, (512, 512, slices)), np.eye(4)), path)
            found = measure([function for _, function, _ in METHODS].index(ours), [path], options.repeats)
            best = min(found["seconds"]) * 1e3
            print(f"| {slices} | {best:.1f} | {best / slices * 100:.2f} | {found['peak_mib']:.0f} |")


if __name__ == "__main__":
    main()
