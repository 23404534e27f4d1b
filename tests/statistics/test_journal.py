"""The cache: never stale, never shared between questions, safe with two writers, and the journal of a killed run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import pytest
from monai.data import Dataset
from monai.transforms import Compose, EnsureChannelFirstd, Lambdad, LoadImaged, RandSpatialCropd, Spacingd

from monai_margincal.counting.case_record import CaseRecord
from monai_margincal.statistics import count_labels
from monai_margincal.statistics import scan as scan_module
from monai_margincal.statistics.journal import Journal

LOAD = [LoadImaged("label"), EnsureChannelFirstd("label")]


def write(path: Path, seed: int, classes: int = 3, shape: tuple[int, ...] = (12, 10, 8)) -> Path:
    array = np.random.default_rng(seed).integers(0, classes, shape).astype(np.uint8)
    nib.save(nib.Nifti1Image(array, np.eye(4)), path)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "labels").mkdir()
    for case in range(5):
        write(tmp_path / "labels" / f"case_{case}.nii.gz", case)
    return tmp_path / "labels"


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files that are really counted, and not found in the cache."""
    names: list[str] = []
    real = scan_module.count_files

    def spy(paths: Any, *arguments: Any) -> Any:
        names.extend(path.name for path in paths)
        return real(paths, *arguments)

    monkeypatch.setattr(scan_module, "count_files", spy)
    return names


def test_second_count_reads_no_file(folder: Path, tmp_path: Path, counted: list[str]) -> None:
    arguments: dict[str, Any] = {"num_classes": 3, "cache_dir": tmp_path / "cache"}
    first = count_labels(f"{folder}/*.nii.gz", **arguments)
    assert len(counted) == 5
    assert count_labels(f"{folder}/*.nii.gz", **arguments) == first
    assert len(counted) == 5
    assert first == count_labels(f"{folder}/*.nii.gz", num_classes=3)


@pytest.mark.parametrize("change", ["content", "content, same size and time", "added", "removed", "time"])
def test_never_stale(folder: Path, tmp_path: Path, counted: list[str], change: str) -> None:
    arguments: dict[str, Any] = {"num_classes": 3, "cache_dir": tmp_path / "cache"}
    count_labels(f"{folder}/*.nii.gz", **arguments)
    path = folder / "case_2.nii.gz"
    before = path.stat()
    if change == "content":
        write(path, 99)
    elif change == "content, same size and time":
        plain = folder / "plain.nii"
        write(plain, 1, classes=2)
        count_labels(plain, **arguments)
        status = plain.stat()
        write(plain, 2, classes=2)
        os.utime(plain, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert (plain.stat().st_size, plain.stat().st_mtime_ns) == (status.st_size, status.st_mtime_ns)
    elif change == "added":
        write(folder / "case_9.nii.gz", 9)
    elif change == "removed":
        path.unlink()
    else:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1_000_000))
    counted.clear()
    found = count_labels(f"{folder}/*.nii*", **arguments)
    expected_again = {
        "content": ["case_2.nii.gz"],
        "content, same size and time": ["plain.nii"],
        "added": ["case_9.nii.gz"],
        "removed": [],
        "time": ["case_2.nii.gz"],
    }
    assert counted == expected_again[change]
    assert found == count_labels(f"{folder}/*.nii*", num_classes=3)


