"""Data on disk as MONAI data lists: images and labels paired by case name, splits, published data sets."""

from __future__ import annotations

from .case_files import case_file, mask_file_name
from .datalist_file import read_datalist
from .endovis2017 import ENDOVIS2017_CLASSES, endovis2017_datalist, instrument_class_names
from .folder import folder_datalist
from .folds import assign_folds, select_fold
from .frames import frames_datalist
from .group_table import read_group_table
from .groups import assign_groups, require_separate_groups
from .label_files import label_files
from .named_cases import NamedCacheDataset
from .scan_list import scan_list
from .scans import ScanDataset
from .shared_groups import find_shared_groups, warn_of_shared_groups
from .splits import select_cases, split_datalist
from .uestc_covid19 import UESTC_COVID19_SPLITS, uestc_covid19_datalist

__all__ = [
    "ENDOVIS2017_CLASSES",
    "NamedCacheDataset",
    "ScanDataset",
    "UESTC_COVID19_SPLITS",
    "assign_folds",
    "assign_groups",
    "case_file",
    "endovis2017_datalist",
    "find_shared_groups",
    "folder_datalist",
    "frames_datalist",
    "instrument_class_names",
    "label_files",
    "mask_file_name",
    "read_datalist",
    "read_group_table",
    "require_separate_groups",
    "scan_list",
    "select_cases",
    "select_fold",
    "split_datalist",
    "uestc_covid19_datalist",
    "warn_of_shared_groups",
]
