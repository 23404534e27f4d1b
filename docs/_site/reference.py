"""Pages of the reference, made from docstrings, from the parsers of the command line and from the bundles' configurations."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any

from monai.bundle import ConfigParser

import monai_margincal
from monai_margincal.bundle.other_command import is_used, used_ids
from monai_margincal.cli import build_parser
from monai_margincal.experiments import study_keys

from .links import ROOT, links_of_site, page_of
from .notebooks import NOTEBOOKS, page_of_notebook

#: configuration files of a bundle, each with those that go before it in --config_file
_COMMANDS = {
    "training": ["train.json"],
    "evaluation": ["train.json", "evaluate.json"],
    "inference": ["inference.json"],
}


def write_reference(folder: Path) -> None:
    """Write all generated pages into a folder, and nothing that is there already with the same text."""
    pages = {"python.md": _python_index(), "command_line.md": _command_line(), "study_files.md": _study_files()}
    pages["changelog.md"] = _as_page(ROOT / "CHANGELOG.md")
    for room, names in _public_names():
        pages[f"python/{room}.md"] = _room(room, names)
    for bundle in sorted(path.parents[1] for path in ROOT.glob("bundles/*/configs/metadata.json")):
        for page in sorted((bundle / "docs").glob("*.md")):
            text = _bundle(bundle) if page.stem == "README" else _as_page(page)
            pages[f"bundles/{page_of(page).name}"] = text
    pictures: dict[str, bytes] = {}
    for notebook in sorted(NOTEBOOKS.glob("*.ipynb")):
        text, drawn = page_of_notebook(notebook)
        pages[f"notebooks/{notebook.stem}.md"] = links_of_site(text, notebook, page_of(notebook))
        pictures.update({f"notebooks/{name}": content for name, content in drawn.items()})
    for name, content in pictures.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_bytes() != content:
            path.write_bytes(content)
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # an unchanged page keeps its time, so that Sphinx need not read it again
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def _public_names() -> Iterator[tuple[str, list[str]]]:
    names = [name for name in monai_margincal.__all__ if not name.startswith("_")]
    rooms = {name: getattr(monai_margincal, name).__module__.split(".")[1] for name in names}
    for room, group in groupby(sorted(names, key=lambda name: (rooms[name], names.index(name))), key=rooms.__getitem__):
        yield room, list(group)


def _python_index() -> str:
    rows, pages = [], []
    for room, names in _public_names():
        pages.append(f"python/{room}")
        for name in names:
            summary = (getattr(monai_margincal, name).__doc__ or "").strip().split("\n")[0]
            rows.append(f"| [`{name}`](#monai_margincal.{name}) | {summary} |")
    return "\n".join(
        [
            "# Python",
            "",
            "Every public name can be imported from `monai_margincal`, and in a configuration its `_target_` is",
            "`monai_margincal.NAME`. The examples run as doctests.",
            "",
            "| name | what it is |",
            "|---|---|",
            *rows,
            "",
            "```{toctree}",
            ":hidden:",
            "",
            *pages,
            "```",
            "",
        ]
    )


def _room(room: str, names: list[str]) -> str:
    summary = (import_module(f"monai_margincal.{room}").__doc__ or "").strip().split("\n\n")[0]
    lines = [f"# {room.capitalize()}", "", summary, "", "```{eval-rst}"]
    for name in names:
        is_class = isinstance(getattr(monai_margincal, name), type)
        lines += ["", f".. auto{'class' if is_class else 'function'}:: monai_margincal.{name}"]
        lines += ["   :members:", "   :special-members: __call__"] * is_class
    return "\n".join([*lines, "```", ""])


def _command_line() -> str:
    parser = build_parser()
    lines = ["# Command line", "", "`margincal VERB`, or `python -m monai_margincal VERB`.", ""]
    for title, described in _parsers(parser):
        text = described.format_help().replace("`", "'")
        lines += [f"## {title}", "", "```text", text.strip(), "```", ""]
        keys = described.get_default("json_keys")
        if keys:
            lines += ["| key of `--json` | holds |", "|---|---|"]
            lines += [f"| `{key}` | {meaning} |" for key, meaning in keys.items()]
            lines += ["| `written` | files that were written |", ""]
    return "\n".join(lines)


def _study_files() -> str:
    lines = [
        "# Study files",
        "",
        "What `margincal compare` runs. `margincal compare --init study.yaml` writes one about your own folder to begin with;",
        "those of [the study](../study/README.md) lie in `docs/study`. The file is a MONAI configuration in YAML: `_target_`",
        "names components, `@id` refers to another entry (`@tasks::lesions::steps`), `$` starts an expression, and",
        "`--set ID=VALUE` sets an entry.",
        "",
    ]
    parts = {
        "The file": study_keys.STUDY_KEYS,
        "A task": study_keys.TASK_KEYS,
        "An objective": study_keys.OBJECTIVE_KEYS,
        "A block": study_keys.BLOCK_KEYS,
    }
    for title, keys in parts.items():
        lines += [f"## {title}", "", "| key | needed | meaning |", "|---|---|---|"]
        lines += [f"| `{name}` | {'yes' if key.is_needed else ''} | {key.meaning} |" for name, key in keys.items()]
        lines += [""]
    lines += ["What a block leaves out stands for all; for `protocols`, for `finetune`.", ""]
    lines += ["Any other entry of the file is free for references.", ""]
    lines += ["## What the file may refer to without having it", "", "| id | what it is |", "|---|---|"]
    lines += [f"| `@{name}` | {meaning} |" for name, meaning in study_keys.GIVEN.items()]
    return "\n".join([*lines, ""])


def _parsers(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    yield parser.prog, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from _parsers(child)


def _as_page(file: Path) -> str:
    """A file of the repository as the page of the site that shows it."""
    return links_of_site(file.read_text(encoding="utf-8"), file, page_of(file))


def _bundle(bundle: Path) -> str:
    return "\n".join(
        [
            _as_page(bundle / "docs" / "README.md"),
            "",
            "## Every key, from the configurations",
            "",
            "Keys at the top level, with the value that the file gives them; `-` where a command does not take the key: it is",
            "refused there, with a line that names the command that does. `features`, `norm` and `num_classes` make the",
            "network, and must be the same in all three.",
            "",
            *_key_table(bundle),
            "",
        ]
    )


def _key_table(bundle: Path) -> Iterator[str]:
    commands: dict[str, dict[str, Any]] = {}
    for command, files in _COMMANDS.items():
        config = ConfigParser.load_config_files([str(bundle / "configs" / file) for file in files])
        used = used_ids(config)
        commands[command] = {key: value for key, value in config.items() if is_used(key, used)}
    keys = dict.fromkeys(key for config in commands.values() for key in config)
    yield f"| key | {' | '.join(commands)} |"
    yield f"|---|{'---|' * len(commands)}"
    for key in keys:
        values = [_shown(config, key) for config in commands.values()]
        if any(value not in ("-", "component") for value in values):
            yield f"| `{key}` | {' | '.join(values)} |"


def _shown(config: dict[str, Any], key: str) -> str:
    if key not in config:
        return "-"
    value = config[key]
    is_component = isinstance(value, dict) or (isinstance(value, list) and any(isinstance(v, dict) for v in value))
    return "component" if is_component else f"`{json.dumps(value, ensure_ascii=False)}`".replace("|", "\\|")
