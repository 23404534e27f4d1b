"""EndoVis 2017, robotic instruments in endoscopic video: frames and class maps, with the splits that are published."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from .instrument_maps import InstrumentTask, write_class_map

#: task -> names of the classes, in the order of their ids
ENDOVIS2017_CLASSES: dict[InstrumentTask, tuple[str, ...]] = {
    "binary": ("background", "instrument"),
    "parts": ("background", "shaft", "wrist", "claspers", "probe"),
    "types": (
        "background",
        "bipolar forceps",
        "prograsp forceps",
        "large needle driver",
        "vessel sealer",
        "grasping retractor",
        "monopolar curved scissors",
        "other",
    ),
}
SEQUENCES = range(1, 9)
FRAMES = range(225)
#: section -> frames of every sequence: the paper's split
ENDOVIS2017_FRAMES = {"training": range(150), "validation": range(150, 175), "test": range(175, 225)}
#: the sequences that each fold holds out: those of the challenge's winners, which others took over
ENDOVIS2017_FOLDS = {1: (1, 3), 2: (2, 5), 3: (4, 8), 4: (6, 7)}

InstrumentSplit = Literal["frames", "sequence", "fold"]


def endovis2017_datalist(
    root: str | os.PathLike[str],
    task: InstrumentTask,
    maps: str | os.PathLike[str],
    split: InstrumentSplit = "frames",
    held_out: int | None = None,
    *,
    progress: bool = True,
) -> dict[str, list[dict[str, str]]]:
    """List the frames of EndoVis 2017 with class maps, which are made where they do not exist yet.

    The data are handed out by the challenge's organisers. ``root`` holds ``instrument_dataset_1`` ... ``instrument_dataset_8``,
    or folders that hold them (``instrument_1_4_training``). In each lie 225 frames, ``left_frames/frame000.png`` ..., and one
    folder per instrument, ``ground_truth/NAME/frame000.png`` ...; what kind an instrument is, its folder's name says
    (``Left_Prograsp_Forceps_labels``). See `class_map` for what becomes of masks that overlap and of the black border.

    Args:
        root: the data set's folder; nothing is written into it, unless ``maps`` lies in it.
        task: "binary", "parts" or "types", see ``ENDOVIS2017_CLASSES``.
        maps: folder of the class maps, ``maps/instrument_dataset_1/frame000.png`` ... A run that was interrupted goes on where it
            stopped; a file that is not the map of these masks is never overwritten.
        split: "frames": training 0-149, validation 150-174, test 175-224 of every sequence, as in the paper (neighbours on both
            sides of a border are near copies of each other). "sequence": validation on one sequence, training on the others.
            "fold": validation on two sequences, training on the other six.
        held_out: the sequence (1 to 8) or the fold (1 to 4) of the validation; None for the split "frames".
        progress: show a progress bar while maps are made, if standard error is a terminal.

    Returns:
        section -> ``{"image": path, "label": path, "case": "1_frame000", "sequence": "instrument_dataset_1"}`` per frame; the
        same as ``"group"``, which belongs on one side of a split, except for the split "frames".

    Raises:
        ValueError: an unknown task, split or part that is held out; an instrument's kind is unknown; a mask that cannot be used.
        FileNotFoundError: a sequence, a frame or a mask is missing; the message names every one.
        FileExistsError: see ``maps``.

    Source: M. Allan et al., "2017 Robotic Instrument Segmentation Challenge", arXiv:1902.06426. Split by frames: the code
    released with Li, Yu, Zhang, "Distribution-aware Margin Calibration for Medical Image Segmentation" (arXiv:2011.01462).
    Folds: A. Shvets et al., "Automatic Instrument Segmentation in Robot-Assisted Surgery Using Deep Learning", arXiv:1803.01207.

    Example:
        >>> {section: 8 * len(frames) for section, frames in ENDOVIS2017_FRAMES.items()}
        {'training': 1200, 'validation': 200, 'test': 400}
    """
    instrument_class_names(task)
    section_of = _sections(split, held_out)
    folders = _sequence_folders(Path(root).expanduser().absolute())
    instruments = {sequence: _instruments(folder) for sequence, folder in folders.items()}
    _expect_all_frames(
        [place for number, folder in folders.items() for place in (folder / "left_frames", *instruments[number])]
    )
    sections: dict[str, list[dict[str, str]]] = {name: [] for name in ENDOVIS2017_FRAMES}
    for number, frame in _shown_progress([(number, frame) for number in SEQUENCES for frame in FRAMES], progress):
        folder = folders[number]
        name = _frame_name(frame)
        image = folder / "left_frames" / name
        label = Path(maps).expanduser().absolute() / folder.name / name
        write_class_map(label, image, {place / name: kind for place, kind in instruments[number].items()}, task)
        sections[section_of(number, frame)].append(
            {
                "image": str(image),
                "label": str(label),
                "case": f"{number}_{label.stem}",
                "sequence": folder.name,
                # the split by frames divides every sequence
                **({} if split == "frames" else {"group": folder.name}),
            }
        )
    return {name: items for name, items in sections.items() if items}


def instrument_class_names(task: InstrumentTask) -> list[str]:
    """The names of a task's classes, in the order of their ids.

    Raises:
        ValueError: there is no such task.

    Example:
        >>> instrument_class_names("parts")
        ['background', 'shaft', 'wrist', 'claspers', 'probe']
    """
    if task not in ENDOVIS2017_CLASSES:
        raise ValueError(f"task: found {task!r}, expected one of {list(ENDOVIS2017_CLASSES)}")
    return list(ENDOVIS2017_CLASSES[task])


def instrument_type(folder_name: str) -> int:
    """The class of an instrument by the name of its folder, for the task "types".

    Raises:
        ValueError: the name holds none of the known kinds.

    Example:
        >>> instrument_type("Large_Needle_Driver_Left_labels"), instrument_type("Right_Vessel_Sealer")
        (3, 4)
    """
    words = folder_name.lower().replace("_", " ")
    kinds = ENDOVIS2017_CLASSES["types"][1:]
    found = [index for index, kind in enumerate(kinds, start=1) if kind in words]
    if len(found) != 1:
        raise ValueError(
            f"{folder_name}: found no known instrument in the folder's name, expected one of {list(kinds)}"
        )
    return found[0]


def _sections(split: InstrumentSplit, held_out: int | None) -> Any:
    """The function from sequence and frame to a section."""
    choices: dict[str, list[int | None]] = {
        "frames": [None],
        "sequence": list(SEQUENCES),
        "fold": list(ENDOVIS2017_FOLDS),
    }
    if split not in choices:
        raise ValueError(f"split: found {split!r}, expected one of {list(choices)}")
    if held_out not in choices[split]:
        raise ValueError(f"part held out by the split {split!r}: found {held_out}, expected one of {choices[split]}")
    if split == "frames":
        return lambda _, frame: next(name for name, frames in ENDOVIS2017_FRAMES.items() if frame in frames)
    validation = {held_out} if split == "sequence" else set(ENDOVIS2017_FOLDS[int(held_out or 0)])
    return lambda number, _: "validation" if number in validation else "training"


def _sequence_folders(root: Path) -> dict[int, Path]:
    """The folders of the eight sequences; those of the challenge's test, without ground truth, do not count."""
    if not root.is_dir():
        raise FileNotFoundError(f"data set folder not found: {root}")
    found = {
        number: [
            folder
            for pattern in ("", "*/")
            for folder in sorted(root.glob(f"{pattern}instrument_dataset_{number}"))
            if (folder / "ground_truth").is_dir()
        ]
        for number in SEQUENCES
    }
    missing = [f"instrument_dataset_{number}" for number, folders in found.items() if not folders]
    if missing:
        raise FileNotFoundError(
            f"{root}: found no folder with a ground_truth for {', '.join(missing)}, expected instrument_dataset_1 ... 8"
        )
    for folders in found.values():
        if len(folders) > 1:
            raise ValueError(f"{root}: found {folders[0].name} in {len(folders)} places, expected one: {folders[1]}")
    return {number: folders[0] for number, folders in found.items()}


