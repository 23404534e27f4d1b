"""`margincal check-bundle`: one line per finding, exit status 1 if one is an error."""

from __future__ import annotations

import json
import shutil

import pytest

from monai_margincal.bundle import bundle_dir
from monai_margincal.cli import main
from monai_margincal.samples import sample_dir

BUNDLE = bundle_dir("covid19_ct_lesion_coplenet")


def test_a_faultless_bundle(capsys):
    assert main(["check-bundle", BUNDLE, "--dataset-dir", sample_dir("lung_ct")]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"{BUNDLE}: 0 errors, 0 warnings, 0 infos"


def test_errors_are_listed_and_counted(tmp_path, capsys):
    bundle = shutil.copytree(BUNDLE, tmp_path / "bundle", ignore=shutil.ignore_patterns("models", "eval"))
    path = bundle / "configs" / "metadata.json"
    metadata = json.loads(path.read_text())
    del metadata["task"]
    path.write_text(json.dumps(metadata))
    assert main(["check-bundle", str(bundle), "--override", "epochz=3", "--override=--amp=True"]) == 1
    captured = capsys.readouterr()
    assert [line.split(": found")[0] for line in captured.out.splitlines()] == [
        "error: configs/metadata.json",
        "error: the overrides",
    ]
    assert captured.err == f"margincal check-bundle: {bundle}: found 2 errors, 0 warnings, 0 infos, expected no error\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([BUNDLE, "--override", "epochs"], "--override: found 'epochs', expected KEY=VALUE"),
        (["nowhere"], "nowhere: found no configs/metadata.json, expected the folder of a MONAI bundle"),
    ],
)
def test_bad_usage(words, message, capsys):
    assert main(["check-bundle", *words]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("folder", "overrides"),
    [
        ("2025", ["image_pattern=./{case}_i.nii.gz", "label_pattern={case}_l.nii.gz", "val_cases=7", "cases=7"]),
        (
            "exp#1",
            ["image_pattern={case}_i.nii.gz", "label_pattern={case}_l.nii.gz", "train_cases=None", "val_cases=[7]"],
        ),
    ],
)
def test_overrides_mean_what_flags_of_a_run_mean(tmp_path, monkeypatch, capsys, folder, overrides):
    """Braces, numbers and # reach the data as they were typed."""
    (tmp_path / folder).mkdir()
    for case, source in (("7", "lung1"), ("8", "lung2")):
        for kind, postfix in (("images", "i"), ("labels", "l")):
            shutil.copy(
                f"{sample_dir('lung_ct')}/{kind}/{source}.nii.gz", tmp_path / folder / f"{case}_{postfix}.nii.gz"
            )
    monkeypatch.chdir(tmp_path)
    words = [word for text in [f"dataset_dir={folder}", *overrides] for word in ("--override", text)]
    assert main(["check-bundle", BUNDLE, *words]) == 0, capsys.readouterr().out
    assert main(["check-bundle", BUNDLE, *words, "--override", "val_cases=9"]) == 1
    assert "expected distinct case names out of ['7', '8'], found ['9']" in capsys.readouterr().out


def test_an_override_without_a_value_names_its_key(capsys):
    assert main(["check-bundle", BUNDLE, "--override", "dataset_dir="]) == 1
    assert "--dataset-dir: found '', expected a path" in capsys.readouterr().err
