"""What a shell user types behind a flag, through fire and MONAI's parser: it means that, or it is refused by name."""

from __future__ import annotations

import copy
import os
import shlex
import sys

import fire.core
import pytest
from monai.bundle import ConfigParser
from monai.bundle.scripts import update_kwargs

from monai_margincal.bundle import texts
from monai_margincal.bundle.command_line import typed_flags
from monai_margincal.errors import root_message

CONFIG = {
    "bundle_root": ".",
    "output_dir": "$@bundle_root + '/eval'",
    "dataset_dir": {"_target_": "builtins.str", "object": "the samples"},
    "image_pattern": "images/{case}.*",
    "datalist_file": None,
    "cases": None,
    "val_cases": 0.2,
    "tolerance": 0.25,
    "saving": {"_target_": "builtins.dict", "postfix": "mask"},
    "seed": 0,
    "all": {
        "_target_": "builtins.dict",
        "output_dir": "@output_dir",
        "below": "$str(@output_dir) + '/x'",
        "dataset_dir": "@dataset_dir",
        "image_pattern": "@image_pattern",
        "datalist_file": "@datalist_file",
        "cases": "@cases",
        "val_cases": "@val_cases",
        "tolerance": "@tolerance",
        "saving": "@saving",
    },
    "run": ["$@all"],
    "initialize": [{"_target_": "monai_margincal.bundle.prepare_run", "seed": "@seed"}],
}


def through_fire(line):
    """What MONAI's `run` gets of a command line."""
    caught = {}

    def run(config_file=None, run_id=None, **override):
        caught.update(update_kwargs(None, config_file=config_file, run_id=run_id, **override))

    fire.core.Fire({"run": run}, command=["run", *line])
    return {key: value for key, value in caught.items() if key not in ("config_file", "run_id")}


def resolved(monkeypatch, *line):
    """The keys after `prepare_run`, as components get them."""
    monkeypatch.setattr("sys.argv", ["monai.bundle", "run", *line])
    # the function of that name hides the module
    monkeypatch.setattr(sys.modules["monai_margincal.bundle.prepare_run"], "is_command_line", lambda: True)
    parser = ConfigParser(copy.deepcopy(CONFIG))
    parser.update(through_fire(line))
    parser.parse(True)
    try:
        parser.get_parsed_content("initialize")
        return parser.get_parsed_content("all")
    except Exception as error:
        raise ValueError(root_message(error)) from None


#: texts that Python, fire or MONAI read as something else
ODD = [
    "{case}", "{case}/{x}", "2025", "007", "1_000", "1e3", "0x10", "2025.10", "-3", "True", "False", "true", "a,b", "(a)", "[a]",
    "exp#1/out", "#1", "a::b", "a@b", "@a/b", "50%", "a$b", "a=b", "b'x'", "1+2j", "...", "1-2", "a-b#c", "x;y", "ä", "a'b",
    "nan", "None.d", "lambda", "not", "{a: b}", "a:b", "--", "é{case}", "\\n", '"', "*", "~x~", "a b",
]  # fmt: skip


@pytest.mark.parametrize("typed", [text for text in ODD if text != "--"])
@pytest.mark.parametrize("way", ["two words", "one word"])
def test_a_path_or_a_pattern_is_what_was_typed(monkeypatch, typed, way):
    for key in ("output_dir", "dataset_dir", "image_pattern", "datalist_file"):
        line = [f"--{key}", typed] if way == "two words" else [f"--{key}={typed}"]
        assert resolved(monkeypatch, *line)[key] == typed
    assert resolved(monkeypatch, "--output_dir", typed)["below"] == f"{typed}/x"


@pytest.mark.parametrize("typed", [text for text in ODD if text not in ("--", "a,b", "(a)", "[a]", "1e3", "2025.10")])
def test_a_case_is_called_what_was_typed(monkeypatch, typed):
    for key in ("cases", "val_cases"):
        assert resolved(monkeypatch, f"--{key}", typed)[key] == typed
    assert resolved(monkeypatch, "--cases", f"[{typed}]")["cases"] == [typed]


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        ("a,b", ["a", "b"]),
        ("['a','b']", ["a", "b"]),
        ('["a", "b,c"]', ["a", "b,c"]),
        ("[007, 1_0]", ["007", "1_0"]),
        ("(7,8)", ["7", "8"]),
        ("p-1,p-2", ["p-1", "p-2"]),
        ("['@a','$b','c#1']", ["@a", "$b", "c#1"]),
        ("'a,b'", ["a,b"]),
        ("[all]", ["all"]),
        ("all", "all"),
        ("None", None),
        ("$['a'] + ['b']", ["a", "b"]),
    ],
)
def test_several_cases(monkeypatch, typed, names):
    assert resolved(monkeypatch, "--cases", typed)["cases"] == names


@pytest.mark.parametrize(("typed", "meant"), [("0.3", 0.3), (".5", 0.5), ("1.0", 1.0), ("1", "1"), ("None", None)])
def test_a_share_or_a_name(monkeypatch, typed, meant):
    assert resolved(monkeypatch, "--val_cases", typed)["val_cases"] == meant


def test_none_is_no_value_where_there_may_be_none(monkeypatch):
    found = resolved(
        monkeypatch, *shlex.split("--datalist_file None --cases None --tolerance None --saving#extra None")
    )
    assert (found["datalist_file"], found["cases"], found["tolerance"]) == (None, None, None)
    assert found["saving"] == {"postfix": "mask", "extra": None}


