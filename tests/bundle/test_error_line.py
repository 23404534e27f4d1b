"""A failed command ends with one line; a program that is not MONAI's command line keeps its own ways."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from monai_margincal.bundle import errors_in_one_line


@pytest.fixture
def command_line(monkeypatch):
    main = ModuleType("__main__")
    main.__spec__ = ModuleSpec("monai.bundle.__main__", None)
    monkeypatch.setitem(sys.modules, "__main__", main)
    calls = []
    monkeypatch.setattr(sys, "excepthook", lambda *arguments: calls.append(arguments[0]))
    return calls


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


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
def test_an_interrupt_stays_one(command_line, capsys, error):
    errors_in_one_line()
    end(error)
    assert command_line == [type(error)]
    assert capsys.readouterr().err == ""


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
