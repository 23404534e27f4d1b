"""The configurations stay short enough to be read: lines, keys, expressions, nothing twice, one form."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = sorted((ROOT / "bundles").glob("*/configs"))
FORMATTER = ROOT / ".ci" / "format_configs"
LONGEST_RUN = 5

#: file: lines, top-level keys, expressions
LIMITS = {"train": (420, 55, 35), "inference": (220, 40, 30)}


def expressions(value):
    if isinstance(value, str):
        return int(value.startswith("$"))
    return sum(
        map(expressions, value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
    )


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("folder", CONFIGS, ids=lambda folder: folder.parent.name)
def test_a_file_can_be_taken_in(folder, name):
    text = (folder / f"{name}.json").read_text()
    config = json.loads(text)
    found = len(text.splitlines()), len(config), expressions(config)
    assert all(number <= limit for number, limit in zip(found, LIMITS[name], strict=True)), found


def runs(texts, length):
    """Every so many lines in a row, without those of brackets alone, and where they begin."""
    places: dict[tuple[str, ...], list[str]] = {}
    for name, text in texts.items():
        lines = [(number, line.strip().rstrip(",")) for number, line in enumerate(text.splitlines(), 1)]
        lines = [(number, line) for number, line in lines if not re.fullmatch(r"[\[\]{}]*", line)]
        for start in range(len(lines) - length + 1):
            run = tuple(line for _, line in lines[start : start + length])
            places.setdefault(run, []).append(f"{name}:{lines[start][0]}")
    return {run: where for run, where in places.items() if len(where) > 1}


@pytest.mark.parametrize("folder", CONFIGS, ids=lambda folder: folder.parent.name)
def test_nothing_is_written_twice(folder):
    texts = {path.relative_to(folder).as_posix(): path.read_text() for path in sorted(folder.rglob("*.json"))}
    assert not runs(texts, LONGEST_RUN + 1)


def test_what_is_written_twice_is_found():
    lines = ['"a": {', '"b": 1,', "},", '"c": 2,']
    assert runs({"x": "\n".join(lines), "y": "\n".join(["0", *lines])}, 3) == {
        ('"a": {', '"b": 1', '"c": 2'): ["x:1", "y:2"]
    }


def test_every_file_is_in_the_form_of_the_formatter():
    done = subprocess.run([sys.executable, str(FORMATTER), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.fixture(scope="module")
def formatter():
    loader = SourceFileLoader("format_configs", str(FORMATTER))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def test_the_form(formatter, tmp_path, capsys, monkeypatch):
    config = {
        "a": [1, 2],
        "b": {"c": [[1], [2]], "d": None},
        "e": [{"f": 1}],
        "g": {"h": {}},
        "i": ["x" * 60, "y" * 60],
    }
    expected = "\n".join(
        [
            "{", '    "a": [1, 2],', '    "b": {"c": [[1], [2]], "d": null},', '    "e": [', '        {"f": 1}', "    ],",
            '    "g": {', '        "h": {}', "    },", '    "i": [', f'        "{"x" * 60}",', f'        "{"y" * 60}"', "    ]",
            "}",
        ]
    )  # fmt: skip
    assert formatter.formatted(config) == expected
    assert json.loads(expected) == config
    path = tmp_path / "a.json"
    path.write_text(json.dumps(config))
    for words, code in ((["--check"], 1), ([], 0), (["--check"], 0)):
        monkeypatch.setattr(sys, "argv", ["format_configs", *words, str(path)])
        assert formatter.main() == code
    assert path.read_text() == expected + "\n"
    assert "a.json: not in the form" in capsys.readouterr().out


@pytest.mark.parametrize(("length", "on_one_line"), [(0, True), (1, False)])
def test_the_comma_counts(formatter, length, on_one_line):
    text = formatter.formatted({"key": ["x" * (120 - len('    "key": ["", 1],') + length), 1]})
    assert (len(text.splitlines()) == 3) is on_one_line
