"""What cannot be written is said with its name, before the work where it can be known; what need not be written is a warning."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from monai_margincal import ClassCounts, statistics
from monai_margincal.cli import main
from monai_margincal.samples import sample_dir

LABELS = f"{sample_dir('lung_ct')}/labels"
COUNT = ["count", f"{LABELS}/*.nii.gz", "--num-classes", "2"]


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any, **options: Any) -> None:
        raise AssertionError("the count has begun")

    monkeypatch.setattr(statistics, "scan_labels", fail)


def bad_targets(folder: Path) -> dict[str, tuple[str, str]]:
    (folder / "note.txt").write_text("mine")
    return {
        "no real folder": ("/proc/nothing/counts.json", "cannot be written"),
        "file as folder": (f"{folder}/note.txt/counts.json", "note.txt is a file, expected a folder"),
        "folder": (str(folder), "found a folder, expected a file"),
        "other content": (f"{folder}/note.txt", "exists and is"),
        "name too long": (f"{folder}/{'x' * 300}.json", "File name too long"),
    }


@pytest.mark.parametrize("option", ["--output", "--report"])
@pytest.mark.parametrize("kind", ["no real folder", "file as folder", "folder", "other content", "name too long"])
@pytest.mark.usefixtures("no_work")
def test_is_said_before_the_count(tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, kind: str) -> None:
    target, message = bad_targets(tmp_path)[kind]
    assert main([*COUNT, option, target]) == 1
    errors = capsys.readouterr().err
    assert target in errors
    assert message in errors
    assert errors.count("\n") == 1
    assert (tmp_path / "note.txt").read_text() == "mine"


@pytest.mark.usefixtures("no_work")
def test_one_file_for_both_outputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COUNT, "--output", f"{tmp_path}/a", "--report", f"{tmp_path}/./a"]) == 1
    assert "found it as --output and as --report, expected two files" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--output", "--report"])
def test_a_full_disk_is_named(capsys: pytest.CaptureFixture[str], option: str) -> None:
    assert main([*COUNT, option, "/dev/full"]) == 1
    assert "OSError: /dev/full: cannot be written: No space left on device" in capsys.readouterr().err


def test_other_verbs_name_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts = tmp_path / "counts.json"
    ClassCounts([3, 1]).to_json(counts)
    bad = f"{counts}/x"
    for words in (
        ["report", str(counts), "--output", bad],
        ["report", str(counts), "--output", f"{tmp_path}/r.html", "--json", bad],
        ["datalist", "folder", str(tmp_path), "--output", bad],
        ["convert-weights", str(counts), bad],
        ["count", "--merge", str(counts), "--output", bad],
    ):
        assert main(words) == 1
        assert f"NotADirectoryError: {bad}: cannot be written" in capsys.readouterr().err
    assert not (tmp_path / "r.html").exists()


@pytest.mark.parametrize("cache", ["/proc/nothing", "FILE"])
def test_a_cache_that_cannot_be_kept_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cache: str
) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.warns(UserWarning, match="the cache cannot be read or written .*: the count goes on") as caught:
        assert main([*COUNT, "--cache", cache.replace("FILE", str(tmp_path / "file"))]) == 0
    assert len(caught) == 1
    assert "1,743,991" in capsys.readouterr().out
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("workers", ["0", "2"])
@pytest.mark.parametrize("cached", [False, True])
def test_a_pipe_as_a_label_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], workers: str, cached: bool
) -> None:
    for name in ("a.nii.gz", "b.nrrd", "c"):
        os.mkfifo(tmp_path / name)
        words = ["count", f"{LABELS}/lung1.nii.gz", str(tmp_path / name), "--num-classes", "2", "--workers", workers]
        assert main([*words, *(["--cache", f"{tmp_path}/cache"] if cached else [])]) == 1
        assert f"{name}: found a pipe or a device, expected a file" in capsys.readouterr().err


def test_voxels_in_a_pipe_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header = "NDims = 3\nDimSize = 2 2 2\nElementType = MET_UCHAR\nElementDataFile = voxels.raw\n"
    (tmp_path / "a.mhd").write_text(header)
    os.mkfifo(tmp_path / "voxels.raw")
    assert main(["count", str(tmp_path / "a.mhd")]) == 1
    assert "voxels.raw" in capsys.readouterr().err


def test_a_pipe_is_written_straight(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    found: list[str] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_text()), daemon=True)
    reader.start()
    assert main([*COUNT, "--output", str(pipe)]) == 0
    reader.join(10)
    assert '"format": "monai_margincal.class_counts"' in found[0]
    assert pipe.is_fifo()


def test_a_pipe_that_nobody_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("monai_margincal.streams._WAIT_FOR_READER", 0.2)
    os.mkfifo(tmp_path / "pipe")
    assert main([*COUNT, "--output", str(tmp_path / "pipe")]) == 1
    assert "pipe: cannot be written: nobody reads this pipe" in capsys.readouterr().err
