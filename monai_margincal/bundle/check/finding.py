"""One thing that is wrong, or may be wrong, with a bundle."""

from __future__ import annotations

from dataclasses import dataclass

#: most severe first
SEVERITIES = ("error", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """What was found in which file, and what was expected there.

    Attributes:
        severity: ``"error"``: the bundle cannot be used as it stands, or does not do what it says; ``"warning"``: probably
            not meant; ``"note"``: something that could not be checked, or a harmless difference.
        file: the file, relative to the bundle's folder where it lies in it.
        found: what is there.
        expected: what should be there.

    Example:
        >>> print(Finding("error", "configs/metadata.json", "no version", "a version"))
        error: configs/metadata.json: found no version, expected a version
    """

    severity: str
    file: str
    found: str
    expected: str

    def __post_init__(self) -> None:
        if self.severity not in SEVERITIES:
            raise ValueError(f"severity must be one of {SEVERITIES}, got {self.severity!r}")

    def __str__(self) -> str:
        return f"{self.severity}: {self.file}: found {self.found}, expected {self.expected}"
