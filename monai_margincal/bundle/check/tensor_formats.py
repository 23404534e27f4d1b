"""What the metadata say of sizes and types, against what the inference configuration feeds to the network and saves."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...findings import Finding
from .configs import switched_off, value_at
from .image_chain import transform_ids
from .metadata import FILE

#: transforms that give an image a fixed size: name -> argument
_FIXED = {"Resized": "spatial_size", "ResizeWithPadOrCropd": "spatial_size", "CenterSpatialCropd": "roi_size"}


def check_formats(metadata: Mapping[str, Any], parser: Any, place: str) -> list[Finding]:
    """Check ``spatial_shape`` of the network's input and ``dtype`` of the saved mask, as the metadata give them.

    MONAI's own check runs the network with the size that the metadata give. Most networks take any, so a wrong one goes
    unnoticed. What inference feeds to the network is the window of ``inferer#roi_size``, or the size of the last resizing or
    cropping transform.

    Args:
        metadata: content of ``metadata.json``.
        parser: `monai.bundle.ConfigParser` of the inference configuration.
        place: the configuration's file, for the findings.

    Example:
        >>> from monai.bundle import ConfigParser
        >>> metadata = {"network_data_format": {"inputs": {"image": {"spatial_shape": [229, 229]}}}}
        >>> parser = ConfigParser({"inferer": {"_target_": "SlidingWindowInferer", "roi_size": [299, 299]}})
        >>> print(check_formats(metadata, parser, "configs/inference.json")[0])
        error: configs/metadata.json: found spatial_shape [229, 229] of the network's input, expected [299, 299], ...
    """
    found = []
    shape = _first_tensor(metadata, "inputs").get("spatial_shape")
    fed, source = _fed(parser)
    if shape and fed and (len(shape) != len(fed) or not all(map(_fits, shape, fed))):
        expected = f"{fed}, {source} in {place}"
        found.append(Finding.in_file("error", FILE, f"spatial_shape {shape} of the network's input", expected))

    stated = _first_tensor(metadata, "post_processed_outputs").get("dtype")
    for name, dtype in _saved(parser) if stated else ():
        if dtype != str(stated):
            expected = f"{stated}, dtype of post_processed_outputs in metadata.json"
            found.append(Finding.in_file("error", place, f"{name} that saves {dtype}", expected))
    return found


def _first_tensor(metadata: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """The tensor that clients take: the first of its kind."""
    tensors: Mapping[str, Any] = metadata.get("network_data_format", {}).get(kind, {})
    return next(iter(tensors.values()), {})


def _fed(parser: Any) -> tuple[list[int], str]:
    """The size that reaches the network, where it is fixed."""
    for name in ("roi_size", "spatial_size"):
        size = _sizes(parser, f"inferer::{name}")
        if size:
            return size, f"{name} of inferer"
    for step in reversed(transform_ids(parser, "preprocessing") if "preprocessing" in parser else []):
        name = re.sub(r"(Dict|D)$", "d", str(parser[step].get("_target_", "")).rsplit(".", 1)[-1])
        size = _sizes(parser, f"{step}::{_FIXED[name]}") if name in _FIXED and not switched_off(parser, step) else []
        if size:
            return size, f"{_FIXED[name]} of {name}"
    return [], ""


def _sizes(parser: Any, id: str) -> list[int]:
    """A list of positive whole numbers, or nothing: -1 and 0 stand for the image's own size."""
    value = value_at(parser, id)
    if not isinstance(value, Sequence) or isinstance(value, str):
        return []
    return [int(size) for size in value] if all(isinstance(size, int) and size > 0 for size in value) else []


def _fits(stated: int | str, size: int) -> bool:
    """Whether the metadata's number or expression of n and p, such as "2**p*n", can be a size."""
    from monai.bundle.scripts import _get_fake_spatial_shape

    if stated == "*" or not isinstance(stated, str):
        return stated in ("*", size)
    powers = range(1, size.bit_length() + 1) if "p" in stated else (1,)
    factors = range(1, size + 1) if "n" in stated else (1,)
    return any(_get_fake_spatial_shape([stated], p=p, n=n) == (size,) for p in powers for n in factors)


def _saved(parser: Any) -> list[tuple[str, str]]:
    """Name and type of every transform that saves the prediction."""
    saved = []
    for step in transform_ids(parser, "postprocessing") if "postprocessing" in parser else []:
        config = parser[step]
        name = str(config.get("_target_", "")).rsplit(".", 1)[-1]
        if not re.fullmatch(r"SaveImage(d|D|Dict)", name) or switched_off(parser, step):
            continue
        keys = value_at(parser, f"{step}::keys")
        if "pred" in ([keys] if isinstance(keys, str) else keys):
            dtype = value_at(parser, f"{step}::output_dtype")
            saved.append((name, "float32" if dtype is None else _name(dtype)))
    return saved


def _name(dtype: Any) -> str:
    text = str(dtype)
    return text.removeprefix("torch.") if text.startswith("torch.") else np.dtype(dtype).name
