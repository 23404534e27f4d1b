"""What a check has to say: one kind of record for data sets and for bundles, and one set of severities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

#: most severe first
SEVERITIES = ("error", "warning", "info")


@dataclass(frozen=True)
class Finding:
    """One thing to look at.

    Attributes:
        severity: ``"error"``: the numbers, the training or the bundle are wrong with this; ``"warning"``: probably not meant;
            ``"info"``: something that could not be checked, or a harmless difference.
        kind: short name of what was looked for, for example ``"geometry mismatch"``; empty where the message alone says it.
        message: one sentence with what was found and what was expected.
        files: the files concerned (cases, where the data are not files).

    Raises:
        ValueError: ``severity`` is none of these.

    Example:
        >>> print(Finding("warning", "duplicate label", "2 files hold the same label", ("a.nii", "b.nii")))
        warning: a.nii (and 1 more): duplicate label: 2 files hold the same label
    """

    severity: str
    kind: str
    message: str
    files: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.severity not in SEVERITIES:
            raise ValueError(f"severity: found {self.severity!r}, expected one of {SEVERITIES}")

    @classmethod
    def in_file(cls, severity: str, file: str, found: str, expected: str) -> Finding:
        """Something that a file holds instead of something else.

        Args:
            severity: as above.
            file: the file.
            found: what is there.
            expected: what should be there.

        Example:
            >>> print(Finding.in_file("error", "configs/metadata.json", "no version", "a version"))
            error: configs/metadata.json: found no version, expected a version
        """
        return cls(severity, "", f"found {found}, expected {expected}", (file,))

    def __str__(self) -> str:
        place = ", ".join(self.files[:1]) + (f" (and {len(self.files) - 1} more)" if len(self.files) > 1 else "")
        return ": ".join(part for part in (self.severity, place, self.kind, self.message) if part)

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON types."""
        return {**asdict(self), "files": list(self.files)}


def most_severe_first(findings: Iterable[Finding]) -> list[Finding]:
    """Findings by severity; those of one severity keep their order.

    Example:
        >>> [f.severity for f in most_severe_first([Finding("info", "", "a", ()), Finding("error", "", "b", ())])]
        ['error', 'info']
    """
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))


def in_numbers(findings: Iterable[Finding]) -> str:
    """How many findings there are of each severity, in words.

    Example:
        >>> in_numbers([Finding("error", "", "a", ()), Finding("info", "", "b", ()), Finding("info", "", "c", ())])
        '1 error, 0 warnings, 2 infos'
    """
    numbers = Counter(finding.severity for finding in findings)
    return ", ".join(
        f"{numbers[severity]} {severity}{'' if numbers[severity] == 1 else 's'}" for severity in SEVERITIES
    )
