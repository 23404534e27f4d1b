"""A bundle's metadata taken alone: its schema, its changelog, and its versions against the installed ones."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from importlib import metadata as installed
from pathlib import Path
from typing import Any

from ...extras import install_command, require
from ...findings import Finding

#: MONAI's schema of metadata.json, published by the MONAI consortium for its model zoo (version of 2024-07-25)
SCHEMA = Path(__file__).with_name("meta_schema_20240725.json")

FILE = "configs/metadata.json"

_FRAMEWORKS = {"monai_version": "monai", "pytorch_version": "torch", "numpy_version": "numpy"}


def check_metadata(metadata: Mapping[str, Any]) -> list[Finding]:
    """Check the metadata alone: schema, changelog, versions against the installed packages.

    Args:
        metadata: content of ``metadata.json``.

    Returns:
        the findings; an installed package older than the one the bundle was made with is a warning, a missing one an error.

    Example:
        >>> print(check_metadata({"version": "1.0"})[0])
        error: configs/metadata.json: found 'schema' is a required property, expected what meta_schema_20240725 asks for
    """
    return [*_schema(metadata), *_changelog(metadata), *_versions(metadata)]


def _schema(metadata: Mapping[str, Any]) -> Iterable[Finding]:
    try:
        from jsonschema import Draft201909Validator
    except ImportError:
        yield Finding.in_file(
            "error", FILE, "no package jsonschema to check the schema with", f"it installed: {install_command('check')}"
        )
        return
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    errors = map(_deepest, Draft201909Validator(schema).iter_errors(dict(metadata)))
    for error in sorted(errors, key=lambda e: list(map(str, e.absolute_path))):
        place = "#".join(map(str, error.absolute_path))
        yield Finding.in_file(
            "error", FILE, (f"{place}: " if place else "") + error.message, f"what {SCHEMA.stem} asks for"
        )


def _deepest(error: Any) -> Any:
    """Of alternatives that all failed, the one that fitted best: it says what is wrong, not only that something is."""
    while error.context:
        error = max(error.context, key=lambda other: len(other.absolute_path))
    return error


def _changelog(metadata: Mapping[str, Any]) -> Iterable[Finding]:
    version, changelog = metadata.get("version"), metadata.get("changelog", {})
    if version is not None and version not in changelog:
        yield Finding.in_file(
            "warning", FILE, f"no entry for version {version} in the changelog", "one entry per version"
        )


def _versions(metadata: Mapping[str, Any]) -> Iterable[Finding]:
    packaging = require("packaging.version", extra="check", purpose="comparing versions")
    packages = {package: metadata[key] for key, package in _FRAMEWORKS.items() if key in metadata}
    required = metadata.get("required_packages_version", {})
    packages.update(required if isinstance(required, Mapping) else {})
    for package, stated in packages.items():
        try:
            here = installed.version(package)
        except installed.PackageNotFoundError:
            yield Finding.in_file("error", FILE, f"{package} {stated} required, none installed", f"{package} installed")
            continue
        try:
            found, expected = (packaging.Version(str(text)).release for text in (here, stated))
        except packaging.InvalidVersion as error:
            yield Finding.in_file("error", FILE, f"{package}: {error}", "a version number")
            continue
        if found != expected:
            severity = "warning" if found < expected else "info"
            yield Finding.in_file(
                severity, FILE, f"{package} {stated}, but {here} is installed", f"{package} {stated} or newer"
            )
