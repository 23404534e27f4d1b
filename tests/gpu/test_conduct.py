"""Parts that fail, are killed, take too long or lack a package: the others go on, and what was done is kept."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from gpu import conduct, results
from gpu.parts import Part, Step

RUN = Path(__file__).with_name("run")
#: beginning of a step's program: the folder that it is given, and how it writes a row
BEGIN = """
import os, pathlib, signal, subprocess, sys, time
folder = pathlib.Path(sys.argv[sys.argv.index("--output") + 1])
def row(text):
    (folder / "table.csv").write_text("name,value\\n" + text + "\\n")
"""
GOOD = "row('good,1.5')"


def step(program: str, name: str = "a") -> Step:
    return Step(name, ("-c", BEGIN + textwrap.dedent(program)), "table.csv")


def conducted(folder: Path, *parts: Part) -> tuple[bool, dict]:
    whole = results.empty({"small": True}, [part.name for part in parts])
    passed = conduct.Conductor(folder, whole, dict(os.environ)).run(list(parts))
    written = results.read(folder)
    assert written == whole
    return passed, written["parts"]


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("row('bad,1'); raise ValueError('the shapes\\nnever fit')", "exit status 1: ValueError: the shapes"),
        ("row('bad,1'); print('no space'); sys.exit(3)", "exit status 3: no space"),
        ("row('bad,1'); os.kill(os.getpid(), signal.SIGKILL)", "killed by SIGKILL"),
        ("pass", "it wrote no table.csv"),
        (
            "try: import no_such_package\nexcept ImportError as error: raise RuntimeError('cannot') from error",
            "exit status 1: RuntimeError: cannot <- ModuleNotFoundError: No module named 'no_such_package'",
        ),
    ],
)
def test_what_fails_says_why_and_the_others_go_on(tmp_path, program, reason):
    passed, parts = conducted(tmp_path, Part("one", 60, (step(program),)), Part("two", 60, (step(GOOD),)))
    assert not passed
    assert (parts["one"]["status"], parts["one"]["reason"]) == ("failed", reason)
    assert parts["one"]["rows"] == ([{"name": "bad", "value": 1}] if "bad" in program else [])
    assert (parts["two"]["status"], parts["two"]["rows"]) == ("passed", [{"name": "good", "value": 1.5}])
    with (tmp_path / "two.csv").open(newline="") as file:
        assert list(csv.DictReader(file)) == [{"name": "good", "value": "1.5"}]
    assert "== one: a\n" in (tmp_path / "run.log").read_text()


def test_a_row_can_be_wrong(tmp_path):
    part = Part("one", 60, (step(GOOD, "a"), step("row('bad,2')", "b")), wrong=lambda row: "two" * (row["value"] == 2))
    passed, parts = conducted(tmp_path, part)
    assert not passed
    assert parts["one"]["reason"] == "b: two"
    assert [one["status"] for one in parts["one"]["steps"]] == ["passed", "failed"]
    assert len(parts["one"]["rows"]) == 2


def test_rows_that_were_begun(tmp_path):
    """A process that is killed while it writes."""
    passed, parts = conducted(tmp_path, Part("one", 60, (step("row('good,nan\\nbad'); sys.exit(1)"),)))
    assert not passed
    assert parts["one"]["rows"] == [{"name": "good", "value": None}, {"name": "bad", "value": None}]


def test_the_time_of_a_part_ends_with_all_its_processes(tmp_path, monkeypatch):
    sleeper = """
    row('early,1')
    child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])
    pathlib.Path(os.environ['PID_FILE']).write_text(str(child.pid))
    time.sleep(600)
    """
    part = Part("slow", 4, (step(sleeper, "a"), step(GOOD, "b")))
    monkeypatch.setenv("PID_FILE", str(tmp_path / "pid"))
    passed, parts = conducted(tmp_path, part, Part("two", 60, (step(GOOD),)))
    assert not passed
    reasons = [one["reason"] for one in parts["slow"]["steps"]]
    limit = "the 4 s of the part are over"
    assert reasons == [f"a: stopped: {limit}", f"b: not started: {limit}"]
    assert parts["slow"]["rows"] == [{"name": "early", "value": 1}]
    assert parts["two"]["status"] == "passed"
    assert _is_gone(int((tmp_path / "pid").read_text()))


def test_time_that_is_left_goes_to_the_next_part(tmp_path):
    """Of parts that were quick, and of those that cannot run."""
    slow = step("time.sleep(3); row('good,1')")
    absent = Part("absent", 60, (step(GOOD),), needs=("no_such_package",), optional=True)
    passed, _ = conducted(tmp_path, Part("quick", 60, (step(GOOD),)), Part("slow", 0.1, (slow,)))
    assert passed
    (tmp_path / "second").mkdir()
    assert conducted(tmp_path / "second", Part("slow", 0.1, (slow,)), absent)[0]


def _is_gone(process: int) -> bool:
    """Ended, though perhaps not yet taken notice of by whoever is its parent now."""
    for _ in range(100):
        try:
            if Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False


def test_steps_at_once(tmp_path):
    """Each waits for the other's sign of life."""
    program = """
    mine, other = pathlib.Path({0!r}), pathlib.Path({1!r})
    mine.touch()
    while not other.exists():
        time.sleep(0.01)
    row('good,1')
    """
    files = str(tmp_path / "x"), str(tmp_path / "y")
    steps = (step(program.format(*files), "a"), step(program.format(*files[::-1]), "b"))
    passed, parts = conducted(tmp_path, Part("both", 60, steps, at_once=2))
    assert passed
    assert len(parts["both"]["rows"]) == 2


