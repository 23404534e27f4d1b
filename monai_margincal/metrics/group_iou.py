"""The scores of an evaluation by group, such as the sequence of a frame, and pooled over all: a table and a CSV file."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from ignite.engine import Events

from ..files import expect_writable, write_text
from ..processes import gather, own_rank
from .confusion import class_dice, class_iou, class_recall, confusion_matrix
from .dataset_iou import ABSENT

if TYPE_CHECKING:
    from ignite.engine import Engine

#: the row of all images together
ALL = "all"


class GroupIoUHandler:
    """Write IoU and Dice of every class, their means and the pixel accuracy of every group of images, and of all of them.

    Each row of the table comes from one confusion matrix over the images of its group; the last row, "all", over all images, as
    `DatasetIoU` computes it. Columns: group, images, mean IoU, mean Dice and pixel accuracy (the mean recall, as in the paper's
    tables) of the foreground classes, then IoU and Dice of every class. The table goes to the engine's log and to a CSV file.

    Args:
        num_classes: number of classes, background included; class 0 takes no part in the means.
        file: the CSV file; an existing one is replaced.
        class_names: names of all classes by id; default ``class0``, ...
        ignore_index: true class whose voxels are not counted.
        absent: what a class gets that is in neither truth nor prediction of a group, as in `DatasetIoU`: "one" gives 1, "exclude"
            leaves it out of the mean and its cell empty.
        keys: keys of an item of the batch that may hold its group; the first that is there. Without one, an image is in the row
            "all" only.
        pred_key: key of the predicted classes, channel first.
        label_key: key of the true classes.

    Raises:
        ValueError: on attachment: ``file`` cannot be written; during the run: see `confusion_matrix`.

    Example:
        >>> import tempfile
        >>> from ignite.engine import Engine
        >>> file = Path(tempfile.mkdtemp(), "groups.csv")
        >>> engine = Engine(lambda engine, batch: batch)
        >>> GroupIoUHandler(2, file, ["background", "tool"]).attach(engine)
        >>> truth = torch.tensor([[0, 1, 1, 1]])
        >>> item = {"pred": torch.tensor([[0, 0, 1, 1]]), "label": truth, "sequence": "1"}
        >>> state = engine.run([[item, {**item, "pred": truth, "sequence": "2"}]])
        >>> print(file.read_text().strip())
        sequence,images,mean_iou,mean_dice,pixel_accuracy,iou_background,iou_tool,dice_background,dice_tool
        1,1,0.666667,0.8,0.666667,0.5,0.666667,0.666667,0.8
        2,1,1.0,1.0,1.0,1.0,1.0,1.0,1.0
        all,2,0.833333,0.909091,0.833333,0.666667,0.833333,0.8,0.909091
    """

    def __init__(
        self,
        num_classes: int,
        file: str | os.PathLike[str],
        class_names: Sequence[str] | None = None,
        ignore_index: int | None = None,
        absent: str = "one",
        keys: Sequence[str] = ("sequence", "group"),
        pred_key: str = "pred",
        label_key: str = "label",
    ) -> None:
        if absent not in ABSENT:
            raise ValueError(f"absent must be one of {tuple(ABSENT)}, found {absent!r}.")
        self.num_classes = num_classes
        self.file = Path(file)
        self.class_names = [f"class{index}" for index in range(num_classes)] if class_names is None else class_names
        self.ignore_index = ignore_index
        self.absent = absent
        self.keys = keys
        self.pred_key = pred_key
        self.label_key = label_key
        self._matrices: dict[str, torch.Tensor] = {}
        self._images: dict[str, int] = {}

    def attach(self, engine: Engine) -> None:
        """Count during every epoch of an evaluator that decollates its batches and outputs; write at its end."""
        if own_rank() == 0:
            expect_writable(self.file)
        engine.add_event_handler(Events.EPOCH_STARTED, self._begin)
        engine.add_event_handler(Events.ITERATION_COMPLETED, self._count)
        engine.add_event_handler(Events.EPOCH_COMPLETED, self._write)

    def _begin(self, engine: Engine) -> None:
        self._matrices, self._images = {}, {}

    def _count(self, engine: Engine) -> None:
        items: Any = engine.state.output
        # MONAI's evaluators keep of a batch only image, label and prediction in their output
        batch: Any = engine.state.batch
        for item, loaded in zip(items, batch, strict=True):
            matrix = confusion_matrix(item[self.pred_key], item[self.label_key], self.num_classes, self.ignore_index)
            for group in {ALL, *self._groups_of(loaded)}:
                self._matrices[group] = matrix + self._matrices.get(group, 0)
                self._images[group] = self._images.get(group, 0) + 1

    def _groups_of(self, item: Mapping[str, Any]) -> list[str]:
        return [str(item[key]) for key in self.keys if item.get(key) is not None][:1]

    def _write(self, engine: Engine) -> None:
        counted = [found for rank in gather(lambda: self._counted()) for found in rank]
        groups = sorted({group for group, _, _ in counted} - {ALL})
        header = [self.keys[0], "images", "mean_iou", "mean_dice", "pixel_accuracy"]
        header += [f"{word}_{name}" for word in ("iou", "dice") for name in self.class_names]
        rows = [header, *(self._row(group, counted) for group in (*groups, ALL))]
        if own_rank() > 0:
            return
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        write_text(self.file, text.getvalue())
        engine.logger.info("scores by %s, also in %s:\n%s", self.keys[0], self.file, _table(rows))

    def _counted(self) -> list[tuple[str, list[list[int]], int]]:
        return [(group, matrix.tolist(), self._images[group]) for group, matrix in self._matrices.items()]

    def _row(self, group: str, counted: Iterable[tuple[str, list[list[int]], int]]) -> list[str]:
        own = [(matrix, images) for name, matrix, images in counted if name == group]
        matrix = torch.tensor([matrix for matrix, _ in own] or [[[0] * self.num_classes] * self.num_classes]).sum(0)
        iou, dice, recall = (score(matrix, ABSENT[self.absent]) for score in (class_iou, class_dice, class_recall))
        evaluated = [index for index in range(1, self.num_classes) if index != self.ignore_index]
        means = [scores[evaluated].nanmean() for scores in (iou, dice, recall)]
        if self.ignore_index is not None and 0 <= self.ignore_index < self.num_classes:
            iou[self.ignore_index] = dice[self.ignore_index] = torch.nan
        values = [*means, *iou, *dice]
        return [group, str(sum(images for _, images in own)), *(_shown(float(value)) for value in values)]


def _shown(value: float) -> str:
    return "" if value != value else str(round(value, 6))


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
