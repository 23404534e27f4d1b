"""The configurations of a bundle as a user runs them: which files belong together, and their text with the overrides in it."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from monai.bundle import ConfigParser
from monai.bundle.config_item import ConfigComponent

from ...findings import Finding
from ..texts import keep_literal, kind_of

#: (workflow type, names of the files that are merged), in the order of checking. To MONAI, evaluation is a training workflow.
_WORKFLOWS = (
    ("train", ("train",)),
    ("train", ("train", "evaluate")),
    ("train", ("train", "multi_gpu_train")),
    ("train", ("train", "evaluate", "multi_gpu_evaluate")),
    ("infer", ("inference",)),
)

_SUFFIXES = (".json", ".yaml", ".yml")


@dataclass(frozen=True)
class Workflow:
    """One way to run a bundle.

    Attributes:
        root: the bundle's folder.
        kind: ``"train"`` or ``"infer"``.
        files: config files, later ones take precedence.
        overrides: ``id`` -> value, as on the command line.
    """

    root: Path
    kind: str
    files: tuple[Path, ...]
    overrides: Mapping[str, Any] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """The files' names, for findings."""
        return " + ".join(path.relative_to(self.root).as_posix() for path in self.files)

    def parser(self) -> ConfigParser:
        """Merge files and overrides; nothing is instantiated.

        Raises:
            ValueError: a file is not JSON or YAML of MONAI's form.
            KeyError: an override names a nested id that does not exist.
        """
        parser = ConfigParser()
        parser.read_config([str(path) for path in self.files])
        metadata = config_file(self.root, "metadata")
        if metadata is not None:
            parser.read_meta(str(metadata))
        # on the CPU, since a check must not need a GPU or take its memory
        device = {"device": "$torch.device('cpu')"} if "device" in parser else {}
        given = {"bundle_root": str(self.root), **device, **self.overrides}
        parser.update(given)
        if any("#" in str(value) for id, value in given.items() if kind_of(id) is not None):
            parser.parse(True)
            keep_literal(parser, given)
        return parser


def workflows(root: Path) -> Iterator[Workflow]:
    """The workflows whose files a bundle has, without overrides, in the order of checking."""
    for kind, names in _WORKFLOWS:
        files = [path for name in names if (path := config_file(root, name)) is not None]
        if len(files) == len(names):
            yield Workflow(root, kind, tuple(files))


def config_file(root: Path, name: str) -> Path | None:
    """The file ``configs/NAME`` of a bundle with any ending that MONAI reads, or None."""
    paths = (root / "configs" / f"{name}{suffix}" for suffix in _SUFFIXES)
    return next((path for path in paths if path.is_file()), None)


def repeated_keys(root: Path) -> list[Finding]:
    """Keys that occur twice in one object of a file; MONAI takes the last of them, with only a warning."""
    found = []
    for path in sorted((root / "configs").iterdir()):
        if path.suffix not in _SUFFIXES:
            continue
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            # a file that cannot be read is reported where it is needed
            with contextlib.suppress(Exception):
                ConfigParser.load_config_file(path)
        place = path.relative_to(root).as_posix()
        messages = [str(warning.message) for warning in caught if "uplicate" in str(warning.message)]
        found += [Finding.in_file("error", place, " ".join(text.split()), "every key once") for text in messages]
    return found


def value_at(parser: ConfigParser, id: str) -> Any:
    """The value at an id, references followed and expressions evaluated; None if there is no such id.

    Example:
        >>> value_at(ConfigParser({"size": 3, "net": {"width": "$@size * 2"}}), "net::width")
        6
    """
    return parser.get_parsed_content(id) if id in parser else None


def switched_off(parser: ConfigParser, id: str) -> bool:
    """Whether MONAI leaves the component at an id out.

    MONAI reads ``_disabled_`` in its own way: it takes a text that is neither true nor false for false, which is an error for
    `monai_margincal.bundle.switches`.

    Example:
        >>> switched_off(ConfigParser({"flag": False, "crop": {"_disabled_": "$not @flag"}}), "crop")
        True
    """
    return ConfigComponent({"_disabled_": value_at(parser, f"{id}::_disabled_")}).is_disabled()
