"""Offsets as a by-product of a validation: fitted at its end, written beside the weights."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from monai.data import MetaTensor
from monai.utils import ImageMetaKey

from ..processes import gather, group_size, own_rank
from .case_votes import GRID
from .class_offsets import ClassOffsets
from .fit import fit_votes
from .offsets_summary import scores_line, summary_lines
from .votes import AllVotes, Votes
from .weights_digest import weights_digest

if TYPE_CHECKING:
    from ignite.engine import Engine
    from torch import nn

__all__ = ["DECISION_FILE", "ClassOffsetsHandler"]

#: the name of the file of offsets beside the file of weights
DECISION_FILE = "decision.json"


class ClassOffsetsHandler:
    """Ignite handler of a validation: fits `ClassOffsets` on its cases and writes them when its key metric is the best so far.

    Cases with the same ``"group"`` in the data list, such as those of a patient, stay in one fold. The handler sees logits and
    labels before any post-processing, and keeps of a case what `fit_class_offsets` keeps: never its logits.
    Where the chain has turned, mirrored or cropped the image but not the label, the two are brought together by their affines,
    and voxels of the label outside of the crop count as background. With several processes each looks at its own cases, and the
    file is that of one process; a case that a sampler repeats counts once.

    ``fitted_on`` says, beside what `fit_class_offsets` puts there, for which weights the offsets are (``weights``, see
    `weights_digest`) and the ``note``. On fewer than two cases nothing can be cross-fitted: then there is no file.

    Args:
        path: the file to write, in place of an older one of offsets. None: ``decision.json`` beside ``weights_file``, where an
            existing file is kept and scored on the cases, and a folder without permission is no more than a warning.
        num_classes: C, background included.
        network: what the offsets are for; its weights are noted.
        weights_file: the file of its weights; only its folder matters.
        class_names: what the classes are called.
        score: "iou" or "dice".
        pooled: as for `fit_class_offsets`.
        ignore_index: label of voxels that do not count.
        folds: parts of the cross-fit.
        note: a sentence for ``fitted_on``, for example that the weights have seen the cases in training.
        output_transform: from ``engine.state.output`` to logits (B, C, ...) and labels (B, 1, ...), or lists of cases; default:
            the entries "pred" and "label".

    Raises:
        ValueError: neither ``path`` nor ``weights_file`` is given; in a validation: as `fit_class_offsets`.
        FileExistsError: at the start: the file exists and holds something else.
        OSError: at the start: the ``path`` cannot be written.

    Example:
        >>> import tempfile
        >>> from monai.engines import SupervisedEvaluator
        >>> label = torch.tensor([[[0, 1, 1, 0]]])
        >>> data = [{"image": torch.tensor([[[-1.0, -0.3, -0.2, -3.0]]]), "label": label} for _ in range(2)]
        >>> path = Path(tempfile.mkdtemp(), "decision.json")
        >>> handler = ClassOffsetsHandler(path, num_classes=2, class_names=["background", "lesion"])
        >>> SupervisedEvaluator("cpu", data, torch.nn.Identity(), val_handlers=[handler]).run()
        >>> ClassOffsets.from_json(path)
        ClassOffsets(background: +0, lesion: +0.4)
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        num_classes: int,
        network: nn.Module | None = None,
        weights_file: str | os.PathLike[str] | None = None,
        class_names: Sequence[str] | None = None,
        score: Literal["iou", "dice"] = "iou",
        pooled: bool = True,
        ignore_index: int | None = None,
        folds: int = 5,
        note: str | None = None,
        output_transform: Callable[[Any], tuple[Iterable[torch.Tensor], Iterable[torch.Tensor]]] | None = None,
    ) -> None:
        if path is None and weights_file is None:
            raise ValueError("path: found None, expected a file, or weights_file beside which it is written")
        ClassOffsets([0.0] * num_classes, class_names)
        self.path = Path(weights_file).parent / DECISION_FILE if path is None else Path(path)  # type: ignore[arg-type]
        self.keeps_existing = path is None
        self.can_write = True
        self.network = network
        self.class_names = class_names
        self.options: dict[str, Any] = {"score": score, "pooled": pooled, "folds": folds}
        self.note = note
        self.output_transform = output_transform or _pred_and_label
        self._new_votes = lambda: Votes(num_classes, ignore_index)
        self._votes = self._new_votes()

    def attach(self, engine: Engine) -> None:
        """Register with the engine of a validation or an evaluation."""
        from ignite.engine import Events

        self.collect_from(engine)
        engine.add_event_handler(Events.STARTED, self.expect_file)
        engine.add_event_handler(Events.EPOCH_COMPLETED, self._complete)

    def collect_from(self, engine: Engine) -> None:
        """Only look at the cases of an engine; whoever calls this calls `fit_and_write` when it is time."""
        from ignite.engine import Events
        from monai.engines import IterationEvents

        engine.add_event_handler(Events.EPOCH_STARTED, self._forget)
        try:
            # after MODEL_COMPLETED the post-processing has turned logits into labels
            engine.add_event_handler(IterationEvents.FORWARD_COMPLETED, self._look)
        except ValueError:  # an engine of Ignite itself has no such event
            engine.add_event_handler(Events.ITERATION_COMPLETED, self._look)

    def expect_file(self, engine: Engine) -> None:
        """Raise now unless the file can be written at the end."""
        if own_rank() > 0 or self._is_kept():
            return
        try:
            ClassOffsets.expect_replaceable(self.path)
        except OSError as error:
            if not self.keeps_existing:
                raise
            # weights may lie where nobody but an administrator can write, and the numbers are wanted all the same
            self.can_write = False
            engine.logger.warning(f"the decision will not be written: {error}")

    def fit_and_write(self, engine: Engine) -> ClassOffsets | None:
        """Fit on the cases since the epoch began, tell the log, and write the file; all processes must call it.

        Returns:
            the offsets; None with fewer than two cases.
        """
        cases = AllVotes(self._votes, across_ranks=group_size() > 1)
        is_first = own_rank() == 0
        if len(cases) < 2:
            if is_first:
                engine.logger.info(
                    f"no decision is written to {self.path}: found {len(cases)} validation case(s), expected two or more to "
                    "fit offsets on"
                )
            return None
        known = {} if self.network is None else {"weights": weights_digest(self.network.state_dict())}
        if self.note is not None:
            known["note"] = self.note
        offsets = fit_votes(cases, **self.options, class_names=self.class_names, progress=is_first, known=known)
        kept = self._kept(is_first)
        scored = None if kept is None else cases.matrices(lambda _, case: case.confusion(kept.offsets)).sum(0)
        if is_first:
            for line in summary_lines(offsets):
                engine.logger.info(line)
            if scored is not None:
                engine.logger.info(scores_line(f"with the offsets of {self.path}", scored, self.class_names))
            if self._is_kept():
                engine.logger.info(f"kept {self.path}, which exists: give it by name to replace it, or another file")
            elif self.can_write:
                offsets.to_json(self.path)
                engine.logger.info(f"wrote the offsets to {self.path}")
        return offsets

    def _complete(self, engine: Engine) -> None:
        state = engine.state
        if getattr(state, "key_metric_name", None) is None or getattr(state, "best_metric_epoch", None) == state.epoch:
            self.fit_and_write(engine)

    def _forget(self, engine: Engine) -> None:
        self._votes = self._new_votes()

    def _look(self, engine: Engine) -> None:
        logits, labels = self.output_transform(engine.state.output)
        for number, (case, label) in enumerate(zip(logits, labels, strict=True)):
            name = label.meta.get(ImageMetaKey.FILENAME_OR_OBJ) if isinstance(label, MetaTensor) else None
            group = _group(engine.state.batch, number)
            self._votes.add(case, label, name if isinstance(name, str) else "", group)

    def _is_kept(self) -> bool:
        return self.keeps_existing and self.path.exists()

    def _kept(self, is_first: bool) -> ClassOffsets | None:
        """The offsets of the file that is kept, if they can be scored here; on every process."""
        found = ClassOffsets.from_json(self.path) if is_first and self._is_kept() else None
        (given, *_) = gather(lambda: None if found is None else found.to_dict())
        if given is None or len(given["offsets"]) != self._votes.num_classes:
            return None
        # voxels that larger offsets can move are no longer known
        return ClassOffsets(given["offsets"]) if max(map(abs, given["offsets"])) <= float(GRID[-1]) else None


def _group(batch: Any, number: int) -> str:
    """What the data list says of a case's group, if it says anything."""
    if isinstance(batch, Mapping):
        groups = batch.get("group", ())
        group = groups[number] if number < len(groups) else None
    elif isinstance(batch, Sequence) and number < len(batch) and isinstance(batch[number], Mapping):
        group = batch[number].get("group")
    else:
        group = None
    return "" if group is None else str(group.item() if isinstance(group, torch.Tensor) else group)


def _pred_and_label(output: Any) -> tuple[Any, Any]:
    if isinstance(output, Mapping):
        # of a MetaTensor only indexing gives each case its own metadata
        return tuple([output[key][case] for case in range(len(output[key]))] for key in ("pred", "label"))  # type: ignore[return-value]
    return [case["pred"] for case in output], [case["label"] for case in output]
