"""What a finished study says: rows, tables, figures, one page without the network."""

from __future__ import annotations

import copy
import csv
import io
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from experiments.tiny_study import tiny_config, write_cases
from pages.browser import needs_browser, width_needed
from pages.html_check import parse

from monai_margincal.experiments import Study, published, run_study, write_study_report
from monai_margincal.experiments.figures import overview_figure
from monai_margincal.experiments.results import collect_runs, on_common_seeds, results_csv, summarise
from monai_margincal.experiments.scores import foreground_iou
from monai_margincal.experiments.study_figures import foreground_shares
from monai_margincal.experiments.table_form import Table
from monai_margincal.experiments.tables import study_tables
from monai_margincal.metrics import class_iou
from monai_margincal.pages import render


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    config = tiny_config(write_cases(tmp_path_factory.mktemp("data")))
    output = tmp_path_factory.mktemp("output")
    study = Study(config)
    # the last cell is missing: a report is made of what there is
    run_study(study, output, study.cells()[:-1])
    return study, output


@pytest.fixture(scope="module")
def files(finished):
    study, output = finished
    return {path.name: path for path in write_study_report(study, output)}


def test_csv_has_a_row_per_run_and_decoder(finished, files):
    study, output = finished
    rows = list(csv.DictReader(io.StringIO(files["results.csv"].read_text())))
    assert len(rows) == 7 * 2
    run = collect_runs(study, output)[0]
    matrix = run.confusion("argmax").sum(0)
    assert float(rows[0]["miou"]) == pytest.approx(float(foreground_iou(matrix)), abs=1e-6)
    assert float(rows[0]["iou_a"]) == pytest.approx(float(class_iou(matrix)[1]), abs=1e-6)
    assert "iou_background" not in rows[0]
    assert rows[0]["cell"] == run.cell.key
    assert files["results.csv"].read_text() == results_csv(study, collect_runs(study, output))


def test_summaries_compare_with_the_best_baseline(finished):
    study, output = finished
    summaries = summarise(study, collect_runs(study, output))
    chosen = {s.objective: s for s in summaries if (s.task, s.decoder) == ("slices", "argmax")}
    assert {s.baseline for s in chosen.values()} == {"ce"}
    assert chosen["ce"].comparison is None
    bound = chosen["bound"]
    assert bound.seeds == (0, 1)
    assert bound.comparison.difference == pytest.approx(float((bound.miou - chosen["ce"].miou).mean()))
    assert bound.comparison.wins + bound.comparison.ties + bound.comparison.losses == 2
    # a few steps teach nothing, and that is said
    assert sum(s.failed for s in chosen.values()) == sum(
        int((s.per_class_iou[:, 1:] < 0.01).any(1).sum()) for s in chosen.values()
    )


def test_a_baseline_of_fewer_seeds_is_not_the_one_to_beat(finished):
    study, output = finished
    own = copy.deepcopy(study)
    own.objectives["bound"]["group"] = "baseline"
    runs = [run for run in collect_runs(study, output) if run.cell.task == "slices"]
    lucky = next(run for run in runs if (run.cell.objective, run.cell.seed) == ("bound", 0))
    matrices = lucky.record["evaluation"]["confusion"]
    perfect = {name: [np.diag(np.sum(one, 1)).tolist() for one in cases] for name, cases in matrices.items()}
    record = {**lucky.record, "evaluation": {**lucky.record["evaluation"], "confusion": perfect}}
    others = [run for run in runs if run.cell.objective != "bound"]
    assert {s.baseline for s in summarise(own, [*others, replace(lucky, record=record)])} == {"ce"}


def test_every_reference_is_a_baseline_or_a_free_decoder_on_one(finished, files):
    study, output = finished
    runs = collect_runs(study, output)
    summaries = [s for s in summarise(study, runs) if s.task == "slices"]
    bound = next(s for s in summaries if (s.objective, s.decoder) == ("bound", "argmax"))
    other = [name for name in study.decoders if name != "argmax"]
    assert list(bound.against) == [study.label("ce"), *(f"{study.label('ce')}, {name}" for name in other)]
    free = next(s for s in summaries if (s.objective, s.decoder) == ("ce", other[0]))
    versus = bound.against[f"{study.label('ce')}, {other[0]}"]
    assert versus.difference == pytest.approx(float((bound.miou - free.miou).mean()))
    assert all(not s.against for s in summaries if s.decoder != "argmax")
    assert "**Against each reference: " in files["tables.md"].read_text()


def test_what_stands_side_by_side_has_the_same_seeds(finished):
    study, output = finished
    summaries = [s for s in summarise(study, collect_runs(study, output)) if s.decoder == "argmax"]
    assert len({s.seeds for s in summaries}) > 1  # the last cell was not run
    together = on_common_seeds(summaries)
    assert {s.seeds for s in together} == {(0,)}
    for whole, part in zip(summaries, together, strict=True):
        assert part.miou == whole.miou[:1]
        assert part.per_class_iou.shape == (1, 3)
    assert on_common_seeds([]) == []


