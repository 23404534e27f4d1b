"""Intersection over union over a whole data set: the quantity that margin calibration is about."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from monai.metrics import CumulativeIterationMetric
from monai.utils import evenly_divisible_all_gather

from .confusion import class_dice, class_iou, class_precision, class_recall, confusion_matrix

#: What to do with a class seen nowhere -> the value of its 0/0.
ABSENT = {"one": 1.0, "exclude": math.nan}


class DatasetIoU(CumulativeIterationMetric):
    """Mean IoU from one confusion matrix over all images, not from an average of per-image scores.

    ``IoU_k = M_kk / (row k + column k - M_kk)`` with ``M`` summed over the whole set; the mean runs over the foreground
    classes, as in the paper's tables, or over all with ``include_background=True``. With two classes it is the IoU of
    class 1. Small and large images count by their voxels, and an image without a class does no harm to that class.

    A class found in neither truth nor prediction over the whole set is 0/0. ``absent="one"`` gives it 1, as the paper
    does; ``absent="exclude"`` gives it NaN and leaves it out of the mean (NaN if no class remains). So, for one class:

    * neither in the truth nor predicted: 1, or NaN with ``absent="exclude"``;
    * not in the truth, but predicted: 0;
    * in the truth, never predicted: 0;
    * in the truth and predicted: its IoU.

    `recall` (not in the truth) and `precision` (never predicted) treat their own 0/0 in the same way. `absent_classes`
    and `image_counts` tell how much data each number rests on.

    Called with ``(y_pred, y)``: batches (B, 1, ...) of class indices or (B, C, ...) one-hot, or lists of channel-first
    images as `decollate_batch` makes them; MetaTensors too; prediction and truth may differ in form. Returns the batch's
    own confusion matrices, int64 (B, C, C). Counts are int64 and exact.

    Kept between calls: one C x C matrix, C image counts, and C float64 per image (`get_buffer`). Ranks exchange these,
    never labels; the number of batches may differ between ranks, down to none. As with every MONAI metric, all ranks
    must ask for results together, and a sampler that repeats images to even out the ranks counts them twice
    (``DistributedSampler(even_divisible=False)`` does not).

    Args:
        num_classes: number of classes C, background included.
        include_background: whether class 0 takes part in the mean. All per-class results have C entries either way,
            at the place of their id.
        ignore_index: true class whose voxels are not counted, inside or outside 0..C-1. A class inside takes no part
            in the mean, and its own results are NaN.
        absent: ``"one"`` or ``"exclude"``, see above.

    Raises:
        TypeError: on call: an argument is not a tensor.
        ValueError: `num_classes` below 2 or unknown `absent`; on call: lists of different lengths, different shapes,
            class ids outside 0..C-1, logits or probabilities instead of indices or one-hot (see `confusion_matrix`);
            when a result is asked for: nothing has been counted yet.

    Source: Li, Yu, Zhang, "Distribution-aware Margin Calibration for Medical Image Segmentation" (arXiv:2011.01462),
    section on the IoU and its tables; extended: IJCV 130(1):95-110, 2022 (arXiv:2112.11554).

    Example:
        >>> import torch
        >>> from monai_margincal.metrics import DatasetIoU
        >>> metric = DatasetIoU(num_classes=3)
        >>> truth = torch.tensor([[[0, 0, 1, 1, 2, 2]]])
        >>> _ = metric(torch.tensor([[[0, 0, 1, 1, 1, 2]]]), truth)
        >>> metric.aggregate()  # (2/3 + 1/2) / 2
        tensor(0.5833, dtype=torch.float64)
        >>> metric.per_class
        tensor([1.0000, 0.6667, 0.5000], dtype=torch.float64)
        >>> metric.recall
        tensor([1.0000, 1.0000, 0.5000], dtype=torch.float64)
        >>> metric.absent_classes
        ()
    """

    def __init__(
        self,
        num_classes: int,
        include_background: bool = False,
        ignore_index: int | None = None,
        absent: str = "one",
    ) -> None:
        if isinstance(num_classes, bool) or int(num_classes) != num_classes or num_classes < 2:
            raise ValueError(
                f"num_classes must be a whole number of at least 2 (background included), found {num_classes!r}."
            )
        if absent not in ABSENT:
            raise ValueError(f"absent must be one of {tuple(ABSENT)}, found {absent!r}.")
        self.num_classes = int(num_classes)
        self.include_background = include_background
        self.ignore_index = ignore_index
        self.absent = absent
        if not self.evaluated_classes:
            raise ValueError(
                f"no class is left to evaluate: num_classes={num_classes} with include_background={include_background} "
                f"and ignore_index={ignore_index}."
            )
        super().__init__()  # calls reset

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(num_classes={self.num_classes}, include_background={self.include_background}, "
            f"ignore_index={self.ignore_index}, absent={self.absent!r})"
        )

    def reset(self) -> None:
        """Forget everything counted so far."""
        super().reset()
        self._buffers = [[]]  # never None: a rank without images must take part in the exchange all the same
        self._matrix = torch.zeros(self.num_classes, self.num_classes, dtype=torch.int64, device="cpu")
        self._image_counts = torch.zeros(self.num_classes, dtype=torch.int64, device="cpu")
        self._synced_matrix = self._matrix
        self._synced_image_counts = self._image_counts
        self._synced_iou = self._no_rows()

    @property
    def evaluated_classes(self) -> tuple[int, ...]:
        """Ids of the classes that take part in the mean."""
        first = 0 if self.include_background else 1
        return tuple(k for k in range(first, self.num_classes) if k != self.ignore_index)

    def aggregate(self) -> torch.Tensor:
        """Return the mean IoU of the evaluated classes over everything counted on all ranks, a float64 scalar tensor."""
        return self.per_class[list(self.evaluated_classes)].nanmean()

    @property
    def confusion_matrix(self) -> torch.Tensor:
        """Voxels by (true class, predicted class) over all ranks, int64 (C, C)."""
        self._require_data()
        return self._synced_matrix.clone()

    @property
    def per_class(self) -> torch.Tensor:
        """IoU of every class, float64 (C,), at the place of its id."""
        return self._without_ignored(class_iou(self.confusion_matrix, ABSENT[self.absent]))

    @property
    def dice(self) -> torch.Tensor:
        """Dice coefficient of every class, float64 (C,), at the place of its id."""
        return self._without_ignored(class_dice(self.confusion_matrix, ABSENT[self.absent]))

    @property
    def recall(self) -> torch.Tensor:
        """Correct over true voxels of every class, float64 (C,): the "pixel accuracy" of the paper's tables."""
        return self._without_ignored(class_recall(self.confusion_matrix, ABSENT[self.absent]))

    @property
    def precision(self) -> torch.Tensor:
        """Correct over predicted voxels of every class, float64 (C,)."""
        return self._without_ignored(class_precision(self.confusion_matrix, ABSENT[self.absent]))

    @property
    def image_counts(self) -> torch.Tensor:
        """Number of images in which a class was found, in truth or prediction, int64 (C,)."""
        self._require_data()
        return self._synced_image_counts.clone()

    @property
    def absent_classes(self) -> tuple[int, ...]:
        """Ids of the evaluated classes found in neither truth nor prediction: their IoU is 0/0."""
        counts = self.image_counts
        return tuple(k for k in self.evaluated_classes if counts[k] == 0)

    def extend(self, *data: Any) -> None:
        """Add confusion matrices (B, C, C), one per image, as returned by a call."""
        (matrices,) = data
        matrices = torch.as_tensor(matrices, device="cpu")
        expected = (self.num_classes, self.num_classes)
        if matrices.dim() != 3 or tuple(matrices.shape[1:]) != expected or matrices.is_floating_point():
            raise ValueError(
                f"expected whole-number confusion matrices of shape (B, {expected[0]}, {expected[1]}), "
                f"found {matrices.dtype} of shape {tuple(matrices.shape)}."
            )
        if not len(matrices):
            return
        matrices = matrices.to(torch.int64)
        iou = class_iou(matrices)
        self._image_counts += iou.isfinite().sum(0)
        self._matrix += matrices.sum(0)
        # Reports average the columns they get: what takes no part in the mean is NaN there, and ids stay in place.
        outside = [k for k in range(self.num_classes) if k not in self.evaluated_classes]
        iou[:, outside] = torch.nan
        super().extend(iou)

    def append(self, *data: Any) -> None:
        """Add the confusion matrix (C, C) of one image."""
        (matrix,) = data
        self.extend(torch.as_tensor(matrix, device="cpu")[None])

    def get_buffer(self) -> torch.Tensor:
        """Return the IoU of every image, float64 (images, C), over all ranks, for per-case reports.

        NaN marks a class found in neither truth nor prediction of that image, and classes outside the mean.
        """
        self._sync()
        return self._synced_iou.clone()

    def _compute_tensor(self, y_pred: torch.Tensor, y: torch.Tensor | None = None, **kwargs: Any) -> torch.Tensor:
        if not isinstance(y, torch.Tensor):
            raise TypeError(f"{type(self).__name__} needs the ground truth y as a tensor, found {type(y).__name__}.")
        if y_pred.dim() < 2 or y.dim() < 2 or len(y_pred) != len(y):
            raise ValueError(
                f"y_pred and y must be batches (B, channels, ...) of the same length, found shapes {tuple(y_pred.shape)} "
                f"and {tuple(y.shape)}."
            )
        return self._matrices(y_pred, y)

    def _compute_list(self, y_pred: Any, y: Any = None, **kwargs: Any) -> torch.Tensor:
        # MONAI's own pairing stops silently at the shorter of the two.
        if not all(isinstance(value, (Sequence, torch.Tensor)) for value in (y_pred, y)) or len(y_pred) != len(y):
            found = [
                f"{type(v).__name__} of {len(v)}" if isinstance(v, (Sequence, torch.Tensor)) else type(v).__name__
                for v in (y_pred, y)
            ]
            raise ValueError(f"y_pred and y must hold the same number of images, found {found[0]} and {found[1]}.")
        return self._matrices(y_pred, y)

    def _matrices(self, y_pred: Iterable[torch.Tensor], y: Iterable[torch.Tensor]) -> torch.Tensor:
        pairs = zip(y_pred, y, strict=True)
        matrices = [confusion_matrix(p, t, self.num_classes, self.ignore_index) for p, t in pairs]
        return torch.stack(matrices) if matrices else self._matrix.new_zeros(0, *self._matrix.shape)

    def _sync(self) -> None:
        if self._synced:
            return
        (rows,) = self._buffers if self._buffers is not None else ([],)
        own_rows = torch.stack(rows) if rows else self._no_rows()
        own_totals = torch.cat([self._matrix, self._image_counts[None]])[None]
        totals = evenly_divisible_all_gather(own_totals, concat=True).sum(0).cpu()
        self._synced_matrix, self._synced_image_counts = totals[:-1], totals[-1]
        self._synced_iou = evenly_divisible_all_gather(own_rows, concat=True).cpu()
        self._synced_tensors = [self._synced_iou]
        self._synced = True

    def _no_rows(self) -> torch.Tensor:
        return torch.empty(0, self.num_classes, dtype=torch.float64, device="cpu")

    def _require_data(self) -> None:
        if len(self) == 0:  # over all ranks
            raise ValueError(f"{self!r} has counted no image: call it with (y_pred, y) before asking for a result.")

    def _without_ignored(self, values: torch.Tensor) -> torch.Tensor:
        if self.ignore_index is not None and 0 <= self.ignore_index < self.num_classes:
            values[self.ignore_index] = torch.nan
        return values
