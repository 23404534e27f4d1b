"""A study read from YAML: which tasks, objectives and seeds are compared, and the fingerprint of everything that decides a cell.

The file is a MONAI config: ``_target_`` names components, ``@id`` refers to another entry, ``$`` starts an expression. Its keys,
and the ids that it may refer to without having them, are those of `study_keys`.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from monai.bundle import ConfigParser

from ..datasets import assign_folds
from ..extras import require
from .cases import CaseStore
from .standstill import Standstill
from .study_keys import BLOCK_KEYS, GIVEN, OBJECTIVE_KEYS, STUDY_KEYS, TASK_KEYS, Key
from .task_cases import TaskCases, select_task_cases

yaml = require("yaml", extra="experiments", purpose="reading a study")

__all__ = ["Cell", "Study"]

#: increased when training or scoring changes in a way that makes older cells incomparable
CELL_FORMAT = 1

PROTOCOLS = ("finetune", "scratch")
PRETRAINING = "pretraining"

_RULE_KEYS = {name: Key(False, "see `Standstill`") for name in ("points", "gain")}
_NEEDED = [name for name, key in STUDY_KEYS.items() if key.is_needed]
_REFERENCE = re.compile(r"@([A-Za-z_]\w*(?:(?:::|#)\w+)*)")


@dataclass(frozen=True)
class Cell:
    """One training run.

    Attributes:
        task: name of the task.
        protocol: "pretraining", "finetune" or "scratch".
        objective: name of the objective.
        seed: draws training cases, initial weights, data order and dropout.
        key: fingerprint of everything that decides the result; the name of the cell's files.
        description: what the fingerprint was computed from, in JSON types.
        fold: the fold that is tested on; None where the task has no folds.
    """

    task: str
    protocol: str
    objective: str
    seed: int
    key: str
    description: dict[str, Any]
    fold: int | None = None

    @property
    def name(self) -> str:
        """The cell's name for users: task/protocol/objective/seed, and the fold if there are any."""
        return f"{self.task}/{self.protocol}/{self.objective}/{self.seed}" + (
            "" if self.fold is None else f"/fold{self.fold}"
        )


