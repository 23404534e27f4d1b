"""TensorBoard shows how a hard slice of the validation is segmented, validation by validation."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from ignite.engine import Events
from monai.data import MetaTensor
from monai.transforms import Invertd, InvertibleTransform

from ..counting.as_class_counts import as_class_counts
from ..extras import require
from .picture_row import picture_row
from .rare_slice import RareSlice, plane_of, rarest_slice

if TYPE_CHECKING:
    from ignite.engine import Engine

#: in TensorBoard, under "Images"
TAG = "validation"


class ValidationPictureHandler:
    """Write a picture of one slice of the validation for TensorBoard, after every validation: image, truth, prediction.

    The slice is the axial one, of all cases of this process, in which the rare classes of the training labels are seen best
    (`rarest_slice`); it stays the same as long as the cases do, so that the pictures show what the network has learnt. Frames
    are shown whole. The image is put back onto the grid of the label, the right way up.

    Args:
        log_dir: folder of TensorBoard's files.
        transform: what the images have passed; its invertible part is undone.
        class_counts: voxels per class of the training labels, in any form that an argument ``class_counts`` may have.
        class_names: names of the classes by id.
        mean: per channel, what normalising has subtracted from values between 0 and 1.
        std: per channel, what it has divided by.

    Raises:
        OptionalImportError: on attachment: tensorboard is not installed.
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str],
        transform: InvertibleTransform,
        class_counts: Any,
        class_names: Sequence[str],
        mean: Sequence[float] = (0.0,),
        std: Sequence[float] = (1.0,),
    ) -> None:
        self.log_dir = Path(log_dir)
        self.undo = Invertd("image", transform, orig_keys="image", nearest_interp=False)
        self.class_counts = class_counts
        self.class_names = list(class_names)
        self.mean, self.std = (torch.tensor(values)[:, None, None] for values in (mean, std))
        #: place in the validation -> its best slice
        self._slices: dict[int, RareSlice] = {}
        self._place = 0
        self._picture: Any = None
        self._writer: Any = None

    def attach(self, engine: Engine) -> None:
        """Register with an evaluator whose output is a list of cases, with the prediction on the grid of the label."""
        require("tensorboard", extra="bundle", purpose="pictures for TensorBoard")
        engine.add_event_handler(Events.EPOCH_STARTED, self._begin)
        engine.add_event_handler(Events.ITERATION_COMPLETED, self._look)
        engine.add_event_handler(Events.EPOCH_COMPLETED, self._write)

    def _begin(self, engine: Engine) -> None:
        self._place, self._picture = 0, None

    def _look(self, engine: Engine) -> None:
        for item in engine.state.output:  # type: ignore[union-attr]
            place, self._place = self._place, self._place + 1
            if place not in self._slices:
                voxels = as_class_counts(self.class_counts).counts.tolist()
                self._slices[place] = rarest_slice(item["label"], _affine(item["label"]), voxels)
            if max(self._slices, key=lambda known: self._slices[known].score) == place:
                self._picture = self._drawn(item, self._slices[place])

    def _drawn(self, item: Mapping[str, Any], chosen: RareSlice) -> Any:
        affine = _affine(item["label"])
        image = self.undo({"image": item["image"]})["image"]
        plane = plane_of(image.as_tensor(), affine, chosen).cpu() * self.std + self.mean
        truth, prediction = (
            plane_of(item[key].as_tensor(), affine, chosen)[0].cpu().numpy() for key in ("label", "pred")
        )
        name = Path(str(item["label"].meta.get("filename_or_obj", ""))).name
        title = name if chosen.axis is None else f"{name}, slice {chosen.at}"
        return picture_row(plane.numpy(), truth, prediction, class_names=self.class_names, title=title)

    def _write(self, engine: Engine) -> None:
        if self._picture is None:
            return
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(self.log_dir))
        self._writer.add_image(TAG, self._picture, engine.state.epoch, dataformats="HWC")
        self._writer.flush()


def _affine(label: torch.Tensor) -> torch.Tensor:
    return label.affine if isinstance(label, MetaTensor) else torch.eye(4)