def test_same_file_under_a_relative_path(
    folder: Path, tmp_path: Path, counted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments: dict[str, Any] = {"num_classes": 3, "cache_dir": tmp_path / "cache"}
    count_labels(folder / "case_0.nii.gz", **arguments)
    monkeypatch.chdir(folder)
    scan = scan_module.scan_labels([{"label": "case_0.nii.gz", "image": "image.nii.gz"}], **arguments)
    assert counted == ["case_0.nii.gz"]
    assert scan.images == {scan.cases[0].file: "image.nii.gz"}


def test_detached_voxels_are_watched_too(tmp_path: Path) -> None:
    import SimpleITK as sitk

    for name, body in (("label.mhd", "label.raw"), ("label.nhdr", "label.raw"), ("label.hdr", "label.img")):
        target = tmp_path / name.replace("label.", "") / name
        target.parent.mkdir()
        array = np.zeros((4, 5, 6), np.uint8)
        sitk.WriteImage(sitk.GetImageFromArray(array), str(target))
        arguments: dict[str, Any] = {"num_classes": 2, "cache_dir": tmp_path / "cache"}
        assert count_labels(target, **arguments).counts.tolist() == [120, 0]
        voxels = bytearray((target.parent / body).read_bytes())
        voxels[7] = 1
        (target.parent / body).write_bytes(voxels)
        assert count_labels(target, **arguments).counts.tolist() == [119, 1]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"num_classes": 3}, {"num_classes": 4}),
        ({"num_classes": 3}, {"ids": [0, 1, 2, 7]}),
        ({"num_classes": 2, "ignore_index": 2}, {"num_classes": 3}),
        ({"num_classes": 3}, {"num_classes": 3, "transform": Compose(LOAD)}),
        (
            {"num_classes": 3, "transform": Compose([*LOAD, Spacingd("label", (2, 2, 2), mode="nearest")])},
            {"num_classes": 3, "transform": Compose([*LOAD, Spacingd("label", (3, 2, 2), mode="nearest")])},
        ),
        (
            {"num_classes": 3, "transform": Compose([*LOAD, RandSpatialCropd("label", (4, 4, 4), random_size=False)])},
            {
                "num_classes": 3,
                "transform": Compose([*LOAD, RandSpatialCropd("label", (4, 4, 4), random_size=False)]),
                "seed": 5,
            },
        ),
    ],
)
def test_never_shared_between_questions(
    folder: Path, tmp_path: Path, first: dict[str, Any], second: dict[str, Any]
) -> None:
    data = [{"label": str(path)} for path in sorted(folder.iterdir())]
    for question in (first, second, first):
        for _ in range(2):
            assert count_labels(data, cache_dir=tmp_path / "cache", **question) == count_labels(data, **question)


def _double(label: Any) -> Any:
    return label * 2


def _keep(label: Any) -> Any:
    return label * 1


def test_functions_are_told_apart_by_their_code(folder: Path, tmp_path: Path) -> None:
    data = [{"label": str(path)} for path in sorted(folder.iterdir())]
    found = [
        count_labels(data, ids=[0, 1, 2, 4], transform=Compose([*LOAD, Lambdad("label", function)]), cache_dir=tmp_path)
        for function in (_keep, _double, _keep)
    ]
    assert found[0] == found[2]
    assert found[0].counts.tolist() != found[1].counts.tolist()
    original = _keep.__code__
    try:
        # the same name with another body, as after an edit
        _keep.__code__ = _double.__code__
        again = count_labels(
            data, ids=[0, 1, 2, 4], transform=Compose([*LOAD, Lambdad("label", _keep)]), cache_dir=tmp_path
        )
    finally:
        _keep.__code__ = original
    assert again.counts.tolist() == found[1].counts.tolist()


def test_what_cannot_be_cached_says_so(folder: Path, tmp_path: Path) -> None:
    from torch.utils.data import DataLoader

    data = [{"label": str(path)} for path in sorted(folder.iterdir())]
    chain = Compose([*LOAD, Lambdad("label", lambda label: label)])
    with pytest.raises(ValueError, match="transform cannot be cached, because it cannot be pickled"):
        count_labels(data, num_classes=3, transform=chain, cache_dir=tmp_path)
    with pytest.raises(ValueError, match="cache_dir is given with a DataLoader"):
        count_labels(DataLoader(Dataset(data, Compose(LOAD))), num_classes=3, cache_dir=tmp_path)


def test_torn_and_foreign_lines_are_not_used(tmp_path: Path) -> None:
    journal = Journal(tmp_path, {"ids": [0, 1]})
    journal.add("a", CaseRecord("a", {0: 1}))
    journal.add("b", CaseRecord("b", {0: 2}))
    lines = journal.path.read_bytes().splitlines(keepends=True)
    tampered = lines[1].replace(b'"0": 2', b'"0": 3')
    assert tampered != lines[1]
    journal.path.write_bytes(lines[0] + tampered + b"noise\n" + lines[1][: len(lines[1]) // 2])
    torn = Journal(tmp_path, {"ids": [0, 1]})
    assert torn.find("a") == CaseRecord("a", {0: 1})
    assert torn.find("b") is None
    # appending behind a torn line starts a line of its own
    torn.add("c", CaseRecord("c", {0: 4}))
    assert Journal(tmp_path, {"ids": [0, 1]}).find("c") == CaseRecord("c", {0: 4})


WRITER = """
import sys
from monai_margincal.counting.case_record import CaseRecord
from monai_margincal.statistics.journal import Journal
journal = Journal(sys.argv[1], {"ids": None})
for case in range(300):
    name = f"{sys.argv[2]}_{case}"
    journal.add(name, CaseRecord(name, {0: case, int(sys.argv[2]): 7}, file="x" * 3000))
"""


def test_two_processes_write_one_cache(tmp_path: Path) -> None:
    """Every line of both writers is there, whole."""
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), str(number)]) for number in (1, 2)]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0]
    journal = Journal(tmp_path, {"ids": None})
    for number in (1, 2):
        for case in range(300):
            record = journal.find(f"{number}_{case}")
            assert record is not None
            assert record.values == {0: case, number: 7}
    assert len(journal.path.read_bytes().splitlines()) == 600


