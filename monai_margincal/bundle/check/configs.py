"""The configurations of a bundle as a user runs them: which files belong together, and their text with the overrides in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from monai.bundle import ConfigParser

#: (workflow type, names of the files that are merged), in the order of checking. Evaluation is a training workflow for MONAI.
WORKFLOWS = (
    ("train", ("train",)),
    ("train", ("train", "evaluate")),
    ("train", ("train", "multi_gpu_train")),
    ("train", ("train", "evaluate", "multi_gpu_evaluate")),
    ("infer", ("inference",)),
)

_SUFFIXES = (".json", ".yaml", ".yml")


def config_file(root: Path, name: str) -> Path | None:
    """The file ``configs/NAME`` of a bundle with whichever ending MONAI reads, or None."""
    paths = (root / "configs" / f"{name}{suffix}" for suffix in _SUFFIXES)
    return next((path for path in paths if path.is_file()), None)


def workflow_files(root: Path, names: tuple[str, ...]) -> list[Path] | None:
    """The files of a workflow, or None if one of them is missing."""
    files = [config_file(root, name) for name in names]
    return [path for path in files if path is not None] if all(files) else None


def read_parser(root: Path, files: list[Path], overrides: Mapping[str, Any]) -> ConfigParser:
    """Merge config files and overrides; nothing is instantiated.

    Args:
        root: the bundle's folder; ``bundle_root`` becomes it.
        files: config files, later ones take precedence.
        overrides: ``id`` -> value, as on the command line.

    Raises:
        ValueError: a file is no JSON or YAML of MONAI's form.
        KeyError: an override names a nested id that does not exist.
    """
    parser = ConfigParser()
    parser.read_config([str(path) for path in files])
    metadata = config_file(root, "metadata")
    if metadata is not None:
        parser.read_meta(str(metadata))
    # on the CPU, since a check must not need a GPU or take its memory
    given = {
        "bundle_root": str(root),
        **({"device": "$torch.device('cpu')"} if "device" in parser else {}),
        **overrides,
    }
    parser.update(given)
    return parser
