"""The verb `compare`: what a user types and reads."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from experiments.tiny_study import tiny_config, write_cases

from monai_margincal.cli import main


def _run(*words: str) -> int:
    return main(["compare", *words])


@pytest.fixture
def study(tmp_path):
    config = tiny_config(write_cases(tmp_path / "data"))
    config["data"]["root"] = "@data_root"
    config["transform"][0].pop("reader")
    config["data_root"] = "$@config_dir + '/nowhere'"
    config["blocks"] = [{"tasks": ["slices"], "objectives": ["ce", "bound"]}]
    file = tmp_path / "study.yaml"
    file.write_text(yaml.safe_dump(config))
    return file, "--set", f"data_root={tmp_path / 'data'}", "--output", str(tmp_path / "out")


def test_trains_reports_and_goes_on(study, capsys, tmp_path):
    file, *options = study
    _run(str(file), *options, "--only", "slices/finetune/*/0", "--no-report")
    assert "cells finished: 2 of 2 (2 by this process)" in capsys.readouterr().out
    _run(str(file), *options, "--list")
    assert [line.split()[1:] for line in capsys.readouterr().out.splitlines()] == [
        ["finished", "slices/finetune/ce/0"],
        ["finished", "slices/finetune/bound/0"],
        ["-", "slices/finetune/ce/1"],
        ["-", "slices/finetune/bound/1"],
    ]
    assert not (tmp_path / "out" / "report.html").exists()
    _run(str(file), *options)
    out = capsys.readouterr().out
    assert "cells finished: 4 of 4 (2 by this process)" in out
    assert f"written: {tmp_path / 'out' / 'report.html'}" in out
    assert "4 of 4 runs are finished" in (tmp_path / "out" / "report.html").read_text()


def test_standard_error_stays_silent(study, capsys, recwarn):
    """MONAI logs and warns about a decoder of NVIDIA's as soon as a study builds its `LoadImaged`."""
    file, *options = study
    assert main(["compare", str(file), *options, "--only", "slices/finetune/ce/0"]) == 0
    assert capsys.readouterr().err == ""
    assert [str(warning.message) for warning in recwarn if "NvImgCodec" in str(warning.message)] == []


def test_settings_are_read_as_yaml(study, capsys):
    file, *options = study
    _run(str(file), *options, "--list", "--set", "seeds=[5]", "--set", "tasks::slices::steps=3")
    assert [line.split()[2] for line in capsys.readouterr().out.splitlines()] == [
        "slices/finetune/ce/5",
        "slices/finetune/bound/5",
    ]


def test_a_failed_cell_is_an_error_in_the_end(study, capsys):
    file, *options = study
    words = ["--set", "tasks::slices::sample_size=[3]", "--only", "slices/finetune/*/0", "--no-report"]
    assert _run(str(file), *options, *words, "--json") == 1
    found = capsys.readouterr()
    assert re.search(r"2 cell\(s\) failed, the first one slices/finetune/ce/0: .*errors\)\n\Z", found.err)
    data = json.loads(found.out)
    assert list(data["errors"]) == ["slices/finetune/ce/0", "slices/finetune/bound/0"]
    assert (data["finished"], data["total"], data["trained"]) == (0, 2, 0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--only", "nothing/*"],
            r"--only \['nothing/\*'\]: found no such cell, expected some like 'slices/finetune/ce/0'",
        ),
        (["--set", "steps"], "--set: found 'steps', expected ID=VALUE"),
        (["--set", "a=[1"], r"--set a: found '\[1', expected a value in YAML"),
    ],
)
def test_wrong_words_are_named(study, capsys, words, message):
    file, *options = study
    assert _run(str(file), *options, *words) == 1
    assert re.search(message, capsys.readouterr().err)
