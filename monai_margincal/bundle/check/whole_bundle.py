"""All static checks of a MONAI bundle, without a GPU or internet access."""

from __future__ import annotations

import contextlib
import logging
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from monai.bundle import ConfigParser

from ...errors import root_message
from ...findings import Finding, most_severe_first
from ..keys import describe_unknown, unused_keys
from .chosen_decision import check_decision
from .class_names import check_class_names
from .components import check_components
from .configs import Workflow, config_file, repeated_keys, workflows
from .data_lists import DATA_LISTS, check_data
from .drift import check_drift
from .image_chain import Chain, image_chain
from .metadata import FILE as METADATA
from .metadata import check_metadata
from .network import check_network
from .overrides import applicable, reaches, top_level
from .properties import check_properties
from .tensor_formats import check_formats
from .windows import Size, check_windows, patch_size, window_size

#: what MONAI's model zoo asks of a bundle besides its configurations, and how much it matters
_FILES = {"LICENSE": "error", "docs/README.md": "warning", "configs/logging.conf": "info"}

#: where the image is preprocessed
_CHAINS = {"train": ("train::preprocessing", "validate::preprocessing"), "infer": ("preprocessing",)}

#: what presents it to the network
_INFERERS = {"train": "validate::inferer", "infer": "inferer"}

#: a check: what it expects of a configuration, for the finding if it fails, and the check itself
_Check = tuple[str, Callable[[], Iterable[Finding]]]


