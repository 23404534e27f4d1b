"""One rule for the places of a NIfTI file: what the standard says, in reading, counting and writing."""

from __future__ import annotations

import itertools

import nibabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nifti_files import GEOMETRIES, TURNED, save_nifti

from monai_margincal.formats import describe_label
from monai_margincal.formats.nifti import check_nifti
from monai_margincal.formats.nifti_geometry import has_orientation, nifti_affine, place, placement


def literal(header):
    """The standard, transcribed: methods 3, 2 and 1 of nifti1.h."""
    unit = {0: 1, 1: 1000, 2: 1, 3: 0.001}[int(header["xyzt_units"]) & 7]
    affine = np.eye(4)
    if header["sform_code"] > 0:
        affine[:3] = [header[f"srow_{axis}"] for axis in "xyz"]
    elif header["qform_code"] > 0:
        b, c, d = (float(header[f"quatern_{name}"]) for name in "bcd")
        a = np.sqrt(max(0.0, 1 - b * b - c * c - d * d))
        turn = np.array(
            [
                [a * a + b * b - c * c - d * d, 2 * b * c - 2 * a * d, 2 * b * d + 2 * a * c],
                [2 * b * c + 2 * a * d, a * a + c * c - b * b - d * d, 2 * c * d - 2 * a * b],
                [2 * b * d - 2 * a * c, 2 * c * d + 2 * a * b, a * a + d * d - c * c - b * b],
            ]
        )
        qfac = -1 if header["pixdim"][0] < 0 else 1
        affine[:3, :3] = turn @ np.diag(header["pixdim"][1:4] * [1, 1, qfac])
        affine[:3, 3] = [header[f"qoffset_{axis}"] for axis in "xyz"]
    affine[:3] *= unit
    return affine


@pytest.mark.parametrize("image", [nibabel.Nifti1Image, nibabel.Nifti2Image])
@pytest.mark.parametrize("name", GEOMETRIES)
def test_the_standard_decides(name, image, tmp_path):
    path = tmp_path / "a.nii.gz"
    expected = save_nifti(path, name, header=image)
    header = nibabel.load(path).header
    np.testing.assert_allclose(nifti_affine(header, "a"), expected, atol=1e-3)
    np.testing.assert_allclose(nifti_affine(header, "a"), literal(header), atol=1e-4)
    np.testing.assert_array_equal(describe_label(path).affine, nifti_affine(header, "a"))


@pytest.mark.parametrize("name", GEOMETRIES)
def test_pairs_follow_it_too(name, tmp_path):
    expected = save_nifti(tmp_path / "a.hdr", name, header=nibabel.Nifti1Pair)
    np.testing.assert_allclose(describe_label(tmp_path / "a.img").affine, expected, atol=1e-3)


def test_without_a_form_only_the_sizes_are_known(tmp_path):
    image = nibabel.Nifti1Image(np.zeros((4, 5, 6), np.int16), None)
    image.header.set_zooms((0.7, 0.8, 5))
    nibabel.save(image, tmp_path / "a.nii")
    header = nibabel.load(tmp_path / "a.nii").header
    assert not has_orientation(header)
    np.testing.assert_allclose(np.linalg.norm(nifti_affine(header, "a")[:3, :3], axis=0), (0.7, 0.8, 5), rtol=1e-6)
    with pytest.warns(
        UserWarning, match=r"a\.nii: found neither an sform nor a qform in the NIfTI header, expected one"
    ):
        check_nifti(tmp_path / "a.nii")


@pytest.mark.parametrize("code", [4, 5, 7])
def test_an_unknown_unit_is_refused(code, tmp_path):
    save_nifti(tmp_path / "a.nii", "both alike")
    image = nibabel.load(tmp_path / "a.nii")
    image.header["xyzt_units"] = code
    with pytest.raises(ValueError, match=f"scan: found the unit of length {code} in the NIfTI header, expected"):
        nifti_affine(image.header, "scan")


def test_a_quaternion_that_is_none_is_refused():
    header = nibabel.Nifti1Header()
    header["qform_code"], header["quatern_b"], header["quatern_c"] = 1, 0.9, 0.9
    with pytest.raises(ValueError, match="scan: found a qform that is not a rotation"):
        nifti_affine(header, "scan")
    header["sform_code"] = 1  # then the qform does not count
    nifti_affine(header, "scan")


numbers = st.floats(-100, 100, allow_nan=False, width=32)


@settings(max_examples=60, deadline=None)
@given(
    codes=st.tuples(st.integers(0, 4), st.integers(0, 4)),
    turn=st.tuples(*[st.floats(-0.5, 0.5, width=32)] * 3),
    rows=st.lists(numbers, min_size=12, max_size=12),
    sizes=st.tuples(*[st.floats(0.125, 10, width=32)] * 3),
    qfac=st.sampled_from([-1, 1]),
    unit=st.sampled_from([0, 1, 2, 3]),
)
def test_any_header_is_copied_whole_and_read_by_the_standard(codes, turn, rows, sizes, qfac, unit):
    header = nibabel.Nifti1Header()
    header["qform_code"], header["sform_code"] = codes
    header["quatern_b"], header["quatern_c"], header["quatern_d"] = turn
    header["srow_x"], header["srow_y"], header["srow_z"] = rows[:4], rows[4:8], rows[8:]
    header["pixdim"][:4] = (qfac, *sizes)
    header["xyzt_units"] = unit
    copy = nibabel.Nifti1Header()
    place(copy, placement(header))
    if max(codes):
        np.testing.assert_allclose(nifti_affine(header, "a"), literal(header), rtol=1e-5, atol=1e-3)
        np.testing.assert_array_equal(nifti_affine(copy, "a"), nifti_affine(header, "a"))
    for field, form in itertools.product(("sform_code", "qform_code", "xyzt_units"), (header, copy)):
        assert form[field] == header[field]


def test_metadata_of_other_formats_say_nothing():
    assert placement({"affine": TURNED, "space": "RAS"}) is None