KILLED = """
import sys, time
from monai_margincal.statistics import file_pool
real = file_pool.count_file
def slow(*arguments):
    time.sleep(0.2)
    return real(*arguments)
file_pool.count_file = slow
from monai_margincal.statistics import count_labels
print(count_labels(sys.argv[1] + "/*.nii.gz", num_classes=3, cache_dir=sys.argv[2]).counts.tolist())
"""


@pytest.mark.slow
def test_killed_run_goes_on_where_it_stopped(tmp_path: Path, counted: list[str]) -> None:
    """SIGKILL in the middle: what was counted is kept, the total is that of an undisturbed run."""
    folder, cache = tmp_path / "labels", tmp_path / "cache"
    folder.mkdir()
    for case in range(30):
        write(folder / f"case_{case:02d}.nii.gz", case)
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(KILLED), str(folder), str(cache)])

    def lines() -> int:
        return sum(path.read_bytes().count(b"\n") for path in cache.glob("*.jsonl")) if cache.exists() else 0

    deadline = time.monotonic() + 60
    while lines() < 4 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = lines()
    assert 4 <= kept < 30
    counted.clear()
    resumed = count_labels(f"{folder}/*.nii.gz", num_classes=3, cache_dir=cache)
    # the case that was being counted when the signal came may have been written after the last look
    assert len(counted) == 30 - kept
    assert resumed == count_labels(f"{folder}/*.nii.gz", num_classes=3)


def test_failed_case_is_not_kept(folder: Path, tmp_path: Path) -> None:
    bad = folder / "case_1.nii.gz"
    good = bad.read_bytes()
    bad.write_bytes(good[:-10])
    with pytest.raises(ValueError, match="case_1"):
        count_labels(f"{folder}/*.nii.gz", num_classes=3, cache_dir=tmp_path / "cache")
    bad.write_bytes(good)
    assert count_labels(f"{folder}/*.nii.gz", num_classes=3, cache_dir=tmp_path / "cache").total == 5 * 960


def test_journal_is_readable_text(folder: Path, tmp_path: Path) -> None:
    count_labels(f"{folder}/*.nii.gz", num_classes=3, cache_dir=tmp_path / "cache")
    (journal,) = (tmp_path / "cache").iterdir()
    entry = json.loads(journal.read_text().splitlines()[0][9:])
    assert entry["record"]["values"].keys() == {"0", "1", "2"}


def test_a_full_disk_ends_the_cache_and_not_the_count(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = count_labels(f"{folder}/*.nii.gz", num_classes=3)
    real, room = os.write, [2]

    def write(handle: int, content: bytes) -> int:
        room[0] -= 1
        if room[0] < 0:
            raise OSError(28, "No space left on device")
        return real(handle, content)

    monkeypatch.setattr(os, "write", write)
    with pytest.warns(UserWarning, match=r"\.jsonl: the cache cannot be .* \(No space left on device\)") as caught:
        assert count_labels(f"{folder}/*.nii.gz", num_classes=3, cache_dir=tmp_path / "cache") == expected
    assert len(caught) == 1


def test_a_cache_that_cannot_be_read_is_none(folder: Path, tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"num_classes": 3, "cache_dir": tmp_path / "cache"}
    expected = count_labels(f"{folder}/*.nii.gz", **arguments)
    (journal,) = (tmp_path / "cache").iterdir()
    journal.unlink()
    journal.mkdir()
    with pytest.warns(UserWarning, match="the cache cannot be read or written .*Is a directory"):
        assert count_labels(f"{folder}/*.nii.gz", **arguments) == expected
