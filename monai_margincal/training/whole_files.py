"""Checkpoints of which a complete one is on the disk at any moment, however the run ends."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from ignite.handlers import DiskSaver
from ignite.handlers.checkpoint import BaseSaveHandler
from monai.handlers import CheckpointSaver

from ..errors import naming_files
from ..processes import own_rank


class WholeFileCheckpointSaver(CheckpointSaver):
    """Save as `monai.handlers.CheckpointSaver` does, but keep a complete file on the disk at any moment.

    MONAI's saver deletes the file that is no longer wanted, then writes the next one under its final name. A run that is killed
    in between, or a full disk, leaves half a file and none to resume from. Here the next file is written under a temporary
    name, gets its own name when it is complete, and only then is the old one deleted. Files get the same permissions as any new
    file of the user.

    Args:
        save_dir: the folder of the files.
        save_dict: name -> what is saved.
        before_replacing: called before a file gets its name, for example to remove what belongs to the file that it replaces.
        options: all further arguments of `monai.handlers.CheckpointSaver`.

    Example:
        >>> import tempfile
        >>> from ignite.engine import Engine
        >>> folder = tempfile.TemporaryDirectory()
        >>> trainer = Engine(lambda engine, batch: None)
        >>> network = torch.nn.Linear(1, 1)
        >>> WholeFileCheckpointSaver(folder.name, {"network": network}, save_interval=1, n_saved=1).attach(trainer)
        >>> state = trainer.run([0], max_epochs=3)
        >>> os.listdir(folder.name)
        ['network_epoch=3.pt']
    """

    def __init__(
        self,
        save_dir: str,
        save_dict: dict[str, Any],
        before_replacing: Callable[[], None] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(save_dir=save_dir, save_dict=save_dict, **options)
        kept: list[Any] = [self._final_checkpoint, self._key_metric_checkpoint, self._interval_checkpoint]
        for checkpoint in kept:
            if checkpoint is not None and isinstance(checkpoint.save_handler, DiskSaver):
                checkpoint.save_handler = _WholeFiles(checkpoint.save_handler, before_replacing)


class _WholeFiles(BaseSaveHandler):
    """Write under a temporary name, rename, then remove what was to be removed."""

    def __init__(self, disk: Any, before_replacing: Callable[[], None] | None) -> None:
        self.folder = Path(disk.dirname)
        #: the one name of all files, or None
        self.filename: str | None = disk.filename
        self.rank: int = disk.save_on_rank
        self._before_replacing = before_replacing
        self._outdated: list[Path] = []

    def __call__(self, checkpoint: Mapping[str, Any], filename: str, metadata: Mapping[str, Any] | None = None) -> None:
        if own_rank() != self.rank:
            return
        path = self._path(filename)
        partial = path.with_name(f".{path.name}.partial")
        try:
            # torch's own writer says of a full disk neither the file nor that
            with naming_files(path, "cannot be written", raises=OSError), partial.open("wb") as file:
                torch.save(checkpoint, file)
                file.flush()
                os.fsync(file.fileno())
            if self._before_replacing is not None:
                self._before_replacing()
            partial.replace(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        for outdated in self._outdated:
            if outdated != path:
                outdated.unlink(missing_ok=True)
        self._outdated.clear()

    def remove(self, filename: str) -> None:
        """Remember the file: Ignite asks to remove it before it saves the next one."""
        if own_rank() == self.rank:
            self._outdated.append(self._path(filename))

    def _path(self, filename: str) -> Path:
        return self.folder / (self.filename or filename)
