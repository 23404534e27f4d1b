"""Names of cases: as short as they can be and still tell any two apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from monai_margincal.counting.case_names import case_names


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["a/x.nii.gz", "a/y.nrrd"], ["x", "y"]),
        (["a/seg.nii.gz", "b/seg.nii.gz", "b/z.mha"], ["a/seg", "b/seg", "z"]),
        (["r/a/q/seg.nii", "r/b/q/seg.nii", "r/b/p/seg.nii"], ["a/q/seg", "b/q/seg", "p/seg"]),
        (["a/x.nii", "a/x.nrrd"], ["x.nii", "x.nrrd"]),
        (["s/7106", "s/v1.2"], ["7106", "v1"]),
    ],
)
def test_case_names_tell_cases_apart(paths: list[str], names: list[str]) -> None:
    assert case_names([Path("/data") / path for path in paths]) == names
    assert case_names([Path("/data") / path for path in reversed(paths)]) == names[::-1]
