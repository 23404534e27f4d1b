"""The report: its numbers, its safety as HTML, and how a real browser shows it."""

from __future__ import annotations

import dataclasses
import html
import json
import re
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from pages.browser import needs_browser, pixels, width_needed
from pages.html_check import parse

from monai_margincal import ClassCounts, class_margins
from monai_margincal.findings import Finding
from monai_margincal.palette import PAGE
from monai_margincal.statistics import scan_labels
from monai_margincal.statistics.recipe import RECIPES
from monai_margincal.statistics.recipe_snippets import chosen_recipe
from monai_margincal.statistics.report import render_report, report_data, write_report

CASES = {"case_1": [900, 90, 0], "case_2": [950, 40, 10]}
COUNTS = ClassCounts([1850, 130, 10], names=["background", "organ", "lesion"], cases=CASES, source="raw label files")


def test_numbers_are_those_of_the_counts() -> None:
    data = report_data(COUNTS, transformed=ClassCounts([800, 180, 20]), tau=2.0)
    assert [row["frequency"] for row in data["classes"]] == pytest.approx(COUNTS.frequencies.tolist())
    assert [(row["cases_with"], row["cases_annotated"]) for row in data["classes"]] == [(2, 2), (2, 2), (1, 2)]
    assert data["margins"]["negative"] == class_margins(COUNTS, tau=2.0).negative.tolist()
    assert data["drift"]["ratios"] == pytest.approx([0.8 * 1990 / 1850, 0.18 * 1990 / 130, 0.02 * 1990 / 10])
    text = parse(render_report(data)).text
    for expected in ("1,850", "0 background", "1 organ", "93 %", "1 of 2", "raw label files", "×4"):
        assert expected in text


def test_the_recipe_of_the_rarest_class_is_ready_to_paste() -> None:
    from monai.bundle import ConfigParser

    python, bundle = pieces = _pasted(render_report(report_data(COUNTS)))
    recipe = chosen_recipe(COUNTS)
    assert pieces == [recipe["python"], recipe["bundle"]]
    compile(python, "piece", "exec")
    assert type(ConfigParser(json.loads(bundle)).get_parsed_content("loss")).__name__ == "MarginCalibrationTverskyLoss"


def test_the_page_says_which_counts_it_pastes() -> None:
    text = " ".join(parse(render_report(report_data(COUNTS))).text.split())
    assert "The rarest class, 2 lesion, has 0.503 % of the voxels (raw counts): the recipe for “below 1 %”." in text
    assert f"{RECIPES[0].call} , with raw counts" in text
    seen = ClassCounts([800, 180, 20], source="after RandCropByLabelClassesd (random)")
    page = render_report(report_data(COUNTS, transformed=seen))
    text = " ".join(parse(page).text.split())
    assert "the voxels (raw counts): the recipe for “below 1 %”." in text
    assert ", with counts after sampling" in text
    assert json.loads(_pasted(page)[1])["loss"]["class_counts"] == [800, 180, 20]
    frequent = " ".join(parse(render_report(report_data(ClassCounts([90, 10])))).text.split())
    assert "the recipe for “5 % and more”." in frequent
    assert RECIPES[-1].call in frequent
    assert ", with counts" not in frequent


def _pasted(page: str) -> list[str]:
    return [html.unescape(piece) for piece in re.findall(r"<pre>(.*?)</pre>", page, re.DOTALL)]


def test_page_needs_no_network_and_no_script() -> None:
    page = render_report(report_data(COUNTS))
    parser = parse(page)
    assert "http" not in page.replace("http-equiv", "")
    assert not {"link", "img", "iframe"} & set(parser.tags)
    assert parser.tags.count("script") == 1  # the embedded data, which no browser runs
    embedded = re.search(r'id="report-data">(.*?)</script>', page, re.DOTALL)
    assert embedded is not None
    assert json.loads(embedded.group(1)) == json.loads(json.dumps(report_data(COUNTS)))


