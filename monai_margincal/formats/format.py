"""What a file format is to the rest of the package: its endings, its reader, the files that belong together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .label_image import LabelImage

#: what the documentation calls the way that needs no other library's reader
STREAM = "a stream, counted while `isal` decodes it through one buffer"


def itself_alone(path: Path) -> list[Path]:
    """Companions of a format whose files stand alone."""
    return [path]


def by_its_ending(path: Path) -> bool:
    """Recognition of a format whose files are known only by their endings."""
    return False


@dataclass(frozen=True)
class Format:
    """One file format. To add a format, add a module to this room that has one as ``FORMAT``.

    Attributes:
        suffixes: file name endings in lower case, with the dot.
        describe: reads the header of a label file. None for images that hold no labels.
        companions: the files that make up a case, given one of them; that one is included.
        readers: which files of the format (in words) are read by what, for the table in ``docs/statistics.md``.
        recognizes: whether a folder, or a file with an unknown ending, is of this format.
        check_scan: refuses what readers of scans silently accept, given the scan and whether a DICOM series may lack a slice;
            returns what the headers say where a reader may interpret them differently. None: what ``describe`` says is
            compared with what the files hold.
        is_picture: the files may be in colour and have no grid in millimetres.
        is_listed: a folder of images is searched for these endings. False where two files of one image have them.
    """

    suffixes: tuple[str, ...]
    describe: Callable[[Path], LabelImage] | None
    companions: Callable[[Path], list[Path]] = itself_alone
    readers: tuple[tuple[str, str], ...] = ()
    recognizes: Callable[[Path], bool] = by_its_ending
    check_scan: Callable[[Path, bool], LabelImage | None] | None = None
    is_picture: bool = False
    is_listed: bool = True
