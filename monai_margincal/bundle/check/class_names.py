"""Whether metadata, network, configuration and counts agree on the classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...counting.class_counts import ClassCounts
from ...findings import Finding
from .configs import value_at
from .metadata import FILE


def check_class_names(metadata: Mapping[str, Any], parser: Any, file: str) -> list[Finding]:
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
            Finding.in_file(
                "error", FILE, f"{len(names)} names in channel_def of outputs#pred", f"{channels}, its num_channels"
            )
        )
    if names and _names_of(mask) not in ([], names):
        expected = f"{names}, as in outputs#pred"
        found.append(
            Finding.in_file("error", FILE, f"{_names_of(mask)} in channel_def of post_processed_outputs#pred", expected)
        )

    out_channels = value_at(parser, "network_def::out_channels")
    if out_channels is not None and channels is not None and out_channels != channels:
        expected = f"{channels}, num_channels of outputs#pred in metadata.json"
        found.append(Finding.in_file("error", file, f"out_channels {out_channels} of network_def", expected))
    num_classes = value_at(parser, "num_classes")
    if num_classes is not None and out_channels is not None and num_classes != out_channels:
        found.append(
            Finding.in_file("error", file, f"num_classes {num_classes}", f"{out_channels}, out_channels of network_def")
        )
    class_names = value_at(parser, "class_names")
    if class_names is not None and names and list(class_names) != names:
        found.append(
            Finding.in_file("error", file, f"class_names {list(class_names)}", f"{names}, channel_def in metadata.json")
        )
    return found + _counted_classes(parser, file, class_names or names, channels)


def _counted_classes(parser: Any, file: str, names: list[str], channels: int | None) -> list[Finding]:
    """Check the counts file that the configuration names, and the classes in it."""
    value = parser.get("class_counts")
    if not isinstance(value, str) or value.startswith(("$", "@", "%")):
        return []
    try:
        counts = ClassCounts.from_json(value)
    except (OSError, ValueError) as error:
        return [Finding.in_file("error", file, f"class_counts {value}: {error}", "the path of a counts JSON")]
    if channels is not None and len(counts.counts) != channels:
        return [
            Finding.in_file(
                "error", value, f"counts of {len(counts.counts)} classes", f"{channels}, the network's channels"
            )
        ]
    if counts.names is not None and names and list(counts.names) != list(names):
        return [
            Finding.in_file(
                "error", value, f"classes {list(counts.names)}", f"{list(names)}, the configuration's class names"
            )
        ]
    return []


def _names_of(tensor: Mapping[str, Any]) -> list[str]:
    definition = tensor.get("channel_def", {})
    return [definition[key] for key in sorted(definition, key=lambda key: (len(key), key))]
