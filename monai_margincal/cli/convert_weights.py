"""Convert published COPLE-Net weights to this package's layout.

Reads any published layout (MONAI 0.2, the margin-calibration authors') and writes a plain state dict that can serve as the
bundle's models/model.pt. Pickled objects other than tensors are refused.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from .console import printing_beside


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("input", help="checkpoint (.pt, .pth) of a published COPLE-Net")
    parser.add_argument("output", help="file to write; it must not exist yet")


def run(arguments: argparse.Namespace) -> None:
    """Load safely, convert, check with a strict load, write."""
    import torch

    from ..errors import naming_files
    from ..files import expect_writable, replacing
    from ..networks import COPLENet, convert_coplenet_state_dict, coplenet_config_of
    from ..streams import is_stream

    source, target = Path(arguments.input), Path(arguments.output)
    if target.exists() and not is_stream(target):
        raise FileExistsError(f"{target} exists and is not overwritten")
    expect_writable(target)
    if not source.is_file():
        raise FileNotFoundError(f"{source}: no such file, expected a checkpoint")
    try:
        checkpoint = torch.load(source, map_location="cpu", weights_only=True)
    except Exception as error:
        raise ValueError(f"{source}: found no checkpoint of plain tensors ({error}), expected one") from error
    try:
        state_dict = convert_coplenet_state_dict(checkpoint)
        config = coplenet_config_of(state_dict)
        COPLENet(**config).load_state_dict(state_dict)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from error
    # torch's own writer says of a full disk neither the file nor that
    with naming_files(target, "cannot be written", raises=OSError), replacing(target) as beside:
        torch.save(state_dict, beside)
    with printing_beside(arguments.output):
        print(f"{target}: COPLENet({', '.join(f'{key}={value!r}' for key, value in config.items())})")
