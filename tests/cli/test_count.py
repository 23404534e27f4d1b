"""`margincal count`: the shipped labels, by file, glob and data list."""

from __future__ import annotations

import json
import subprocess
import sys

import nibabel as nib
import numpy as np
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
    assert lines[3].split() == ["1", "lesion", "25,481", "1.44", "%", "2"]


def test_data_list_with_relative_paths(tmp_path, capsys):
    (tmp_path / "labels").symlink_to(LABELS)
    (tmp_path / "list.json").write_text(json.dumps({"training": [{"label": "labels/lung2.nii.gz"}]}))
    assert main(["count", str(tmp_path / "list.json"), "--num-classes", "2"]) == 0
    assert "24,644" in capsys.readouterr().out


@pytest.mark.parametrize("form", [str, lambda path: [path]], ids=["path", "list"])
def test_a_relative_path_of_a_list_is_never_taken_from_the_working_folder(tmp_path, capsys, monkeypatch, form):
    for study, lesion in (("mine", 5), ("other", 99)):
        (tmp_path / study / "labels").mkdir(parents=True)
        label = np.zeros((8, 8, 4), np.uint8)
        label.reshape(-1)[:lesion] = 1
        nib.save(nib.Nifti1Image(label, np.eye(4)), tmp_path / study / "labels" / "a.nii.gz")
    content = [{"label": form("labels/a.nii.gz"), "image": ["labels/a.nii.gz"]}]
    (tmp_path / "mine" / "list.json").write_text(json.dumps(content))
    monkeypatch.chdir(tmp_path / "other")
    assert main(["count", "../mine/list.json", "--num-classes", "2"]) == 0
    assert capsys.readouterr().out.splitlines()[3].split()[1] == "5"


def test_merging_a_file_twice_by_another_name(tmp_path, capsys):
    ClassCounts([5, 1], cases={"case_1": [5, 1]}).to_json(tmp_path / "a.json")
    (tmp_path / "link.json").symlink_to(tmp_path / "a.json")
    for second in (f"{tmp_path}/link.json", f"{tmp_path}/../{tmp_path.name}/a.json"):
        assert main(["count", "--merge", f"{tmp_path}/a.json", second]) == 1
        assert f"{second}: found a file twice, first as {tmp_path}/a.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            '{"test": [{"label": "a.nii.gz"}]}',
            "found no case in section 'training' (sections with cases: ['test']), expected at least one",
        ),
        (
            '[{"image": "a.nii.gz"}]',
            "found the entry {'image': 'a.nii.gz'} in 'training', expected a mapping with paths for ['label']",
        ),
        ("{", "expected a data list in JSON"),
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


def test_merge_equals_counting_together(tmp_path, capsys):
    for case in ("lung1", "lung2"):
        main(["count", f"{LABELS}/{case}.nii.gz", "--num-classes", "2", "--output", str(tmp_path / f"{case}.json")])
    words = ["count", "--merge", str(tmp_path / "lung1.json"), str(tmp_path / "lung2.json")]
    assert main([*words, "--output", str(tmp_path / "total.json")]) == 0
    together = tmp_path / "together.json"
    main(["count", f"{LABELS}/*.nii.gz", "--num-classes", "2", "--output", str(together)])
    assert ClassCounts.from_json(tmp_path / "total.json") == ClassCounts.from_json(together)


def test_sites_may_share_case_names_but_no_file_counts_twice(tmp_path, capsys):
    for site in ("a", "b"):
        ClassCounts([5, 1], cases={"case_1": [5, 1]}).to_json(tmp_path / f"{site}.json")
    files = [str(tmp_path / f"{site}.json") for site in "ab"]
    assert main(["count", "--merge", *files, "--output", str(tmp_path / "total.json")]) == 0
    assert sorted(ClassCounts.from_json(tmp_path / "total.json").cases) == ["a/case_1", "b/case_1"]
    assert main(["count", "--merge", files[0], files[0]]) == 1
    assert "found a file twice" in capsys.readouterr().err


def test_faulty_files_can_be_listed_instead(tmp_path, capsys):
    (tmp_path / "broken.nii.gz").write_bytes(b"no label")
    paths = [f"{LABELS}/lung2.nii.gz", str(tmp_path / "broken.nii.gz")]
    assert main(["count", *paths, "--num-classes", "2"]) == 1
    assert "broken.nii.gz" in capsys.readouterr().err
    assert main(["count", *paths, "--num-classes", "2", "--on-error", "report"]) == 0
    output = capsys.readouterr().out
    assert "24,644" in output
    assert "left out: " in output
    assert "broken.nii.gz" in output.split("left out: ")[1]


def test_report_of_files_and_of_counts(tmp_path, capsys):
    output, page = tmp_path / "counts.json", tmp_path / "report.html"
    words = ["count", f"{LABELS}/*.nii.gz", "--num-classes", "2", "--output", str(output), "--report", str(page)]
    assert main([*words, "--names", "background", "tumour"]) == 0
    assert "tumour" in page.read_text(encoding="utf-8")
    assert "lung2" in page.read_text(encoding="utf-8")
    words = ["report", str(output), "--output", str(tmp_path / "second.html"), "--json", str(tmp_path / "data.json")]
    assert main(words) == 0
    assert json.loads((tmp_path / "data.json").read_text())["format"] == "monai_margincal.report"
    (tmp_path / "thesis.html").write_text("mine")
    assert main(["report", str(output), "--output", str(tmp_path / "thesis.html")]) == 1
    assert (tmp_path / "thesis.html").read_text() == "mine"


@pytest.mark.slow
def test_torchrun_counts_once(tmp_path):
    output = tmp_path / "counts.json"
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc_per_node=3",
        "-m",
        "monai_margincal",
    ]
    words = ["count", f"{LABELS}/*.nii.gz", "--num-classes", "2", "--output", str(output)]
    result = subprocess.run([*command, *words], capture_output=True, text=True, check=True)
    assert ClassCounts.from_json(output).counts.tolist() == TOTAL
    assert result.stdout.count("counted:") == 1
