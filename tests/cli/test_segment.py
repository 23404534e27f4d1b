"""`margincal segment`: the bundle's inference, its masks, its errors and its exit status, for any mixture of paths."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import nibabel
import numpy as np
import pytest
from margincal_command import margincal

from monai_margincal.cli import main
from monai_margincal.samples import sample_dir

LUNG = Path(sample_dir("lung_ct"), "images")


@pytest.mark.slow
def test_masks_of_scans_in_two_folders_and_the_fault_of_a_third(tmp_path: Path) -> None:
    for patient in ("a", "b"):
        (tmp_path / "data" / patient).mkdir(parents=True)
        image = nibabel.load(LUNG / "lung1.nii.gz")
        nibabel.save(image.slicer[:64, :64, :3], tmp_path / "data" / patient / "ct.nii.gz")
    (tmp_path / "data" / "c").mkdir()
    (tmp_path / "data" / "c" / "ct.nii.gz").write_bytes(b"no scan")
    done = margincal(
        "segment", "data/a/ct.nii.gz", "data/b", "data/c", "-o", "out", "--outputs", "mask", "--set", "num_workers=0",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "data/c/ct.nii.gz" in done.stderr
    assert "Traceback" not in done.stderr
    masks = sorted(path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.nii.gz"))
    assert masks == ["a/ct_mask.nii.gz", "b/ct_mask.nii.gz"]
    mask = nibabel.load(tmp_path / "out" / masks[0])
    assert mask.shape == (64, 64, 3)
    assert np.abs(mask.affine - nibabel.load(tmp_path / "data" / "a" / "ct.nii.gz").affine).max() < 1e-4


def test_the_command_is_shown_and_can_be_pasted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(LUNG / "lung1.nii.gz", tmp_path / "it's one.nii.gz")
    status = main(
        ["segment", str(tmp_path), "-o", str(tmp_path / "out"), "--outputs", "mask", "--set", "seed=1", "--dry-run"]
    )
    assert status == 0
    words = shlex.split(capsys.readouterr().out)
    assert words[:4] == ["python", "-m", "monai.bundle", "run"]
    flags = dict(zip(words[4::2], words[5::2], strict=True))
    assert flags["--dataset#data"] == repr([{"image": str(tmp_path / "it's one.nii.gz")}])
    assert flags["--dataset_dir"] == str(tmp_path)
    assert (flags["--outputs"], flags["--seed"], flags["--output_dir"]) == ("mask", "1", str(tmp_path / "out"))
    assert Path(flags["--config_file"]).name == "inference.json"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["missing.nii", "-o", "out"],
            "missing.nii: found no such file or folder, expected a scan or a folder of scans",
        ),
        ([str(LUNG), "-o", "out", "--bundle", "nothing"], "no bundle is named 'nothing', expected one of ["),
        ([str(LUNG), "-o", "out", "--set", "seed"], "--set: found 'seed', expected KEY=VALUE"),
        (
            [str(LUNG), "-o", "out", "--set", "output_dir=x"],
            "found 'output_dir=x', expected a key that no other argument",
        ),
    ],
)
def test_errors_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["segment", *words]) == 1
    found = capsys.readouterr().err
    assert found.startswith("margincal segment: ")
    assert message in found
    assert found.count("\n") == 1
