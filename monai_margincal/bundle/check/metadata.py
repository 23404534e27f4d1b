"""Metadata of a bundle: its schema, the installed versions, and that it says the same as the configuration."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from importlib import metadata as installed
from pathlib import Path
from typing import Any

from ...extras import install_command, require
from .finding import Finding

#: MONAI's schema of metadata.json, published by the MONAI consortium for its model zoo (version of 2024-07-25)
SCHEMA = Path(__file__).with_name("meta_schema_20240725.json")

FILE = "configs/metadata.json"

_FRAMEWORKS = {"monai_version": "monai", "pytorch_version": "torch", "numpy_version": "numpy"}


def check_metadata(metadata: Mapping[str, Any]) -> list[Finding]:
    """Check the metadata alone: schema, changelog, versions against the installed packages.

    Args:
        metadata: content of ``metadata.json``.

    Returns:
        the findings; a package that is older here than the one the bundle was made with is a warning, a missing one an error.

    Example:
        >>> [finding.found for finding in check_metadata({"version": "1.0"})][:1]
        ["'schema' is a required property"]
    """
    return [*_schema(metadata), *_changelog(metadata), *_versions(metadata)]


def _schema(metadata: Mapping[str, Any]) -> Iterable[Finding]:
    try:
        from jsonschema import Draft201909Validator
    except ImportError:
        yield Finding(
            "error", FILE, "no package jsonschema to check the schema with", f"it installed: {install_command('check')}"
        )
        return
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    errors = map(_deepest, Draft201909Validator(schema).iter_errors(dict(metadata)))
    for error in sorted(errors, key=lambda e: list(map(str, e.absolute_path))):
        place = "#".join(map(str, error.absolute_path))
        yield Finding("error", FILE, (f"{place}: " if place else "") + error.message, f"what {SCHEMA.stem} asks for")


def _deepest(error: Any) -> Any:
    """Of the alternatives that all failed, the one that fitted furthest: it says what is wrong and not only that it is."""
    while error.context:
        error = max(error.context, key=lambda other: len(other.absolute_path))
    return error


def _changelog(metadata: Mapping[str, Any]) -> Iterable[Finding]:
    version, changelog = metadata.get("version"), metadata.get("changelog", {})
    if version is not None and version not in changelog:
        yield Finding("warning", FILE, f"no entry for version {version} in the changelog", "one entry per version")


def _versions(metadata: Mapping[str, Any]) -> Iterable[Finding]:
    packaging = require("packaging.version", extra="check", purpose="comparing versions")
    packages = {package: metadata[key] for key, package in _FRAMEWORKS.items() if key in metadata}
    required = metadata.get("required_packages_version", {})
    packages.update(required if isinstance(required, Mapping) else {})
    for package, stated in packages.items():
        try:
            here = installed.version(package)
        except installed.PackageNotFoundError:
            yield Finding("error", FILE, f"{package} {stated} required, none installed", f"{package} installed")
            continue
        try:
            found, expected = (packaging.Version(str(text)).release for text in (here, stated))
        except packaging.InvalidVersion as error:
            yield Finding("error", FILE, f"{package}: {error}", "a version number")
            continue
        if found != expected:
            severity = "warning" if found < expected else "note"
            yield Finding(
                severity, FILE, f"{package} {stated}, but {here} is installed", f"{package} {stated} or newer"
            )


def check_names(metadata: Mapping[str, Any], parser: Any, file: str) -> list[Finding]:
    """Check that metadata, network and class names of one configuration agree.

    Compared are the number of output channels of ``network_def``, ``num_channels`` and ``channel_def`` of the network's outputs
    and of the saved mask, the configuration's ``class_names`` and ``num_classes``, and the classes of a counts file.

    Args:
        metadata: content of ``metadata.json``.
        parser: `monai.bundle.ConfigParser` of the configuration.
        file: the configuration's file, for the findings.
    """
    formats = metadata.get("network_data_format", {})
    output = formats.get("outputs", {}).get("pred", {})
    mask = formats.get("post_processed_outputs", {}).get("pred", {})
    found: list[Finding] = []

    names = _names_of(output)
    channels = output.get("num_channels")
    if names and channels != len(names):
        found.append(
            Finding(
                "error", FILE, f"{len(names)} names in channel_def of outputs#pred", f"{channels}, its num_channels"
            )
        )
    if names and _names_of(mask) not in ([], names):
        expected = f"{names}, as in outputs#pred"
        found.append(
            Finding("error", FILE, f"{_names_of(mask)} in channel_def of post_processed_outputs#pred", expected)
        )

    out_channels = _value(parser, "network_def::out_channels")
    if out_channels is not None and channels is not None and out_channels != channels:
        expected = f"{channels}, num_channels of outputs#pred in metadata.json"
        found.append(Finding("error", file, f"out_channels {out_channels} of network_def", expected))
    num_classes = _value(parser, "num_classes")
    if num_classes is not None and out_channels is not None and num_classes != out_channels:
        found.append(
            Finding("error", file, f"num_classes {num_classes}", f"{out_channels}, out_channels of network_def")
        )
    class_names = _value(parser, "class_names")
    if class_names is not None and names and list(class_names) != names:
        found.append(
            Finding("error", file, f"class_names {list(class_names)}", f"{names}, channel_def in metadata.json")
        )
    return found + _counted_classes(parser, file, class_names or names, channels)


def _counted_classes(parser: Any, file: str, names: list[str], channels: int | None) -> list[Finding]:
    """A counts file that the configuration names, and the classes in it."""
    from ...counting.class_counts import ClassCounts

    value = parser.get("class_counts")
    if not isinstance(value, str) or value.startswith(("$", "@", "%")):
        return []
    try:
        counts = ClassCounts.from_json(value)
    except (OSError, ValueError) as error:
        return [Finding("error", file, f"class_counts {value}: {error}", "the path of a counts JSON")]
    if channels is not None and len(counts.counts) != channels:
        return [
            Finding("error", value, f"counts of {len(counts.counts)} classes", f"{channels}, the network's channels")
        ]
    if counts.names is not None and names and list(counts.names) != list(names):
        return [
            Finding("error", value, f"classes {list(counts.names)}", f"{list(names)}, the configuration's class names")
        ]
    return []


def _names_of(tensor: Mapping[str, Any]) -> list[str]:
    definition = tensor.get("channel_def", {})
    return [definition[key] for key in sorted(definition, key=lambda key: (len(key), key))]


def _value(parser: Any, key: str) -> Any:
    """The value of a plain item, references followed; None if there is none."""
    return parser.get_parsed_content(key) if key in parser else None
