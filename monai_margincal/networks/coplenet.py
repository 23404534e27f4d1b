"""COPLE-Net: a two-dimensional encoder-decoder for lesions in CT slices, as published and as used for margin calibration."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from monai.networks.layers import get_act_layer, split_args
from monai.networks.layers.factories import Conv
from torch import nn
from torch.nn import functional

from .blocks import ConvNormAct, ConvPair, DilatedPyramid, Down, LayerSpec, Up
from .trained_plane import BUFFER, complete_trained_plane

NORMS = ("batch", "syncbatch", "instance", "group")
UPSAMPLES = ("bilinear", "deconv")

#: No scaling in use reaches this far ([0, 1], [-0.5, 0.5], ImageNet's mean and spread, z-scores); Hounsfield units and 8-bit
#: grey values do.
LARGEST_PLAUSIBLE_INPUT = 10.0

#: Checking the input means waiting for the device. A black or empty first window says nothing, so a few more are checked.
INPUT_CHECKS = 8


class COPLENet(nn.Module):
    """Slice-wise segmentation network with two-way pooling, gated convolutions and a dilated pyramid at the bottom.

    Five levels; the encoder halves the plane by max and average pooling side by side, 1x1 bridges carry half of each
    level's channels to the decoder, and every pair of convolutions has a residual path and a channel gate.

    Shapes: ``(B, in_channels, H, W)`` -> logits ``(B, out_channels, H, W)``; a volume ``(B, in_channels, D, H, W)``
    is treated as `D` independent slices along its first spatial axis -> ``(B, out_channels, D, H, W)``. Floating
    dtype of the weights.

    * Any height and width from 1: a plane whose sides are not multiples of 16 is extended at its end (last rows and
      columns repeated) and the logits are cropped back; with multiples of 16 nothing is added. What is added takes
      part in the plane-wide averages of the channel gates and of group or instance norm, as any padding does.
    * Any size is not any result: trained on planes of one size, the network loses small lesions in planes of another. The
      size that its weights were trained on is a buffer, `trained_plane`, see `monai_margincal.networks.record_trained_plane`;
      `monai_margincal.inferers.VolumeSliceInferer` presents planes in windows of that size.
    * Volumes: in `eval` mode `slice_batch_size` slices are computed at a time, which bounds the memory and does not change the
      result. In training all ``B * D`` slices form ONE batch: batch norm takes its mean and variance over all of them, and
      memory grows with their number. Traced and exported programs also take all slices at once.
    * Input is expected to be scaled: the CT window of width 1500 and level -650 HU mapped to [0, 1] (the published weights
      were trained on that), or centred or standardised likewise. The first calls are checked, and a value beyond +-10 or a NaN
      (Hounsfield units, 8-bit grey values) gives one warning per module. Scripted, traced, compiled and exported programs do
      not check.
    * Scripting, tracing, ``torch.export`` and ONNX export keep batch, depth, height and width dynamic. A program made by
      ``torch.export`` takes sides of 17 and more if it was exported with such a size; the others take any size.

    Parameters (one input channel, two classes): 10,521,666 at the default width, 2,634,146 at
    ``features=(16, 32, 64, 128, 256)``, 660,402 at ``features=(8, 16, 32, 64, 128)``.

    Args:
        spatial_dims: must be 2. The layers work in a plane; volumes are accepted as stacks of slices (see above).
        in_channels: number of image channels, 1 for CT, 3 for colour frames.
        out_channels: number of classes, background included.
        features: channels of the five levels. Each level must have twice the channels of the one above (pooling side
            by side doubles them), and the first an even number.
        dropout: dropout probability of the five levels, each in [0, 1); the decoder uses those of levels 0 to 3 again.
        norm: ``"batch"``, ``"syncbatch"``, ``"instance"`` or ``"group"``, alone or with MONAI's layer arguments as in
            ``("group", {"num_groups": 4})``. ``"group"`` alone means 4 groups, as in the margin calibration paper's
            code.
        act: activation after every normalisation, by MONAI's names. The channel gates keep the published ones.
        upsample: ``"bilinear"`` (1x1 convolution, then interpolation with aligned corners, the published form) or
            ``"deconv"`` (2x2 transposed convolution).
        slice_batch_size: slices of a volume computed at a time in `eval` mode.

    Raises:
        ValueError: `spatial_dims` is not 2; `features` or `dropout` has not 5 entries or breaks its rule; `norm`,
            `act` or `upsample` is unknown; the number of groups does not divide a level's channels; at call: the
            input is not 4-D or 5-D, or has another number of channels than `in_channels`.

    Source: Wang, Liu, Li, Xu, Ruan, Zhu, Meng, Li, Huang, Zhang, "A Noise-robust Framework for Automatic Segmentation
    of COVID-19 Pneumonia Lesions from CT Images", IEEE Transactions on Medical Imaging 39(8):2653-2663, 2020. The
    defaults give that network; with ``norm="group"`` and ``features=(16, 32, 64, 128, 256)`` it is the one of Li, Yu,
    Zhang, "Distribution-aware Margin Calibration for Medical Image Segmentation" (arXiv:2011.01462).

    Example:
        >>> import torch
        >>> from monai_margincal.networks import COPLENet
        >>> network = COPLENet(in_channels=1, out_channels=2, features=(8, 16, 32, 64, 128)).eval()
        >>> network(torch.rand(1, 1, 50, 70)).shape  # one slice, any size
        torch.Size([1, 2, 50, 70])
        >>> network(torch.rand(1, 1, 3, 32, 32)).shape  # a volume of three slices
        torch.Size([1, 2, 3, 32, 32])
    """

    def __init__(
        self,
        spatial_dims: int = 2,
        in_channels: int = 1,
        out_channels: int = 2,
        features: Sequence[int] = (32, 64, 128, 256, 512),
        dropout: Sequence[float] = (0.0, 0.0, 0.3, 0.4, 0.5),
        norm: LayerSpec = "batch",
        act: LayerSpec = ("leakyrelu", {"negative_slope": 0.01}),
        upsample: str = "bilinear",
        slice_batch_size: int = 8,
    ) -> None:
        super().__init__()
        if spatial_dims != 2:
            raise ValueError(
                f"COPLENet has two-dimensional layers: spatial_dims must be 2, found {spatial_dims!r}. A volume (B, C, D, H, W) "
                "can be passed to it as it is and is segmented slice by slice along its first spatial axis."
            )
        for name, value in (
            ("in_channels", in_channels),
            ("out_channels", out_channels),
            ("slice_batch_size", slice_batch_size),
        ):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, found {value!r}.")
        widths = _checked_features(features)
        rates = _checked_dropout(dropout)
        norm = _checked_norm(norm, widths)
        _check_act(act)
        if upsample not in UPSAMPLES:
            raise ValueError(f"upsample must be one of {UPSAMPLES}, found {upsample!r}.")
        self.in_channels = in_channels
        self.slice_batch_size = slice_batch_size
        self._input_checks_left = INPUT_CHECKS

        self.in_conv = ConvPair(in_channels, widths[0], dropout=rates[0], norm=norm, act=act)
        self.down1 = Down(widths[0], rates[1], norm, act)
        self.down2 = Down(widths[1], rates[2], norm, act)
        self.down3 = Down(widths[2], rates[3], norm, act)
        self.down4 = Down(widths[3], rates[4], norm, act)
        self.aspp = DilatedPyramid(widths[4], norm, act)
        self.bridge0 = ConvNormAct(widths[0], widths[0] // 2, 1, norm=norm, act=act)
        self.bridge1 = ConvNormAct(widths[1], widths[1] // 2, 1, norm=norm, act=act)
        self.bridge2 = ConvNormAct(widths[2], widths[2] // 2, 1, norm=norm, act=act)
        self.bridge3 = ConvNormAct(widths[3], widths[3] // 2, 1, norm=norm, act=act)
        self.up1 = Up(widths[4], widths[3], upsample=upsample, dropout=rates[3], norm=norm, act=act)
        self.up2 = Up(widths[3], widths[2], upsample=upsample, dropout=rates[2], norm=norm, act=act)
        self.up3 = Up(widths[2], widths[1], upsample=upsample, dropout=rates[1], norm=norm, act=act)
        self.up4 = Up(widths[1], widths[0], upsample=upsample, dropout=rates[0], norm=norm, act=act)
        self.out_conv = Conv["conv", 2](widths[0], out_channels, 3, padding=1)
        self.register_buffer(BUFFER, torch.zeros(2, dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits of `x`: (B, C, H, W) or (B, C, D, H, W), any plane size; same spatial shape."""
        if x.dim() != 4 and x.dim() != 5:
            raise ValueError(
                f"COPLENet expects (B, C, H, W) or (B, C, D, H, W), found an input of {x.dim()} dimensions."
            )
        if not torch.jit.is_scripting():
            self._check_input(x)
        if x.dim() == 4:
            return self._segment_planes(x)
        slices = x.transpose(1, 2).reshape(-1, x.shape[1], x.shape[3], x.shape[4])
        logits = self._segment_slices(slices)
        return logits.reshape([x.shape[0], x.shape[2], logits.shape[1], x.shape[3], x.shape[4]]).transpose(1, 2)

    def _load_from_state_dict(self, state_dict: dict[str, torch.Tensor], prefix: str, *arguments: Any) -> None:
        complete_trained_plane(state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, *arguments)

    def _segment_slices(self, slices: torch.Tensor) -> torch.Tensor:
        # A loop over a number of slices that is known only at run time can be scripted, but neither traced nor exported.
        unrolled = False
        if not torch.jit.is_scripting():
            unrolled = torch.jit.is_tracing() or torch.compiler.is_compiling()
        if self.training or unrolled:
            return self._segment_planes(slices)
        return torch.cat([self._segment_planes(chunk) for chunk in slices.split(self.slice_batch_size)])

    def _segment_planes(self, x: torch.Tensor) -> torch.Tensor:
        # Padding by zero pixels is a copy. A branch around it would be frozen into traced and exported programs.
        rows, columns = _missing_to_multiple(x.shape[2]), _missing_to_multiple(x.shape[3])
        level0 = self.in_conv(functional.pad(x, [0, columns, 0, rows], mode="replicate"))
        level1 = self.down1(level0)
        level2 = self.down2(level1)
        level3 = self.down3(level2)
        y = self.aspp(self.down4(level3))
        y = self.up1(y, self.bridge3(level3))
        y = self.up2(y, self.bridge2(level2))
        y = self.up3(y, self.bridge1(level1))
        y = self.up4(y, self.bridge0(level0))
        # Negative padding crops like slicing does, but gives a new tensor: of a slice, exporters would freeze into the program
        # whether it happens to be contiguous, that is, whether the size is a multiple of 16.
        return functional.pad(self.out_conv(y), [0, -columns, 0, -rows])

    @torch.jit.unused
    def _check_input(self, x: torch.Tensor) -> None:
        if torch.jit.is_tracing():
            return
        if x.shape[1] != self.in_channels:
            raise ValueError(
                f"COPLENet was built for in_channels={self.in_channels}, found an input of shape {tuple(x.shape)} "
                f"with {x.shape[1]} channels (axis 1)."
            )
        if self._input_checks_left == 0 or torch.compiler.is_compiling():
            return
        self._input_checks_left -= 1
        if x.numel() == 0:
            return
        low, high = (float(v) for v in torch.aminmax(x.detach()))
        if not (low >= -LARGEST_PLAUSIBLE_INPUT and high <= LARGEST_PLAUSIBLE_INPUT):
            self._input_checks_left = 0
            warnings.warn(
                f"COPLENet's input spans [{low:g}, {high:g}], expected values scaled to about [0, 1]: map the CT "
                "window of width 1500 and level -650 HU (-1400 to 100 HU) to [0, 1] first, e.g. with "
                "ScaleIntensityRanged(a_min=-1400, a_max=100, b_min=0, b_max=1, clip=True).",
                stacklevel=_CALLER,
            )


