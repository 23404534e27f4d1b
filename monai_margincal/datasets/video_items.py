"""Videos in a list of scans: each stands for its frames, which are named one by one without a list that grows with them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, overload

from ..formats.video import VideoIndex, is_video, video_index


def with_video_frames(data: Sequence[Mapping[str, Any]], image_key: str = "image") -> Sequence[Mapping[str, Any]]:
    """Put the frames of each video in its place.

    A frame has the keys of its video, and at ``image_key`` the name ``VIDEO/NUMBER.png``, by which `colour_frame` reads it.
    A video that cannot be opened stays as it is, so that it fails where the others do.

    Args:
        data: items with a file at ``image_key``.
        image_key: key of the file.

    Returns:
        ``data`` itself if there is no video in it.

    Example:
        >>> with_video_frames([{"image": "a.png"}])
        [{'image': 'a.png'}]
    """
    indices = [_index_of(item.get(image_key)) for item in data]
    return data if all(index is None for index in indices) else _VideoItems(data, indices, image_key)


def _index_of(file: Any) -> VideoIndex | None:
    if not isinstance(file, str | Path) or not is_video(file):
        return None
    try:
        return video_index(Path(file))
    except ValueError:
        return None


class _VideoItems(Sequence[Mapping[str, Any]]):
    def __init__(self, data: Sequence[Mapping[str, Any]], indices: Sequence[VideoIndex | None], image_key: str) -> None:
        self._data = data
        self._indices = indices
        self._image_key = image_key
        lengths = (1 if index is None else len(index.times) for index in indices)
        #: where each item of the list begins, and the end
        self._begins = list(accumulate(lengths, initial=0))

    def __len__(self) -> int:
        return self._begins[-1]

    @overload
    def __getitem__(self, position: int) -> Mapping[str, Any]: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[Mapping[str, Any]]: ...
    def __getitem__(self, position: int | slice) -> Mapping[str, Any] | Sequence[Mapping[str, Any]]:
        if isinstance(position, slice):
            return [self[one] for one in range(*position.indices(len(self)))]
        place = range(len(self))[position]
        number = bisect_right(self._begins, place) - 1
        item, index = self._data[number], self._indices[number]
        if index is None:
            return item
        return {**item, self._image_key: str(index.frame_file(place - self._begins[number]))}
