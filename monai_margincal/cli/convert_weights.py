"""Convert published COPLE-Net weights to this package's layout.

Reads any published layout (MONAI 0.2, the margin-calibration authors') and writes a plain state dict that can serve as the
bundle's models/model.pt. Pickled objects other than tensors are refused.

  margincal convert-weights coplenet_pretrained_monai_dict.pt models/published.pt
"""

from __future__ import annotations

import argparse
from pathlib import Path

from .answer import Answer, add_json_argument


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("input", metavar="INPUT", help="checkpoint (.pt, .pth) of a published COPLE-Net")
    parser.add_argument("output", metavar="OUTPUT", help="file to write; it must not exist yet")
    add_json_argument(parser, {"network": "arguments of the COPLENet that takes these weights"})


def run(arguments: argparse.Namespace) -> Answer:
    """Load safely, convert, check with a strict load, write."""
    import torch

    from ..errors import naming_files
    from ..files import expect_writable, replacing
    from ..networks import COPLENet, convert_coplenet_state_dict, coplenet_config_of
    from ..networks.plain_tensors import load_plain_tensors
    from ..streams import is_stream

    source, target = Path(arguments.input), Path(arguments.output)
    if target.exists() and not is_stream(target):
        raise FileExistsError(f"{target} exists and is not overwritten")
    expect_writable(target)
    if not source.is_file():
        raise FileNotFoundError(f"{source}: no such file, expected a checkpoint")
    checkpoint = load_plain_tensors(source)
    try:
        state_dict = convert_coplenet_state_dict(checkpoint)
        config = coplenet_config_of(state_dict)
        COPLENet(**config).load_state_dict(state_dict)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from error
    # torch's own writer says of a full disk neither the file nor that
    with naming_files(target, "cannot be written", raises=OSError), replacing(target) as beside:
        torch.save(state_dict, beside)
    shown = ", ".join(f"{key}={value!r}" for key, value in config.items())
    return Answer(f"COPLENet({shown})", {"network": config}, written=[arguments.output])
