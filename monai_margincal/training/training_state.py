"""What a checkpoint must hold besides network, optimiser, schedule and epoch for a run to continue as if it had never stopped."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ignite.handlers import Checkpoint, EarlyStopping
from monai.engines import Evaluator, Trainer
from monai.handlers import CheckpointSaver


class TrainingState:
    """The best metric so far, the list of best models, the counter of early stopping, and the scale of mixed precision.

    Meant as one entry of a ``save_dict`` and a ``load_dict``. Without it, a resumed run would take its first validation for the
    best one and overwrite a better model.

    Args:
        trainer: its gradient scaler is saved, if it has one.
        evaluator: the validation, whose best metric is saved.
        best_model: saver of the best model by key metric; None if this process saves none (every rank but the first).
        early_stop: Ignite's handler of early stopping, or None.

    Example:
        >>> import torch
        >>> from monai.engines import SupervisedEvaluator, SupervisedTrainer
        >>> network = torch.nn.Linear(1, 1)
        >>> trainer = SupervisedTrainer(
        ...     "cpu", 1, [0], network, torch.optim.SGD(network.parameters(), 0.1), torch.nn.MSELoss())
        >>> evaluator = SupervisedEvaluator("cpu", [0], network)
        >>> state = TrainingState(trainer, evaluator)
        >>> evaluator.state.best_metric, evaluator.state.best_metric_epoch = 0.5, 3
        >>> state.state_dict()
        {'best_metric': 0.5, 'best_metric_epoch': 3, 'best_models': {}, 'early_stop': {}, 'scaler': {}}
    """

    def __init__(
        self,
        trainer: Trainer,
        evaluator: Evaluator,
        best_model: CheckpointSaver | None = None,
        early_stop: EarlyStopping | None = None,
    ) -> None:
        self.trainer = trainer
        self.evaluator = evaluator
        self.best_model = best_model
        self.early_stop = early_stop

    def state_dict(self) -> dict[str, Any]:
        """Return only numbers, texts and tensors, so that ``torch.load(..., weights_only=True)`` reads them."""
        best = self._best_models()
        saved = best.state_dict() if best is not None else {}
        scaler = getattr(self.trainer, "scaler", None)
        return {
            "best_metric": float(self.evaluator.state.best_metric),
            "best_metric_epoch": int(self.evaluator.state.best_metric_epoch),
            "best_models": {key: [(float(p), str(f)) for p, f in pairs] for key, pairs in saved.items()},
            "early_stop": dict(self.early_stop.state_dict()) if self.early_stop is not None else {},
            "scaler": dict(scaler.state_dict()) if scaler is not None else {},
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore the state.

        The best model counts as saved only if it lies in the saver's folder: a run that is resumed into another folder saves
        the best model from then on.
        """
        self.evaluator.state.best_metric = state_dict["best_metric"]
        self.evaluator.state.best_metric_epoch = state_dict["best_metric_epoch"]
        saved = state_dict["best_models"]
        best = self._best_models()
        if self.best_model is not None and best is not None and any(saved.values()):
            fixed = getattr(best.save_handler, "filename", None)
            names = [fixed or name for pairs in saved.values() for _, name in pairs]
            if all((Path(self.best_model.save_dir) / name).is_file() for name in names):
                self.best_model.load_state_dict(dict(saved))
            else:
                self.trainer.logger.warning(
                    f"the best model of the resumed run, {', '.join(names)}, is not in {self.best_model.save_dir}: "
                    "the best from here on is saved there"
                )
        if self.early_stop is not None and state_dict["early_stop"]:
            self.early_stop.load_state_dict(dict(state_dict["early_stop"]))
        scaler = getattr(self.trainer, "scaler", None)
        if scaler is not None and state_dict["scaler"]:
            scaler.load_state_dict(dict(state_dict["scaler"]))

    def _best_models(self) -> Checkpoint | None:
        """Ignite's list of the best models, inside MONAI's saver."""
        return self.best_model._key_metric_checkpoint if self.best_model is not None else None
