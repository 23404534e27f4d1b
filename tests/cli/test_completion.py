"""`margincal completion`: what the shells themselves make of the script."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from monai_margincal.cli import main


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def complete(tmp_path: Path, text: str, *words: str) -> list[str]:
    """What bash offers for the last of some words."""
    (tmp_path / "completion").write_text(text)
    quoted = " ".join(f"'{word}'" for word in words)
    lines = [
        f"source {tmp_path}/completion",
        f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; COMP_LINE='{' '.join(words)}'; COMP_POINT=${{#COMP_LINE}}",
        "function=$(complete -p margincal | sed 's/.*-F \\([^ ]*\\) .*/\\1/')",
        f"$function margincal '{words[-1]}' '{words[-2]}'",
        'printf "%s\\n" "${COMPREPLY[@]}"',
    ]
    done = subprocess.run(["bash", "-c", "\n".join(lines)], capture_output=True, text=True, cwd=tmp_path, check=True)
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["margincal", "che"], ["check-bundle"]),
        (["margincal", "count", "--num"], ["--num-classes"]),
        (["margincal", "decide", "f"], ["fit"]),
        (["margincal", "datalist", "end"], ["endovis2017"]),
        (["margincal", "report", "cou"], ["counts.json"]),
    ],
)
def test_bash_completes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], expected: list[str]
) -> None:
    (tmp_path / "counts.json").touch()
    assert complete(tmp_path, script("bash", capsys), *words) == expected


@pytest.mark.parametrize("shell", ["zsh", "tcsh"])
def test_other_shells(tmp_path: Path, capsys: pytest.CaptureFixture[str], shell: str) -> None:
    text = script(shell, capsys)
    for word in ("check-bundle", "endovis2017", "num-classes"):
        assert word in text
    if shutil.which(shell):
        (tmp_path / "completion").write_text(text)
        subprocess.run([shell, "-n", str(tmp_path / "completion")], check=True)
