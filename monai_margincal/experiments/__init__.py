"""Compare learning objectives as the paper does, but with seeds, intervals and free decoders: tasks x objectives x seeds.

`Study` reads a YAML file, `run_study` trains what is missing (resumable, in several processes at once), `write_study_report`
makes results.csv, tables, figures and one HTML file. ``margincal compare CONFIG`` does all three.
"""

from __future__ import annotations

from .decoders import ArgmaxDecoder, IoUThresholdDecoder, RankSEGDecoder
from .objectives import WeightedSumLoss
from .runner import run_study
from .study import Cell, Study
from .study_report import write_study_report

__all__ = [
    "ArgmaxDecoder",
    "Cell",
    "IoUThresholdDecoder",
    "RankSEGDecoder",
    "Study",
    "WeightedSumLoss",
    "run_study",
    "write_study_report",
]
