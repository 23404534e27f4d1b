"""Convert published COPLE-Net weights to this package's layout.

Reads any published layout (MONAI 0.2, the margin-calibration authors') and writes a plain state dict that can serve as the
bundle's models/model.pt. Pickled objects other than tensors are refused.
"""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("input", help="checkpoint (.pt, .pth) of a published COPLE-Net")
    parser.add_argument("output", help="file to write; it must not exist yet")


def run(arguments: argparse.Namespace) -> None:
    """Load safely, convert, check with a strict load, write."""
    import torch

    from ..files import replacing
    from ..networks import COPLENet, convert_coplenet_state_dict, coplenet_config_of

    source, target = Path(arguments.input), Path(arguments.output)
    if target.exists():
        raise FileExistsError(f"{target} exists and is not overwritten")
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
    with replacing(target) as beside:
        torch.save(state_dict, beside)
    print(f"{target}: COPLENet({', '.join(f'{key}={value!r}' for key, value in config.items())})")
