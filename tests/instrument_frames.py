"""EndoVis 2017 in small: its folders and file names, with pictures cut from one real frame of a da Vinci robot and its mask.

Where the real frame is absent, the frame is drawn.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from tests.shared import SHARED

#: the folders of the ground truth as they are distributed
INSTRUMENTS = {
    1: (
        "Left_Prograsp_Forceps_labels",
        "Maryland_Bipolar_Forceps_labels",
        "Other_labels",
        "Right_Prograsp_Forceps_labels",
    ),
    2: ("Left_Prograsp_Forceps_labels", "Other_labels", "Right_Prograsp_Forceps_labels"),
    3: ("Left_Large_Needle_Driver_labels", "Right_Large_Needle_Driver_labels"),
    4: ("Large_Needle_Driver_Left_labels", "Large_Needle_Driver_Right_labels", "Prograsp_Forceps_labels"),
    5: ("Bipolar_Forceps_labels", "Grasping_Retractor_labels", "Vessel_Sealer_labels"),
    6: (
        "Left_Large_Needle_Driver_labels",
        "Monopolar_Curved_Scissors_labels",
        "Prograsp_Forceps",
        "Right_Large_Needle_Driver_labels",
    ),
    7: ("Left_Bipolar_Forceps", "Right_Vessel_Sealer"),
    8: (
        "Bipolar_Forceps_labels",
        "Left_Grasping_Retractor_labels",
        "Monopolar_Curved_Scissors_labels",
        "Right_Grasping_Retractor_labels",
    ),
}
FRAMES = range(225)


def write_endovis2017(root: Path, width: int = 40, height: int = 32, sequences=tuple(INSTRUMENTS)) -> Path:
    """Write the training part of the data set: 225 frames per sequence, one mask per instrument and frame.

    From frame to frame the picture moves on; every sequence begins elsewhere. The first folder of a sequence holds the
    real mask, divided into claspers, wrist and shaft; every further one a square, that of ``Other`` a probe. Frame 7
    of sequence 1 shows no instrument.
    """
    picture, inside = _scene(width, height)
    for number in sequences:
        folder = root / f"instrument_dataset_{number}"
        for place in ("left_frames", *(f"ground_truth/{name}" for name in INSTRUMENTS[number])):
            (folder / place).mkdir(parents=True)
        for frame in FRAMES:
            shift = (3 * number, 5 * number + frame // 5)
            view = np.roll(picture, shift, axis=(0, 1))
            Image.fromarray(view).save(folder / "left_frames" / name_of(frame))
            for index, instrument in enumerate(INSTRUMENTS[number]):
                if index == 0:
                    mask = np.roll(inside, shift, axis=(0, 1))
                else:
                    mask = _square(index, frame, width, height, 40 if instrument.startswith("Other") else 30)
                empty = (number, frame) == (1, 7)
                Image.fromarray(np.zeros_like(mask) if empty else mask).save(
                    folder / "ground_truth" / instrument / name_of(frame)
                )
    return root


def name_of(frame: int) -> str:
    return f"frame{frame:03d}.png"


def _scene(width: int, height: int) -> tuple[np.ndarray, np.ndarray]:
    """A frame, and its instruments: claspers, wrist and shaft from left to right."""
    if SHARED is None:
        picture = np.full((height, width, 3), (150, 60, 50), np.uint8)
        mask = np.zeros((height, width), bool)
        mask[height // 4 : height // 2, : width // 2] = True
        picture[mask] = (120, 125, 130)
    else:
        folder = SHARED / "data" / "surgical"
        picture = np.asarray(Image.open(folder / "green.png").resize((width, height)))
        mask = np.asarray(Image.open(folder / "green_seg.png").resize((width, height), Image.Resampling.NEAREST)) > 0
    columns = np.broadcast_to(np.arange(width), mask.shape)
    wrist, shaft = np.quantile(columns[mask], (0.2, 0.4))
    parts = np.select([~mask, columns > shaft, columns > wrist], [0, 10, 20], 30)
    return picture, parts.astype(np.uint8)


def _square(index: int, frame: int, width: int, height: int, value: int) -> np.ndarray:
    mask = np.zeros((height, width), np.uint8)
    side = height // 4
    top, left = (side * index) % (height - side), (frame + side * index) % (width - side)
    mask[top : top + side, left : left + side] = value
    if value == 30:
        mask[top : top + side // 2, left : left + side] = 10
    return mask
