"""Findings of one kind belong together, the most severe first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from monai_margincal.findings import SEVERITIES
from monai_margincal.statistics.report.finding_groups import grouped

FINDINGS = st.lists(st.fixed_dictionaries({"severity": st.sampled_from(SEVERITIES), "kind": st.sampled_from("abc")}))


@given(FINDINGS)
def test_nothing_is_lost_and_severities_descend(findings: list[dict[str, str]]) -> None:
    groups = grouped(findings)
    assert sorted(map(str, findings)) == sorted(str(finding) for group in groups for finding in group.findings)
    ranks = [SEVERITIES.index(group.severity) for group in groups]
    assert ranks == sorted(ranks)
    assert len({(group.severity, group.kind) for group in groups}) == len(groups)
