"""Published COPLE-Net weights, renamed to `COPLENet`'s parameters, and the network that such weights belong to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch

from ..errors import some_of
from .coplenet import COPLENet
from .trained_plane import complete_trained_plane

#: Keys under which training programs save the weights, next to the optimizer and the epoch.
_WRAPPERS = ("model_state_dict", "state_dict", "model", "network")

_PAIRS = ("in_conv", *(f"down{i}.conv" for i in range(1, 5)), *(f"up{i}.conv" for i in range(1, 5)))


def convert_coplenet_state_dict(state_dict: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """Rename the weights of any published COPLE-Net to `COPLENet`'s parameters.

    Known layouts: the original program's and PyMIC's (batch norm), the margin calibration paper's (the same
    names, group norm), the re-implementation for MONAI 0.2 whose pretrained weights were published, and
    `COPLENet`'s own, which comes back unchanged. Weights wrapped in a checkpoint under ``model_state_dict``,
    ``state_dict``, ``model`` or ``network`` are found there, and the ``module.`` that data-parallel training puts before every
    name is removed. Values are not copied and keep their dtype and device; only the gates' matrices of the MONAI layout gain
    two axes of length 1.

    Args:
        state_dict: parameter names -> tensors, or a checkpoint that holds them. Load files with
            ``torch.load(path, map_location="cpu", weights_only=True)``: nothing here needs a pickle.

    Returns:
        Names and tensors that ``COPLENet(**coplenet_config_of(state_dict)).load_state_dict(..., strict=True)`` accepts.

    Raises:
        TypeError: `state_dict` is not a mapping of names to tensors.
        ValueError: the names or shapes fit no COPLE-Net; the message lists the unexpected and the missing ones.

    Example:
        >>> from monai_margincal.networks import COPLENet, convert_coplenet_state_dict
        >>> network = COPLENet(features=(8, 16, 32, 64, 128))
        >>> checkpoint = {"epoch": 50, "model_state_dict": {"module." + k: v for k, v in network.state_dict().items()}}
        >>> network.load_state_dict(convert_coplenet_state_dict(checkpoint))
        <All keys matched successfully>
    """
    return _converted(state_dict)[0]


def coplenet_config_of(state_dict: Mapping[str, Any]) -> dict[str, Any]:
    """Read the arguments of a `COPLENet` off its weights, in any known layout.

    Weights do not determine everything: group norm is taken to have 4 groups (the number in the margin calibration paper's
    code), and dropout and activations other than PReLU are taken to be `COPLENet`'s defaults.

    Args:
        state_dict: as for `convert_coplenet_state_dict`.

    Returns:
        Keyword arguments `in_channels`, `out_channels`, `features`, `norm`, `upsample` (and `act` for PReLU).

    Raises:
        TypeError: as for `convert_coplenet_state_dict`.
        ValueError: as for `convert_coplenet_state_dict`.

    Example:
        >>> from monai_margincal.networks import COPLENet, coplenet_config_of
        >>> config = coplenet_config_of(COPLENet(in_channels=3, features=(8, 16, 32, 64, 128), norm="group").state_dict())
        >>> config["in_channels"], config["features"], config["norm"]
        (3, (8, 16, 32, 64, 128), ('group', {'num_groups': 4}))
    """
    return _converted(state_dict)[1]


def _converted(state_dict: Mapping[str, Any]) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    published = _bare_weights(state_dict)
    names = _our_names(published)
    weights = {names[name]: value for name, value in published.items()}
    for name, value in list(weights.items()):
        if name.endswith(("gate.squeeze.weight", "gate.excite.weight")) and value.dim() == 2:
            weights[name] = value[:, :, None, None]  # a linear layer is a 1x1 convolution of one pixel
        elif name.endswith(".running_mean"):
            # only written since PyTorch 0.4.1, and without influence on the result
            weights.setdefault(name.removesuffix("running_mean") + "num_batches_tracked", torch.tensor(0, device="cpu"))
    config = _config(weights)
    complete_trained_plane(weights)
    with torch.device("meta"):  # names and shapes only: no memory, no random numbers
        expected = COPLENet(**config).state_dict()
    _check_names(expected, weights)
    _check_shapes(expected, weights)
    return {name: weights[name] for name in expected}, config


def _bare_weights(state_dict: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"state_dict must map parameter names to tensors, found {type(state_dict).__name__}.")
    for wrapper in _WRAPPERS:
        if isinstance(state_dict.get(wrapper), Mapping):
            return _bare_weights(state_dict[wrapper])
    odd = [
        f"{name}: {type(value).__name__}" for name, value in state_dict.items() if not isinstance(value, torch.Tensor)
    ]
    if odd:
        raise TypeError(
            f"state_dict must map parameter names to tensors, found {_some(odd)}. Expected the weights themselves, "
            f"or a checkpoint that holds them under one of {_WRAPPERS}."
        )
    return {str(name).removeprefix("module."): value for name, value in state_dict.items()}


def _our_names(published: Iterable[str]) -> dict[str, str]:
    """Translate by the layout that knows most of the names; unknown names are kept (and reported later)."""
    names = list(published)
    translations = [{name: _renamed(name, modules) for name in names} for modules in (_monai_02(), _hilab(), {})]
    return max(translations, key=lambda translation: sum(old != new for old, new in translation.items()))


def _renamed(name: str, modules: Mapping[str, str]) -> str:
    module, _, parameter = name.rpartition(".")
    return f"{modules[module]}.{parameter}" if module in modules else name


def _monai_02() -> dict[str, str]:
    """Module names of the re-implementation for MONAI 0.2 -> ours, where they differ."""
    modules = {f"aspp.convs.{i}": f"aspp.branches.{i}" for i in range(4)}
    modules |= {f"aspp.conv_k1.{part}": f"aspp.merge.{part}" for part in ("conv", "norm")}
    modules |= {f"up{i}.up.upsample.0": f"up{i}.up.project" for i in range(1, 5)}
    modules["out_conv.conv"] = "out_conv"
    for pair in _PAIRS:
        for part in ("conv", "norm"):
            modules[f"{pair}.conv_conv_se.0.{part}"] = f"{pair}.first.{part}"
            modules[f"{pair}.conv_conv_se.2.{part}"] = f"{pair}.second.{part}"
        modules[f"{pair}.conv_conv_se.3.fc.0"] = f"{pair}.gate.squeeze"
        modules[f"{pair}.conv_conv_se.3.fc.2"] = f"{pair}.gate.excite"
    return modules


def _hilab() -> dict[str, str]:
    """Module names of the original program, PyMIC and the margin calibration paper's code -> ours, where they differ."""
    modules = {f"aspp.conv_{i + 1}": f"aspp.branches.{i}" for i in range(4)}
    modules |= {"aspp.conv_1x1.0": "aspp.merge.conv", "aspp.conv_1x1.1": "aspp.merge.norm"}
    modules |= {f"bridge{i}.conv.0": f"bridge{i}.conv" for i in range(4)}
    modules |= {f"bridge{i}.conv.1": f"bridge{i}.norm" for i in range(4)}
    modules |= {f"up{i}.conv1x1": f"up{i}.up.project" for i in range(1, 5)}
    for pair in _PAIRS:
        modules[f"{pair}.conv_conv.0"] = f"{pair}.first.conv"
        modules[f"{pair}.conv_conv.1"] = f"{pair}.first.norm"
        modules[f"{pair}.conv_conv.4"] = f"{pair}.second.conv"
        modules[f"{pair}.conv_conv.5"] = f"{pair}.second.norm"
        modules[f"{pair}.conv_conv.7.se_layers.1"] = f"{pair}.gate.squeeze"
        modules[f"{pair}.conv_conv.7.se_layers.3"] = f"{pair}.gate.excite"
    return modules


