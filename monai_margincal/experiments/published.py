"""The published numbers, for the columns next to ours. The paper gives no seeds and no spread.

Source: Li, Yu, Zhang, "Distribution-aware Margin Calibration for Medical Image Segmentation" (arXiv:2011.01462), Tables 1 to 5.
Percent. "Pixel accuracy" is the recall of the foreground.
"""

from __future__ import annotations

__all__ = ["COMPOUND", "METHODS", "SENSITIVITY"]

#: Tables 2 and 3: method -> (accuracy, IoU) of COVID-19 part 1, part 2, instruments binary, instruments parts
METHODS: dict[str, tuple[tuple[float, float], ...]] = {
    "Cross-entropy": ((81.1, 69.6), (86.6, 76.8), (94.6, 86.0), (81.1, 66.2)),
    "Dice loss": ((80.7, 70.0), (85.5, 76.1), (97.7, 84.7), (78.5, 67.6)),
    "Tversky loss": ((80.7, 68.1), (89.1, 76.0), (96.4, 85.9), (79.7, 68.6)),
    "Focal loss": ((80.0, 68.5), (87.3, 76.9), (94.8, 86.2), (80.0, 69.5)),
    "Lovász-softmax": ((79.6, 70.0), (88.2, 77.7), (96.3, 86.0), (80.1, 68.9)),
    "Ours": ((83.8, 71.3), (88.3, 78.1), (95.8, 87.4), (81.5, 72.5)),
}

#: Table 1: (tau, upsilon) -> (loss, IoU) of COVID-19 part 1, (loss, mIoU) of instrument parts; validation sets
SENSITIVITY: dict[tuple[float, float], tuple[tuple[float, float], tuple[float, float]]] = {
    (1, 10): ((0.034, 72.8), (0.086, 71.2)),
    (1, 1): ((0.033, 73.4), (0.086, 71.5)),
    (10, 1): ((0.031, 73.1), (0.093, 72.7)),
    (10, 0.1): ((0.031, 72.8), (0.086, 72.1)),
    (10, 0.01): ((0.033, 72.7), (0.090, 71.8)),
}

#: Table 5: method -> IoU of COVID-19 part 1, part 2, instruments binary, parts
COMPOUND: dict[str, tuple[float, ...]] = {
    "Ours + Tversky loss": (71.6, 78.5, 87.7, 73.1),
    "Ours + Dice loss": (71.5, 78.0, 87.8, 73.2),
}
