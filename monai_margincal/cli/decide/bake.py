"""Write offsets into the bias of a network's last convolution, so that the largest logit decides as the offsets do.

Every program and every export of these weights (TorchScript, ONNX, TensorRT, MONAI Deploy, MONAI Label, NVFlare) then decides
alike without knowing of offsets. Probabilities change along with the logits: a threshold moves to 1/2. The weights without
offsets are needed to fit others, so keep them.

  margincal decide bake models/model.pt models/decision.json models/baked.pt
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ..answer import Answer, add_json_argument
from .show import OFFSET_KEYS, offset_data


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the sub-verb."""
    parser.add_argument(
        "checkpoint", metavar="WEIGHTS", help="file of the weights: a plain state dict, such as models/model.pt"
    )
    parser.add_argument("decision", metavar="OFFSETS", help="JSON file of offsets, such as models/decision.json")
    parser.add_argument("output", metavar="OUTPUT", help="file to write; it must not exist yet")
    parser.add_argument(
        "--bias", metavar="NAME", help="name of the bias, where more than one convolution could be the last"
    )
    add_json_argument(parser, {**OFFSET_KEYS, "bias": "name of the bias that took them up"})


def run(arguments: argparse.Namespace) -> Answer:
    """Load safely, compare, add, write."""
    import torch

    from ...decisions import ClassOffsets
    from ...decisions.bake import baked_weights
    from ...errors import naming_files
    from ...files import expect_writable, replacing
    from ...networks.plain_tensors import load_plain_tensors
    from ...streams import is_stream
    from ...workflows.chosen_offsets import digest_of_content

    source, target = Path(arguments.checkpoint), Path(arguments.output)
    if target.exists() and not is_stream(target):
        raise FileExistsError(f"{target} exists and is not overwritten")
    expect_writable(target)
    offsets = ClassOffsets.from_json(arguments.decision)
    if not source.is_file():
        raise FileNotFoundError(f"{source}: no such file, expected weights")
    state_dict = load_plain_tensors(source)
    if not isinstance(state_dict, dict) or not all(isinstance(value, torch.Tensor) for value in state_dict.values()):
        raise ValueError(
            f"{source}: found no plain state dict, expected names and tensors, as training writes model.pt"
        )
    try:
        baked, bias = baked_weights(state_dict, offsets, arguments.bias)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from error
    fitted_for = (offsets.fitted_on or {}).get("weights")
    if fitted_for not in (None, digest_of_content(state_dict)):
        raise ValueError(
            f"{source}: found other weights than those that {arguments.decision} was fitted for, expected the same"
        )
    # torch's own writer says of a full disk neither the file nor that
    with naming_files(target, "cannot be written", raises=OSError), replacing(target) as beside:
        torch.save(baked, beside)
    return Answer(f"{offsets!r} in {bias}", {**offset_data(offsets), "bias": bias}, written=[arguments.output])
