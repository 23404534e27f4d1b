"""Preprocessing drift: the image must reach the network in inference exactly as it did in training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...findings import Finding
from .image_chain import Chain


def check_drift(chains: Mapping[str, Chain]) -> list[Finding]:
    """Compare the chains that prepare the image in training, validation and inference, each with the first.

    Args:
        chains: where the chain is written (file and id) -> what `image_chain` made of it.

    Returns:
        an error for every transform that is missing, additional, in another place, or has another argument.

    Example:
        >>> train, inference = [("Spacingd", {"pixdim": [1, 1, 5]})], [("Spacingd", {"pixdim": [1, 1, 1]})]
        >>> print(check_drift({"train.json": train, "inference.json": inference})[0])
        error: inference.json: found Spacingd with pixdim [1, 1, 1], expected [1, 1, 5], as in train.json
    """
    found: list[Finding] = []
    if len(chains) < 2:
        return found
    (reference, expected), *others = chains.items()
    for place, chain in others:
        names, expected_names = [name for name, _ in chain], [name for name, _ in expected]
        if names != expected_names:
            found.append(
                Finding.in_file("error", place, f"image transforms {names}", f"{expected_names}, as in {reference}")
            )
            continue
        for (name, ours), (_, theirs) in zip(chain, expected, strict=True):
            for argument in sorted(set(ours) | set(theirs)):
                mine, other = (values.get(argument, "its default") for values in (ours, theirs))
                if _plain(mine) != _plain(other):
                    found.append(
                        Finding.in_file("error", place, f"{name} with {argument} {mine}", f"{other}, as in {reference}")
                    )
    return found


def _plain(value: Any) -> Any:
    return [_plain(child) for child in value] if isinstance(value, list | tuple) else value