class Study:
    """The parsed file.

    Args:
        config: its content.
        config_dir: what ``@config_dir`` stands for.

    Raises:
        ValueError: an entry is missing, unknown or of the wrong form.
    """

    def __init__(self, config: Mapping[str, Any], config_dir: str | os.PathLike[str] = ".") -> None:
        parser = ConfigParser(copy.deepcopy(dict(config)))
        parser.resolve_macro_and_relative_ids()
        self._config: dict[str, Any] = parser.get()
        self.config_dir = Path(config_dir).absolute()
        for name in _NEEDED:
            if not self._config.get(name):
                raise ValueError(f"the study has no `{name}`: expected the entries {', '.join(_NEEDED)}")
        self.title = str(self._config.get("title", "Comparison of objectives"))
        self.tasks: dict[str, dict[str, Any]] = dict(self._config["tasks"])
        self.objectives: dict[str, dict[str, Any]] = dict(self._config["objectives"])
        self.decoders: dict[str, Any] = dict(self._config["decoders"])
        self.seeds: list[int] = list(self._config["seeds"])
        for name, task in self.tasks.items():
            _check_keys(f"tasks::{name}", task, TASK_KEYS)
            if ("test" in task) == ("folds" in task):
                raise ValueError(
                    f"tasks::{name}: found {'both' if 'test' in task else 'neither'} of the keys test and folds, "
                    "expected one"
                )
            self.standstill(name)
        for name, objective in self.objectives.items():
            _check_keys(f"objectives::{name}", objective, OBJECTIVE_KEYS)
        self._store = CaseStore()
        self._splits: dict[tuple[str, int, int | None], TaskCases] = {}
        self._data: dict[str, list[dict[str, Any]]] = {}

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], overrides: Mapping[str, Any] | None = None) -> Study:
        """Read a YAML or JSON file.

        Args:
            path: the file.
            overrides: id (``tasks::a::steps``) -> value, set before anything is resolved.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: see the class.
        """
        file = Path(path)
        if not file.is_file():
            raise FileNotFoundError(f"{file}: no such file, expected the YAML of a study")
        parser = ConfigParser(_read_yaml(file))
        for key, value in (overrides or {}).items():
            parent = key.replace("#", "::").rpartition("::")[0]
            try:
                if parent:
                    parser[parent]
                parser[key] = value
            except (KeyError, IndexError, TypeError, ValueError):
                raise ValueError(f"{file}: found no entry {parent!r} to set {key!r} in") from None
        try:
            return cls(parser.get(), file.absolute().parent)
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from error

    def build(self, config: Any, **given: Any) -> Any:
        """Instantiate a piece of the study's config; ``given`` are further ids that it may refer to."""
        content = {**self._config, **given, "config_dir": str(self.config_dir), "__wanted__": config}
        return ConfigParser(copy.copy(content)).get_parsed_content("__wanted__")

    def cells(self) -> list[Cell]:
        """All cells in the order of the blocks, each once; pre-training is not among them."""
        found: dict[str, Cell] = {}
        for index, block in enumerate(self._config["blocks"]):
            _check_keys(f"blocks::{index}", block, BLOCK_KEYS)
            tasks = _listed(block, "tasks", self.tasks, index)
            objectives = _listed(block, "objectives", self.objectives, index)
            protocols = _listed({"protocols": ["finetune"], **block}, "protocols", PROTOCOLS, index)
            seeds = _listed(block, "seeds", self.seeds, index)
            for task in tasks:
                for seed, fold in itertools.product(seeds, self.folds(task)):
                    for protocol, objective in itertools.product(protocols, objectives):
                        cell = self.cell(task, protocol, objective, seed, fold=fold)
                        found.setdefault(cell.key, cell)
        return list(found.values())

    def folds(self, task: str) -> list[int] | list[None]:
        """The numbers of a task's folds; ``[None]`` for a task without."""
        number = self.tasks[task].get("folds")
        if number is None:
            return [None]
        if isinstance(number, bool) or not isinstance(number, int) or number < 2:
            raise ValueError(f"tasks::{task}::folds: found {number!r}, expected a whole number from 2")
        return list(range(number))

    def cell(self, task: str, protocol: str, objective: str, seed: int, fold: int | None = None) -> Cell:
        """One cell; for "pretraining" the objective is ignored."""
        left_out = ("data", "title", "split_seed", "folds")  # the digests of the parts say what these decide
        settings = {key: value for key, value in self.tasks[task].items() if key not in left_out}
        cases = self.cases(task, seed, fold)
        for part in ("training", "validation", "test"):
            settings[part] = cases.digest(part)
        description = {
            "format": CELL_FORMAT,
            "protocol": protocol,
            "seed": seed,
            "task": settings,
        }
        if protocol == PRETRAINING:
            settings.pop("steps")
            objective = "cross-entropy"
        else:
            description["decoders"] = self.decoders
            chosen = self.objectives[objective]
            description["objective"] = {key: chosen[key] for key in ("loss", "controller") if chosen.get(key)}
        description["references"] = self._references(description)
        text = json.dumps(description, sort_keys=True, ensure_ascii=True)
        key = hashlib.sha256(text.encode()).hexdigest()[:16]
        return Cell(task, protocol, objective, seed, key=key, description=description, fold=fold)

    def cases(self, task: str, seed: int, fold: int | None = None) -> TaskCases:
        """Training, validation and test cases of a task; the seed draws the training cases, the fold is the test."""
        if (task, seed, fold) not in self._splits:
            where, split_seed = f"tasks::{task}", int(self.tasks[task].get("split_seed", 0))
            if task not in self._data:
                self._data[task] = self.build(self.tasks[task]["data"])
            data = self._data[task]
            parts = {part: self._part(task, part) for part in ("training", "validation")}
            if fold is None:
                parts["test"] = self._part(task, "test")
            else:
                dealt = assign_folds(data, len(self.folds(task)), split_seed)
                parts["test"] = [item["case"] for item in dealt if item["fold"] == fold]
            self._splits[task, seed, fold] = select_task_cases(
                data, parts, split_seed=split_seed, seed=seed, where=where, digest=self._store.digest
            )
        return self._splits[task, seed, fold]

    def _part(self, task: str, part: str) -> Any:
        """What the file says of a part, expressions and references resolved."""
        value = self.tasks[task][part]
        try:
            return self.build(value)
        except Exception as error:
            raise ValueError(f"tasks::{task}::{part}: found {value!r}: {error}") from error

    def standstill(self, task: str) -> Standstill | None:
        """The rule by which a task's pre-training ends, if it has one.

        Raises:
            ValueError: the rule is wrong, or there is no validation curve to go by.
        """
        settings = self.tasks[task]
        rule = settings.get("pretraining_until")
        if rule is None:
            return None
        _check_keys(f"tasks::{task}::pretraining_until", rule, _RULE_KEYS)
        if not settings.get("validate_every") or settings["validation"] == 0:
            raise ValueError(
                f"tasks::{task}::pretraining_until: found no validation curve, expected validation cases and validate_every"
            )
        try:
            return Standstill(**rule)
        except ValueError as error:
            raise ValueError(f"tasks::{task}::pretraining_until: {error}") from error

    def load(self, task: str, items: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Read cases through the task's transform and keep them in memory."""
        settings = self.tasks[task]
        return self._store.load(items, settings["transform"], self.build, len(settings["class_names"]))

    def label(self, objective: str) -> str:
        """What tables and figures call an objective."""
        return str(self.objectives.get(objective, {}).get("label", objective))

    def _references(self, config: Any) -> dict[str, Any]:
        """Everything that a config refers to by ``@``, directly or indirectly, since it affects the result too."""
        found: dict[str, Any] = {}
        waiting = [json.dumps(config)]
        while waiting:
            for name in _REFERENCE.findall(waiting.pop()):
                name = name.replace("#", "::")
                if name in GIVEN or name in found:
                    continue
                entry: Any = self._config
                for part in name.split("::"):
                    entry = entry[int(part)] if isinstance(entry, list) else entry.get(part, _MISSING)
                    if entry is _MISSING:
                        raise ValueError(f"the study refers to @{name}, which it does not define")
                found[name] = entry
                waiting.append(json.dumps(entry))
        return found


_MISSING = object()


class _Loader(yaml.SafeLoader):  # type: ignore[name-defined]
    """Safe YAML with merge keys (``<<``), which MONAI's own loader lacks; as there, a repeated key is an error."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        twice = sorted({key for key in keys if keys.count(key) > 1})
        if twice:
            raise ValueError(f"line {node.start_mark.line + 1}: found the keys {twice} more than once in one mapping")
        return super().construct_mapping(node, deep)


def _read_yaml(file: Path) -> dict[str, Any]:
    try:
        content = yaml.load(file.read_text(encoding="utf-8"), _Loader)
    except (yaml.YAMLError, ValueError) as error:
        raise ValueError(f"{file}: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(
            f"{file}: found {type(content).__name__}, expected a mapping with the entries {', '.join(_NEEDED)}"
        )
    return content


def _check_keys(where: str, entry: Any, known: Mapping[str, Key]) -> None:
    if not isinstance(entry, Mapping):
        raise ValueError(f"{where}: found {entry!r}, expected a mapping with the keys {', '.join(known)}")
    wrong = [key for key in entry if key not in known]
    missing = [key for key, wanted in known.items() if wanted.is_needed and key not in entry]
    if wrong or missing:
        raise ValueError(
            f"{where}: unknown keys {wrong}, missing keys {missing}; expected keys are {', '.join(sorted(known))}"
        )


def _listed(block: Mapping[str, Any], key: str, known: Any, index: int) -> list[Any]:
    chosen = block.get(key)
    if chosen is None:
        return list(known)
    wrong = [name for name in chosen if name not in known]
    if wrong:
        raise ValueError(f"blocks::{index}: found the {key} {wrong}, expected some of {list(known)}")
    return list(chosen)