def test_the_page_needs_nothing_else_and_says_what_is_missing(files):
    page = files["report.html"].read_text()
    assert "7 of 8 runs are finished" in page
    assert not re.findall(r'(?:src|href)="(?!data:)', page)
    assert page.count('src="data:image/svg+xml;base64,') == sum(name.endswith(".png") for name in files)
    assert "script" not in parse(page).tags


def test_figures_and_tables_are_written(files):
    assert {
        "results.csv",
        "comparisons.csv",
        "curves.csv",
        "tables.md",
        "tables.tex",
        "report.html",
        "loss_functions.png",
    } <= set(files)
    for name in (
        "differences",
        "classes",
        "decoders",
        "sensitivity",
        "convergence",
        "margins",
        "panels",
        "pretraining",
    ):
        assert files[f"slices_finetune_{name}.png"].read_bytes().startswith(b"\x89PNG")
    text = files["tables.md"].read_text()
    assert "Table 1" in text
    assert "| Ours (margins) |" in text
    assert "71.3" in text  # the paper's number beside ours
    assert files["tables.tex"].read_text().count(r"\begin{table}") == len(re.findall(r"^\| ---", text, re.M))


def test_the_papers_columns_are_in_no_other_study(finished):
    study, output = finished
    own = copy.deepcopy(study)
    for entry in own.objectives.values():
        entry.pop("paper", None)
    summaries = summarise(study, collect_runs(study, output))
    with_paper, without = ("\n".join(t.markdown() for t in study_tables(one, summaries)) for one in (study, own))
    assert "paper: COVID loss" in with_paper
    assert "paper: shaft" not in with_paper, "organs of another data set"
    assert "paper" not in without
    assert "**IoU per class: slices" in without
    assert "**Sensitivity: slices" in without


def test_the_overview_shows_every_task_with_its_difference_to_cross_entropy(finished):
    study, output = finished
    runs = collect_runs(study, output)
    summaries = [s for s in summarise(study, runs) if s.decoder == "argmax"]
    axes = overview_figure(study, summaries, foreground_shares(runs)).axes
    dots = [line.get_xdata()[0] for axis in axes for line in axis.lines if line.get_marker() == "o"]
    expected = [100 * s.against[study.label("ce")].difference for s in summaries if study.label("ce") in s.against]
    assert sorted(dots) == pytest.approx(sorted(expected))
    assert len({axis.get_xlim() for axis in axes}) == 1, "all tasks on one axis"
    heads = dict(axis.get_title().split("\n", 1) for axis in axes)
    assert set(heads) == {"slices", "volumes"}
    (counts,) = {tuple(run.record["training_counts"]) for run in runs if run.cell.task == "volumes"}
    assert f"foreground {100 * sum(counts[1:]) / sum(counts):.2g} %" in heads["volumes"]
    assert overview_figure(study, [s for s in summaries if s.task == "slices"]) is None, "one task needs none"


def test_the_same_cells_give_the_same_files(finished, files):
    study, output = finished
    before = {name: path.read_bytes() for name, path in files.items()}
    write_study_report(study, output)
    assert {name: path.read_bytes() for name, path in files.items()} == before


def test_nothing_finished_is_an_error(finished, tmp_path):
    with pytest.raises(ValueError, match="found no finished cell of this study"):
        write_study_report(finished[0], tmp_path)


def test_names_cannot_break_out_of_the_page():
    nasty = "</td><script>alert(1)</script>'\"&"
    table = Table(nasty, (nasty, nasty), ((nasty, nasty),), nasty)
    content = {"title": nasty, "says": [(nasty, nasty)], "state": [nasty], "tables": [table]}
    page = parse(render("experiments/study_report.html", kind="study", pictures=[(nasty, nasty, "AAAA")], **content))
    assert "script" not in page.tags
    assert sum(text.count(nasty) for text in page.texts) == 13


@needs_browser
@pytest.mark.slow
def test_a_telephone_scrolls_the_wide_parts_and_not_the_page(files, tmp_path):
    page = shutil.copy(files["report.html"], tmp_path)
    assert width_needed(Path(page)) == 390


def test_published_numbers_are_those_of_the_tables():
    """Sums by column, added up by hand from the paper's Tables 2, 3 and 5."""
    ious = np.array([[score for _, score in row] for row in published.METHODS.values()])
    np.testing.assert_allclose(ious.sum(0), [417.5, 461.6, 516.2, 413.3])
    assert published.METHODS["Ours"][3] == (81.5, 72.5)
    assert published.COMPOUND["Ours + Dice loss"] == (71.5, 78.0, 87.8, 73.2)
    assert published.SENSITIVITY[10, 1] == ((0.031, 73.1), (0.093, 72.7))
