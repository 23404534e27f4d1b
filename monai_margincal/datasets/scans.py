"""The list of scans to segment: refused before anything is loaded if results would collide, and named where one fails."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from monai.data import Dataset, MetaTensor
from monai.utils import MetaKeys, SpaceKeys

from ..errors import CaseError, naming_files
from ..files import printable
from ..formats import LabelImage, check_scan
from ..formats.dicom_series import check_as_read
from ..formats.placeholder import why_missing
from ..formats.video import is_video, video_frame, video_index
from .case_files import IN_MEMORY, case_file
from .video_items import with_video_frames

_logger = logging.getLogger(__name__)

#: key of the reason in an item that stands for a scan which could not be read
FAILURE = "failure"


class _Results(Protocol):
    """What a run writes, such as `monai_margincal.outputs.Outputs`."""

    def is_result(self, scan: str | os.PathLike[str]) -> bool: ...


class ScanDataset(Dataset):
    """Data set of whole scans that says which scan it could not read, and warns of one that is hardly what it should be.

    A prepared scan is a tensor (1, X, Y, Z), or what ``channels`` and ``axes`` say. Voxels that are not a number (padding of some
    programs) would make every number of their slice one that is not: they get the lowest value of the scan, and the scan warns.

    Args:
        data: items with a file or folder at ``image_key``; with ``axes=2`` a video stands for its frames, see
            `with_video_frames`.
        transform: prepares an item.
        image_key: key of the scan.
        data_root_dir: folder of the data set, as given to the transforms that save: two scans whose results would have the
            same name are refused.
        window: the intensities that ``transform`` maps to 0 and 1.
        divider: an intensity inside the window with voxels of every proper scan on both sides, such as -500 between the air
            and the tissue of a CT in Hounsfield units. A scan with none below or none above it warns: it may be scaled, or
            another modality. It is not an error, because the numbers alone cannot tell. None, or without ``window``: no check.
        proper_scan: what that warning asks for, such as "a chest CT in Hounsfield units".
        allow_gaps: take a DICOM series in which a slice is missing, with a warning.
        hand_over_errors: give ``{image_key: path, "failure": one line}`` for a scan that cannot be read or prepared, for
            :class:`ScanEvaluator`, which goes on with the others; by default it is raised.
        channels: number of channels of a prepared scan, 3 for frames in colour.
        axes: number of its axes in space, 2 for frames.
        results: what the run writes: its files, which lie among the scans where the folder of results is the data set's, are
            left out, and the log names them.

    Raises:
        ValueError: ``data`` is empty or holds nothing but results, an item has no ``image_key``, or the results of two scans
            would have the same name.
        FileNotFoundError: a scan does not exist.
        CaseError: on access: a scan cannot be read or prepared, has another number of channels or axes, or holds only NaN; the
            message names it and the cause in one line.

    Example:
        >>> ScanDataset([], transform=None)
        Traceback (most recent call last):
        ValueError: the list of scans is empty, expected at least one {'image': file or folder}
    """

    def __init__(
        self,
        data: Sequence[Mapping[str, Any]],
        transform: Callable[..., Any] | None,
        image_key: str = "image",
        data_root_dir: str = "",
        window: Sequence[float] | None = None,
        divider: float | None = None,
        proper_scan: str = "a scan in the expected units",
        allow_gaps: bool = False,
        hand_over_errors: bool = False,
        channels: int = 1,
        axes: int = 3,
        results: _Results | None = None,
    ) -> None:
        if len(data) == 0:
            raise ValueError(f"the list of scans is empty, expected at least one {{{image_key!r}: file or folder}}")
        data = _without_results(data, image_key, results) if results is not None else data
        names: dict[Path, str] = {}
        for item in data:
            if image_key not in item:
                raise ValueError(f"an item of the list of scans has the keys {sorted(item)}, expected {image_key!r}")
            scan = item[image_key]
            if not isinstance(scan, str | Path):
                continue  # an array, from a client that reads by itself
            if not Path(scan).exists():
                raise FileNotFoundError(f"scan not found: {scan}: {why_missing(Path(scan))}")
            result = case_file({"filename_or_obj": str(scan)}, "", "", "", data_root_dir=data_root_dir)
            if result in names:
                raise ValueError(f"the results of {names[result]} and {scan} would have the same name, {result}")
            if ".." in result.parts:
                raise ValueError(f"{scan} does not lie in the data set's folder {data_root_dir}")
            names[result] = str(scan)
        super().__init__(with_video_frames(data, image_key) if axes == 2 else data, transform)
        self.image_key = image_key
        self.allow_gaps = allow_gaps
        self.hand_over_errors = hand_over_errors
        self.window = None if window is None else (float(window[0]), float(window[1]))
        self.divider = divider
        self.proper_scan = proper_scan
        self.channels = channels
        self.axes = axes

    def _transform(self, index: int) -> Any:
        scan = self.data[index][self.image_key]
        place = scan if isinstance(scan, str | Path) else IN_MEMORY
        try:
            with naming_files(place):
                headers = self._headers(Path(scan)) if isinstance(scan, str | Path) else None
                item = super()._transform(index)
                if isinstance(image := item[self.image_key], torch.Tensor):
                    if headers is not None:
                        _check_as_read(Path(scan), image, headers)
                    item[self.image_key] = _numbers_only(place, _of_shape(image, self.channels, self.axes))
        except CaseError as error:
            if not self.hand_over_errors:
                raise
            return {self.image_key: str(place), FAILURE: str(error)}
        self._warn_if_one_sided(place, item[self.image_key])
        return item

    def _headers(self, scan: Path) -> LabelImage | None:
        if self.axes == 2 and video_frame(scan) is not None:
            return None  # its reader checks it, and would have to decode it twice
        if self.axes == 2 and is_video(scan):
            video_index(scan)  # says why it does not stand for its frames
        return check_scan(scan, self.allow_gaps)

    def _warn_if_one_sided(self, scan: Any, image: torch.Tensor) -> None:
        if self.window is None or self.divider is None:
            return
        black, white = self.window
        low, high = (black + float(value) * (white - black) for value in torch.aminmax(image))
        if not black < self.divider < white or low < self.divider < high:
            return
        side = "below" if low >= self.divider else "above"
        warnings.warn(
            f"{scan}: found values from {low:.0f} to {high:.0f} within the window of {black:.0f} to {white:.0f} and none {side} "
            f"{self.divider:.0f}: is it {self.proper_scan}?",
            stacklevel=4,
        )


def _without_results(
    data: Sequence[Mapping[str, Any]], image_key: str, results: _Results
) -> Sequence[Mapping[str, Any]]:
    """Leave out what an earlier run wrote: nobody wants masks of masks."""
    own = [isinstance(scan := item.get(image_key), str | Path) and results.is_result(scan) for item in data]
    left_out = [str(item[image_key]) for item, is_own in zip(data, own, strict=True) if is_own]
    if not left_out:
        return data
    shown = printable(", ".join(left_out[:3]) + (f" and {len(left_out) - 3} more" if len(left_out) > 3 else ""))
    if len(left_out) == len(data):
        raise ValueError(f"{shown}: found results of an earlier run only, expected scans")
    _logger.warning("left out what an earlier run wrote: %s", shown)
    return [item for item, is_own in zip(data, own, strict=True) if not is_own]


def _check_as_read(scan: Path, image: torch.Tensor, headers: LabelImage) -> None:
    if not isinstance(image, MetaTensor) or MetaKeys.SPATIAL_SHAPE not in image.meta:
        return
    # shape and affine as read: transforms may have turned or cut the image
    shape = tuple(int(size) for size in image.meta[MetaKeys.SPATIAL_SHAPE])
    affine = image.meta.get(MetaKeys.ORIGINAL_AFFINE)
    in_ras = affine is not None and image.meta.get(MetaKeys.SPACE) == SpaceKeys.RAS
    check_as_read(scan, headers, shape, np.asarray(affine, dtype=np.float64) if in_ras else None)


def _of_shape(image: torch.Tensor, channels: int, axes: int) -> torch.Tensor:
    if image.ndim != axes + 1 or image.shape[0] != channels or 0 in image.shape:
        single = (channels, axes) == (1, 3)
        expected = "one volume of three axes" if single else f"{channels} channel(s) of {axes} axes"
        raise ValueError(
            f"found {image.shape[0]} channel(s) or frame(s) of shape {tuple(image.shape[1:])}, expected {expected}"
        )
    return image


def _numbers_only(scan: Any, image: torch.Tensor) -> torch.Tensor:
    # the extremes are NaN if any voxel is; looking at them first spares most scans a second pass
    if not image.is_floating_point() or not torch.isnan(torch.aminmax(image).max):
        return image
    missing = torch.isnan(image.as_tensor() if isinstance(image, MetaTensor) else image)
    number = int(missing.sum())
    if number == image.numel():
        raise ValueError("no voxel is a number (NaN everywhere)")
    warnings.warn(
        f"{scan}: found {number} of {image.numel()} voxels that are not a number (NaN), they get the scan's lowest value",
        stacklevel=5,
    )
    return image.masked_fill(missing, float(image[~missing].min()))
