"""Scores of the demo's masks, against hand-made ones."""

from __future__ import annotations

import nibabel
import numpy as np
import pytest

from monai_margincal.cli.demo.nodule_scores import Scores, score


def save(path, voxels):
    nibabel.save(nibabel.Nifti1Image(np.array(voxels, np.uint8).reshape(-1, 1, 1), np.eye(4)), path)
    return path


@pytest.fixture
def files(tmp_path):
    """IoU 1/2, 1 and 0; together 4 of 7 voxels."""
    masks = {"half": [1, 0, 0, 0], "whole": [1, 1, 1, 0], "none": [0, 0, 1, 0]}
    truths = {"half": [1, 1, 0, 0], "whole": [1, 1, 1, 0], "none": [0, 1, 0, 0]}
    return {
        case: (save(tmp_path / f"{case}.nii", mask), save(tmp_path / f"{case}_truth.nii", truths[case]))
        for case, mask in masks.items()
    }


def test_values(files):
    scores = score(files)
    assert scores.cases == {"half": 0.5, "whole": 1.0, "none": 0.0}
    assert scores.mean[0] == pytest.approx(0.5)
    assert scores.pooled[0] == pytest.approx(4 / 7)


def test_three_cases_drawn_again_reach_every_value_in_between(files):
    """One draw in 27 has only the worst case, one in 27 only the best: both lie within 95 %."""
    scores = score(files)
    assert scores.mean[1:] == scores.pooled[1:] == (0.0, 1.0)
    assert score(files) == scores


def test_one_case_has_an_interval_of_no_width(files):
    assert score({"half": files["half"]}).mean == (0.5, 0.5, 0.5)


def scores_of(*values):
    return Scores({str(value): value for value in values}, pooled=(0, 0, 0), mean=(0, 0, 0))


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7], ["0.7", "0.5", "0.4", "0.3", "0.1"]),
        ([0.5, 0.1, 0.4, 0.2, 0.3], ["0.5", "0.4", "0.3", "0.2", "0.1"]),
        ([0.1, 0.2, 0.3], ["0.3", "0.2", "0.1"]),
        ([0.1, 0.2], ["0.2", "0.1"]),
        ([0.1], ["0.1"]),
    ],
)
def test_best_middle_and_worst_are_shown_in_this_order(values, shown):
    assert list(scores_of(*values).best_middle_worst()) == shown
