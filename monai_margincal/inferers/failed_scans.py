"""Scans that failed while the others went on: listed, without results that look like theirs, and never forgotten at the end."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from ..datasets.case_files import IN_MEMORY, case_file
from ..errors import CaseError

_logger = logging.getLogger(__name__)

#: put behind the name of a result that an earlier run left
OUTDATED = ".outdated"


class _Table(Protocol):
    """A table with a row per scan, such as `monai_margincal.outputs.SaveClassVolumesd` writes."""

    path: Path

    def write_error(self, scan: str, reason: str) -> None: ...


class FailedScans:
    """The failed scans of a run, each with a reason of one line.

    A failed scan gets a row in the table of volumes, whose only number is none. Results that an earlier run left for it are
    renamed to ``NAME.outdated``, since beside the fresh ones they would pass for the results of this run; nothing is deleted.

    Args:
        output_dir: folder of all results.
        data_root_dir: folder of the data set, as given to the transforms that save.
        results: what is saved per scan: pairs of the postfix and the ending of a file, such as ``("mask", ".nii.gz")``.
        volumes: the table of volumes, or None.

    Example:
        >>> failed = FailedScans("eval")
        >>> failed.check(number=10)
        >>> failed.add("/data/a.nii.gz", "/data/a.nii.gz: cannot be read or prepared: EOFError: end of the file")
        >>> failed.check(number=10)
        Traceback (most recent call last):
        monai_margincal.errors.CaseError: 1 of 10 scans failed: /data/a.nii.gz: cannot be read or prepared: EOFError: ...
    """

    def __init__(
        self,
        output_dir: str | os.PathLike[str],
        data_root_dir: str | os.PathLike[str] = "",
        results: Sequence[Sequence[str]] = (("mask", ".nii.gz"),),
        volumes: _Table | None = None,
    ) -> None:
        self.output_dir = output_dir
        self.data_root_dir = data_root_dir
        self.results = [(postfix, ending) for postfix, ending in results]
        self.volumes = volumes
        #: scan -> reason, in the order of the run
        self.reasons: dict[str, str] = {}

    def add(self, scan: str, reason: str) -> None:
        """Note that a scan failed.

        Args:
            scan: its file or folder, or "in memory".
            reason: one line that names the scan and says what is wrong with it.

        Raises:
            ValueError: the table of volumes on disk has other columns.
        """
        self.reasons[scan] = reason
        _logger.error(reason)
        if scan != IN_MEMORY:
            self._set_aside(scan)
        if self.volumes is not None:
            self.volumes.write_error(scan, reason)

    def check(self, number: int) -> None:
        """Raise if a scan failed, and list them all in the log.

        Args:
            number: scans of the whole run.

        Raises:
            CaseError: at least one failed; the message is one line with their names, and with the reason if there is but one.
        """
        if not self.reasons:
            return
        summary = f"{len(self.reasons)} of {number} scans failed"
        if len(self.reasons) == 1:
            raise CaseError(f"{summary}: {next(iter(self.reasons.values()))}")
        _logger.error("%s:\n%s", summary, "\n".join(f"  {reason}" for reason in self.reasons.values()))
        causes = {reason.removeprefix(scan) for scan, reason in self.reasons.items()}
        if len(causes) == 1:
            raise CaseError(f"{summary}: {', '.join(self.reasons)}{causes.pop()}")
        where = "the log" if self.volumes is None else self.volumes.path
        raise CaseError(f"{summary} (reasons in {where}): {', '.join(self.reasons)}")

    def _set_aside(self, scan: str) -> None:
        for postfix, ending in self.results:
            path = case_file({"filename_or_obj": scan}, self.output_dir, postfix, ending, self.data_root_dir)
            if path.is_file():
                aside = Path(f"{path}{OUTDATED}")
                path.replace(aside)
                _logger.warning("renamed %s, which is not of this run, to %s", path, aside.name)
