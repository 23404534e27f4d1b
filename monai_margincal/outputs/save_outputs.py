"""The outputs of a run as transforms: made from the logits and saved, each in its place in a chain that others can read."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Literal

import torch
from monai.config import KeysCollection
from monai.data import MetaTensor
from monai.transforms import MapTransform, SaveImaged

from .outputs import Outputs


class MapsFromLogitsd(MapTransform):
    """Make from the logits the maps that outputs need, each under the name of its kind, before the classes are decided.

    A map lies on the grid of the logits, so it has to be among the keys of ``Invertd`` to be saved on the scan's own.

    Args:
        keys: key of the logits, (K, X, Y, Z).
        outputs: the outputs of the run.
        allow_missing_keys: skip a key that is absent.

    Example:
        >>> data = MapsFromLogitsd("pred", Outputs("probability", "eval"))({"pred": torch.zeros(2, 1, 1, 1)})
        >>> data["probability"].item()
        0.5
    """

    def __init__(self, keys: KeysCollection, outputs: Outputs, allow_missing_keys: bool = False) -> None:
        super().__init__(keys, allow_missing_keys)
        self.outputs = outputs

    def __call__(self, data: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
        """Return a shallow copy of ``data`` with the maps in it, (1, X, Y, Z); a MetaTensor keeps its place in space."""
        items = dict(data)
        for key in self.key_iterator(items):
            logits = items[key]
            for output in self.outputs.chosen:
                if output.needs_logits:
                    made = output.from_logits(logits.as_tensor() if isinstance(logits, MetaTensor) else logits)
                    items[output.kind] = _placed(made, logits)
        return items


def _placed(made: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return MetaTensor(made).copy_meta_from(like) if isinstance(like, MetaTensor) else made


class SaveImageOutputsd(MapTransform):
    """Save those outputs of a run that belong on one grid: the network's, or the scan's own after ``Invertd``.

    Programs that save results themselves drop this transform from a bundle's chain as they do MONAI's own: some recognise it by
    its type, as a :class:`monai.transforms.SaveImaged`, some by "SaveImage" in its name.

    Args:
        keys: key of the class map, (1, X, Y, Z) of an integral dtype, a MetaTensor.
        outputs: the outputs of the run.
        grid: the grid on which the class map lies at this point: "network" or "scan".
        allow_missing_keys: skip a key that is absent.

    Raises:
        ValueError: ``grid`` is neither; on call: an output does not fit the scan.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> folder = tempfile.mkdtemp()
        >>> mask = MetaTensor(torch.ones(1, 4, 4, 2, dtype=torch.uint8), meta={"filename_or_obj": "ct.nii.gz"})
        >>> _ = SaveImageOutputsd("pred", Outputs("mask,volumes", folder))({"pred": mask})
        >>> sorted(path.name for path in Path(folder).iterdir())
        ['ct_mask.nii.gz', 'volumes.csv']
    """

    def __init__(
        self,
        keys: KeysCollection,
        outputs: Outputs,
        grid: Literal["network", "scan"] = "scan",
        allow_missing_keys: bool = False,
    ) -> None:
        super().__init__(keys, allow_missing_keys)
        if grid not in ("network", "scan"):
            raise ValueError(f"grid: found {grid!r}, expected 'network' or 'scan'")
        self.outputs = outputs
        self.grid = grid

    def __call__(self, data: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
        """Save what belongs here; pass ``data`` through."""
        items = dict(data)
        for key in self.key_iterator(items):
            for output in self.outputs.chosen:
                if output.grid == self.grid:
                    if output.needs_logits:
                        _check_shape(output.kind, items[output.kind].shape, items[key].shape)
                    self.outputs.save(output, items, key)
        return items


def _check_shape(kind: str, found: torch.Size, expected: torch.Size) -> None:
    if found[1:] != expected[1:]:
        raise ValueError(
            f"the map of the output {kind!r}: found the shape {tuple(found)}, expected {tuple(expected)}, that of the class "
            f"map: is {kind!r} among the keys of Invertd?"
        )


SaveImaged.register(SaveImageOutputsd)