def test_names_cannot_break_out_of_the_page() -> None:
    nasty = "</script><script>alert(1)</script>"
    counts = ClassCounts([9, 1], names=[nasty, 'a"b&c'], cases={nasty: [9, 1]}, source=nasty)
    page = render_report(report_data(counts, title=nasty))
    assert "<script>alert" not in page
    assert parse(page).tags.count("script") == 1


def test_a_file_name_cannot_break_out_of_the_page(tmp_path: Path) -> None:
    file = tmp_path / "a<script>alert(1)<&'\".nii.gz"
    nib.save(nib.Nifti1Image(np.ones((2, 2, 2), np.uint8), np.eye(4)), file)
    data = report_data(scan_labels([file], num_classes=3))
    assert any(str(file) in finding["files"] for finding in data["findings"])
    page = parse(render_report(data))
    assert page.tags.count("script") == 1
    assert str(file) in [text.strip() for text in page.texts]


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
    text = parse(render_report(data)).text
    assert "class 2 occurs in 2 of 3 cases" in text
    assert "Class 2 is missing in 1 of 3 cases:" in text
    assert "NIfTI, stream gzip (isal)" in text
    assert "1 × 1 × 3" in text
    assert "6 × 5 × 4" in text
    partial = dataclasses.replace(scan, cases=(dataclasses.replace(scan.cases[0], annotated=(0, 1)), *scan.cases[1:]))
    assert "not annotated" in parse(render_report(report_data(partial))).text


def _section(page: str, heading: str) -> str:
    (section,) = [part for part in page.split("<section>") if f"<h2>{heading}</h2>" in part]
    return section


def test_findings_are_grouped_and_what_is_only_to_be_known_is_folded() -> None:
    findings = [
        *(Finding("info", "small thing", f"small {number}", (f"info_{number}",)) for number in range(2)),
        *(Finding("error", "big thing", f"big {number}", (f"error_{number}",)) for number in range(7)),
        Finding("warning", "middling thing", "middling", tuple(f"warning_{number}" for number in range(9))),
    ]
    page = render_report(report_data(COUNTS, findings=findings))
    assert page.index("<h2>Findings</h2>") < page.index("<h2>How frequent is each class?</h2>")
    section = _section(page, "Findings")
    assert re.findall(r"<h3>.*?</h3>", section) == [
        '<h3><span class="error">error</span> · big thing (7)</h3>',
        '<h3><span class="warning">warning</span> · middling thing</h3>',
        '<h3><span class="info">info</span> · small thing (2)</h3>',
    ]
    text = " ".join(parse(section.rpartition("</section>")[0]).text.split())
    assert "and 2 more of this kind" in text
    assert "and 4 more" in text
    assert "For information: small thing (2)" in text
    # what needs a look is open
    folded = "".join(re.findall(r"<details>.*?</details>", section, re.DOTALL))
    assert "small 0" in folded
    assert "middling" not in folded.replace("middling thing", "")
    assert "big 0" not in folded
    assert "big 6" in folded


def test_the_page_begins_with_what_it_comes_to() -> None:
    found = [
        Finding("warning", "duplicate label", "twice", ("a",)),
        Finding("error", "not counted", "a: broken", ("a",)),
    ]
    text = " ".join(parse(render_report(report_data(COUNTS, findings=found))).text.split())
    assert (
        "The rarest class, 2 lesion, has 0.503 % of the voxels. The guide's choice for “below 1 %”: "
        "MarginCalibrationTverskyLoss, and for the decision one offset per class, fitted on the validation cases. "
        "To be looked at first: 1 error and 1 warning (duplicate label, not counted)."
    ) in text
    quiet = parse(render_report(report_data(ClassCounts([90, 10]), findings=[]))).text
    assert "Nothing was found that needs a look." in quiet


def test_a_file_is_not_named_twice() -> None:
    found = [Finding("error", "not counted", "/data/a.nii: found 3, expected 1", ("/data/a.nii",))]
    page = parse(render_report(report_data(COUNTS, findings=found)))
    assert sum("/data/a.nii" in text for text in page.texts) == 2  # where it belongs, and in the data
    assert any(text.strip() == "found 3, expected 1" for text in page.texts)


