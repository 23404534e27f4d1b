"""On-disk layouts as MONAI data lists: an image/label folder pair matched by case name, published data sets with their splits."""

from __future__ import annotations

from monai_margincal.datasets.datalist_file import read_datalist
from monai_margincal.datasets.folder import IMAGE_ENDINGS, folder_datalist
from monai_margincal.datasets.named_cases import NamedCacheDataset
from monai_margincal.datasets.same_grid import CheckSameGridD, CheckSameGridd, CheckSameGridDict
from monai_margincal.datasets.splits import select_cases, split_datalist
from monai_margincal.datasets.uestc_covid19 import UESTC_COVID19_SPLITS, uestc_covid19_datalist

__all__ = [
    "CheckSameGridD",
    "CheckSameGridDict",
    "CheckSameGridd",
    "IMAGE_ENDINGS",
    "NamedCacheDataset",
    "UESTC_COVID19_SPLITS",
    "folder_datalist",
    "read_datalist",
    "select_cases",
    "split_datalist",
    "uestc_covid19_datalist",
]
