"""Scans of every format are compared with their headers before a reader of MONAI sees them."""

from __future__ import annotations

from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from mutants import KINDS, TEXT, VOXELS, metaimage, nifti, nrrd, raw, write
from PIL import Image

from monai_margincal.formats import check_scan

#: kinds of files that end with the last voxel or its checksum
WHOLE = [kind for kind in KINDS if kind != "seg"]


@pytest.mark.parametrize("fault", ["cut", "longer"])
@pytest.mark.parametrize("kind", WHOLE)
def test_files_that_hold_less_or_more(tmp_path: Path, kind: str, fault: str) -> None:
    (tmp_path / "whole").mkdir()
    files = KINDS[kind][0](tmp_path / "whole")
    path = write(tmp_path / "a", files)
    check_scan(path)
    name = list(files)[-1]
    content = files[name]
    # the last number of a text is followed by a line break
    files[name] = content[: -3 if "text" in kind else -1] if fault == "cut" else content + b" 7\n"
    with pytest.raises(ValueError) as raised:
        check_scan(write(tmp_path / "b", files))
    assert str(raised.value).startswith(str(tmp_path / "b"))


@pytest.mark.parametrize(
    ("name", "fault"),
    # the others do not say where their files end
    [("a.hdr", "cut"), ("a.hdr", "longer"), ("a.npy", "cut"), ("a.npy", "longer"), ("a.npz", "cut"), ("a.tif", "cut")],
)
def test_formats_of_images_alone(tmp_path: Path, name: str, fault: str) -> None:
    path = damaged = tmp_path / name
    if name == "a.hdr":
        nib.save(nib.Nifti1Pair(VOXELS, np.eye(4)), path)
        damaged = tmp_path / "a.img"
    elif name == "a.tif":
        Image.fromarray(np.random.default_rng(0).integers(0, 255, (50, 50)).astype(np.uint8)).save(path)
    else:
        (np.save if name == "a.npy" else np.savez)(path, VOXELS)
    check_scan(path)
    content = damaged.read_bytes()
    damaged.write_bytes(content[:-40] if fault == "cut" else content + b"7")
    with pytest.raises(ValueError) as raised:
        check_scan(path)
    assert str(raised.value).startswith(str(tmp_path))


def test_a_stack_of_pictures_is_refused(tmp_path: Path) -> None:
    pages = [Image.fromarray(VOXELS[:, :, number].astype(np.uint8)) for number in range(6)]
    pages[0].save(tmp_path / "a.tif", save_all=True, append_images=pages[1:])
    with pytest.raises(ValueError, match=r"a\.tif: found a stack of 6 pictures"):
        check_scan(tmp_path / "a.tif")


def test_what_no_reader_here_can_check_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.gipl").write_bytes(b"7" * 1000)
    with pytest.raises(ValueError, match=r"a\.gipl: found the file name ending '\.gipl', expected one of \.dcm, \.mha"):
        check_scan(tmp_path / "a.gipl")


@pytest.mark.parametrize("kind", TEXT)
def test_a_header_that_spans_no_volume(tmp_path: Path, kind: str) -> None:
    (tmp_path / "whole").mkdir()
    files = KINDS[kind][0](tmp_path / "whole")
    name = next(iter(files))
    for whole, flat in (
        (b"(0,0,2)", b"(0,0,0)"),
        (b"0.6 2\n", b"0.6 0\n"),
        (b"0.59999999999999998 2", b"0.59999999999999998 0"),
    ):
        files[name] = files[name].replace(whole, flat)
    with pytest.raises(ValueError, match=r"found the header's affine .* spans no volume"):
        check_scan(write(tmp_path, files))


@pytest.mark.parametrize(
    "files", [metaimage("LOCAL", {}, raw(VOXELS), "BinaryData = True\n"), nrrd("raw", raw(VOXELS))], ids=["mha", "nrrd"]
)
def test_a_header_without_spacing_warns(tmp_path: Path, files: dict[str, bytes]) -> None:
    name, content = next(iter(files.items()))
    lines = [line for line in content.split(b"\n") if not line.startswith((b"ElementSpacing", b"space directions"))]
    with pytest.warns(UserWarning, match=rf"{name}: found no spacing and directions .* readers take voxels of 1 mm"):
        check_scan(write(tmp_path, {name: b"\n".join(lines)}))


def test_a_form_of_an_unknown_code_is_refused(tmp_path: Path) -> None:
    """nibabel takes it for none while it loads; other readers do not."""
    content = bytearray(nifti(1, packed=False)["a.nii"])
    content[252:256] = b"\x7f" * 4
    with pytest.raises(ValueError, match=r"a\.nii: found a header that readers place differently"):
        check_scan(write(tmp_path, {"a.nii": bytes(content)}))