def test_counts_alone_have_findings_too() -> None:
    section = _section(render_report(report_data(ClassCounts([1_000_000, 9000, 5]))), "Findings")
    assert "From counts alone: the label files were not looked at." in section
    assert "handful of voxels" in section
    nothing = _section(render_report(report_data(ClassCounts([90, 10]))), "Findings")
    assert "Nothing was found." in nothing


def test_a_complete_set_has_a_sentence_in_place_of_a_map() -> None:
    cases = {f"case_{number}": [5, 5] for number in range(30)}
    section = _section(
        render_report(report_data(ClassCounts([150, 150], cases=cases))), "Which class occurs in which case?"
    )
    assert "Every class occurs in every case." in section
    assert "<svg" not in section
    assert "case_0" not in section


def test_few_exceptions_are_listed_and_many_are_drawn() -> None:
    names = ["air", "organ", "lesion"]
    cases = {f"case_{number:02d}": [5, int(number > 0), int(number > 20)] for number in range(30)}
    counts = ClassCounts([150, 29, 9], names=names, cases=cases)
    section = _section(render_report(report_data(counts)), "Which class occurs in which case?")
    assert "In every case: class 0 air." in section
    assert re.search(r"Class 1 organ is missing in 1 of 30 cases:\s*<span class=\"file\">case_00</span>", section)
    assert "Class 2 lesion" not in section
    drawing = section[section.index("<svg") :]
    assert "2 lesion" in drawing
    assert "1 organ" not in drawing


def test_no_share_is_written_with_an_exponent() -> None:
    text = parse(
        render_report(report_data(ClassCounts([10**9, 472]))).split("<script")[0] + "</main></body></html>"
    ).text
    assert "0.472 per million" in text
    assert not re.search(r"e-?\d+ %", text)


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


@needs_browser
@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True])
def test_browser_shows_the_page(tmp_path: Path, dark: bool) -> None:
    """A real browser, offline: dots and bars in the right proportion, light on dark and dark on light."""
    page = tmp_path / "report.html"
    write_report(COUNTS, page, transformed=ClassCounts([800, 180, 20]))
    picture = pixels(page, dark)
    background = picture[2, 2]
    assert (background.sum() < 100) == dark
    # three dots: background 93 %, organ 6.5 %, lesion 0.5 % of the voxels
    dots = [
        rows.mean(axis=0) @ np.arange(rows.shape[1]) / rows.mean(axis=0).sum() for rows in _drawn(picture, "main", dark)
    ]
    assert dots[0] > dots[1] > dots[2] > 10
    # three bars: in 2, 2 and 1 of 2 cases
    bars = [int(rows.sum(axis=1).max()) for rows in _drawn(picture, "other", dark)]
    assert bars[0] == bars[1] == pytest.approx(2 * bars[2], abs=4)
    text = np.abs(picture - background).max(axis=2) > 100
    assert text.mean() > 0.01


def _drawn(picture: np.ndarray, role: str, dark: bool) -> list[np.ndarray]:
    """Where the first three marks of a colour are, from the top: rows of pixels, true inside of the mark."""
    colour = np.array([int(PAGE[role][dark][at : at + 2], 16) for at in (1, 3, 5)])
    is_mark = np.abs(picture - colour).max(axis=2) <= 2
    starts = np.flatnonzero(np.diff(is_mark.any(axis=1).astype(int)) == 1)[:3]
    return [is_mark[start + 1 : start + 11] for start in starts]


@needs_browser
@pytest.mark.slow
def test_a_telephone_scrolls_the_wide_parts_and_not_the_page(tmp_path: Path) -> None:
    names = ["background", "a class of a long name in words", "another_class_of_a_long_name_without_spaces"]
    counts = ClassCounts([1850, 130, 10], names=names, cases=CASES, source="/data/" + 100 * "x" + "/labels")
    page = tmp_path / "report.html"
    write_report(counts, page, transformed=counts, title=80 * "x")
    assert width_needed(page) == 390
