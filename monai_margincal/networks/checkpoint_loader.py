"""Weights for inference: the right ones or a clear error, never a network that silently keeps its random weights."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import torch
from ignite.engine import Engine
from monai.handlers import CheckpointLoader

from .convert import convert_coplenet_state_dict, coplenet_config_of
from .coplenet import COPLENet
from .plain_tensors import load_plain_tensors

#: arguments of the network that can be read off its weights; the others cannot
_TOLD = ("in_channels", "out_channels", "features", "norm", "upsample")


class COPLENetCheckpointLoader(CheckpointLoader):
    """Load the weights of one COPLE-Net when the engine starts, strictly, and say what to do if that fails.

    Takes what :class:`monai.handlers.CheckpointLoader` takes, for a ``load_dict`` of one network. Files in any published
    layout are renamed on the way (see :func:`monai_margincal.networks.convert_coplenet_state_dict`). Only tensors are read.
    MONAI's federated client recognises handlers by "CheckpointLoader" in their names and keeps them from overwriting the
    server's weights. If the configuration has a network of another class, MONAI's handler loads it.

    Args:
        load_path: the file of weights.
        load_dict: ``{name: network}``.
        advice: appended to the errors about a file that is missing or that holds another network: how the caller's users choose
            another file or another network.
        options: further arguments of :class:`monai.handlers.CheckpointLoader`.

    Raises:
        ValueError: ``load_dict`` does not hold exactly one network; at the start: the file holds no weights, or those of
            another network; the message gives the widths, norms and class numbers of both.
        FileNotFoundError: at the start: the file does not exist; the message names it and says what to do.

    Example:
        >>> import torch
        >>> from ignite.engine import Engine
        >>> loader = COPLENetCheckpointLoader("models/none.pt", {"network": torch.nn.Conv2d(1, 1, 1)})
        >>> engine = Engine(lambda engine, batch: None)
        >>> loader(engine)
        Traceback (most recent call last):
        FileNotFoundError: [Errno 2] weights not found (No such file or directory: 'models/none.pt'): train first, ...
    """

    def __init__(self, load_path: str, load_dict: dict[str, Any], advice: str = "", **options: Any) -> None:
        super().__init__(load_path, load_dict, **options)
        self.advice = f" ({advice})" if advice else ""
        if len(load_dict) != 1 or not isinstance(next(iter(load_dict.values())), torch.nn.Module):
            raise ValueError(f"load_dict must hold exactly one network, found {sorted(load_dict)}")

    def __call__(self, engine: Engine) -> None:
        """Load the file into the network."""
        path = Path(self.load_path)
        if not path.is_file():
            listed = path.absolute().parent.parent / "large_files.yml"
            where = f" ({listed} says where they are)" if listed.is_file() else ""
            raise FileNotFoundError(
                errno.ENOENT,
                f"weights not found (No such file or directory: {self.load_path!r}): train first, or convert "
                f"published weights{where} with `margincal convert-weights IN OUT`{self.advice}",
            )
        (network,) = self.load_dict.values()
        if isinstance(network, torch.nn.parallel.DistributedDataParallel):
            network = network.module
        if not isinstance(network, COPLENet):
            super().__call__(engine)
            return
        checkpoint = load_plain_tensors(path)
        try:
            weights = convert_coplenet_state_dict(checkpoint)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}: found weights of no COPLE-Net ({error})") from error
        expected, found = coplenet_config_of(network.state_dict()), coplenet_config_of(weights)
        different = [name for name in _TOLD if expected[name] != found[name]]
        if different:
            raise ValueError(
                f"{path}: found weights of another network than configured: "
                + "; ".join(f"{name} {_plain(found[name])}, expected {_plain(expected[name])}" for name in different)
                + ". Configure the network with the weights' own values"
                + self.advice
            )
        network.load_state_dict(weights, strict=True)
        self.logger.info(f"Restored all variables from {os.fspath(self.load_path)}")


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) and not isinstance(value[0], str) else value
