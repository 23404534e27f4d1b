"""All static checks of a MONAI bundle, without GPU and network."""

from __future__ import annotations

import contextlib
import logging
import os
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from monai.bundle import ConfigParser, verify_net_in_out

from ...errors import root_message
from ..keys import describe_unknown, references, unused_keys
from .components import check_components
from .configs import WORKFLOWS, config_file, read_parser, workflow_files
from .data_lists import DATA_LISTS, check_data
from .finding import SEVERITIES, Finding
from .metadata import FILE as METADATA
from .metadata import check_metadata, check_names
from .preprocessing import check_drift, image_chain
from .properties import check_properties
from .tensor_formats import check_formats

#: a bundle without them is refused by MONAI's model zoo (inference: preferred)
_FILES = {"LICENSE": "error", "docs/README.md": "warning", "configs/logging.conf": "note"}

_CHAINS = {"train": ("train::preprocessing", "validate::preprocessing"), "infer": ("preprocessing",)}


def check_bundle(
    root: str | os.PathLike[str],
    overrides: Mapping[str, Any] | None = None,
    dataset_dir: str | os.PathLike[str] | None = None,
) -> list[Finding]:
    """Check a bundle's metadata, configurations, network and preprocessing, and its data if they are given.

    Checked are: the files of a bundle; ``metadata.json`` against MONAI's schema, which travels with this package, and against
    the installed versions; names and numbers of classes in metadata, network, configuration and counts; the properties that
    MONAI and its clients need, for train, train + evaluate and inference; top-level keys that nothing refers to; the network's
    input and output, by running it once on the CPU; that the image is preprocessed alike in training, validation and inference;
    that every component can be imported and takes its arguments; that metadata's sizes and types are those of inference.
    With `dataset_dir`, or an override that the data lists depend on, also: that there are data, that images and labels pair up,
    lie on one grid, and hold the declared classes only.

    Args:
        root: the bundle's folder, the one that holds ``configs``; any MONAI bundle with JSON or YAML configurations.
        overrides: ``id`` -> value as on MONAI's command line, for example ``{"network_def#norm": "batch"}``.
        dataset_dir: takes the place of the configuration's ``dataset_dir``.

    Returns:
        the findings, most severe first; none at all for a faultless bundle.

    Raises:
        FileNotFoundError: ``root`` is no folder with ``configs/metadata.json``.

    Example:
        >>> from monai_margincal.bundle import bundle_dir
        >>> from monai_margincal.bundle.check import check_bundle
        >>> findings = check_bundle(bundle_dir("covid19_ct_lesion_coplenet"))
        >>> [str(finding) for finding in findings if finding.severity == "error"]
        []
    """
    folder = Path(root).expanduser().absolute()
    metadata_file = config_file(folder, "metadata")
    if metadata_file is None:
        raise FileNotFoundError(f"{folder}: found no configs/metadata.json, expected the folder of a MONAI bundle")
    given = dict(overrides or {})
    if dataset_dir is not None:
        given["dataset_dir"] = os.fspath(dataset_dir)
    with _quiet():
        found = _check(folder, metadata_file, given, dataset_dir is not None)
    unique = list(dict.fromkeys(found))
    return sorted(unique, key=lambda finding: SEVERITIES.index(finding.severity))


def _check(folder: Path, metadata_file: Path, given: dict[str, Any], with_data: bool) -> list[Finding]:
    found = [
        Finding(severity, name, "no file", "one") for name, severity in _FILES.items() if not (folder / name).is_file()
    ]
    try:
        metadata = ConfigParser.load_config_file(metadata_file)
    except ValueError as error:
        return [*found, Finding("error", METADATA, str(error), "JSON without a key twice")]
    found += check_metadata(metadata)
    if config_file(folder, "inference") is None:
        found.append(Finding("warning", "configs/inference.json", "no file", "one: clients read it"))

    found += _repeated_keys(folder)

    chains: dict[str, Any] = {}
    unknown = {_top(key) for key in given}
    with_overrides: dict[str, Any] = {}
    for kind, names in WORKFLOWS:
        files = workflow_files(folder, names)
        if files is None:
            continue
        place = " + ".join(path.relative_to(folder).as_posix() for path in files)
        try:
            config = read_parser(folder, files, {})[""]
            found += [
                Finding("warning", place, describe_unknown([key], config), "a key that something refers to")
                for key in unused_keys(config)
            ]
            applicable = _applicable(config, given)
            unknown -= {_top(key) for key in applicable}
            with_overrides = {**config, **with_overrides}
            parser = read_parser(folder, files, applicable)
        except Exception as error:  # YAML and JSON readers, merging and overriding each have errors of their own
            found.append(Finding("error", place, root_message(error), "a configuration that can be read"))
            continue
        found += _guarded(
            place, "readable properties", lambda k=kind, f=files, g=applicable, p=place: check_properties(k, f, g, p)
        )
        found += _guarded(
            place,
            "readable components",
            lambda f=files, g=applicable, p=place: check_components(read_parser(folder, f, g), p),
        )
        if len(names) > 1:
            continue
        found += _guarded(place, "consistent names", lambda p=parser, f=place: check_names(metadata, p, f))
        if kind == "infer":
            found += _guarded(place, "readable formats", lambda p=parser, f=place: check_formats(metadata, p, f))
        found += _network(folder, files, applicable, place)
        for id in _CHAINS[kind]:
            found += _guarded(place, "readable preprocessing", lambda p=parser, i=id, f=place: _chain(p, i, f, chains))
        if with_data or _touches_data(config, applicable):
            found += _guarded(place, "readable data", lambda p=parser, f=place: _data(p, f))
    found += check_drift(chains)
    if unknown:
        message = describe_unknown(sorted(unknown), {**with_overrides, **dict.fromkeys(unknown)})
        found.append(Finding("error", "the overrides", message, "keys of the bundle"))
    return found


