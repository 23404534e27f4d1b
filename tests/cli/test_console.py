"""Printing loses no work: files come first, and what cannot be printed is no end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from monai_margincal import ClassCounts
from monai_margincal.samples import sample_dir

LABELS = f"{sample_dir('lung_ct')}/labels"
COUNT = ["count", f"{LABELS}/*.nii.gz", "--names", "Hintergrund", "Läsion ρ"]
TOTAL = [1743991, 25481]


def margincal(words: list[str], shell: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a shell, with a redirection behind it."""
    script = f'"$@" {shell}'
    command = ["bash", "-c", script, "bash", sys.executable, "-m", "monai_margincal", *words]
    return subprocess.run(
        command, capture_output=True, text=True, errors="replace", timeout=60, env={**os.environ, **environment}
    )


@pytest.fixture
def commands(tmp_path: Path) -> dict[str, tuple[list[str], Path | None]]:
    """Every verb that prints a name with umlauts, and the file that it must have written."""
    strange = tmp_path / "Lösung"
    strange.mkdir()
    counts = strange / "counts.json"
    ClassCounts([3, 1], names=["Hintergrund", "Läsion ρ"]).to_json(counts)
    for kind in ("images", "labels"):
        (strange / kind).mkdir()
        (strange / kind / "ä.nii.gz").touch()
    return {
        "count": ([*COUNT, "--output", str(strange / "a.json")], strange / "a.json"),
        "merge": (["count", "--merge", str(counts), "--output", str(strange / "b.json")], strange / "b.json"),
        "margins": (["margins", str(counts)], None),
        "report": (["report", str(counts), "--output", str(strange / "r.html")], strange / "r.html"),
        "datalist": (
            [
                "datalist",
                "folder",
                str(strange),
                "--validation",
                "0",
                "--test",
                "0",
                "--output",
                str(strange / "l.json"),
            ],
            strange / "l.json",
        ),
        "doctor": (["doctor"], None),
    }


VERBS = ["count", "merge", "margins", "report", "datalist", "doctor"]


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("encoding", ["ascii", "cp1252:strict"])
def test_a_console_of_another_encoding(
    commands: dict[str, tuple[list[str], Path | None]], verb: str, encoding: str
) -> None:
    words, written = commands[verb]
    done = margincal(words, PYTHONIOENCODING=encoding)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert written is None or written.stat().st_size


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("shell", "code", "message"),
    [
        (">&-", 0, ""),
        (">/dev/full", 1, "standard output: cannot be written: No space left on device"),
        ("2>&-", 0, ""),
        ("2>/dev/full", 0, ""),
    ],
)
def test_a_console_that_takes_nothing(
    commands: dict[str, tuple[list[str], Path | None]], verb: str, shell: str, code: int, message: str
) -> None:
    words, written = commands[verb]
    done = margincal(words, shell)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") <= 1
    assert written is None or written.stat().st_size


def test_a_reader_that_left(tmp_path: Path) -> None:
    output = tmp_path / "counts.json"
    done = margincal([*COUNT, "--output", str(output)], "| true")
    assert done.stderr == ""
    assert ClassCounts.from_json(output).counts.tolist() == TOTAL


@pytest.mark.parametrize("shell", ["", "| cat", "> FILE", ">> FILE"])
@pytest.mark.parametrize("target", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "LINK"])
def test_standard_output_as_the_file_holds_the_file_alone(tmp_path: Path, shell: str, target: str) -> None:
    (tmp_path / "LINK").symlink_to("/dev/stdout")
    target = target.replace("LINK", str(tmp_path / "LINK"))
    done = margincal([*COUNT, "--output", target], shell.replace("FILE", str(tmp_path / "file")))
    assert done.returncode == 0, done.stderr
    assert "1,743,991" in done.stderr
    content = (tmp_path / "file").read_text() if "FILE" in shell else done.stdout
    assert json.loads(content)["counts"] == TOTAL
    assert Path("/dev/stdout").is_symlink()
    assert (tmp_path / "LINK").is_symlink()


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["merge", "report", "datalist"])
def test_standard_output_as_the_file_of_other_verbs(
    commands: dict[str, tuple[list[str], Path | None]], verb: str
) -> None:
    words, written = commands[verb]
    expected = margincal(words)
    assert written is not None
    content = written.read_text(encoding="utf-8")
    done = margincal([word if word != str(written) else "/dev/stdout" for word in words])
    assert done.returncode == 0, done.stderr
    assert expected.returncode == 0
    assert done.stdout[:15] == content[:15]
    assert "/dev/stdout" in done.stderr


def test_process_substitution(tmp_path: Path) -> None:
    done = margincal([*COUNT, "--output"], f">(cat > {tmp_path}/counts.json) && sleep 0.5")
    assert done.returncode == 0, done.stderr
    assert ClassCounts.from_json(tmp_path / "counts.json").counts.tolist() == TOTAL
