"""One training from its first to its last epoch: what it starts from, what it keeps, when it stops."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ignite.distributed as idist
from ignite.engine import Events
from ignite.handlers import EarlyStopping
from monai.handlers import CheckpointLoader
from torch import nn

from ..counting.as_class_counts import as_class_counts
from ..decisions import ClassOffsets
from ..decisions.offsets_handler import DECISION_FILE
from ..errors import naming_files
from ..metrics import MetricsFile
from ..networks import record_trained_plane
from ..processes import gather, own_rank
from ..processes.interrupts import advise_when_interrupted
from .epoch_seed import EpochSeedHandler
from .loss_parts import LossPartsHandler
from .opening import opening_text
from .training_state import TrainingState
from .warm_up import WarmUpHandler, WarmUpLoss
from .whole_files import WholeFileCheckpointSaver

if TYPE_CHECKING:
    from ignite.engine import Engine
    from monai.engines import Evaluator, SupervisedTrainer

    from ..decisions import ClassOffsetsHandler


class TrainingSession:
    """Handler of a trainer that starts a run, seeds it, saves its files and ends it.

    When the trainer is made, pretrained weights are loaded. When it runs for the first time, the following happens in this
    order: the class counts are written to ``OUTPUT_DIR/class_counts.json``, the loss moves to the trainer's device, a
    `WarmUpLoss` begins to follow the epochs, an interrupted training is resumed, and the log tells counts, margins, loss and
    decision (`opening_text`). From then on every epoch gets its own seed (`EpochSeedHandler`), the parts of the loss go into the
    trainer's metrics (`LossPartsHandler`), every validation into ``OUTPUT_DIR/metrics.csv`` (`MetricsFile`), the best weights by
    the evaluator's key metric into ``CKPT_DIR/model.pt`` (a plain state dict), the complete state into
    ``CKPT_DIR/checkpoint_epoch=N.pt``, and `early_stop_patience` ends the training. With several processes only the first writes
    files.

    With `offsets` the decision is fitted whenever ``model.pt`` is written, and written after it. A decision that belongs to the
    weights before, ``CKPT_DIR/decision.json`` or the handler's file, is removed first: a run that is killed in between leaves
    weights without a decision, never weights with that of others.

    A resumed run ends with exactly the same weights as one that was never interrupted.

    Args:
        evaluator: the validation, with a key metric.
        network: what is trained; its weights are saved.
        optimizer: saved in the complete state, as is `lr_scheduler`.
        lr_scheduler: the schedule of the learning rate.
        ckpt_dir: folder of the weights and states.
        output_dir: folder of ``class_counts.json`` and ``metrics.csv``.
        seed: the run's seed, not negative.
        dataset: the training data; its transforms are seeded where there are no worker processes to seed.
        class_counts: the counts that the loss was made from, in any form that an argument ``class_counts`` may have; with None
            no file is written.
        save_interval: epochs between saved states; only the last one is kept.
        early_stop_patience: number of validations without a better key metric after which to stop; 0 never stops.
        trained_plane: rows and columns of the planes that the network is trained on. They go into its weights, so that validation
            and inference present planes in the same way (see `monai_margincal.networks.record_trained_plane`); None if they vary
            in size.
        pretrained: handler that loads weights to start from, such as `monai_margincal.networks.COPLENetCheckpointLoader`.
        resume_from: a complete state to continue from, instead of `pretrained`.
        offsets: handler that fits the decision on the cases of the evaluator.

    Raises:
        ValueError: `seed`, `save_interval` or `early_stop_patience` is out of range. At the start: the state comes from a later
            epoch than the trainer's last.
        FileExistsError: at the start: ``class_counts.json``, or the file of the offsets, exists and holds something else.

    Example:
        >>> import tempfile, torch
        >>> from ignite.metrics import Average
        >>> from monai.engines import SupervisedEvaluator, SupervisedTrainer
        >>> from monai.handlers import ValidationHandler
        >>> network = torch.nn.Linear(1, 1)
        >>> optimizer = torch.optim.SGD(network.parameters(), 0.1)
        >>> schedule = torch.optim.lr_scheduler.LinearLR(optimizer)
        >>> data = [{"image": torch.ones(2, 1), "label": torch.zeros(2, 1)}]
        >>> score = Average(lambda output: output[0]["pred"].mean())
        >>> evaluator = SupervisedEvaluator("cpu", data, network, key_val_metric={"score": score})
        >>> folder = tempfile.TemporaryDirectory()
        >>> session = TrainingSession(evaluator, network, optimizer, schedule, folder.name, folder.name, class_counts=[9, 1])
        >>> trainer = SupervisedTrainer("cpu", 2, data, network, optimizer, torch.nn.MSELoss(),
        ...     train_handlers=[session, ValidationHandler(interval=1, validator=evaluator)])
        >>> trainer.run()
        >>> sorted(path.name for path in Path(folder.name).iterdir())
        ['checkpoint_epoch=2.pt', 'class_counts.json', 'metrics.csv', 'model.pt']
    """

    def __init__(
        self,
        evaluator: Evaluator,
        network: nn.Module,
        optimizer: Any,
        lr_scheduler: Any,
        ckpt_dir: str,
        output_dir: str,
        seed: int = 0,
        dataset: Any = None,
        class_counts: Any = None,
        save_interval: int = 1,
        early_stop_patience: int = 0,
        trained_plane: Sequence[int] | None = None,
        pretrained: Callable[[SupervisedTrainer], None] | None = None,
        resume_from: str | None = None,
        offsets: ClassOffsetsHandler | None = None,
    ) -> None:
        if save_interval < 1:
            raise ValueError(f"save_interval: found {save_interval}, expected 1 epoch or more")
        if early_stop_patience < 0:
            raise ValueError(f"early_stop_patience: found {early_stop_patience}, expected 0 (never stop) or more")
        self.evaluator = evaluator
        self.saved = {"network": network, "optimizer": optimizer, "lr_scheduler": lr_scheduler}
        self.ckpt_dir = ckpt_dir
        self.output_dir = output_dir
        self.seeds = EpochSeedHandler(seed, dataset)
        self.class_counts = None if class_counts is None else as_class_counts(class_counts)
        self.save_interval = save_interval
        self.early_stop_patience = early_stop_patience
        self.trained_plane = trained_plane
        self.pretrained = pretrained
        self.resume_from = resume_from
        self.offsets = offsets
        self._begun = False
        self._saved_best = False

    def attach(self, engine: SupervisedTrainer) -> None:
        """Load pretrained weights; do the rest when the trainer starts."""
        self.seeds.attach(engine)
        LossPartsHandler().attach(engine)
        if self.pretrained is not None and self.resume_from is None:
            # not when the run starts: weights that a caller has put into the network in the meantime must not be lost
            self.pretrained(engine)
        engine.add_event_handler(Events.STARTED, self._begin)
        # at every start, and after the resumed weights are there: a federated client loads others' weights before each
        if self.trained_plane is not None:
            plane = self.trained_plane
            engine.add_event_handler(Events.STARTED, lambda: record_trained_plane(self.saved["network"], plane))

    def _begin(self, engine: SupervisedTrainer) -> None:
        """Attach what needs the complete trainer, after all other handlers; once, however often the trainer runs."""
        if self._begun:
            return
        self._begun = True
        advise_when_interrupted(lambda: self._how_to_resume(engine))
        # Ignite joins the group of processes when it is first asked for a rank, and waits until all of them do so: what only the
        # first attaches below would wait for ever
        idist.sync()
        is_first = own_rank() == 0
        if self.class_counts is not None and is_first:
            self.class_counts.to_json(Path(self.output_dir, "class_counts.json"))
        if isinstance(engine.loss_function, nn.Module):
            engine.loss_function.to(engine.state.device)
        if isinstance(engine.loss_function, WarmUpLoss):
            WarmUpHandler(engine.loss_function).attach(engine)
        best = self._best_model() if is_first else None
        if self.offsets is not None:
            self.offsets.expect_file(engine)
            self.offsets.collect_from(self.evaluator)
            # behind the saver of the best model
            self.evaluator.add_event_handler(Events.EPOCH_COMPLETED, self._decide)
        state = {**self.saved, "trainer": engine}
        state["validation"] = TrainingState(engine, self.evaluator, best, self._early_stop(engine))
        if is_first:
            WholeFileCheckpointSaver(self.ckpt_dir, state, save_interval=self.save_interval, n_saved=1).attach(engine)
        if self.resume_from is not None:
            with naming_files(
                self.resume_from, "cannot be loaded, expected a complete state of such a training", raises=ValueError
            ):
                CheckpointLoader(self.resume_from, state, map_location=engine.state.device)(engine)
        if is_first:
            MetricsFile(Path(self.output_dir, "metrics.csv"), trainer=engine).attach(self.evaluator)
            decision = (
                "argmax" if self.offsets is None else f"offsets per class, fitted on validation: {self.offsets.path}"
            )
            engine.logger.info("trains on\n%s", opening_text(engine.loss_function, self.class_counts, decision))

    def _how_to_resume(self, engine: SupervisedTrainer) -> str:
        """For the last line of an interrupted run: where it was, and what makes it go on."""
        saved = {int(path.stem.rpartition("=")[2]): path for path in Path(self.ckpt_dir).glob("checkpoint_epoch=*.pt")}
        before = [epoch for epoch in saved if epoch <= engine.state.epoch]
        if not before:
            return f"in epoch {engine.state.epoch}, before a state was saved: start again"
        state = shlex.quote(str(saved[max(before)].absolute()))
        return f"in epoch {engine.state.epoch}: to go on, give the same command with resume_from={state}"

    def _best_model(self) -> WholeFileCheckpointSaver:
        saver = WholeFileCheckpointSaver(
            self.ckpt_dir,
            {"network": self.saved["network"]},
            save_key_metric=True,
            key_metric_filename="model.pt",
            before_replacing=self._forget_decision,
        )
        saver.attach(self.evaluator)
        return saver

    def _forget_decision(self) -> None:
        """Remove what was decided for the weights that are about to be replaced, unless it is somebody else's file."""
        self._saved_best = True
        for path in {Path(self.ckpt_dir, DECISION_FILE), *([self.offsets.path] if self.offsets is not None else [])}:
            with contextlib.suppress(FileNotFoundError, ValueError):
                ClassOffsets.from_json(path)
                path.unlink()

    def _decide(self, engine: Engine) -> None:
        """Fit the decision where the first process has just saved the best model; all processes take part."""
        saved, self._saved_best = any(gather(lambda: self._saved_best)), False
        if saved and self.offsets is not None:
            self.offsets.fit_and_write(engine)

    def _early_stop(self, engine: SupervisedTrainer) -> EarlyStopping | None:
        if not self.early_stop_patience:
            return None
        # MONAI's handler around it passes on names that Ignite warns of
        stop = EarlyStopping(
            self.early_stop_patience,
            lambda evaluator: evaluator.state.metrics[evaluator.state.key_metric_name],
            trainer=engine,
        )
        self.evaluator.add_event_handler(Events.EPOCH_COMPLETED, stop)
        return stop
