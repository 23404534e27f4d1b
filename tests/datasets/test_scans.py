"""The list of scans: what cannot give right results is refused before anything runs, and a bad scan is named."""

from __future__ import annotations

import gzip
import logging
import struct
import warnings
from pathlib import Path

import nibabel
import numpy as np
import pytest
import SimpleITK
import torch
from monai.transforms import Compose, EnsureChannelFirstd, LoadImaged, ScaleIntensityRanged
from PIL import Image

from monai_margincal.datasets import ScanDataset
from monai_margincal.datasets.case_files import case_file
from monai_margincal.outputs import Outputs
from monai_margincal.transforms import NiftiReader

WINDOW = (-1400.0, 100.0)
PREPARE = Compose(
    [LoadImaged("image"), EnsureChannelFirstd("image"), ScaleIntensityRanged("image", *WINDOW, 0, 1, clip=True)]
)


def write(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(array, np.eye(4)), path)
    return {"image": str(path)}


def chest():
    array = np.full((9, 9, 9), -1000, np.int16)
    array[2:7, 2:7] = 40
    return array


def test_a_good_scan(tmp_path):
    item = write(tmp_path / "a.nii.gz", chest())
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        image = ScanDataset([item], PREPARE, window=WINDOW, divider=-500.0)[0]["image"]
    assert image.shape == (1, 9, 9, 9)


def test_lists_that_are_refused(tmp_path):
    a, b = write(tmp_path / "a.nii.gz", chest()), write(tmp_path / "x" / "a.nii", chest())
    with pytest.raises(ValueError, match="the list of scans is empty"):
        ScanDataset([], PREPARE)
    with pytest.raises(ValueError, match=r"the keys \['img'\], expected 'image'"):
        ScanDataset([{"img": 1}], PREPARE)
    with pytest.raises(FileNotFoundError, match=r"scan not found: .*none\.nii"):
        ScanDataset([{"image": str(tmp_path / "none.nii")}], PREPARE)
    with pytest.raises(ValueError, match=r"results of .*a\.nii\.gz and .*x/a\.nii would have the same name, a"):
        ScanDataset([a, b], PREPARE)
    assert len(ScanDataset([a, b], PREPARE, data_root_dir=str(tmp_path))) == 2
    with pytest.raises(ValueError, match=r"a\.nii\.gz does not lie in the data set's folder"):
        ScanDataset([a], PREPARE, data_root_dir=str(tmp_path / "x"))


