"""The command line as a user meets it: exit status, one line per error, help."""

from __future__ import annotations

import subprocess
import sys

import pytest
from margincal_command import margincal

import monai_margincal
from monai_margincal import ClassCounts
from monai_margincal.cli import _VERBS, main


def test_bad_usage_exits_with_2():
    assert margincal("nothing").returncode == 2
    assert margincal().returncode == 2
    assert margincal("margins").returncode == 2


def test_an_error_is_one_line_on_stderr_and_exit_1(tmp_path):
    result = margincal("margins", tmp_path / "nothing.json")
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert "nothing.json: no such file, expected a JSON file of class counts" in result.stderr


@pytest.mark.parametrize(
    ("verb", "owns_process", "expected"),
    [("compare", True, ["kept"]), ("compare", False, []), ("count", True, [])],
    ids=["a program of its own", "called by a host", "a verb without networks"],
)
def test_freed_memory_is_kept_for_networks_in_a_process_of_their_own(
    monkeypatch, tmp_path, verb, owns_process, expected
):
    calls = []
    monkeypatch.setattr("monai_margincal.cli.keep_freed_memory", lambda: calls.append("kept"))
    words = [verb, str(tmp_path / "nothing")]
    monkeypatch.setattr(sys, "argv", ["margincal", *words])
    assert (main() if owns_process else main(words)) == 1
    assert calls == expected


def test_debug_shows_the_traceback(tmp_path):
    assert "Traceback" in margincal("--debug", "margins", tmp_path / "nothing.json").stderr


def test_a_closed_pipe_is_no_traceback(tmp_path):
    ClassCounts([980, 20]).to_json(tmp_path / "counts.json")
    command = f"{sys.executable} -m monai_margincal margins {tmp_path}/counts.json | true"
    assert "Traceback" not in subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stderr


def test_version(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"monai-margincal {monai_margincal.__version__}\n"


@pytest.mark.parametrize("verb", _VERBS)
def test_every_verb_explains_itself(verb, capsys):
    with pytest.raises(SystemExit, match="0"):
        main([verb, "--help"])
    assert len(capsys.readouterr().out.splitlines()) > 5
