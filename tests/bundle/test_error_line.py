"""A failed command ends with one line; a program that is not MONAI's command line keeps its own ways."""

from __future__ import annotations

import signal
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from monai_margincal.bundle import errors_in_one_line
from monai_margincal.bundle.command_line import flags_of
from monai_margincal.processes.interrupts import advise_when_interrupted


@pytest.fixture
def command_line(monkeypatch):
    main = ModuleType("__main__")
    main.__spec__ = ModuleSpec("monai.bundle.__main__", None)
    monkeypatch.setitem(sys.modules, "__main__", main)
    calls = []
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    monkeypatch.setattr(sys, "excepthook", lambda *arguments: calls.append(arguments[0]))
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGALRM)}
    yield calls
    for number, handler in before.items():
        signal.signal(number, handler)


def end(error):
    sys.excepthook(type(error), error, None)


def test_the_last_line_is_the_cause(command_line, capsys):
    errors_in_one_line()
    try:
        try:
            raise ValueError("a\nb")
        except ValueError as cause:
            raise RuntimeError("Failed to evaluate ConfigExpression: '$f()'") from cause
    except RuntimeError as error:
        end(error)
    assert capsys.readouterr().err == "error: ValueError: a b\n"
    assert command_line == []


def test_the_end_of_the_program_stays_one(command_line, capsys):
    errors_in_one_line()
    end(SystemExit(3))
    assert command_line == [SystemExit]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("variable", "shown"),
    [(None, "--resume_from '/a b/c.pt'"), ('{"image_pattern": "--image-pattern"}', "--set resume_from='/a b/c.pt'")],
)
def test_an_interrupt_is_one_line_that_says_how_to_go_on(command_line, monkeypatch, capsys, variable, shown):
    if variable is not None:
        monkeypatch.setenv("MARGINCAL_FLAGS", variable)
    advise_when_interrupted(lambda: "in epoch 3: give resume_from='/a b/c.pt'")
    flags: dict[str, str] = {}
    errors_in_one_line(flags)
    flags.update(flags_of(["resume_from", "image_pattern"]))
    with pytest.raises(SystemExit) as raised:
        end(KeyboardInterrupt())
    advise_when_interrupted(lambda: "")
    assert raised.value.code == 130
    assert capsys.readouterr().err == f"interrupted in epoch 3: give {shown}\n"
    end(ValueError("--image_pattern: found 7, expected a text"))
    option = "--image_pattern" if variable is None else "--image-pattern"
    assert capsys.readouterr().err == f"error: ValueError: {option}: found 7, expected a text\n"


def test_the_traceback_for_those_who_ask(command_line, monkeypatch):
    monkeypatch.setenv("MONAI_DEBUG", "1")
    errors_in_one_line()
    end(ValueError())
    assert command_line == [ValueError]


@pytest.mark.parametrize("name", [None, "monailabel.main", "ipykernel_launcher", "monai.bundle.scripts"])
def test_other_programs_are_left_alone(command_line, monkeypatch, name):
    main = ModuleType("__main__")
    main.__spec__ = name and ModuleSpec(name, None)
    monkeypatch.setitem(sys.modules, "__main__", main)
    hook = sys.excepthook
    errors_in_one_line()
    assert sys.excepthook is hook
