"""The record of a finding: its severities, its text, its JSON."""

from __future__ import annotations

import json

import pytest

from monai_margincal.findings import SEVERITIES, Finding, in_numbers, most_severe_first


@pytest.mark.parametrize("severity", ["fatal", "note", "", None])
def test_another_severity_is_refused(severity):
    with pytest.raises(ValueError, match=r"severity: found .*, expected one of \('error', 'warning', 'info'\)"):
        Finding(severity, "kind", "message", ())


@pytest.mark.parametrize(
    ("kind", "files", "text"),
    [
        ("shape", ("a.nii",), "error: a.nii: shape: odd"),
        ("shape", ("a.nii", "b.nii", "c.nii"), "error: a.nii (and 2 more): shape: odd"),
        ("", ("a.nii",), "error: a.nii: odd"),
        ("shape", (), "error: shape: odd"),
    ],
)
def test_text(kind, files, text):
    assert str(Finding("error", kind, "odd", files)) == text


def test_found_and_expected_in_one_file():
    finding = Finding.in_file("info", "LICENSE", "no file", "one")
    assert finding == Finding("info", "", "found no file, expected one", ("LICENSE",))
    assert str(finding) == "info: LICENSE: found no file, expected one"


def test_json_gives_back_what_was_written():
    written = Finding("warning", "duplicate label", "twice", ("a", "b")).to_dict()
    assert json.loads(json.dumps(written)) == written


def test_order_and_numbers():
    findings = [Finding(severity, "", str(place), ()) for place, severity in enumerate([*SEVERITIES[::-1], "error"])]
    assert [finding.message for finding in most_severe_first(findings)] == ["2", "3", "1", "0"]
    assert in_numbers(findings) == "2 errors, 1 warning, 1 info"
    assert in_numbers([]) == "0 errors, 0 warnings, 0 infos"
