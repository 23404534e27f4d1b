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

    def finish(self) -> None: ...


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
        #: the same for those that were skipped because the user wants it so
        self.skipped: dict[str, str] = {}

    def begin(self) -> None:
        """Forget the scans of an earlier run."""
        self.reasons.clear()
        self.skipped.clear()

    def add(self, scan: str, reason: str) -> None:
        """Note that a scan failed.

        Args:
            scan: its file or folder, or "in memory".
            reason: one line that names the scan and says what is wrong with it.

        Raises:
            ValueError: the results cannot record it, for example in a table on disk with other columns.
        """
        self._note(self.reasons, scan, reason)
        _logger.error(printable(reason))

    def skip(self, scan: str, reason: str) -> None:
        """Note that a scan has no results, which the user accepts.

        Args:
            scan: its file or folder, or "in memory".
            reason: as for `add`.
        """
        self._note(self.skipped, scan, reason)
        _logger.warning("skipped %s", printable(reason))

    def finish_results(self) -> None:
        """Let what could not be written before the last scan be written now."""
        if self.results is not None:
            self.results.finish()

    def _note(self, among: dict[str, str], scan: str, reason: str) -> None:
        reason = printable(reason)
        among[printable(scan)] = reason
        if self.results is not None:
            self.results.note_failure(scan, reason)

    def check(self, number: int) -> None:
        """Raise if a scan failed, and list them all in the log.

        Args:
            number: number of scans in the whole run.

        Raises:
            CaseError: at least one failed, or all were skipped; the message is one line with the names of those that failed, and
                with the reason if all share it.
        """
        if self.skipped and len(self.skipped) == number:
            raise CaseError(f"all of {number} scans were skipped: {next(iter(self.skipped.values()))}")
        if self.skipped:
            _logger.warning("skipped %d of %d scans", len(self.skipped), number)
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
