"""Scans that failed while the others went on: they are listed, leave no results that look valid, and are reported at the end."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Protocol

from ..errors import CaseError
from ..files import printable

_logger = logging.getLogger(__name__)


class _Results(Protocol):
    """What a run writes, such as `monai_margincal.outputs.Outputs`."""

    @property
    def reasons(self) -> Path | None: ...

    def note_failure(self, scan: str, reason: str) -> None: ...


class FailedScans:
    """The failed scans of a run, each with a one-line reason.

    Args:
        results: what the run writes. It is told of each failure, so that a failed scan has no results that look like this run's.

    Example:
        >>> failed = FailedScans()
        >>> failed.check(number=10)
        >>> failed.add("/data/a.nii.gz", "/data/a.nii.gz: cannot be read or prepared: EOFError: end of the file")
        >>> failed.check(number=10)
        Traceback (most recent call last):
        monai_margincal.errors.CaseError: 1 of 10 scans failed: /data/a.nii.gz: cannot be read or prepared: EOFError: ...
    """

    def __init__(self, results: _Results | None = None) -> None:
        self.results = results
        #: scan -> reason, in the order of the run
        self.reasons: dict[str, str] = {}

    def add(self, scan: str, reason: str) -> None:
        """Note that a scan failed.

        Args:
            scan: its file or folder, or "in memory".
            reason: one line that names the scan and says what is wrong with it.

        Raises:
            ValueError: the results cannot record it, for example in a table on disk with other columns.
        """
        reason = printable(reason)
        self.reasons[printable(scan)] = reason
        _logger.error(reason)
        if self.results is not None:
            self.results.note_failure(scan, reason)

    def check(self, number: int) -> None:
        """Raise if a scan failed, and list them all in the log.

        Args:
            number: number of scans in the whole run.

        Raises:
            CaseError: at least one failed; the message is one line with their names, and with the reason if all share it.
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
        where = (self.results.reasons if self.results is not None else None) or "the log"
        raise CaseError(f"{summary} (reasons in {where}): {', '.join(self.reasons)}")
