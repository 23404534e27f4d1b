"""`margincal count`: the shipped labels, by file, glob and data list."""

from __future__ import annotations

import json

import pytest

from monai_margincal import ClassCounts
from monai_margincal.cli import main
from monai_margincal.samples import sample_dir

LABELS = f"{sample_dir('lung_ct')}/labels"
TOTAL = [24 * 192 * 192 * 2 - 24644 - 837, 24644 + 837]


@pytest.mark.parametrize(
    "paths", [[f"{LABELS}/lung1.nii.gz", f"{LABELS}/lung2.nii.gz"], [f"{LABELS}/*.nii.gz"]], ids=["files", "glob"]
)
def test_files(tmp_path, capsys, paths):
    output = tmp_path / "counts.json"
    words = ["count", *paths, "--num-classes", "2", "--names", "background", "lesion", "--output", str(output)]
    assert main(words) == 0
    counts = ClassCounts.from_json(output)
    assert counts.counts.tolist() == TOTAL
    assert counts.names == ("background", "lesion")
    assert sorted(counts.cases) == ["lung1", "lung2"]
    lines = capsys.readouterr().out.splitlines()
    assert lines[3].split() == ["1", "lesion", "25,481", "1.4400%", "2"]


def test_data_list_with_relative_paths(tmp_path, capsys):
    (tmp_path / "labels").symlink_to(LABELS)
    (tmp_path / "list.json").write_text(json.dumps({"training": [{"label": "labels/lung2.nii.gz"}]}))
    assert main(["count", str(tmp_path / "list.json"), "--num-classes", "2"]) == 0
    assert "24,644" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"test": []}', "found the sections ['test'], expected 'training'"),
        ('[{"image": "a.nii.gz"}]', "expected a mapping with the key 'label'"),
        ("{", "expected a MONAI data list in JSON"),
    ],
)
def test_bad_data_lists(tmp_path, capsys, content, message):
    (tmp_path / "list.json").write_text(content)
    assert main(["count", str(tmp_path / "list.json"), "--num-classes", "2"]) == 1
    output = capsys.readouterr().err
    assert message in output
    assert "list.json" in output


def test_too_few_classes_names_the_file_and_the_values(capsys):
    assert main(["count", f"{LABELS}/lung2.nii.gz", "--num-classes", "1"]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert "lung2.nii.gz" in output.err
    assert "1" in output.err


def test_no_file_fits(tmp_path, capsys):
    assert main(["count", str(tmp_path / "*.nii.gz"), "--num-classes", "2"]) == 1
    assert "*.nii.gz" in capsys.readouterr().err