def test_a_missing_package_is_named(tmp_path):
    needs = ("csv", "no_such_package", "nor_this_one")
    passed, parts = conducted(
        tmp_path,
        Part("needy", 60, (step(GOOD),), needs=needs),
        Part("optional", 60, (step(GOOD),), needs=needs, optional=True),
        Part("two", 60, (step(GOOD),), needs=("csv",)),
    )
    assert not passed
    states = {name: (part["status"], part["reason"]) for name, part in parts.items()}
    absent = "not installed: no_such_package, nor_this_one"
    assert states == {"needy": ("failed", absent), "optional": ("left out", absent), "two": ("passed", "")}


def test_what_may_be_absent_fails_nothing(tmp_path):
    part = Part("optional", 60, (step(GOOD),), needs=("no_such_package",), optional=True)
    assert conducted(tmp_path, part)[0]


DRIVER = """
import sys
from gpu import conduct
from gpu.test_conduct import GOOD, Part, step
conduct.parts = lambda small: [
    Part("one", 60, (step(GOOD),)), Part("two", 600, (step("row('half,1'); time.sleep(600)"),)), Part("three", 60, (step(GOOD),))
]
sys.exit(conduct.main(sys.argv[3:]))
"""


def test_a_run_that_is_stopped_keeps_what_was_done(tmp_path):
    """Through the shell script, which has to pass the signal on."""
    (tmp_path / "driver.py").write_text(DRIVER)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{tmp_path / "driver.py"}" "$@"\n')
    python.chmod(0o755)
    output = tmp_path / "results"
    process = subprocess.Popen(
        [str(RUN), "--small", "--output", str(output)],
        env={**os.environ, "PYTHON": str(python)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    file = output / results.NAME
    for _ in range(1200):
        if file.exists() and json.loads(file.read_text())["parts"]["one"]["status"] == "passed":
            break
        time.sleep(0.1)
    time.sleep(1)
    process.send_signal(signal.SIGTERM)
    printed, _ = process.communicate(timeout=60)
    assert process.returncode == 1, printed
    parts = results.read(output)["parts"]
    assert [part["status"] for part in parts.values()] == ["passed", "failed", "not started"]
    assert parts["two"]["reason"] == "stopped: by SIGTERM"
    assert parts["one"]["rows"] == [{"name": "good", "value": 1.5}]
    assert (output / "one.csv").is_file()


class TestMain:
    def refused(self, capsys, *arguments):
        with pytest.raises(SystemExit) as raised:
            conduct.main(list(arguments))
        assert raised.value.code == 2
        return capsys.readouterr().err

    def test_an_unknown_part(self, capsys):
        message = self.refused(capsys, "loss", "speed")
        assert "found the part(s) ['speed'], expected some of ['correctness', 'loss', 'inference'" in message

    def test_earlier_results_are_not_overwritten(self, capsys, tmp_path):
        (tmp_path / results.NAME).write_text("{}")
        assert f"found earlier results in {tmp_path}" in self.refused(capsys, "--output", str(tmp_path))

    def test_without_a_card(self, capsys, tmp_path, monkeypatch):
        monkeypatch.setattr(conduct, "_facts", lambda _: {"torch": "2.11.0", "card": ""})
        assert conduct.main(["--output", str(tmp_path / "new")]) == 1
        assert "found no CUDA device with torch 2.11.0, expected one" in capsys.readouterr().err
        assert not (tmp_path / "new").exists()

    def test_where_not_even_torch_is_installed(self, capsys, tmp_path, monkeypatch):
        """Every part is named at once, and the JSON says so too."""
        monkeypatch.setattr(conduct, "_facts", lambda _: {"torch": "", "card": ""})
        monkeypatch.setattr(conduct, "missing", lambda part: list(part.needs[:1]))
        monkeypatch.setattr(conduct, "_handle_signals", lambda _: None)
        assert conduct.main(["--output", str(tmp_path)]) == 1
        assert "correctness cannot run, not installed: torch\nloss cannot run" in capsys.readouterr().out
        states = [part["status"] for part in results.read(tmp_path)["parts"].values()]
        assert states == ["failed"] * 4 + ["left out"]


def test_a_real_run_never_interprets_kernels():
    shell = {"TRITON_INTERPRET": "1", "MARGINCAL_KERNEL": "eager", "HOME": "/"}
    assert conduct.environment_of_steps(False, shell) == {"HOME": "/", "PYTHONUNBUFFERED": "1"}
    small = conduct.environment_of_steps(True, shell)
    assert (small["TRITON_INTERPRET"], small["MARGINCAL_KERNEL"], small["CUDA_VISIBLE_DEVICES"]) == ("1", "triton", "")
