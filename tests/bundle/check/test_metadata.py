"""Metadata by itself: the published schema, the changelog, the installed versions."""

from __future__ import annotations

import numpy
import pytest
from shared import GOLDEN

from monai_margincal.bundle.check.metadata import SCHEMA, check_metadata


def found(metadata):
    return [str(finding).split(": found ", 1)[1] for finding in check_metadata(metadata)]


def test_the_schema_that_ships_is_the_published_one():
    assert SCHEMA.read_bytes() == (GOLDEN / "meta_schema_20240725.json").read_bytes()


def test_of_several_alternatives_the_nearest_is_named():
    assert "changelog: 3 is not of type 'object', expected what meta_schema_20240725 asks for" in found(
        {"changelog": 3}
    )


def test_every_version_has_its_entry():
    message = "no entry for version 2.0 in the changelog, expected one entry per version"
    assert message in found({"version": "2.0", "changelog": {"1.0": "first"}})
    assert message not in found({"version": "2.0", "changelog": {"2.0": "second"}})


@pytest.mark.parametrize(
    ("package", "version", "severity", "message"),
    [
        ("numpy", "1.0", "info", "numpy 1.0, but "),
        ("numpy", "99.0", "warning", "numpy 99.0, but "),
        ("numpy", "new", "error", "numpy: Invalid version: 'new', expected a version number"),
        ("no-such-package", "1.0", "error", "no-such-package 1.0 required, none installed"),
    ],
)
def test_versions(package, version, severity, message):
    metadata = {"required_packages_version": {package: version}}
    said = check_metadata(metadata)
    (finding,) = [finding for finding in said if finding.message.startswith(f"found {message}")]
    assert finding.severity == severity


def test_the_installed_version_is_right():
    assert not any("numpy" in text for text in found({"numpy_version": numpy.__version__}))
