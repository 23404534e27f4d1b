"""Train the missing cells of a study: resumable, in several processes at once, with every finished cell stored whole.

A cell's files lie in ``<output>/cells`` and are named by its fingerprint, so a changed setting never meets an old result. A
process takes a cell by locking it; the lock ends with the process, so a killed run leaves nothing behind. Start the command as
often as you like, or under ``torchrun``, whose ranks work through the same queue without talking to each other.
"""

from __future__ import annotations

import json
import os
import platform
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from ..errors import naming_files
from ..extras import require
from ..files import replacing, write_text
from .cases import class_counts
from .evaluation import evaluate, validation_curve_point
from .objectives import Objective
from .sample_stream import SampleStream
from .study import PRETRAINING, Cell, Study
from .train import train

filelock = require("filelock", extra="experiments", purpose="running a study")

__all__ = ["RunSummary", "load_record", "record_path", "run_study"]


@dataclass
class RunSummary:
    """What a call of `run_study` did.

    Attributes:
        trained: cells that this process finished.
        finished: cells that are stored now, out of ``total``.
        total: cells that were asked for.
        errors: cell name -> message, of cells that this process could not finish. They are tried again next time.
    """

    trained: int
    finished: int
    total: int
    errors: dict[str, str]


def record_path(output: str | os.PathLike[str], cell: Cell) -> Path:
    """The JSON file of a cell."""
    return Path(output) / "cells" / f"{cell.key}.json"


def load_record(output: str | os.PathLike[str], cell: Cell) -> dict[str, Any] | None:
    """The stored result of a cell, or None.

    Raises:
        ValueError: the file is not the record of this cell, or is damaged.
    """
    path = record_path(output, cell)
    if not path.is_file():
        return None
    record = _read_record(path)
    if record.get("description") != cell.description:
        raise ValueError(f"{path}: found the record of another cell, expected that of {cell.name}")
    return record


def _read_record(path: Path) -> dict[str, Any]:
    with naming_files(path, "cannot be read, expected the record of a cell", raises=ValueError):
        record = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(record, dict):
            raise ValueError(f"{path}: found a {type(record).__name__}, expected the record of a cell")
        return record


def run_study(
    study: Study,
    output: str | os.PathLike[str],
    cells: Sequence[Cell] | None = None,
    device: str | torch.device | None = None,
    progress: bool | None = None,
    on_cell: Callable[[Cell, dict[str, Any], int, int], None] = lambda cell, record, done, total: None,
) -> RunSummary:
    """Train and evaluate every cell that is not stored yet.

    Args:
        study: what to compare.
        output: folder of the results.
        cells: some of ``study.cells()``; default: all.
        device: where to compute; default: a GPU if there is one (rank r of torchrun takes GPU r modulo their number), else CPU.
        progress: show a bar with the time left; default: if stderr is a terminal.
        on_cell: called for every cell that this process has finished, with the cell, its record, the number of cells stored and
            the number of all cells.

    Returns:
        A summary of what was done. An error in one cell does not stop the others.
    """
    device = _device(device)
    cells = study.cells() if cells is None else list(cells)
    errors: dict[str, str] = {}
    trained = 0
    waiting = list(cells)
    with tqdm(total=len(cells), unit="cell", disable=None if progress is None else not progress, smoothing=0.1) as bar:
        while waiting:
            left: list[Cell] = []
            moved = False
            for cell in waiting:
                if record_path(output, cell).is_file():
                    bar.update()
                    moved = True
                    continue
                bar.set_description(cell.name)
                try:
                    record = _claim(study, output, cell, device, has_bar=not bar.disable)
                except Exception as error:
                    # one broken objective must not stop a grid that runs overnight
                    errors[cell.name] = f"{type(error).__name__}: {error}"
                    write_text(Path(output) / "errors" / f"{cell.key}.txt", f"{cell.name}\n{traceback.format_exc()}")
                    bar.update()
                    moved = True
                    continue
                if record is None:
                    left.append(cell)
                    continue
                trained += 1
                moved = True
                bar.update()
                (Path(output) / "errors" / f"{cell.key}.txt").unlink(missing_ok=True)
                on_cell(cell, record, _finished(output, cells), len(cells))
            waiting = left
            if waiting and not moved:
                time.sleep(1.0)  # another process is working on them
    return RunSummary(trained, _finished(output, cells), len(cells), errors)


def _finished(output: str | os.PathLike[str], cells: Sequence[Cell]) -> int:
    return sum(record_path(output, cell).is_file() for cell in cells)


def _device(device: str | torch.device | None) -> torch.device:
    if device is not None:
        return torch.device(device)
    if torch.cuda.is_available():
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    return torch.device("cpu")


def _claim(
    study: Study, output: str | os.PathLike[str], cell: Cell, device: torch.device, has_bar: bool
) -> dict[str, Any] | None:
    """Do one cell, or give None if another process is working on it or on the pre-training that it needs."""
    path = record_path(output, cell)
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(path.with_suffix(".lock"))
    try:
        lock.acquire(blocking=False)
    except filelock.Timeout:
        return None
    try:
        if path.is_file():
            return _read_record(path)
        start: Path | None = None
        done = int(study.tasks[cell.task]["pretraining_steps"])
        by_rule = study.standstill(cell.task) is not None
        if cell.protocol == "finetune" or (cell.protocol == "scratch" and by_rule):
            before = study.cell(cell.task, PRETRAINING, "cross-entropy", cell.seed, fold=cell.fold)
            stored = load_record(output, before) or _claim(study, output, before, device, has_bar=has_bar)
            if stored is None:
                return None
            if by_rule:
                done = stored["history"]["steps"][-1]
            if cell.protocol == "finetune":
                start = record_path(output, before).with_suffix(".pt")
        return _train_cell(study, output, cell, device, start=start, pretraining_steps=done, has_bar=has_bar)
    finally:
        lock.release()
        if path.is_file():
            path.with_suffix(".lock").unlink(missing_ok=True)


