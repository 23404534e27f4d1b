"""Which kinds of output a run writes, and what becomes of the files of a scan that failed."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..datasets.case_files import IN_MEMORY, case_file
from . import kinds as _kinds  # noqa: F401 (makes the kinds known)
from .kind import KINDS, Destination, Output, ScanFile

_logger = logging.getLogger(__name__)

#: appended to the name of a file that an earlier run left
OUTDATED = ".outdated"


class Outputs:
    """The outputs of a run, chosen by the names of their kinds.

    Args:
        kinds: names, as a list or in one text with commas between them: ``["mask", "overlay"]``, ``"mask,overlay"``, ``"mask"``.
        output_dir: folder of all results.
        data_root_dir: folder of the data set; a scan's subfolder below it is kept below ``output_dir``.
        class_names: names of the classes by id; the first is the background.
        image_key: key of the prepared image.
        options: arguments of a kind, by its name; those of a kind that is not chosen have no effect.

    Raises:
        ValueError: ``kinds`` is empty, or a name in ``kinds`` or ``options`` is unknown; the message lists the known ones.
        TypeError: a kind does not take an option.

    Example:
        >>> outputs = Outputs("mask,volumes", "eval", mask={"postfix": "seg"})
        >>> outputs.kinds, outputs.needs_logits
        (['mask', 'volumes'], False)
        >>> Outputs("masks", "eval")
        Traceback (most recent call last):
        ValueError: unknown kind of output 'masks', expected some of ['dicom_seg', 'frame_film', ..., 'probability', 'volumes']
    """

    def __init__(
        self,
        kinds: str | Iterable[str],
        output_dir: str | os.PathLike[str],
        data_root_dir: str | os.PathLike[str] = "",
        class_names: Sequence[str] = ("background", "foreground"),
        image_key: str = "image",
        **options: Mapping[str, Any],
    ) -> None:
        self.kinds = chosen_kinds(kinds)
        for name in options:
            _check_known(name)
        if len(class_names) < 2:
            raise ValueError(f"class_names: found {list(class_names)}, expected the background and at least one class")
        self.destination = Destination(output_dir, data_root_dir, tuple(class_names), image_key)
        self.chosen: list[Output] = [KINDS[name](self.destination, **options.get(name, {})) for name in self.kinds]
        # of all kinds: an earlier run may have been asked for others
        self._files = {
            (str(options.get(name, {}).get("postfix", kind.postfix)), kind.ending)
            for name, kind in KINDS.items()
            if issubclass(kind, ScanFile)
        }
        self._of_this_run: set[Path] = set()

    @property
    def needs_logits(self) -> bool:
        """Whether an output is made from the logits of the whole scan."""
        return any(output.needs_logits for output in self.chosen)

    @property
    def reasons(self) -> Path | None:
        """The file that says why a scan has failed, if one of the outputs is such a file."""
        return next((output.reasons for output in self.chosen if output.reasons is not None), None)

    def is_result(self, scan: str | os.PathLike[str]) -> bool:
        """Whether a file or folder is a result, of this run or an earlier one, by its place below ``output_dir`` and its name.

        Where the output folder is the data set's, or lies in it, the next run finds masks among the scans.

        Args:
            scan: a file or folder, which may be the output folder itself or hold nothing but that folder.

        Example:
            >>> outputs = Outputs("mask", "/data")
            >>> [outputs.is_result(f"/data/{name}") for name in ("ct.nii.gz", "ct_mask.nii.gz", "ct_probability.nii.gz")]
            [False, True, True]
        """
        place, results = Path(scan).resolve(), Path(self.destination.output_dir).resolve()
        if place == results or place in results.parents:
            return place == results or not any(path.is_file() for path in place.iterdir())
        if results not in place.parents:
            return False
        return any(kind.is_own(place.name) for kind in KINDS.values()) or any(
            place.name.endswith(f"_{postfix}{ending}" if postfix else ending) for postfix, ending in self._files
        )

    def save(self, output: Output, items: Mapping[Any, Any], key: str) -> None:
        """Let one of the outputs write what there is to write about a scan.

        Args:
            output: one of ``chosen``.
            items: the scan, with its class map (1, X, Y, Z) on the output's grid.
            key: key of the class map.
        """
        output.save(items, key)
        if isinstance(output, ScanFile):
            self._of_this_run.add(output.path(items[key].meta))

    def note_failure(self, scan: str, reason: str) -> None:
        """Note a scan without results, and rename its files of an earlier run to ``NAME.outdated``.

        Among the results of this run they would be mistaken for some of them. Nothing is deleted, and what this run has written
        about the scan before it failed keeps its name.

        Args:
            scan: its file or folder, or "in memory".
            reason: one line that names the scan and says what is wrong with it.
        """
        if scan != IN_MEMORY:
            self._set_aside(scan)
        for output in self.chosen:
            output.note_failure(scan, reason)

    def finish(self) -> None:
        """Let the outputs write what could not be written before the last scan, such as the end of a film."""
        for output in self.chosen:
            output.finish()

    def _set_aside(self, scan: str) -> None:
        place = self.destination
        for postfix, ending in sorted(self._files):
            meta = {"filename_or_obj": scan}
            path = case_file(meta, place.output_dir, postfix, ending, data_root_dir=place.data_root_dir)
            if path.is_file() and path not in self._of_this_run:
                aside = Path(f"{path}{OUTDATED}")
                path.replace(aside)
                _logger.warning("renamed %s, which is not of this run, to %s", path, aside.name)


def chosen_kinds(kinds: str | Iterable[str]) -> list[str]:
    """Read a choice of kinds in the form in which configurations and command lines give it.

    Args:
        kinds: names, as a list or in one text with commas between them.

    Returns:
        each name once, in the given order.

    Raises:
        ValueError: nothing is named, or a name is unknown; the message lists the known ones.

    Example:
        >>> chosen_kinds("mask, overlay"), chosen_kinds(("mask", "mask"))
        (['mask', 'overlay'], ['mask'])
    """
    texts = [kinds] if isinstance(kinds, str) else list(kinds)
    names = [name.strip() for text in texts for name in str(text).split(",") if name.strip()]
    if not names:
        raise ValueError(f"kinds of output: found {kinds!r}, expected some of {sorted(KINDS)}")
    for name in names:
        _check_known(name)
    return list(dict.fromkeys(names))


def _check_known(name: str) -> None:
    if name not in KINDS:
        raise ValueError(f"unknown kind of output {name!r}, expected some of {sorted(KINDS)}")
