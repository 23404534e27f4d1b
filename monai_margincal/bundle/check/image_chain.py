"""What preprocessing does to the image: its transforms in order, however the configuration spells them."""

from __future__ import annotations

import re
from typing import Any

from .configs import switched_off, value_at

#: name and arguments of every transform
Chain = list[tuple[str, dict[str, Any]]]

#: arguments that may have one entry per key
_PER_KEY = ("mode", "padding_mode", "dtype", "align_corners")

#: transforms that draw patches, crop away what is not used, check, or change the container: none of them changes what a voxel's
#: value means or how the voxel is oriented. The crop to the lungs is not among them: it decides what part of a scan a network
#: sees, and normalisation over a plane makes every value depend on that.
_NEUTRAL = re.compile(
    r"^(?!LungRegion).*Crop|Pad|Check|EnsureType|ToTensor|ToDevice|SqueezeDim|CopyItems|DeleteItems|SelectItems|Identity|Lambda|FgBg|ClassesToInd"
)

#: arguments that say which items a transform is for
_KEYS = ("keys", "allow_missing_keys", "label_key")


def image_chain(parser: Any, id: str, key: str = "image") -> Chain | None:
    """The deterministic transforms of the image in one preprocessing: name and arguments of each, up to the first random one.

    Args:
        parser: `monai.bundle.ConfigParser` of the configuration.
        id: id of the preprocessing, for example ``"train::preprocessing"``: a `Compose`, a list, or an expression of references
            to lists such as ``"$@train#deterministic_transforms + @train#random_transforms"``.
        key: key of the image.

    Returns:
        ``[(class name, {argument: value})]`` with references followed and expressions evaluated; None if there is no such id.

    Example:
        >>> from monai.bundle import ConfigParser
        >>> parser = ConfigParser({"low": -1, "preprocessing": {"_target_": "Compose", "transforms": [
        ...     {"_target_": "ScaleIntensityRanged", "keys": ["image"], "a_min": "$@low * 10"},
        ...     {"_target_": "RandFlipd", "keys": ["image"]}]}})
        >>> image_chain(parser, "preprocessing")
        [('ScaleIntensityRanged', {'a_min': -10})]
    """
    if id not in parser:
        return None
    parser.parse(True)
    chain: Chain = []
    for step in transform_ids(parser, id):
        config = parser[step]
        if switched_off(parser, step):
            continue
        name = str(config.get("_target_", "")).rsplit(".", 1)[-1]
        if name.startswith("Rand"):
            break
        keys = value_at(parser, f"{step}::keys")
        keys = [keys] if isinstance(keys, str) else list(keys or [key])
        if key not in keys or _NEUTRAL.search(name):
            continue
        arguments = {}
        for argument in config:
            if argument.startswith("_") or argument in _KEYS:
                continue
            value = value_at(parser, f"{step}::{argument}")
            if argument in _PER_KEY and isinstance(value, list | tuple) and len(value) == len(keys) > 1:
                value = value[keys.index(key)]
            arguments[argument] = value
        chain.append((_canonical(name), arguments))
    return chain


def transform_ids(parser: Any, id: str) -> list[str]:
    """Ids of the single transforms of a `Compose`, a list, or an expression of references to lists, in order."""
    config = parser[id]
    if isinstance(config, list):
        ids: list[str] = []
        for index, element in enumerate(config):
            child = f"{id}::{index}"
            ids += transform_ids(parser, child) if not isinstance(element, dict) or _is_compose(element) else [child]
        return ids
    if isinstance(config, dict):
        return transform_ids(parser, f"{id}::transforms") if _is_compose(config) else [id]
    if isinstance(config, str):
        references = re.findall(r"@([\w:#]+)", config)
        return [child for name in references for child in transform_ids(parser, name.replace("#", "::"))]
    return []


def _is_compose(config: dict[str, Any]) -> bool:
    return "transforms" in config and str(config.get("_target_", "")).rsplit(".", 1)[-1] == "Compose"


def _canonical(name: str) -> str:
    """``ScaleIntensityRanged``, ``...D`` and ``...Dict`` are one transform."""
    return re.sub(r"(Dict|D)$", "d", name)