def _train_cell(
    study: Study,
    output: str | os.PathLike[str],
    cell: Cell,
    device: torch.device,
    start: Path | None,
    pretraining_steps: int,
    has_bar: bool,
) -> dict[str, Any]:
    settings = study.tasks[cell.task]
    parts = study.cases(cell.task, cell.seed, cell.fold)
    training, validation, test = (
        study.load(cell.task, part) for part in (parts.training, parts.validation, parts.test)
    )
    axis, size = settings.get("slice_axis"), settings["sample_size"]

    # same weights, data order and dropout for all objectives of a seed
    torch.manual_seed(_torch_seed(cell.seed, "weights"))
    network = study.build(settings["network"]).to(device)
    if start is not None:
        network.load_state_dict(torch.load(start, map_location=device, weights_only=True))
    counts = class_counts(training, settings["class_names"])
    objective = _objective(study, cell, counts, device)
    augmentation = None
    if settings.get("augmentation"):
        from monai.transforms import Compose

        augmentation = Compose(study.build(settings["augmentation"]))
    stream = SampleStream(
        training, size, int(settings["batch_size"]), cell.seed, slice_axis=axis, augmentation=augmentation
    )
    optimizer = study.build({**settings["optimizer"], "_mode_": "callable"})(network.parameters())
    steps = {PRETRAINING: pretraining_steps, "finetune": int(settings["steps"])}.get(
        cell.protocol, pretraining_steps + int(settings["steps"])
    )

    def validate(network: torch.nn.Module, objective: Objective) -> tuple[float, float]:
        return validation_curve_point(network, objective, validation, size, slice_axis=axis, device=device)

    torch.manual_seed(_torch_seed(cell.seed, "dropout of fine-tuning" if cell.protocol == "finetune" else "dropout"))
    # a cell may take an hour: its steps have a bar of their own below that of the cells, gone when they are done
    with tqdm(total=steps, desc="  steps", unit="step", position=1, leave=False, disable=not has_bar) as bar:
        history = train(
            network,
            objective,
            stream,
            optimizer,
            steps=steps,
            device=device,
            validate=validate if validation else None,
            validate_every=settings.get("validate_every"),
            first_batch=pretraining_steps if cell.protocol == "finetune" else 0,
            until=study.standstill(cell.task) if cell.protocol == PRETRAINING else None,
            on_step=lambda step: bar.update(step - bar.n),
        )
    # the start of fine-tuning is in no table: its margins are wanted, its decisions are not
    scored = {} if cell.protocol == PRETRAINING else study.decoders
    decoders = {name: study.build(decoder) for name, decoder in scored.items()}
    result = evaluate(network, decoders, validation, test, sample_size=size, slice_axis=axis, device=device)
    record = {
        "name": cell.name,
        "task": cell.task,
        "protocol": cell.protocol,
        "objective": cell.objective,
        "seed": cell.seed,
        "fold": cell.fold,
        "class_names": list(settings["class_names"]),
        "training_cases": [case.name for case in training],
        "training_counts": counts.counts.tolist(),
        "history": history.to_dict(),
        "evaluation": result.to_dict(),
        "environment": _environment(device),
        "description": cell.description,
    }
    path = record_path(output, cell)
    with replacing(path.with_suffix(".npz")) as beside:
        np.savez_compressed(beside, **result.pictures)  # type: ignore[arg-type]
    if cell.protocol == PRETRAINING:
        with replacing(path.with_suffix(".pt")) as beside:
            torch.save({name: value.cpu() for name, value in network.state_dict().items()}, beside)
    # last: a cell counts as finished when its record is there
    write_text(path, json.dumps(record))
    return record


def _objective(study: Study, cell: Cell, counts: Any, device: torch.device) -> Objective:
    if cell.protocol == PRETRAINING:
        return Objective(torch.nn.CrossEntropyLoss())
    config = study.objectives[cell.objective]
    given = {"class_counts": counts, "num_classes": len(counts)}
    loss = study.build(config["loss"], **given).to(device)
    wanted = config.get("controller") or []
    wanted = wanted if isinstance(wanted, list) else [wanted]
    return Objective(loss, [study.build({**one, "_mode_": "callable"}, **given)(loss) for one in wanted])


def _torch_seed(seed: int, purpose: str) -> int:
    return int(np.random.RandomState([seed, *purpose.encode()]).randint(2**31 - 1))


def _environment(device: torch.device) -> dict[str, Any]:
    """What else a result may depend on: stored, but not part of the fingerprint."""
    import monai

    from .. import __version__

    return {
        "monai_margincal": __version__,
        "torch": torch.__version__,
        "monai": monai.__version__,
        "python": platform.python_version(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine(),
        "threads": torch.get_num_threads(),
    }
