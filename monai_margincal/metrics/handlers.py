"""`DatasetIoU` inside MONAI's engines: a key metric, along with the per-class numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from monai.handlers import IgniteMetricHandler

from .dataset_iou import DatasetIoU

if TYPE_CHECKING:
    import torch
    from ignite.engine import Engine

#: What may be written per class -> where it comes from. The IoU is the metric itself and needs no word of its own.
PER_CLASS: dict[str, Callable[[DatasetIoU], torch.Tensor]] = {
    "iou": lambda metric: metric.per_class,
    "dice": lambda metric: metric.dice,
    "recall": lambda metric: metric.recall,
    "precision": lambda metric: metric.precision,
    "images": lambda metric: metric.image_counts,
}


class DatasetIoUHandler(IgniteMetricHandler):
    """Compute the mean IoU over the whole set during an engine's epoch, and, if asked for, numbers per class.

    ``engine.state.metrics[name]`` becomes the mean IoU (a float), usable as a key metric. With `per_class`, further
    entries follow, one per evaluated class, so that `StatsHandler`, `TensorBoardStatsHandler` and `MetricsSaver` show
    them without being told: ``<name>_<class>`` for the IoU, ``<name>_recall_<class>``, ``<name>_precision_<class>`` and
    ``<name>_images_<class>`` (the number of images that hold the class, in truth or prediction: how much data the
    other numbers rest on). Dice stands beside the IoU under a name of its own, ``val_dice`` beside ``val_iou``: its mean over
    the evaluated classes, and ``val_dice_<class>``. With `save_details`, ``engine.state.metric_details[name]`` holds the IoU of
    every image, (images, C), for `MetricsSaver`'s report per case, NaN for a class found in neither an image's truth nor its
    prediction.

    Args:
        num_classes: as in `DatasetIoU`.
        include_background: as in `DatasetIoU`.
        ignore_index: as in `DatasetIoU`.
        absent: as in `DatasetIoU`.
        class_names: names of all classes, background included, in the order of their ids; default ``class0``, ...
        per_class: which of ``"iou"``, ``"dice"``, ``"recall"``, ``"precision"``, ``"images"`` to write per class.
        output_transform: takes ``(y_pred, y)`` out of ``engine.state.output``, in a bundle
            ``"$monai.handlers.from_engine(['pred', 'label'])"``.
        save_details: whether to keep the IoU of every image.

    Raises:
        ValueError: as `DatasetIoU`; `class_names` does not have `num_classes` different entries; an unknown word in
            `per_class`; at the end of an epoch: it is the engine's key metric and undefined (``absent="exclude"`` and
            no class found).

    Example:
        >>> import torch
        >>> from ignite.engine import Engine
        >>> from monai.handlers import from_engine
        >>> from monai_margincal.metrics import DatasetIoUHandler
        >>> engine = Engine(lambda engine, batch: batch)
        >>> handler = DatasetIoUHandler(
        ...     num_classes=2, class_names=["background", "lesion"], per_class=["recall"],
        ...     output_transform=from_engine(["pred", "label"]))
        >>> handler.attach(engine, "val_mean_iou")
        >>> state = engine.run([{"pred": torch.tensor([[[0, 1, 1]]]), "label": torch.tensor([[[0, 0, 1]]])}])
        >>> state.metrics
        {'val_mean_iou': 0.5, 'val_mean_iou_recall_lesion': 1.0}
    """

    metric_fn: DatasetIoU

    def __init__(
        self,
        num_classes: int,
        include_background: bool = False,
        ignore_index: int | None = None,
        absent: str = "one",
        class_names: Sequence[str] | None = None,
        per_class: Sequence[str] = (),
        output_transform: Callable = lambda x: x,
        save_details: bool = True,
    ) -> None:
        metric = DatasetIoU(num_classes, include_background, ignore_index, absent)
        names = [f"class{k}" for k in range(num_classes)] if class_names is None else [str(n) for n in class_names]
        if len(names) != num_classes or len(set(names)) != num_classes:
            raise ValueError(
                f"class_names must be {num_classes} different names, background included, found {len(names)}: {names}."
            )
        words = (per_class,) if isinstance(per_class, str) else tuple(per_class)
        unknown = [word for word in words if word not in PER_CLASS]
        if unknown:
            raise ValueError(f"per_class may hold {tuple(PER_CLASS)}, found {unknown}.")
        self.class_names = names
        self.per_class = words
        super().__init__(metric_fn=metric, output_transform=output_transform, save_details=save_details)

    def completed(self, engine: Engine, name: str) -> None:
        """Write the mean IoU, then the numbers per class, into ``engine.state.metrics``."""
        super().completed(engine, name)
        if math.isnan(engine.state.metrics[name]) and getattr(engine.state, "key_metric_name", None) == name:
            # MONAI would keep the NaN of a first epoch as the best value forever, since nothing compares greater.
            raise ValueError(
                f"{name} is undefined: none of the evaluated classes {self.metric_fn.evaluated_classes} was found in the "
                "truth or predicted. Check the labels, or pass absent='one' to count such classes as 1."
            )
        for word in self.per_class:
            values = PER_CLASS[word](self.metric_fn)
            prefix = name if word == "iou" else f"{name}_{word}"
            if word == "dice":
                prefix = name.replace("iou", "dice") if "iou" in name else prefix
                engine.state.metrics[prefix] = values[list(self.metric_fn.evaluated_classes)].nanmean().item()
            for k in self.metric_fn.evaluated_classes:
                engine.state.metrics[f"{prefix}_{self.class_names[k]}"] = values[k].item()
