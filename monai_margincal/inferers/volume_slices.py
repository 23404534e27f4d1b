"""A 2-D network over a whole 3-D volume: batches of axial slices, in windows of the size that the network was trained on.

``monai.inferers.SliceInferer`` gives the same result for windows of a given size; this class exists to know that size and to be
cheaper. Windows are blended in the volume's own precision even under autocast, no count map is kept where one window holds a
plane, and the input is never written to.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from monai.data import MetaTensor
from monai.inferers import Inferer, sliding_window_inference
from monai.utils import BlendMode, ensure_tuple_rep
from torch.nn import functional

from ..decisions.decide_class import Offsets, as_class_offsets, decided_classes
from ..networks import trained_plane

#: what the network is given at once where neither its weights nor the caller name a size: it bounds the memory
LARGEST_PLANE = (512, 512)


class VolumeSliceInferer(Inferer):
    """Run a slice network over the last axis of a volume and assemble its outputs into a volume.

    Planes are presented as in training, because a network that pools over its plane sees something else in another one. A plane
    smaller than the window is padded with zeros on both sides, as `monai.transforms.SpatialPad` does it, and its output cropped
    back. A larger one is cut into overlapping windows, whose outputs are blended by
    :func:`monai.inferers.sliding_window_inference`. At most ``sw_batch_size`` planes or windows are in the network at a time, so
    that memory, apart from input and output, does not grow with the number of slices.

    Input: (B, C, X, Y, Z) with the slices along Z, any floating dtype. Output: (B, K, X, Y, Z) in the input's dtype, where the
    network maps (n, C, x, y) to (n, K, x, y). With ``decide`` the output is (B, 1, X, Y, Z), the class of the largest logit as
    uint8 (int32 above 256 classes): it is decided on the device of the network, batch by batch, so that the logits of the whole
    volume never exist and only the decision is moved or reoriented. A MetaTensor stays one, with its metadata. Single planes,
    (B, C, X, Y), such as the frames of a video, give (B, K, X, Y) in the same way.

    Args:
        roi_size: the window, one number or one per in-plane axis; 0 or negative: the plane's own size. By default the size that
            the network's weights were trained on (see `monai_margincal.networks.trained_plane`); if they do not say, whole
            planes, and windows of 512 only along a side that is longer.
        sw_batch_size: largest number of planes or windows given to the network at once.
        overlap: share of a window that its neighbour covers too, in [0, 1); only used for planes larger than the window.
        mode: how overlapping windows are blended, "gaussian" (less weight near a window's edge) or "constant".
        device: where the output volume is assembled; by default where the input is. "cpu" keeps a large output off the GPU.
        decide: give the class of every voxel instead of its logits: True takes the largest logit (class 1 where a network
            of one logit gives more than 0); `ClassOffsets`, one number per class or the path of their JSON file the largest sum
            of logit and offset.
        channels_last: hand planes to the network in channels-last memory, which convolutions on GPUs in half precision want
            (give the network the same layout: ``network.to(memory_format=torch.channels_last)``).

    Warns:
        UserWarning: once, on call: ``roi_size`` is not the size that the network's weights were trained on.

    Raises:
        ValueError: ``sw_batch_size`` is below 1, ``overlap`` is outside [0, 1), ``mode`` is unknown or ``roi_size`` is not one
            or two numbers; on call: the input is not of rank 4 or 5 or has an empty axis, or the network returns planes of
            another size.
        TypeError: on call: the network does not return one tensor.

    Example:
        >>> import torch
        >>> from monai_margincal.inferers import VolumeSliceInferer
        >>> inferer = VolumeSliceInferer(roi_size=(32, 32), sw_batch_size=4)
        >>> volume = torch.rand(1, 1, 40, 24, 5)  # planes of 40 x 24: two windows along the first axis
        >>> torch.allclose(inferer(volume, network=torch.nn.Identity()), volume)
        True
        >>> two_classes = lambda planes: torch.cat([0.5 - planes, planes - 0.5], dim=1)
        >>> decided = VolumeSliceInferer(decide=True)(volume, network=two_classes)
        >>> decided.dtype, torch.equal(decided == 1, volume > 0.5)
        (torch.uint8, True)
    """

    def __init__(
        self,
        roi_size: Sequence[int] | int | None = None,
        sw_batch_size: int = 8,
        overlap: float = 0.25,
        mode: BlendMode | str = BlendMode.GAUSSIAN,
        device: torch.device | str | None = None,
        decide: bool | Offsets = False,
        channels_last: bool = False,
    ) -> None:
        super().__init__()
        if sw_batch_size < 1:
            raise ValueError(f"sw_batch_size must be at least 1, found {sw_batch_size}")
        if not 0 <= overlap < 1:
            raise ValueError(f"overlap must lie in [0, 1), found {overlap}")
        self.roi_size: tuple[int, ...] | None = None if roi_size is None else ensure_tuple_rep(roi_size, 2)
        self.sw_batch_size = sw_batch_size
        self.overlap = overlap
        self.mode = BlendMode(mode)
        self.device = device
        self.decide = decide is not False and decide is not None
        self.offsets = None if isinstance(decide, bool) else as_class_offsets(decide)
        self._warned = False
        self.memory_format = torch.channels_last if channels_last else torch.contiguous_format

    def __call__(
        self, inputs: torch.Tensor, network: Callable[..., torch.Tensor], *args: Any, **kwargs: Any
    ) -> torch.Tensor:
        """Run ``network`` over the slices of ``inputs``.

        Args:
            inputs: volumes of shape (B, C, X, Y, Z), or planes (B, C, X, Y).
            network: maps planes (n, C, x, y) to (n, K, x, y).
            args: further positional arguments of ``network``.
            kwargs: further keyword arguments of ``network``.

        Returns:
            volumes of shape (B, K, X, Y, Z), with ``decide`` (B, 1, X, Y, Z), on ``device``; planes (B, K, X, Y), (B, 1, X, Y).
        """
        if inputs.ndim not in (4, 5) or 0 in inputs.shape:
            raise ValueError(
                "expected volumes of shape (B, C, X, Y, Z), or planes (B, C, X, Y), without an empty axis, "
                f"found {tuple(inputs.shape)}"
            )
        volume = inputs.as_tensor() if isinstance(inputs, MetaTensor) else inputs
        if inputs.ndim == 4:
            volume = volume.movedim(0, -1)[None]  # a volume of which the frames of the batch are the slices

        def on_planes(planes: torch.Tensor) -> torch.Tensor:
            logits = network(planes, *args, **kwargs)
            if not isinstance(logits, torch.Tensor):
                raise TypeError(f"the network must return one tensor, it returned {type(logits).__name__}")
            if logits.shape[0] != planes.shape[0] or logits.shape[2:] != planes.shape[2:]:
                raise ValueError(
                    f"the network must keep the size of planes {tuple(planes.shape)}, it returned {tuple(logits.shape)}"
                )
            return logits

        output = self._all_slices(volume, self._window(network, volume.shape[2:4]), on_planes)
        if inputs.ndim == 4:
            output = output[0].movedim(-1, 0)
        return MetaTensor(output).copy_meta_from(inputs) if isinstance(inputs, MetaTensor) else output

    def _window(self, network: Any, plane: Sequence[int]) -> tuple[int, ...]:
        """The size at which planes of this size are presented to the network."""
        trained = trained_plane(network)
        if self.roi_size is None:
            return trained or tuple(map(min, LARGEST_PLANE, plane))
        window = tuple(roi if roi > 0 else side for roi, side in zip(self.roi_size, plane, strict=True))
        if trained is not None and window != trained and not self._warned:
            self._warned = True
            warnings.warn(
                f"roi_size: found windows of {_by(window)}, expected {_by(trained)}, the planes that the weights were trained "
                "on: small lesions may be lost. Without roi_size the windows are those of the weights.",
                stacklevel=3,  # the line that calls the inferer
            )
        return window

    def _all_slices(
        self, volume: torch.Tensor, window: tuple[int, ...], network: Callable[[torch.Tensor], torch.Tensor]
    ) -> torch.Tensor:
        stacked: torch.Tensor | None = None
        depth = volume.shape[-1]
        for case, slices in enumerate(volume):  # slices: (C, X, Y, Z)
            for first in range(0, depth, self.sw_batch_size):
                batch = slice(first, min(first + self.sw_batch_size, depth))
                planes = self._planes(slices[..., batch].movedim(-1, 0), window, network)
                if self.decide:
                    planes = decided_classes(planes, self.offsets)
                if stacked is None:
                    # slices first: a batch is then one contiguous block of memory
                    shape = (volume.shape[0], depth, *planes.shape[1:])
                    dtype = planes.dtype if self.decide else volume.dtype
                    stacked = torch.empty(shape, dtype=dtype, device=self.device or volume.device)
                stacked[case, batch] = planes
        assert stacked is not None  # no axis is empty
        return stacked.movedim(1, -1)

    def _planes(
        self, planes: torch.Tensor, window: tuple[int, ...], network: Callable[[torch.Tensor], torch.Tensor]
    ) -> torch.Tensor:
        """Planes (n, C, x, y) -> logits (n, K, x, y), presented in windows of this size."""
        missing = [max(roi - side, 0) for roi, side in zip(window, planes.shape[2:], strict=True)]
        if any(missing):
            # half of what is missing on each side, as MONAI's padding does it in training
            before = [size // 2 for size in missing]
            x, y = (slice(first, first + side) for first, side in zip(before, planes.shape[2:], strict=True))
            sides = [before[1], missing[1] - before[1], before[0], missing[0] - before[0]]
            return self._planes(functional.pad(planes, sides), window, network)[..., x, y]
        planes = planes.contiguous(memory_format=self.memory_format)
        if window == tuple(planes.shape[2:]):
            return network(planes)

        def on_windows(windows: torch.Tensor) -> torch.Tensor:
            logits = network(windows.contiguous(memory_format=self.memory_format))
            # the blending multiplies in place: give it a copy, and not one rounded to half precision
            return logits.to(planes.dtype, copy=True)

        blended = sliding_window_inference(
            planes,
            roi_size=window,
            sw_batch_size=self.sw_batch_size,
            predictor=on_windows,
            overlap=self.overlap,
            mode=self.mode,
        )
        return cast(torch.Tensor, blended)  # one tensor in, one tensor out


def _by(sides: Sequence[int]) -> str:
    return " x ".join(map(str, sides))
