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
