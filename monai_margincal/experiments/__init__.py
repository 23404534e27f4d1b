"""Compare learning objectives as the paper does, but with seeds, intervals and free decoders: tasks x objectives x seeds.

`Study` reads a YAML file, `run_study` trains what is missing (resumable, in several processes at once), `write_study_report`
makes results.csv, tables, figures and one HTML file. ``margincal compare CONFIG`` does all three.
"""

from __future__ import annotations

from .decoders import ArgmaxDecoder, ClassOffsetDecoder, RankSEGDecoder
from .objectives import SoftmaxFirstLoss, WeightedSumLoss
from .runner import run_study
from .study import Cell, Study
from .study_report import write_study_report
from .top_k import TopKCrossEntropyLoss

__all__ = [
    "ArgmaxDecoder",
    "Cell",
    "ClassOffsetDecoder",
    "RankSEGDecoder",
    "SoftmaxFirstLoss",
    "Study",
    "TopKCrossEntropyLoss",
    "WeightedSumLoss",
    "run_study",
    "write_study_report",
]
