"""The parts that COPLE-Net is made of: gated convolution pairs, two-way pooling, learned upsampling and the bottom pyramid.

All parts are two-dimensional, keep the plane's size unless they say otherwise, and can be scripted, traced and exported. Layers
come from MONAI's factories; the modules and their parameter names are this package's own, so that saved weights stay readable
when a library block is rearranged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from monai.networks.layers import get_act_layer, get_dropout_layer, get_norm_layer
from monai.networks.layers.factories import Conv, Pool
from torch import nn
from torch.nn import functional

#: A MONAI layer specification: a name, or a name with the layer's arguments.
LayerSpec = str | tuple[str, Mapping[str, Any]]


class ConvNormAct(nn.Sequential):
    """Convolution, normalisation, activation; `kernel_size` is odd and the plane keeps its size."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, norm: LayerSpec, act: LayerSpec) -> None:
        super().__init__()
        self.add_module("conv", Conv["conv", 2](in_channels, out_channels, kernel_size, padding=kernel_size // 2))
        self.add_module("norm", get_norm_layer(norm, spatial_dims=2, channels=out_channels))
        self.add_module("act", get_act_layer(act))


class ResidualChannelGate(nn.Module):
    """Squeeze and excitation with a residual path: ``x + x * gate(mean of x over the plane)``.

    Its gate ends in a ReLU, not in a sigmoid: a channel may be amplified without limit and is never weakened.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.pool = Pool["adaptiveavg", 2](1)
        self.squeeze = Conv["conv", 2](channels, channels // 2, 1)
        self.act = get_act_layer("leakyrelu")
        self.excite = Conv["conv", 2](channels // 2, channels, 1)
        self.gate = get_act_layer("relu")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Gate the channels of `x` (B, C, H, W)."""
        gate = self.gate(self.excite(self.act(self.squeeze(self.pool(x)))))
        return gate * x + x


class ConvPair(nn.Sequential):
    """Two 3x3 convolutions with dropout between them, then the channel gate."""

    def __init__(self, in_channels: int, out_channels: int, dropout: float, norm: LayerSpec, act: LayerSpec) -> None:
        super().__init__()
        self.add_module("first", ConvNormAct(in_channels, out_channels, 3, norm=norm, act=act))
        # dropout_dim=1: single values are dropped, not whole channels
        self.add_module("dropout", get_dropout_layer(dropout, dropout_dim=1))
        self.add_module("second", ConvNormAct(out_channels, out_channels, 3, norm=norm, act=act))
        self.add_module("gate", ResidualChannelGate(out_channels))


class Down(nn.Module):
    """Halve the plane by max and average pooling side by side (channels double), then a residual convolution pair."""

    def __init__(self, in_channels: int, dropout: float, norm: LayerSpec, act: LayerSpec) -> None:
        super().__init__()
        self.max_pool = Pool["max", 2](2)
        self.avg_pool = Pool["avg", 2](2)
        self.conv = ConvPair(2 * in_channels, 2 * in_channels, dropout=dropout, norm=norm, act=act)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, C, 2H, 2W) -> (B, 2C, H, W)."""
        pooled = torch.cat([self.max_pool(x), self.avg_pool(x)], dim=1)
        return self.conv(pooled) + pooled


class BilinearUp(nn.Module):
    """Project the channels by a 1x1 convolution, then stretch the plane so that its corner pixels stay on the corners."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.project = Conv["conv", 2](in_channels, out_channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, C, H, W) -> (B, out_channels, 2H, 2W)."""
        # An explicit size: a scale factor would turn dynamic sizes into floats, and exporters could no longer prove them equal.
        size = [2 * x.shape[2], 2 * x.shape[3]]
        return functional.interpolate(self.project(x), size=size, mode="bilinear", align_corners=True)


class Up(nn.Module):
    """Double the plane, join it with the encoder's features, then a residual convolution pair."""

    def __init__(
        self, in_channels: int, out_channels: int, upsample: str, dropout: float, norm: LayerSpec, act: LayerSpec
    ) -> None:
        super().__init__()
        half = out_channels // 2
        self.up: nn.Module
        if upsample == "bilinear":
            self.up = BilinearUp(in_channels, half)
        else:
            self.up = Conv["convtrans", 2](in_channels, half, kernel_size=2, stride=2)
        self.conv = ConvPair(out_channels, out_channels, dropout=dropout, norm=norm, act=act)

    def forward(self, x: torch.Tensor, skip: torch.Tensor) -> torch.Tensor:
        """`x` (B, in_channels, H, W), `skip` (B, out_channels / 2, 2H, 2W) -> (B, out_channels, 2H, 2W)."""
        joined = torch.cat([skip, self.up(x)], dim=1)
        return self.conv(joined) + joined


class DilatedPyramid(nn.Module):
    """Atrous spatial pyramid: parallel convolutions of growing reach, a quarter of the channels each, then merged."""

    def __init__(self, channels: int, norm: LayerSpec, act: LayerSpec, dilations: Sequence[int] = (1, 2, 4, 6)) -> None:
        super().__init__()
        quarter = channels // len(dilations)
        self.branches = nn.ModuleList()
        for dilation in dilations:
            kernel_size = 1 if dilation == 1 else 3
            padding = dilation * (kernel_size // 2)
            conv = Conv["conv", 2](channels, quarter, kernel_size, dilation=dilation, padding=padding)
            self.branches.append(conv)
        self.merge = ConvNormAct(channels, channels, 1, norm=norm, act=act)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, C, H, W) -> (B, C, H, W)."""
        return self.merge(torch.cat([branch(x) for branch in self.branches], dim=1))
