"""`--json` of every verb that prints numbers: one object, the keys that the reference promises, notes on standard error."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from monai_margincal import ClassCounts, ClassOffsets
from monai_margincal.bundle import bundle_dir
from monai_margincal.cli import build_parser, main
from monai_margincal.cli.answer import Answer, deliver
from monai_margincal.cli.parsers import all_parsers
from monai_margincal.samples import sample_dir

LUNG = sample_dir("lung_ct")


def decision(folder: Path) -> str:
    ClassOffsets([0.0, 0.5], ["background", "lesion"]).to_json(folder / "decision.json")
    return str(folder / "decision.json")


def counts(folder: Path) -> str:
    ClassCounts([990, 10], names=["background", "lesion"]).to_json(folder / "counts.json")
    return str(folder / "counts.json")


def logits(folder: Path) -> str:
    random = np.random.default_rng(0)
    for kind in ("logits", "labels"):
        (folder / kind).mkdir()
        for case in range(3):
            shape = (2, 6, 6) if kind == "logits" else (6, 6)
            values = random.normal(size=shape) if kind == "logits" else random.integers(0, 2, shape)
            np.save(folder / kind / f"{case}.npy", values)
    return str(folder)


def weights(folder: Path) -> str:
    torch.save(torch.nn.Conv2d(1, 2, 1).state_dict(), folder / "weights.pt")
    return str(folder / "weights.pt")


def folder_of_pairs(folder: Path) -> str:
    for kind in ("images", "labels"):
        (folder / kind).mkdir()
        for case in "abc":
            (folder / kind / f"{case}.nii.gz").touch()
    return str(folder)


def out(folder: Path, name: str) -> list[str]:
    return ["-o", str(folder / name)]


CALLS: dict[str, Callable[[Path], list[str]]] = {
    "count": lambda folder: ["count", LUNG, "--num-classes", "2", *out(folder, "c.json")],
    "margins": lambda folder: ["margins", counts(folder)],
    "datalist": lambda folder: ["datalist", "folder", folder_of_pairs(folder), *out(folder, "l.json")],
    "decide show": lambda folder: ["decide", "show", decision(folder)],
    "decide fit": lambda folder: ["decide", "fit", logits(folder), *out(folder, "d.json")],
    "decide bake": lambda folder: ["decide", "bake", weights(folder), decision(folder), str(folder / "baked.pt")],
    "check-bundle": lambda folder: ["check-bundle", bundle_dir("covid19_ct_lesion_coplenet")],
    "doctor": lambda folder: ["doctor"],
    "segment": lambda folder: ["segment", f"{LUNG}/images", "--dry-run", *out(folder, "s")],
    "train": lambda folder: ["train", LUNG, "--dry-run", *out(folder, "t")],
}
#: tested where there are studies, pictures, checkpoints and time: `tests/experiments`, `test_figure.py`, ...
ELSEWHERE = {"compare", "figure", "regret", "convert-weights", "demo"}


def parser_of(verb: str) -> argparse.ArgumentParser:
    return next(parser for parser in all_parsers(build_parser()) if parser.prog == f"margincal {verb}")


def test_every_verb_with_keys_is_tested() -> None:
    with_keys = {
        parser.prog.partition(" ")[2] for parser in all_parsers(build_parser()) if parser.get_default("json_keys")
    }
    assert with_keys == set(CALLS) | ELSEWHERE


@pytest.mark.parametrize("verb", CALLS)
def test_one_object_with_the_promised_keys(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = CALLS[verb](tmp_path)
    assert main([*words, "--json"]) == 0
    found = capsys.readouterr()
    data = json.loads(found.out)
    promised = parser_of(verb).get_default("json_keys")
    assert list(data) == [*promised, "written"]
    files = [str(tmp_path / name) for name in ("c.json", "l.json", "d.json", "baked.pt")]
    assert data["written"] == [file for file in files if Path(file).exists()]
    for path in data["written"]:
        assert f"written: {path}\n" in found.err


@pytest.mark.parametrize("verb", ["count", "margins", "decide show"])
def test_quiet_leaves_the_result_alone(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = CALLS[verb](tmp_path)
    assert main(words) == 0
    loud = capsys.readouterr().out
    assert main([*words, "-q"]) == 0
    silent = capsys.readouterr()
    assert silent.err == ""
    assert silent.out
    assert loud.startswith(silent.out)
    assert "written: " not in silent.out
    assert main([*words, "-q", "--json"]) == 0
    assert capsys.readouterr().err == ""


def test_verbose_says_how_long_it_took(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-v", "decide", "show", decision(tmp_path)]) == 0
    assert capsys.readouterr().err.endswith(" s\n")


def test_the_numbers_are_those_of_the_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["margins", counts(tmp_path), "--json"])
    data = json.loads(capsys.readouterr().out)
    main(["margins", counts(tmp_path)])
    line = capsys.readouterr().out.splitlines()[3].split()
    row = data["classes"][1]
    assert line == [
        "1", "lesion", str(row["voxels"]), f"{100 * row['share']:.3g}", "%", f"{row['rho_0k']:.6g}", f"{row['rho_k0']:.6g}",
    ]  # fmt: skip


def test_no_words_for_numbers_that_are_none(capsys: pytest.CaptureFixture[str]) -> None:
    answer = Answer(data={"a": [float("nan"), 1.5], "b": {"c": float("inf")}})
    deliver(answer, argparse.Namespace(as_json=True, quiet=False))
    data: Any = json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(name))
    assert data == {"a": [None, 1.5], "b": {"c": None}, "written": []}


def test_an_error_leaves_standard_output_empty(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["margins", "none.json", "--json"]) == 1
    assert capsys.readouterr().out == ""


def test_a_report_prints_its_data_where_no_file_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["report", counts(tmp_path), *out(tmp_path, "r.html"), "--json"]) == 0
    found = capfd.readouterr()
    assert json.loads(found.out)["format"] == "monai_margincal.report"
    assert f"written: {tmp_path / 'r.html'}" in found.err