def check_bundle(
    root: str | os.PathLike[str],
    overrides: Mapping[str, Any] | None = None,
    dataset_dir: str | os.PathLike[str] | None = None,
) -> list[Finding]:
    """Check a bundle's metadata, configurations, network and preprocessing, and its data if they are given.

    Checked are: the files of a bundle; ``metadata.json`` against MONAI's schema, which comes with this package, and against
    the installed versions; names and numbers of classes in metadata, network, configuration and counts; the properties that
    MONAI and its clients need, for train, train + evaluate and inference; top-level keys that nothing refers to; the network's
    input and output, by running it once on the CPU; that the image is preprocessed alike in training, validation and inference;
    that the windows of validation and inference, where they are given, have the size of the patches of training;
    that every component can be imported and takes its arguments; that the metadata's sizes and types are those of inference;
    that the file of the decision is there and holds offsets of the configured classes.
    With `dataset_dir`, or an override that the data lists depend on, also: that there are data, that images and labels pair up
    and lie on one grid, and that labels hold only the declared classes.

    Args:
        root: the bundle's folder, the one that holds ``configs``; any MONAI bundle with JSON or YAML configurations.
        overrides: ``id`` -> value as on MONAI's command line, for example ``{"network_def#norm": "batch"}``.
        dataset_dir: takes the place of the configuration's ``dataset_dir``.

    Returns:
        the findings, most severe first; none for a faultless bundle.

    Raises:
        FileNotFoundError: ``root`` is not a folder with ``configs/metadata.json``.

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
        found = _missing_files(folder)
        try:
            metadata = ConfigParser.load_config_file(metadata_file)
        except ValueError as error:
            found.append(Finding.in_file("error", METADATA, str(error), "JSON without a key twice"))
        else:
            found += check_metadata(metadata)
            found += repeated_keys(folder)
            found += _check_workflows(folder, metadata, given, dataset_dir is not None)
    # the training configurations share most of what can be wrong with them
    return most_severe_first(dict.fromkeys(found))


def _missing_files(folder: Path) -> list[Finding]:
    found = [
        Finding.in_file(severity, name, "no file", "one")
        for name, severity in _FILES.items()
        if not (folder / name).is_file()
    ]
    if config_file(folder, "inference") is None:
        found.append(Finding.in_file("warning", "configs/inference.json", "no file", "one: clients read it"))
    return found


def _check_workflows(
    folder: Path, metadata: Mapping[str, Any], given: Mapping[str, Any], with_data: bool
) -> list[Finding]:
    found: list[Finding] = []
    chains: dict[str, Chain] = {}
    sizes: dict[str, list[Size]] = {"patches": [], "windows": []}
    unknown = {top_level(id) for id in given}
    known: dict[str, Any] = {}
    for workflow in workflows(folder):
        try:
            config = workflow.parser()[""]
            for key in unused_keys(config):
                message = describe_unknown([key], config)
                found.append(Finding.in_file("warning", workflow.place, message, "a key that something refers to"))
            workflow = replace(workflow, overrides=applicable(config, given))
            unknown -= {top_level(id) for id in workflow.overrides}
            known = {**config, **known}
            workflow.parser().parse(True)  # reads the files that it refers to
        except Exception as error:  # YAML and JSON readers, merging and overriding each have errors of their own
            message = root_message(error)
            found.append(Finding.in_file("error", workflow.place, message, "a configuration that can be read"))
            continue
        checks = _checks_of_any(workflow)
        if len(workflow.files) == 1:  # files merged over it do not change the rest
            checks += _checks_of_a_file(workflow, metadata, chains)
            checks.append(("readable sizes", partial(_keep_sizes, workflow, sizes)))
            checks.append(("readable data", partial(_check_data, workflow, config, with_data)))
        for expected, check in checks:
            found += _guarded(workflow.place, expected, check)
    found += check_drift(chains)
    found += check_windows(**sizes)
    if unknown:
        message = describe_unknown(sorted(unknown), {**known, **dict.fromkeys(unknown)})
        found.append(Finding.in_file("error", "the overrides", message, "keys of the bundle"))
    return found


def _checks_of_any(workflow: Workflow) -> list[_Check]:
    return [
        ("readable properties", lambda: check_properties(workflow)),
        ("readable components", lambda: check_components(workflow.parser(), workflow.place)),
    ]


def _checks_of_a_file(workflow: Workflow, metadata: Mapping[str, Any], chains: dict[str, Chain]) -> list[_Check]:
    """The checks of one configuration alone; the image's preprocessing is put into ``chains``, for comparison."""
    parser, place = workflow.parser(), workflow.place
    checks: list[_Check] = [("consistent names", lambda: check_class_names(metadata, parser, place))]
    if workflow.kind == "infer":
        checks.append(("readable formats", lambda: check_formats(metadata, parser, place)))
        checks.append(("offsets of the configured classes", lambda: check_decision(parser, place)))
    checks.append(("a network that can be run", lambda: check_network(workflow)))
    for id in _CHAINS[workflow.kind]:
        checks.append(("readable preprocessing", partial(_keep_chain, parser, id, place, chains=chains)))
    return checks


def _keep_chain(parser: ConfigParser, id: str, place: str, chains: dict[str, Chain]) -> Iterable[Finding]:
    chain = image_chain(parser, id)
    if chain is not None:
        chains[f"{place}: {id.replace('::', '#')}"] = chain
    return ()


def _keep_sizes(workflow: Workflow, sizes: dict[str, list[Size]]) -> Iterable[Finding]:
    parser = workflow.parser()
    parser.parse(True)
    if workflow.kind == "train":
        sizes["patches"] += patch_size(parser, workflow.place)
    sizes["windows"] += window_size(parser, _INFERERS[workflow.kind], workflow.place)
    return ()


def _check_data(workflow: Workflow, config: Mapping[str, Any], always: bool) -> Iterable[Finding]:
    """Reading all labels takes time, so they are read only where data are given."""
    if not (always or reaches(config, workflow.overrides, DATA_LISTS)):
        return ()
    return check_data(workflow.parser(), workflow.place)


def _guarded(place: str, expected: str, check: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """One check that fails must not hide the others."""
    try:
        return list(check())
    except Exception as error:  # the configuration is the user's: any error in it is a finding
        return [Finding.in_file("error", place, root_message(error), expected)]


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
