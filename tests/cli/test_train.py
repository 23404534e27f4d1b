"""`margincal train`: weights and metrics in the output folder, the bundle's own errors, nothing written into the bundle."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from margincal_command import margincal

from monai_margincal.bundle import bundle_dir
from monai_margincal.cli import main
from monai_margincal.samples import sample_dir

LUNG = sample_dir("lung_ct")
SMALL = [
    "features=[2,4,8,16,32]", "norm=batch", "patch_size=[32,32]", "epochs=1", "num_workers=0", "slices_per_volume=2",
    "train_cases=lung2", "val_cases=lung1", "lung_crop=false",
]  # fmt: skip


def _run(output: Path, *settings: str) -> subprocess.CompletedProcess[str]:
    words = [word for setting in [*SMALL, *settings] for word in ("--set", setting)]
    return margincal("train", LUNG, "-o", output, "--loss", "margin_dice", *words)


@pytest.mark.slow
def test_one_epoch(tmp_path: Path) -> None:
    bundle = Path(bundle_dir("covid19_ct_lesion_coplenet"))
    before = {path: path.stat().st_mtime_ns for path in bundle.rglob("*")}
    done = _run(tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert (tmp_path / "models" / "model.pt").is_file()
    assert list((tmp_path / "eval").glob("class_counts*"))
    assert before == {path: path.stat().st_mtime_ns for path in bundle.rglob("*")}


@pytest.mark.slow
def test_a_misspelt_key_is_the_bundles_own_error(tmp_path: Path) -> None:
    done = _run(tmp_path, "epochz=3")
    assert done.returncode == 1
    assert "unknown key 'epochz' (did you mean 'epochs'?)" in done.stderr


def test_flags(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    patterns = ["--image-pattern", "{case}/ct.nii.gz", "--label-pattern", "{case}/lesion.nii.gz"]
    assert main(["train", LUNG, "-o", str(tmp_path), "--loss", "cross_entropy", *patterns, "--dry-run"]) == 0
    words = shlex.split(capsys.readouterr().out)
    flags = dict(zip(words[4::2], words[5::2], strict=True))
    assert flags["--image_pattern"] == "{case}/ct.nii.gz"
    assert flags["--label_pattern"] == "{case}/lesion.nii.gz"
    assert flags["--ckpt_dir"] == str(tmp_path / "models")
    assert [Path(file).name for file in eval(flags["--config_file"])] == ["train.json", "cross_entropy.json"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["missing", "-o", "out"], "missing: found no such folder, expected images and labels in it"),
        ([LUNG, "-o", "out", "--loss", "dice"], "--loss: found 'dice', expected one of ['cross_entropy', "),
    ],
)
def test_errors_in_one_line(capsys: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    assert main(["train", *words]) == 1
    assert message in capsys.readouterr().err