def _instruments(sequence: Path) -> dict[Path, int]:
    """Folders of a sequence's masks -> class of the instrument."""
    truth = sequence / "ground_truth"
    folders = sorted(path for path in truth.iterdir() if path.is_dir() and not path.name.startswith("."))
    if not folders:
        raise FileNotFoundError(f"{truth}: found no folder, expected one per instrument")
    try:
        return {folder: instrument_type(folder.name) for folder in folders}
    except ValueError as error:
        raise ValueError(f"{truth / str(error)}") from None


def _frame_name(frame: int) -> str:
    return f"frame{frame:03d}.png"


def _expect_all_frames(folders: Iterable[Path]) -> None:
    missing = []
    for folder in folders:
        present = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
        absent = [frame for frame in FRAMES if _frame_name(frame) not in present]
        if absent:
            missing.append(f"{folder}: {_ranges(absent)}")
    if missing:
        raise FileNotFoundError(
            f"{len(missing)} folders lack frames, expected frame000.png ... 224: {'; '.join(missing)}"
        )


def _ranges(frames: Sequence[int]) -> str:
    """Numbers of frames in as few words as possible, without leaving one out."""
    starts = [frames[0], *(after for before, after in pairwise(frames) if after > before + 1)]
    ends = [*(before for before, after in pairwise(frames) if after > before + 1), frames[-1]]
    return ", ".join(
        f"{start:03d}" if start == end else f"{start:03d}-{end:03d}" for start, end in zip(starts, ends, strict=True)
    )


def _shown_progress(frames: list[tuple[int, int]], progress: bool) -> Iterable[tuple[int, int]]:
    from tqdm import tqdm

    # None: no bar where standard error is not a terminal
    return tqdm(frames, desc="class maps", unit="frame", disable=None if progress else True)