def test_home(monkeypatch):
    monkeypatch.setenv("HOME", "/home/jane")
    found = resolved(monkeypatch, "--output_dir", "~/out", "--dataset_dir=~", "--image_pattern", "~/{case}")
    assert (found["output_dir"], found["dataset_dir"]) == ("/home/jane/out", "/home/jane")
    assert found["image_pattern"] == "~/{case}"


def test_quotes_inside_of_quotes_are_those_of_python(monkeypatch):
    assert resolved(monkeypatch, "--image_pattern", "'{case}'")["image_pattern"] == "{case}"
    assert resolved(monkeypatch, "--output_dir", '"exp#1"')["output_dir"] == "exp#1"


def test_what_is_of_monai_stays_so(monkeypatch):
    found = resolved(monkeypatch, "--output_dir", "$@bundle_root + '/x'", "--cases", "@image_pattern")
    assert (found["output_dir"], found["cases"]) == ("./x", "images/{case}.*")
    assert resolved(monkeypatch, "--output_dir", "%image_pattern")["output_dir"] == "images/{case}.*"
    assert resolved(monkeypatch, "--output_dir", "./$HOME")["output_dir"] == "./$HOME"
    assert resolved(monkeypatch, "--output_dir", "./%study")["output_dir"] == "./%study"


def test_a_word_behind_a_key_with_a_step(monkeypatch):
    assert resolved(monkeypatch, "--saving#postfix", "7")["saving"] == {"postfix": "7"}
    assert resolved(monkeypatch, "--saving::postfix", "True")["saving"] == {"postfix": "True"}


REFUSED = {
    "--dataset_dir None": r"--dataset_dir: found None, expected a path",
    "--output_dir None": r"--output_dir: found None, expected a path",
    "--image_pattern None": r"--image_pattern: found None, expected a relative path with \{case\} in it",
    "--cases": r"--cases: found no value, expected names of cases",
    "--nocases": r"--cases: found no value, expected names of cases",
    "--output_dir --seed 1": r"--output_dir: found no value, expected a path",
    "--output_dir ''": r"--output_dir: found '', expected a path",
    "--cases ' '": r"--cases: found ' ', expected names of cases",
    "--output_dir '$HOME/out'": r"--output_dir: found '\$HOME/out', an expression for MONAI \(NameError: .*\), expected a path",
    "--output_dir '$1 + 1'": r"--output_dir: found '\$1 \+ 1', which is 2 for MONAI, expected a path",
    "--output_dir @study": r"--output_dir: found '@study', a reference for MONAI \(.*\), expected a path",
    "--output_dir @": r"--output_dir: found '@', a reference for MONAI",
    "--cases @jane": r"--cases: found '@jane', a reference for MONAI .*, expected names of cases \(with \['",
    "--cases '$x'": r"--cases: found '\$x', an expression for MONAI",
    "--saving#postfix 'a#b'": r"--saving#postfix: found 'a#b', expected a text without # behind a key with one",
    "--tolerance '1#2'": r"--tolerance: found '1#2', expected a value without #",
    "--tolerance \"['a#2']\"": r"--tolerance: found .*, expected a value without #",
    "--seed None": r"--seed: found None, expected a value",
    "--sead None": r"unknown key 'sead' \(did you mean 'seed'\?\)",
    "--svaing#postfix None": r"--svaing#postfix: found .*, expected",
}


@pytest.mark.parametrize("line", REFUSED)
def test_what_cannot_mean_what_was_typed_is_refused_by_name(monkeypatch, line):
    with pytest.raises(ValueError, match=REFUSED[line]):
        resolved(monkeypatch, *shlex.split(line))


def test_nothing_is_read_from_the_command_line_of_another_program(monkeypatch):
    monkeypatch.setattr("sys.argv", ["server", "--cases", "b", "--dataset_dir", "None"])
    parser = ConfigParser({**copy.deepcopy(CONFIG), "cases": "a", "output_dir": "~/x"})
    parser.parse(True)
    parser.get_parsed_content("initialize")
    found = parser.get_parsed_content("all")
    assert (found["cases"], found["dataset_dir"]) == ("a", "the samples")
    assert found["output_dir"] == os.path.expanduser("~/x")  # noqa: PTH111


def test_flags_as_fire_finds_them():
    line = "run --a 1 --b=2=3 -c x --d --e -3 --no_f --nog --h-i j word --a 4 -- --verbose"
    found = typed_flags(shlex.split(line))
    assert found == {"a": "4", "b": "2=3", "c": "x", "d": None, "e": "-3", "_f": None, "g": None, "h_i": "j"}
    ours = {key: value for key, value in found.items() if value is not None}
    assert set(through_fire(shlex.split(line)[1:])) - set(ours) <= {"d", "_f", "g"}


def test_kinds():
    kinds = {
        id: texts.kind_of(id)
        for id in (
            "ckpt_dir", "handlers#0#load_path", "label_pattern", "train_cases", "x#cases", "epochs", "groups", "norm#groups",
            "group_pattern", "datalist#group_column", "folds",
        )
    }  # fmt: skip
    expected = ["path", "path", "pattern", "cases", None, None, "path", None, "word", "word", None]
    assert list(kinds.values()) == expected
