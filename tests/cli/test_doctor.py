"""`margincal doctor` names what it found."""

from __future__ import annotations

import re
from pathlib import Path

import tomllib
import torch

from monai_margincal.cli import main
from monai_margincal.cli.doctor import _PACKAGES


def test_doctor(capsys):
    assert main(["doctor"]) == 0
    output = capsys.readouterr().out
    assert torch.__version__ in output
    assert "GPU" in output
    for package in ("monai", "nibabel", "itk", "triton"):
        assert package in output
    assert 'pip install "monai-margincal[bundle]"' in output


def test_every_package_stands_under_an_extra_that_brings_it():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    asked = {"": [*project["dependencies"], project["name"]], **extras}
    listed = set()
    for extra, packages in _PACKAGES.items():
        names = {re.match(r"[\w.-]+", one)[0].lower() for one in asked[extra]}
        assert {package.lower() for package in packages} <= names, extra
        listed |= {package.lower() for package in packages}
    features = set(extras) - {"all", "test", "docs", "dev"}
    wanted = {re.match(r"[\w.-]+", one)[0].lower() for extra in ["", *features] for one in asked[extra]}
    assert listed == wanted
