"""The report: its numbers, its safety as HTML, and how a real browser shows it."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import pytest

from monai_margincal import ClassCounts, class_margins
from monai_margincal.statistics import scan_labels
from monai_margincal.statistics.report import render_report, report_data, write_report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
CASES = {"case_1": [900, 90, 0], "case_2": [950, 40, 10]}
COUNTS = ClassCounts([1850, 130, 10], names=["background", "organ", "lesion"], cases=CASES, source="raw label files")


class _Tags(HTMLParser):
    """Checks that every element is closed, and collects the text and the embedded data."""

    VOID = frozenset({"meta", "br", "line", "rect", "path", "circle"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        if tag not in self.VOID or (tag in ("rect", "circle") and not self.get_starttag_text().endswith("/>")):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def parse(html: str) -> _Tags:
    parser = _Tags()
    parser.feed(html)
    assert parser.open == []
    return parser


def test_numbers_are_those_of_the_counts() -> None:
    data = report_data(COUNTS, transformed=ClassCounts([800, 180, 20]), tau=2.0)
    assert [row["frequency"] for row in data["classes"]] == pytest.approx(COUNTS.frequencies.tolist())
    assert [(row["cases_with"], row["cases_annotated"]) for row in data["classes"]] == [(2, 2), (2, 2), (1, 2)]
    assert data["margins"]["negative"] == class_margins(COUNTS, tau=2.0).negative.tolist()
    assert data["drift"]["ratios"] == pytest.approx([0.8 * 1990 / 1850, 0.18 * 1990 / 130, 0.02 * 1990 / 10])
    text = " ".join(parse(render_report(data)).text)
    for expected in ("1,850", "0 background", "1 organ", "93 %", "1 of 2", "raw label files", "×4"):
        assert expected in text


def test_pasted_margins_build_the_loss() -> None:
    from monai.bundle import ConfigParser

    html = render_report(report_data(COUNTS))
    pasted = re.search(r"<pre>(.*?)</pre>", html, re.DOTALL)
    assert pasted is not None
    config = json.loads(pasted.group(1).replace("&quot;", '"'))
    loss = ConfigParser(config).get_parsed_content("loss")
    assert type(loss).__name__ == "MarginCalibrationLoss"


def test_page_needs_no_network_and_no_script() -> None:
    html = render_report(report_data(COUNTS))
    parser = parse(html)
    assert "http" not in html.replace("http-equiv", "")
    assert not {"link", "img", "iframe"} & set(parser.tags)
    assert parser.tags.count("script") == 1  # the embedded data, which no browser runs
    embedded = re.search(r'id="report-data">(.*?)</script>', html, re.DOTALL)
    assert embedded is not None
    assert json.loads(embedded.group(1)) == json.loads(json.dumps(report_data(COUNTS)))


def test_names_cannot_break_out_of_the_page() -> None:
    nasty = "</script><script>alert(1)</script>"
    counts = ClassCounts([9, 1], names=[nasty, 'a"b&c'], cases={nasty: [9, 1]}, source=nasty)
    html = render_report(report_data(counts, title=nasty))
    assert "<script>alert" not in html
    assert parse(html).tags.count("script") == 1


@pytest.mark.parametrize(
    "counts",
    [
        ClassCounts([5]),
        ClassCounts([5, 0]),
        ClassCounts([0, 0]),
        ClassCounts([10**15, 1, 0], cases={"a": [10**15, 1, 0]}),
        ClassCounts({k * 7: 10 ** (k % 6) for k in range(62)}),
        ClassCounts([300, 600], cases={f"case_{k:03d}": [1, 2] for k in range(300)}),
    ],
    ids=["one class", "one class has all", "nothing", "extreme", "62 classes", "300 cases"],
)
def test_any_counts_make_a_page(counts: ClassCounts) -> None:
    parse(render_report(report_data(counts, transformed=counts)))


def test_scan_brings_findings_geometry_and_readers(tmp_path: Path) -> None:
    """mlcommons/GaNDLF#956: median spacing and size beside the counts."""
    files = []
    for case in range(3):
        array = np.random.default_rng(case).integers(0, 3, (6, 5, 4)).astype(np.uint8)
        array[array == 2] = 0 if case == 1 else 2
        nib.save(nib.Nifti1Image(array, np.diag([1.0, 1, 3, 1])), tmp_path / f"case_{case}.nii.gz")
        files.append(tmp_path / f"case_{case}.nii.gz")
    scan = scan_labels(files, num_classes=3)
    data = report_data(scan)
    assert [finding["kind"] for finding in data["findings"]] == ["class missing in cases"]
    assert data["geometry"]["median_spacing"] == [1, 1, 3]
    assert data["geometry"]["median_shape"] == [6, 5, 4]
    assert data["geometry"]["readers"] == {"NIfTI, stream gzip (isal)": 3}
    text = " ".join(parse(render_report(data)).text)
    assert "class 2 occurs in 2 of 3 cases" in text
    assert "NIfTI, stream gzip (isal)" in text
    assert "1 × 1 × 3" in text
    assert "6 × 5 × 4" in text
    partial = dataclasses.replace(scan, cases=(dataclasses.replace(scan.cases[0], annotated=(0, 1)), *scan.cases[1:]))
    assert "not annotated" in " ".join(parse(render_report(report_data(partial))).text)


def test_files_are_replaced_only_if_they_are_reports(tmp_path: Path) -> None:
    page, content = tmp_path / "report.html", tmp_path / "report.json"
    for title in ("first", "second"):
        written = write_report(COUNTS, page, json_path=content, title=title)
        assert f"<h1>{title}</h1>" in page.read_text(encoding="utf-8")
        assert json.loads(content.read_text()) == json.loads(json.dumps(written))
    for other in (page, content):
        other.write_text("{}")
        with pytest.raises(FileExistsError, match=other.name):
            write_report(COUNTS, page, json_path=content)
        assert other.read_text() == "{}"
        other.unlink()


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
@pytest.mark.parametrize("dark", [False, True])
def test_browser_shows_the_page(tmp_path: Path, dark: bool) -> None:
    """A real browser, offline: bars in the right proportion, light on dark and dark on light."""
    from PIL import Image

    page, picture = tmp_path / "report.html", tmp_path / "report.png"
    write_report(COUNTS, page, transformed=ClassCounts([800, 180, 20]))
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
    command += ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1040,2200", f"--screenshot={picture}"]
    # the first is how Chromium names the media feature's value, 0 = dark
    command += ["--blink-settings=preferredColorScheme=0"] if dark else ["--blink-settings=preferredColorScheme=1"]
    subprocess.run([*command, page.as_uri()], check=True, capture_output=True, timeout=120)
    pixels = np.asarray(Image.open(picture).convert("RGB")).astype(int)
    background = pixels[2, 2]
    assert (background.sum() < 100) == dark
    blue = np.array([106, 165, 255] if dark else [36, 99, 200])
    is_bar = np.abs(pixels - blue).max(axis=2) <= 2
    widths = is_bar[150:420].sum(axis=1)
    # below the legend's swatch: background 93 %, organ 6.5 %, lesion 0.5 %, three bars from long to short
    runs = np.flatnonzero(np.diff((widths > 0).astype(int)) == 1)
    longest = [int(widths[start + 1 : start + 11].max()) for start in runs[1:4]]
    assert len(longest) == 3
    assert longest[0] > longest[1] > longest[2] > 10
    text = np.abs(pixels - background).max(axis=2) > 100
    assert text.mean() > 0.01