@pytest.mark.parametrize("fault", ["truncated", "empty", "text", "no reader"])
def test_a_scan_that_cannot_be_read_is_named_in_one_line(tmp_path, fault):
    name = "bad.xyz" if fault == "no reader" else "bad.nii.gz"
    item = write(tmp_path / "bad.nii.gz", np.random.RandomState(0).randint(-1000, 100, (30, 30, 30)).astype(np.int16))
    content = (tmp_path / "bad.nii.gz").read_bytes()
    (tmp_path / name).write_bytes({"truncated": content[: len(content) // 2], "empty": b""}.get(fault, b"no image"))
    item = {"image": str(tmp_path / name)}
    with pytest.raises(RuntimeError) as raised:
        ScanDataset([item], PREPARE)[0]
    found = {
        "truncated": "cannot be read, expected 27000 voxels of int16: EOFError: ",
        "empty": "found an empty file, expected an image",
        "text": "found a file that is not compressed by gzip, although its name says otherwise, expected a NIfTI file",
        "no reader": "found the file name ending '.xyz', expected one of .dcm, .mha, .mhd, ",
    }
    assert str(raised.value).startswith(f"{tmp_path / name}: {found[fault]}")
    assert "\n" not in str(raised.value)
    handed_over = ScanDataset([item], PREPARE, hand_over_errors=True)[0]
    assert handed_over == {**item, "failure": str(raised.value)}


@pytest.mark.parametrize(
    ("array", "missing"),
    [
        (np.random.RandomState(0).randint(0, 255, (9, 9, 9)).astype(np.uint8), "none below"),
        (np.random.RandomState(0).rand(9, 9, 9).astype(np.float32), "none below"),
        (chest() + 1024, "none below"),
        (np.full((9, 9, 9), -2000, np.int16), "none above"),
    ],
    ids=["8-bit", "scaled", "offset of 1024", "padding only"],
)
def test_what_is_hardly_a_ct_in_hounsfield_units_warns(tmp_path, array, missing):
    item = write(tmp_path / "a.nii.gz", array)
    data = ScanDataset([item], PREPARE, window=WINDOW, divider=-500.0, proper_scan="a chest CT")
    with pytest.warns(UserWarning, match=rf"a\.nii\.gz: found values from .* {missing} -500: is it a chest CT\?"):
        data[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        ScanDataset([item], PREPARE, window=WINDOW)[0]


def test_arrays_of_clients_pass():
    assert ScanDataset([{"image": torch.zeros(1, 2, 2, 2)}], None)[0]["image"].shape == (1, 2, 2, 2)


def test_voxels_that_are_no_numbers_become_air_and_warn(tmp_path):
    """Programs pad with NaN; through normalisation one such voxel would empty the mask of its whole slice."""
    array = chest().astype(np.float32)
    expected = ScanDataset([write(tmp_path / "a.nii.gz", array)], PREPARE, window=WINDOW)[0]["image"]
    array[array == -1000] = np.nan
    array[0, 0, 0] = -1000
    data = ScanDataset([write(tmp_path / "b.nii.gz", array)], PREPARE, window=WINDOW)
    number = int(np.isnan(array).sum())
    with pytest.warns(UserWarning, match=rf"b\.nii\.gz: found {number} of 729 voxels that are not a number") as warned:
        image = data[0]["image"]
    assert len(warned) == 1
    assert torch.equal(image.as_tensor(), expected.as_tensor())
    assert image.meta["filename_or_obj"].endswith("b.nii.gz")
    array[:] = np.nan
    with pytest.raises(RuntimeError, match=r"c\.nii\.gz: .* no voxel is a number"):
        ScanDataset([write(tmp_path / "c.nii.gz", array)], PREPARE, window=WINDOW)[0]


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.float32, np.float64, np.dtype(">i2")])
def test_every_type_of_file_gives_the_same_image(tmp_path, dtype):
    """Also a file whose header scales: 8 bits with a slope of 10 and an intercept of -1020."""
    hu = np.clip(chest(), -1020, 200)
    path = tmp_path / "a.nii"
    header = nibabel.Nifti1Header(endianness=">" if np.dtype(dtype).byteorder == ">" else "<")
    header.set_data_dtype(dtype)
    nibabel.save(nibabel.Nifti1Image((hu + 1020) // 10 if dtype == np.uint8 else hu, np.eye(4), header), path)
    if dtype == np.uint8:  # nibabel forgets the scaling of a header it saves
        content = bytearray(path.read_bytes())
        struct.pack_into("<ff", content, 112, 10.0, -1020.0)
        path.write_bytes(content)
    assert nibabel.load(path).get_data_dtype() == dtype
    expected = ((torch.from_numpy(hu.astype(np.float32)) + 1400) / 1500).clip(0, 1)
    found = ScanDataset([{"image": str(path)}], PREPARE, window=WINDOW)[0]["image"]
    assert torch.allclose(found.as_tensor()[0], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("shape", "found"),
    [
        ((9, 9, 9, 3), r"3 channel\(s\) or frame\(s\) of shape \(9, 9, 9\)"),
        ((9, 9), r"1 channel\(s\) or frame\(s\) of shape \(9, 9\)"),
        ((9, 9, 1, 3), r"3 channel\(s\) or frame\(s\) of shape \(9, 9, 1\)"),
    ],
)
def test_what_is_not_one_volume_is_refused_by_name(tmp_path, shape, found):
    """Without it the network complains, and the scan's name is lost."""
    array = np.resize(chest(), shape)
    with pytest.raises(RuntimeError, match=rf"a\.nii\.gz: .* found {found}, expected one volume of three axes"):
        ScanDataset([write(tmp_path / "a.nii.gz", array)], PREPARE, window=WINDOW)[0]


def test_frames_in_colour(tmp_path):
    """Two axes and three channels, where the list says so; a damaged picture is named before a reader fills it in."""
    rows = np.random.RandomState(0).randint(0, 256, (32, 40, 3)).astype(np.uint8)
    frames = Compose(
        [LoadImaged("image", reader="monai_margincal.transforms.FrameReader"), EnsureChannelFirstd("image")]
    )
    for name in ("a.png", "b.jpg"):
        Image.fromarray(rows).save(tmp_path / name)
        data = ScanDataset([{"image": str(tmp_path / name)}], frames, channels=3, axes=2)
        assert data[0]["image"].shape == (3, 40, 32)
        with pytest.raises(RuntimeError, match=r"found 3 channel\(s\) .* expected 1 channel\(s\) of 2 axes"):
            ScanDataset([{"image": str(tmp_path / name)}], frames, axes=2)[0]
        (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-50])
        with pytest.raises(RuntimeError, match=rf"{name}: "):
            data[0]


def test_one_frame_is_a_volume(tmp_path):
    image = ScanDataset([write(tmp_path / "a.nii.gz", chest()[..., None])], PREPARE, window=WINDOW)[0]["image"]
    assert image.shape == (1, 9, 9, 9)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("flipped bit", "cannot be read, expected 729 voxels of int16: BadGzipFile: CRC"),
        ("checksum", "cannot be read, expected 729 voxels of int16: BadGzipFile: CRC"),
        ("bytes behind the end", "cannot be read, expected 729 voxels of int16: BadGzipFile: Not a gzipped file"),
        ("no gzip", "found a file that is not compressed by gzip, although its name says otherwise"),
    ],
)
def test_a_damaged_file_that_nibabel_reads_is_refused(tmp_path, fault, message):
    """nibabel stops at the last voxel: what the checksum behind it would say is never asked."""
    path = tmp_path / "bad.nii.gz"
    write(path, chest())
    content = bytearray(path.read_bytes())
    if fault == "flipped bit":
        plain = bytearray(gzip.decompress(content))
        plain[-400] ^= 64
        content = bytearray(gzip.compress(plain))[:-8] + content[-8:]
    elif fault == "checksum":
        content[-6] ^= 1
    elif fault == "bytes behind the end":
        content += b"something else"
    else:
        content = bytearray(gzip.decompress(content))
    path.write_bytes(content)
    with pytest.raises(RuntimeError, match=rf"bad\.nii\.gz: {message}"):
        ScanDataset([{"image": str(path)}], PREPARE, window=WINDOW)[0]


@pytest.mark.parametrize("fault", ["zero", "nan", "parallel"])
def test_a_header_without_a_volume_is_refused(tmp_path, fault):
    """MONAI takes voxels of 1 mm for it, and the mask would lie elsewhere than its scan."""
    affine = np.diag([-0.7, -0.7, 5.0, 1.0])
    if fault == "zero":
        affine[2, 2] = 0
    elif fault == "nan":
        affine[0, 3] = np.nan
    else:
        affine[:3, 1] = affine[:3, 0]
    image = nibabel.Nifti1Image(chest(), None)
    image.header.set_sform(affine, 1)
    nibabel.save(image, tmp_path / "a.nii.gz")
    with pytest.raises(RuntimeError, match=r"a\.nii\.gz: .*affine \[\[.*spans no volume"):
        ScanDataset([{"image": str(tmp_path / "a.nii.gz")}], PREPARE, window=WINDOW)[0]


@pytest.mark.parametrize("header", ["no form", "sheared", "tiny voxels"])
def test_headers_that_are_only_unusual_pass(tmp_path, header):
    affine = np.diag([-0.7, -0.7, 5.0, 1.0])
    if header == "sheared":  # a gantry tilt without its correction
        affine[1, 2] = 1.5
    elif header == "tiny voxels":
        affine[:3, :3] *= 1e-3
    path = tmp_path / "a.nii.gz"
    nibabel.save(nibabel.Nifti1Image(chest(), None if header == "no form" else affine), path)
    image = ScanDataset([{"image": str(path)}], PREPARE, window=WINDOW)[0]["image"]
    assert np.allclose(image.affine, nibabel.load(path).affine, atol=1e-6)


@pytest.mark.parametrize("ending", [".NII.GZ", ".Nii.gz", ".NII"])
def test_endings_in_any_letter_case(tmp_path, ending):
    """The mask is named as that of an ending in lower case."""
    plain = write(tmp_path / f"a{ending.lower()}", chest())["image"]
    path = tmp_path / "upper" / f"CT{ending}"
    path.parent.mkdir()
    path.write_bytes((tmp_path / Path(plain).name).read_bytes())
    # as a bundle reads: nibabel itself opens no name in mixed case
    read = Compose([LoadImaged("image", reader=NiftiReader), EnsureChannelFirstd("image")])
    image = ScanDataset([{"image": str(path)}], read)[0]["image"]
    assert torch.equal(image.as_tensor(), ScanDataset([{"image": plain}], read)[0]["image"].as_tensor())
    assert case_file(image.meta, "/out", "mask", ".nii.gz").as_posix() == "/out/CT_mask.nii.gz"


@pytest.mark.parametrize("name", ["a.nii", "a.mha", "a.nrrd"])
@pytest.mark.parametrize("fault", ["cut", "longer"])
def test_a_scan_that_holds_less_or_more_than_its_header_says(tmp_path, name, fault):
    """Most readers go on with what is there, or with memory as it was."""
    path = tmp_path / name
    if name == "a.nii":
        write(path, chest())
    else:
        SimpleITK.WriteImage(SimpleITK.GetImageFromArray(chest()), str(path), name == "a.mha")
    content = path.read_bytes()
    path.write_bytes(content[:-5] if fault == "cut" else content + b"12345")
    with pytest.raises(RuntimeError, match=rf"{name}: found") as raised:
        ScanDataset([{"image": str(path)}], PREPARE, window=WINDOW)[0]
    assert str(raised.value).startswith(str(path))


def test_results_of_an_earlier_run_are_left_out_or_refused(tmp_path, caplog):
    """The folder of results is that of the scans: the second run must not segment the masks of the first."""
    scans = [write(tmp_path / f"{name}.nii.gz", chest()) for name in ("a", "a_mask", "b", "b_mask")]
    outputs = Outputs("mask", tmp_path)
    with caplog.at_level(logging.WARNING):
        data = ScanDataset(scans, PREPARE, results=outputs)
    assert [item["image"] for item in data.data] == [str(tmp_path / f"{name}.nii.gz") for name in "ab"]
    (message,) = caplog.messages
    assert message == f"left out what an earlier run wrote: {tmp_path}/a_mask.nii.gz, {tmp_path}/b_mask.nii.gz"
    with pytest.raises(ValueError, match=r"a_mask\.nii\.gz: found results of an earlier run only, expected scans"):
        ScanDataset(scans[1:2], PREPARE, results=outputs)
    assert len(ScanDataset(scans, PREPARE, results=Outputs("mask", tmp_path / "out"))) == 4
    assert len(ScanDataset([{"image": torch.zeros(1, 2, 2, 2)}], None, results=outputs)) == 1
