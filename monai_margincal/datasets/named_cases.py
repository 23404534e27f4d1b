"""MONAI's cached data set, with the files of a case in the message when one of them cannot be read or prepared."""

from __future__ import annotations

from typing import Any

from monai.data import CacheDataset

from ..errors import naming_files


class NamedCacheDataset(CacheDataset):
    """`monai.data.CacheDataset` that names the case that failed: readers tell of the end of a file without saying of which.

    Takes what :class:`monai.data.CacheDataset` takes.

    Raises:
        CaseError: while caching or on access: a case cannot be read or prepared; the message is one line that names its files.

    Example:
        >>> def fail(item):
        ...     raise EOFError("the file ended early")
        >>> data = NamedCacheDataset([{"image": "/"}], fail, cache_rate=0.0)
        >>> data[0]
        Traceback (most recent call last):
        monai_margincal.errors.CaseError: /: cannot be read or prepared: EOFError: the file ended early
    """

    def _load_cache_item(self, idx: int) -> Any:
        with naming_files(self.data[idx]):
            return super()._load_cache_item(idx)

    def _transform(self, index: int) -> Any:
        with naming_files(self.data[index]):
            return super()._transform(index)
