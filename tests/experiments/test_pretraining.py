"""What a report says of a pre-training that had not ended."""

from __future__ import annotations

import dataclasses
import json

import pytest
from experiments.tiny_study import tiny_config, write_cases

from monai_margincal.experiments import Study, run_study
from monai_margincal.experiments.curves import Curve
from monai_margincal.experiments.figures import pretraining_figure
from monai_margincal.experiments.pretraining import pretraining_warnings
from monai_margincal.experiments.results import collect_runs
from monai_margincal.experiments.runner import record_path


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    config = tiny_config(write_cases(tmp_path_factory.mktemp("data")))
    config["blocks"] = [{"tasks": ["slices"], "objectives": ["ce"]}]
    config["tasks"]["slices"]["title"] = "tiny slices"
    study, output = Study(config), tmp_path_factory.mktemp("output")
    run_study(study, output)
    return study, output


def _warnings(finished, curves: dict[int, list[float]], still: bool | None) -> list[str]:
    study, output = finished
    for seed, curve in curves.items():
        path = record_path(output, study.cell("slices", "pretraining", "", seed))
        record = json.loads(path.read_text())
        steps = [100 * point for point in range(len(curve))]
        record["history"] |= {"steps": steps, "validation_miou": curve, "still": still}
        path.write_text(json.dumps(record))
    return pretraining_warnings(study, output, collect_runs(study, output))


def test_a_score_that_still_rises_is_a_warning(finished):
    rising, flat = [0.0, 0.2, 0.4, 0.6, 0.8], [0.0, 0.7, 0.7, 0.7, 0.7]
    (line,) = _warnings(finished, {0: flat, 1: rising}, still=None)
    assert line.startswith(
        "Warning: tiny slices: at the end of pre-training the validation score still rose, or was near 0 (seeds 1): "
    )
    assert _warnings(finished, {0: flat, 1: flat}, still=None) == []
    assert "was near 0 (seeds 0)" in _warnings(finished, {0: [0.0] * 5, 1: flat}, still=None)[0]


def test_a_rule_that_was_not_met_is_a_warning_and_one_that_was_is_none(finished):
    curve = [0.0, 0.2, 0.4, 0.6, 0.8]
    (line,) = _warnings(finished, {0: curve, 1: curve}, still=False)
    assert "did not stand still before the last step of pre-training (seeds 0; 1)" in line
    assert _warnings(finished, {0: curve, 1: curve}, still=True) == []


def test_the_figure_has_a_curve_per_seed():
    points = (float("nan"), 1.0)
    curves = [
        Curve(
            "t", "pretraining", "", f"{k}", (0, 10), (0.1, 0.5 + k / 10), training_loss=points, validation_loss=points
        )
        for k in (0, 3)
    ]
    figure = pretraining_figure(curves)
    assert [line.get_ydata()[-1] for line in figure.axes[0].lines] == pytest.approx([50, 80])
    assert figure.get_label() == (
        "Validation mIoU of cross-entropy: seed 0 ends at 50.0 % after 10 steps; seed 3 ends at 80.0 % after 10 steps."
    )
    assert pretraining_figure([dataclasses.replace(curves[0], steps=())]) is None


def test_the_start_is_not_decided_by_every_decoder(finished):
    study, output = finished
    record = json.loads(record_path(output, study.cell("slices", "pretraining", "", 0)).read_text())
    assert record["evaluation"]["confusion"] == {}
    assert record["evaluation"]["margin_histogram"]
    assert "decoders" not in study.cell("slices", "pretraining", "", 0).description