#: warn <- _check_input <- forward <- torch's _call_impl <- _wrapped_call_impl <- the line that calls the network
_CALLER = 5


def _missing_to_multiple(size: int) -> int:
    """Return what `size` lacks to be a multiple of 16, which four halvings need.

    Written as ``16 * n - size``, so that exporters can prove that halved and doubled sizes agree.
    """
    return 16 * ((size + 15) // 16) - size


def _checked_features(features: Sequence[int]) -> tuple[int, ...]:
    widths = tuple(features)
    if len(widths) != 5:
        raise ValueError(f"features must have 5 entries, one per level, found {len(widths)}: {widths}.")
    if any(isinstance(w, bool) or int(w) != w or w < 2 for w in widths) or widths[0] % 2:
        raise ValueError(f"features must be positive whole numbers and the first one even, found {widths}.")
    expected = tuple(widths[0] * 2**level for level in range(5))
    if widths != expected:
        raise ValueError(
            f"features must double from level to level, because max and average pooling are joined side by side: "
            f"expected {expected} for a first level of {widths[0]}, found {widths}."
        )
    return tuple(int(w) for w in widths)


def _checked_dropout(dropout: Sequence[float]) -> tuple[float, ...]:
    rates = tuple(float(p) for p in dropout)
    if len(rates) != 5:
        raise ValueError(f"dropout must have 5 entries, one per level, found {len(rates)}: {rates}.")
    if not all(0 <= p < 1 for p in rates):
        raise ValueError(f"dropout probabilities must lie in [0, 1), found {rates}.")
    return rates


def _checked_norm(norm: LayerSpec, widths: Sequence[int]) -> tuple[str, dict[str, Any]]:
    try:
        name, arguments = split_args(norm)
    except (TypeError, ValueError):
        name, arguments = norm, {}
    kind = name.lower() if isinstance(name, str) else name
    if kind not in NORMS:
        raise ValueError(f"norm must be one of {NORMS}, alone or as (name, arguments), found {norm!r}.")
    arguments = dict(arguments)
    if kind == "group":
        groups = arguments.setdefault("num_groups", 4)
        # every normalised width is a multiple of the narrowest, the first bridge
        if (widths[0] // 2) % groups:
            raise ValueError(
                f"norm 'group' with num_groups={groups} needs features whose half is divisible by it: "
                f"the first bridge has {widths[0] // 2} channels (features {tuple(widths)})."
            )
    return kind, arguments


def _check_act(act: LayerSpec) -> None:
    try:
        get_act_layer(act)
    except (TypeError, ValueError) as error:
        raise ValueError(f"act {act!r} is not an activation that MONAI knows: {error}") from error
