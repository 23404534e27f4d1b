"""Findings of one kind belong together on the page: what needs a look is open, what is only to be known is folded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...findings import SEVERITIES


@dataclass(frozen=True)
class FindingGroup:
    """Findings of one severity and kind, as JSON types, in the order in which they were found."""

    severity: str
    kind: str
    findings: tuple[Mapping[str, Any], ...]


def grouped(findings: Iterable[Mapping[str, Any]]) -> list[FindingGroup]:
    """Findings by severity, the most severe first, and by kind, in the order in which the kinds were found.

    Args:
        findings: as `Finding.to_dict` gives them.

    Example:
        >>> pairs = [("info", "a"), ("error", "b"), ("info", "c"), ("info", "a")]
        >>> groups = grouped({"severity": severity, "kind": kind} for severity, kind in pairs)
        >>> [(group.severity, group.kind, len(group.findings)) for group in groups]
        [('error', 'b', 1), ('info', 'a', 2), ('info', 'c', 1)]
    """
    by_kind: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for finding in findings:
        by_kind.setdefault((finding["severity"], finding["kind"]), []).append(finding)
    groups = [FindingGroup(severity, kind, tuple(alike)) for (severity, kind), alike in by_kind.items()]
    return sorted(groups, key=lambda group: SEVERITIES.index(group.severity))