def _touches_data(config: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    """Whether an override is a data list or changes what one is made of."""
    parser = ConfigParser(dict(config))
    parser.parse(True)
    reached: set[str] = set()
    ahead = {name for id in DATA_LISTS if id in parser for name in references(parser[id])}
    while ahead:
        reached |= ahead
        ahead = {name for key in ahead & set(config) for name in references(config[key])} - reached
    return bool(reached & {_top(id) for id in given}) or any(id.replace("#", "::") in DATA_LISTS for id in given)


def _repeated_keys(folder: Path) -> list[Finding]:
    """Keys that stand twice in one object of a file, of which MONAI takes the last with a warning only."""
    found = []
    for path in sorted((folder / "configs").iterdir()):
        if path.suffix not in (".json", ".yaml", ".yml"):
            continue
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            # a file that cannot be read is reported where it is needed
            with contextlib.suppress(Exception):
                ConfigParser.load_config_file(path)
        place = path.relative_to(folder).as_posix()
        messages = [str(warning.message) for warning in caught if "uplicate" in str(warning.message)]
        found += [Finding("error", place, " ".join(message.split()), "every key once") for message in messages]
    return found


def _top(id: str) -> str:
    """The top-level key of a nested id."""
    return id.replace("#", "::").split("::")[0]


def _applicable(config: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The overrides that mean something to one configuration: of its keys, or of keys that another override refers to."""
    ours = {id: value for id, value in given.items() if _top(id) in config}
    helpers = {id: value for id, value in given.items() if _top(id) not in config}
    helpers = {id: value for id, value in helpers.items() if "#" not in id and "::" not in id}
    useless = set(
        unused_keys({**config, **helpers, **{_top(id): [config[_top(id)], value] for id, value in ours.items()}})
    )
    return {**ours, **{id: value for id, value in helpers.items() if id not in useless}}


def _network(folder: Path, files: list[Path], given: dict[str, Any], place: str) -> list[Finding]:
    """Run the network once on the CPU with an input of the shape and type that metadata gives."""
    parser = read_parser(folder, files, given)
    if "network_def" not in parser:
        return [Finding("note", place, "no network_def: input and output are not verified", "network_def")]
    try:
        verify_net_in_out(
            net_id="network_def",
            meta_file=str(config_file(folder, "metadata")),
            config_file=[str(path) for path in files],
            device="cpu",
            **{"bundle_root": str(folder), **given},
        )
    except Exception as error:  # a network may fail in any way
        return [
            Finding("error", place, f"network_def: {root_message(error)}", "a network as metadata.json describes it")
        ]
    return []


def _chain(parser: Any, id: str, place: str, chains: dict[str, Any]) -> list[Finding]:
    chain = image_chain(parser, id)
    if chain is not None:
        chains[f"{place}: {id.replace('::', '#')}"] = chain
    return []


def _data(parser: Any, place: str) -> list[Finding]:
    num_classes = parser.get_parsed_content("num_classes") if "num_classes" in parser else None
    return check_data(parser, place, num_classes)


def _guarded(place: str, expected: str, check: Any) -> list[Finding]:
    """One check that fails must not hide the others."""
    try:
        return check()
    except Exception as error:  # the configuration is the user's: any error in it is a finding
        return [Finding("error", place, root_message(error), expected)]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep MONAI's log and its warnings about its own future out of the report."""
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
