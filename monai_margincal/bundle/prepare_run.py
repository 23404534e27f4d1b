"""The first thing that a bundle's run does, in one process or in several."""

from __future__ import annotations

import logging
import os
import sys

import torch
import torch.distributed as dist
from monai.utils import set_determinism

from ..processes import keep_freed_memory, own_rank, start_process_group
from ..transforms.nvimgcodec import silence_nvimgcodec
from .command_line import flags_of, is_command_line, typed_flags
from .error_line import errors_in_one_line
from .other_command import refuse_keys_of_other_commands
from .switches import refuse_texts
from .texts import keep_literal, settle_flags
from .unknown_flags import parser_at_work, refuse_without_effect


def prepare_run(
    device: torch.device | str = "cpu", seed: int = 0, cudnn_benchmark: bool = False, distributed: bool = False
) -> None:
    """Check the flags of a run and make it repeatable; meant for a bundle's ``initialize``.

    ``"initialize": [{"_target_": "monai_margincal.bundle.prepare_run", "device": "@device", "seed": "@seed"}]``

    * ``python -m monai.bundle`` ends with one line instead of a traceback, see `errors_in_one_line`.
    * Paths, patterns and names of cases mean what was typed, whatever Python or MONAI could take them for.
    * A key that has no effect is an error, see `refuse_unknown_keys`, as is a flag of another command, such as ``--epochs`` in an
      evaluation, and ``true`` or ``false`` as text where it would be handed to a component, for which any text means true.
    * With `distributed` the processes of the launcher form a group, and only the first logs.
    * The random streams are seeded, and nothing is said of decoders that nobody has asked for.
    * ``python -m monai.bundle`` keeps the CPU memory that it frees for its next window or step, see
      `monai_margincal.processes.keep_freed_memory`.

    Args:
        device: where the run computes.
        seed: of PyTorch, NumPy, Python and MONAI's transforms; cuDNN is told to be deterministic.
        cudnn_benchmark: let cuDNN try its kernels and take the fastest; on a GPU the same seed then gives other bits every time.
        distributed: the configuration is for several processes.

    Raises:
        ValueError: a key has no effect, a flag belongs to another command or cannot mean what was typed, a switch is a text, or
            several processes were started with a configuration for one.
        RuntimeError: not called by MONAI's config parser.

    Example:
        >>> from monai.bundle import ConfigParser
        >>> parser = ConfigParser({
        ...     "epochs": 3, "trainer": {"_target_": "builtins.dict", "max_epochs": "@epochs", "amp": "false"},
        ...     "run": ["$@trainer"], "initialize": [{"_target_": "monai_margincal.bundle.prepare_run"}]})
        >>> try:
        ...     parser.get_parsed_content("initialize::0")
        ... except RuntimeError as error:
        ...     print(error.__cause__)
        trainer#amp: found the text 'false', expected True or False
    """
    flags: dict[str, str] = {}
    errors_in_one_line(flags)
    parser, folder = parser_at_work(sys._getframe(1))
    flags.update(flags_of(map(str, parser[""])))
    typed: dict[str, str | None] = {}
    if is_command_line():
        typed = typed_flags(sys.argv[1:])
        keep_freed_memory()
    settle_flags(parser, typed)
    keep_literal(parser, parser[""])
    config = dict(parser[""])
    refuse_without_effect(config, folder)
    refuse_keys_of_other_commands(typed, config, folder)
    refuse_texts(config)
    if distributed:
        start_process_group(device)
        if own_rank() > 0:
            logging.disable(logging.INFO)
    elif _launched() and not dist.is_initialized():
        raise ValueError(
            "found several processes, expected one: give the bundle's configuration for several, such as "
            "configs/multi_gpu_train.json, behind the others in --config_file"
        )
    silence_nvimgcodec()
    set_determinism(seed=seed)
    if cudnn_benchmark:
        torch.backends.cudnn.deterministic = False
        torch.backends.cudnn.benchmark = True


def _launched() -> bool:
    """Whether torchrun started this process together with others."""
    return dist.is_available() and dist.is_torchelastic_launched() and int(os.environ.get("WORLD_SIZE", "1")) > 1
