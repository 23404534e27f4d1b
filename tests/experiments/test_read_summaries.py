"""Summaries from the committed files are those of the cells, and so are the figures drawn from them."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pytest
from experiments.tiny_study import tiny_config, write_cases

from monai_margincal.experiments import Study, run_study
from monai_margincal.experiments.comparisons import comparisons_csv
from monai_margincal.experiments.curves import curves_csv, read_curves
from monai_margincal.experiments.read_summaries import read_summaries
from monai_margincal.experiments.results import collect_runs, results_csv, summarise
from monai_margincal.experiments.study_curves import study_curves
from monai_margincal.experiments.study_figures import curve_figures, result_figures, study_figures


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    config = tiny_config(write_cases(tmp_path_factory.mktemp("data")))
    output = tmp_path_factory.mktemp("output")
    study = Study(config)
    run_study(study, output, study.cells()[:-1])
    runs = collect_runs(study, output)
    (output / "results.csv").write_text(results_csv(study, runs))
    (output / "comparisons.csv").write_text(comparisons_csv(summarise(study, runs)))
    (output / "curves.csv").write_text(curves_csv(study_curves(study, output, runs)))
    return study, output, runs


def test_what_is_read_is_what_was_summarised(finished):
    study, output, runs = finished
    expected = {(s.task, s.protocol, s.decoder, s.objective): s for s in summarise(study, runs)}
    read = {(s.task, s.protocol, s.decoder, s.objective): s for s in read_summaries(study, output)}
    assert read.keys() == expected.keys()
    for key, summary in read.items():
        assert (summary.seeds, summary.baseline, summary.failed) == (
            expected[key].seeds,
            expected[key].baseline,
            expected[key].failed,
        )
        np.testing.assert_allclose(summary.per_class_iou[:, 1:], expected[key].per_class_iou[:, 1:], atol=1e-6)
        for name in ("miou", "recall", "precision", "case_iou", "validation_miou"):
            np.testing.assert_allclose(getattr(summary, name), getattr(expected[key], name), atol=1e-6)
        assert summary.against.keys() == expected[key].against.keys()
        for found, wanted in [
            (summary.comparison, expected[key].comparison),
            *((summary.against[name], versus) for name, versus in expected[key].against.items()),
        ]:
            assert (found is None) == (wanted is None)
            if found is not None and wanted is not None:
                assert dataclasses.astuple(found) == pytest.approx(dataclasses.astuple(wanted), abs=1e-6)


def test_the_figures_of_the_files_say_what_those_of_the_cells_say(finished):
    study, output, runs = finished
    summaries = read_summaries(study, output)
    drawn = result_figures(study, summaries) | curve_figures(study, summaries, read_curves(output / "curves.csv"))
    whole = study_figures(study, output, runs, summarise(study, runs))
    assert {name for name in whole if not name.endswith(("margins", "panels"))} == set(drawn)
    for name, (caption, figure) in drawn.items():
        assert caption == whole[name][0]
        assert figure.get_label() == whole[name][1].get_label()


def test_a_study_with_other_objectives_is_an_error(finished, tmp_path):
    study, output, _ = finished
    for name in ("results.csv", "comparisons.csv"):
        shutil.copy(output / name, tmp_path)
    path = tmp_path / "results.csv"
    path.write_text(path.read_text().replace(",ce,", ",focal,"))
    with pytest.raises(
        ValueError, match=r"results\.csv: found the task 'slices' and the objective 'focal', expected those"
    ):
        read_summaries(study, tmp_path)


def test_results_without_a_class_are_an_error(finished, tmp_path):
    study, output, _ = finished
    shutil.copy(output / "comparisons.csv", tmp_path)
    text = (output / "results.csv").read_text()
    (tmp_path / "results.csv").write_text(text.replace(",iou_", ",dice_", 1))
    with pytest.raises(ValueError, match=r"results\.csv: found no columns iou_\w+, expected the results\.csv"):
        read_summaries(study, tmp_path)


@pytest.mark.parametrize("name", ["results.csv", "comparisons.csv"])
def test_a_missing_file_is_named(finished, tmp_path, name):
    study, output, _ = finished
    for copied in {"results.csv", "comparisons.csv"} - {name}:
        shutil.copy(output / copied, tmp_path)
    with pytest.raises(FileNotFoundError, match=rf"{name}: cannot be read, expected the {name} of a study"):
        read_summaries(study, tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("difference", "gap", "found no columns difference"),
        ("argmax,,", "argmax,,x", r"line \d+: .*, expected numbers"),
    ],
)
def test_a_damaged_comparison_is_named(finished, tmp_path: Path, old, new, message):
    study, output, _ = finished
    shutil.copy(output / "results.csv", tmp_path)
    text = (output / "comparisons.csv").read_text().replace(old, new, 1)
    (tmp_path / "comparisons.csv").write_text(text)
    with pytest.raises(ValueError, match=rf"comparisons\.csv: {message}"):
        read_summaries(study, tmp_path)
