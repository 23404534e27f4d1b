"""What all verbs have in common: examples that are right, help without noise, errors that help, options on either side."""

from __future__ import annotations

import argparse
import ast
import re
import shlex
from pathlib import Path

import pytest

import monai_margincal
from monai_margincal.cli import build_parser, main
from monai_margincal.cli.parsers import all_parsers, python_names
from monai_margincal.hints import in_flags

PACKAGE = Path(monai_margincal.__file__).parent
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)
PARSERS = list(all_parsers(build_parser()))
VERBS = [parser for parser in PARSERS if parser.prog not in ("margincal", "margincal decide")]


def fails(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit, match="2"):
        main(words)
    found = capsys.readouterr()
    assert found.out == ""
    return found.err


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.prog)
def test_every_help_has_examples_that_the_parser_takes(parser: argparse.ArgumentParser) -> None:
    title, *examples = (parser.epilog or "").splitlines()
    assert title == "examples:"
    assert examples
    for example in examples:
        words = shlex.split(example.partition(" > ")[0])
        assert example.startswith(f"  {parser.prog}")
        build_parser().parse_args(words[1:])


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.prog)
def test_help_is_readable(parser: argparse.ArgumentParser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = parser.format_help()
    assert "(default: None)" not in text
    assert "(default: False)" not in text
    assert "\x1b" not in text
    options = text.partition("examples:\n")[0]
    assert max(map(len, options.splitlines())) <= 80
    for action in parser._actions:
        assert action.help or action.dest in ("verb", "sub_verb"), action.dest
        # a value is called by what it is: N, FILE, DIR, ...
        takes_value = action.option_strings and action.nargs != 0 and action.choices is None
        assert not takes_value or action.metavar or action.dest in ("key", "section"), action.dest


@pytest.mark.parametrize("parser", VERBS, ids=lambda parser: parser.prog)
def test_a_wrong_option_shows_the_usage_of_its_verb(
    parser: argparse.ArgumentParser, capsys: pytest.CaptureFixture[str]
) -> None:
    words = shlex.split((parser.epilog or "").splitlines()[1].partition(" > ")[0])[1:]
    error = fails(capsys, *words, "--verbsoe")
    assert error.startswith(f"usage: {parser.prog} ")
    assert f"{parser.prog}: found the unknown option --verbsoe (did you mean '--verbose'?)\n" in error
    assert error.endswith(f"see: {parser.prog} --help\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["cuont"], "argument VERB: found 'cuont', expected one of demo, segment, train, count,"),
        (["cuont"], "(did you mean 'count'?)"),
        (
            ["datalist", "foldr", ".", "-o", "a.json"],
            "argument KIND: found 'foldr', expected one of endovis2017, folder,",
        ),
        (["count", "a.nii", "--num_classes", "2"], "the unknown option --num_classes (did you mean '--num-classes'?)"),
        (["decide", "show", "a.json", "--josn"], "margincal decide show: found the unknown option --josn"),
        (["margins", "a.json", "b.json"], "margincal margins: found 'b.json', expected nothing more"),
        (["-q", "doctor", "-v"], "margincal doctor: found --quiet and --verbose, expected one of the two"),
        (
            ["count", "a.nii", "--json", "-o", "/dev/stdout"],
            "--output: found standard output beside --json, expected a file",
        ),
        (["help", "cuont"], "(did you mean 'count'?)"),
    ],
)
def test_bad_usage_says_what_was_meant(capsys: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    assert message in fails(capsys, *words)


def test_nothing_typed_shows_the_verbs(capsys: pytest.CaptureFixture[str]) -> None:
    assert fails(capsys) == build_parser().format_help()


@pytest.mark.parametrize("words", [[], ["count"], ["decide", "fit"]])
def test_help_as_a_verb(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["help", *words])
    assert capsys.readouterr().out.startswith(f"usage: {' '.join(['margincal', *words])} ")


@pytest.mark.parametrize("option", ["--quiet", "-q", "--verbose", "-v", "--debug"])
def test_common_options_stand_before_or_after_the_verb(option: str) -> None:
    name = {"-q": "quiet", "-v": "verbose"}.get(option, option[2:])
    for words in (["decide", option, "show", "a"], [option, "decide", "show", "a"], ["decide", "show", "a", option]):
        arguments = build_parser().parse_args(words)
        assert {key: getattr(arguments, key) for key in ("quiet", "verbose", "debug")} == {
            key: key == name for key in ("quiet", "verbose", "debug")
        }


def test_options_are_stored_under_the_names_that_messages_use() -> None:
    count = next(parser for parser in PARSERS if parser.prog == "margincal count")
    names = python_names(count)
    assert (names["num_workers"], names["cache_dir"], names["num_classes"]) == ("--workers", "--cache", "--num-classes")


@pytest.mark.parametrize("parser", VERBS, ids=lambda parser: parser.prog)
def test_a_message_about_any_option_speaks_of_the_option(parser: argparse.ArgumentParser) -> None:
    names = python_names(parser)
    for name, flag in names.items():
        assert flag in [option.replace("_", "-") for action in parser._actions for option in action.option_strings]
        assert in_flags(f"found 3, say {name}=2.", names) == f"found 3, say {flag} 2."
        assert in_flags(f"ValueError: {name}: found 3, expected 2", names) == f"ValueError: {flag}: found 3, expected 2"


#: rooms that verbs call in their own process with the user's arguments
ROOMS = ("counting", "datasets", "decisions", "statistics", "labels.py")
#: words that no verb prints: arguments that no verb passes on, Python code, and what a repr shows
IN_PYTHON_ONLY = {"cache_dir", "even_divisible", "ignored", "source", "transform"}


def messages() -> list[tuple[str, str]]:
    """Module and text of everything that looks like advice: texts with `name=` outside of docstrings and code to paste."""
    found = []
    for path in sorted(path for room in ROOMS for path in [PACKAGE / room, *(PACKAGE / room).rglob("*.py")]):
        if path.suffix != ".py" or path.stem in ("recipe", "recipe_snippets", "file_pool"):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        documented = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, DOCUMENTED) and ast.get_docstring(node)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
                found.append((path.relative_to(PACKAGE).as_posix(), node.value))
    return found


def test_every_argument_that_advice_names_is_an_option() -> None:
    known = {name for parser in VERBS for name in python_names(parser)}
    named = {
        (module, name)
        for module, text in messages()
        for name in re.findall(r"(?<![\w/.(-])([a-z]+(?:_[a-z]+)*)=(?!=)", text)
    }
    assert ("counting/voxel_counts.py", "num_classes") in named
    assert ("labels.py", "ignore_index") in named
    assert [(module, name) for module, name in sorted(named) if name not in known | IN_PYTHON_ONLY] == []