def _config(weights: Mapping[str, torch.Tensor]) -> dict[str, Any]:
    first, last = weights.get("in_conv.first.conv.weight"), weights.get("out_conv.weight")
    if first is None or last is None or first.dim() != 4 or last.dim() != 4:
        raise ValueError(
            "These are not COPLE-Net's weights: expected four-dimensional weights of its first and last convolution "
            f"(in COPLENet's words in_conv.first.conv.weight and out_conv.weight), found {_some(weights)}."
        )
    norm: Any = "instance"
    if "in_conv.first.norm.running_mean" in weights:
        norm = "batch"
    elif "in_conv.first.norm.weight" in weights:
        norm = ("group", {"num_groups": 4})
    config = {
        "in_channels": first.shape[1],
        "out_channels": last.shape[0],
        "features": tuple(first.shape[0] * 2**level for level in range(5)),
        "norm": norm,
        "upsample": "deconv" if "up1.up.weight" in weights else "bilinear",
    }
    if "in_conv.first.act.weight" in weights:
        config["act"] = "prelu"
    return config


def _check_names(expected: Mapping[str, torch.Tensor], found: Mapping[str, torch.Tensor]) -> None:
    unexpected = [name for name in found if name not in expected]
    missing = [name for name in expected if name not in found]
    if unexpected or missing:
        raise ValueError(
            f"The weights fit no known layout of COPLE-Net: {len(unexpected)} unexpected names ({_some(unexpected)}), "
            f"{len(missing)} missing (in COPLENet's words: {_some(missing)})."
        )


def _check_shapes(expected: Mapping[str, torch.Tensor], found: Mapping[str, torch.Tensor]) -> None:
    wrong = [
        f"{name}: found {tuple(found[name].shape)}, expected {tuple(value.shape)}"
        for name, value in expected.items()
        if found[name].shape != value.shape
    ]
    if wrong:
        raise ValueError(f"{len(wrong)} of COPLE-Net's weights have an unexpected shape ({_some(wrong)}).")


def _some(names: Iterable[str]) -> str:
    return some_of(names, at_most=4) or "none"
