"""`margincal figure`: the right slice, the right way up, the right numbers, for volumes and frames."""

from __future__ import annotations

from pathlib import Path

import nibabel
import numpy as np
import pytest
from PIL import Image, ImageColor

from monai_margincal.cli import main
from monai_margincal.outputs.compared_case import compared_case, panel_confusion, panel_iou
from monai_margincal.outputs.comparison_picture import save_comparison
from monai_margincal.palette import TRUTH_OUTLINE, class_colour
from monai_margincal.samples import sample_dir

CT, FRAMES = Path(sample_dir("lung_ct")), Path(sample_dir("instruments"))


def volume(path, values, affine):
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(values, affine), path)
    return path


@pytest.fixture
def chest(tmp_path):
    """A shipped CT with three classes: its lesion and a rare one; predictions of two runs, in two storage orders."""
    image, label = nibabel.load(CT / "images" / "lung1.nii.gz"), nibabel.load(CT / "labels" / "lung1.nii.gz")
    truth = np.asanyarray(label.dataobj).astype(np.uint8)
    truth[60:64, 50:80, 3] = 2
    truth[60:64, 50:90, 12] = 2
    path = volume(tmp_path / "truth.nii.gz", truth, label.affine)
    shifted = np.roll(truth, 3, axis=0)
    volume(tmp_path / "ce" / "lung1_mask.nii.gz", shifted, label.affine)
    # mirrored in memory, at the same place in space
    affine = label.affine @ np.diag([-1, 1, 1, 1])
    affine[:3, 3] = (label.affine @ [truth.shape[0] - 1, 0, 0, 1])[:3]
    volume(tmp_path / "mc" / "deep" / "lung1_mask.nii.gz", truth[::-1], affine)
    return image, truth, shifted, path


def command(tmp_path, *words):
    return main(["figure", "-o", str(tmp_path / "figure.png"), *map(str, words)])


def test_the_slice_with_most_of_the_rarest_class_the_right_way_up(chest, tmp_path):
    image, truth, shifted, path = chest
    predictions = {"ce": tmp_path / "ce" / "lung1_mask.nii.gz", "mc": tmp_path / "mc" / "deep" / "lung1_mask.nii.gz"}
    case = compared_case(CT / "images" / "lung1.nii.gz", path, predictions, num_classes=3)
    assert case.title == "lung1, slice 12"
    values = np.asanyarray(image.dataobj)
    # rows go from front to back, columns from the patient's right to the left
    turned = {"R": slice(None), "L": slice(None, None, -1), "A": slice(None), "P": slice(None, None, -1)}
    x, y, z = nibabel.aff2axcodes(image.affine)
    assert z == "S"
    expected = values[turned["R" if x == "L" else "L"], turned["A" if y == "P" else "P"], 12].T
    assert (case.image == expected).all()
    assert (case.predictions["mc"] == case.truth).all()
    assert not (case.predictions["ce"] == case.truth).all()
    iou = panel_iou(panel_confusion(case, "ce", 3))
    for k in range(3):
        both, either = ((shifted == k) & (truth == k))[..., 12].sum(), ((shifted == k) | (truth == k))[..., 12].sum()
        assert iou[k] == pytest.approx(both / either)
        both, either = ((shifted == k) & (truth == k)).sum(), ((shifted == k) | (truth == k)).sum()
        assert panel_iou(case.volumes["ce"])[k] == pytest.approx(both / either)
    assert panel_iou(case.volumes["mc"]).tolist() == [1, 1, 1]
    assert compared_case(CT / "images" / "lung1.nii.gz", path, {}, 3, slice_index=2).title == "lung1, slice 2"


def test_a_volume_is_drawn_by_the_command(chest, tmp_path, capsys):
    *_, path = chest
    words = ["--image", CT / "images" / "lung1.nii.gz", "--label", path, "--run", f"cross-entropy={tmp_path / 'ce'}"]
    words += ["--run", f"margins={tmp_path / 'mc'}", "--class-names", "background,lesion,vessel"]
    assert command(tmp_path, *words, "--window", -1400, 100) == 0
    assert capsys.readouterr().out == f"written: {tmp_path / 'figure.png'}\n"
    drawn = np.asarray(Image.open(tmp_path / "figure.png").convert("RGB")).astype(int)
    assert drawn.shape[1] == round(4 * 2.3 * 150)
    for colour in (TRUTH_OUTLINE, class_colour(2)):
        assert (np.abs(drawn - ImageColor.getrgb(colour)).max(-1) < 90).any()


def frame_and_maps(folder):
    image, label = FRAMES / "images" / "larynx6_0137.png", FRAMES / "labels" / "larynx6_0137.png"
    truth = np.asarray(Image.open(label))
    for run, shift in (("first", 0), ("second", 9)):
        (folder / run).mkdir()
        mask = np.roll(np.where(truth == 255, 1, truth), shift, axis=0).astype(np.uint8)
        Image.fromarray(mask).save(folder / run / "larynx6_0137_mask.png")
    return image, label


def test_void_pixels_of_a_frame_count_nowhere(tmp_path):
    image, label = frame_and_maps(tmp_path)
    masks = {run: tmp_path / run / "larynx6_0137_mask.png" for run in ("first", "second")}
    case = compared_case(image, label, masks, num_classes=2, ignore_index=255)
    assert (case.truth == 255).any()
    assert panel_iou(panel_confusion(case, "first", 2, 255)).tolist() == [1, 1]
    assert panel_iou(panel_confusion(case, "second", 2, 255))[1] < 1
    with pytest.raises(ValueError, match=r"larynx6_0137_mask\.png, compared with .*255.*expected class ids \[0, 1\]"):
        compared_case(image, label, masks, num_classes=2)


def test_frames_and_volumes_in_rows_of_one_picture(chest, tmp_path):
    *_, path = chest
    frame_and_maps(tmp_path)
    masks = {"first": tmp_path / "first" / "larynx6_0137_mask.png"}
    files = [FRAMES / place / "larynx6_0137.png" for place in ("images", "labels")]
    cases = [
        compared_case(*files, masks, 3, ignore_index=255),
        compared_case(CT / "images" / "lung1.nii.gz", path, {"first": tmp_path / "ce" / "lung1_mask.nii.gz"}, 3),
    ]
    save_comparison(cases, tmp_path / "both.pdf", ["nothing", "tool", "vessel"], ignore_index=255)
    assert (tmp_path / "both.pdf").read_bytes().startswith(b"%PDF")
    other = compared_case(*files, {"second": tmp_path / "second" / "larynx6_0137_mask.png"}, 3, ignore_index=255)
    with pytest.raises(ValueError, match=r"larynx6_0137: found the runs \['second'\], expected \['first'\]"):
        save_comparison([cases[0], other], tmp_path / "both.png", ["nothing", "tool", "vessel"])
    with pytest.raises(ValueError, match="found no case to draw"):
        save_comparison([], tmp_path / "none.png", ["nothing", "tool"])


def test_mistakes_are_named_in_one_line(tmp_path, capsys):
    image, label = frame_and_maps(tmp_path)
    first = ["--image", image, "--label", label, "--ignore-index", 255]

    def message(*words):
        assert command(tmp_path, *words) == 1
        (line,) = capsys.readouterr().err.splitlines()
        return line

    assert "--run: found 'first', expected KEY=VALUE" in message(*first, "--run", "first")
    assert "--run: found a, a, expected each name once" in message(*first, *["--run", f"a={tmp_path}"] * 2)
    assert "--label: found 1 files, expected 2" in message("--image", image, *first, "--run", f"a={tmp_path}")
    assert f"--run: {tmp_path}/no: found no such folder" in message(*first, "--run", f"a={tmp_path}/no")
    two = f"{tmp_path}/first/larynx6_0137_mask.png, {tmp_path}/second/larynx6_0137_mask.png"
    assert f"{tmp_path}: found {two}, expected one prediction" in message(*first, "--run", f"a={tmp_path}")
    (tmp_path / "none").mkdir()
    assert f"{tmp_path}/none: found none, expected one pred" in message(*first, "--run", f"a={tmp_path}/none")
    run = ["--run", f"a={tmp_path}/first"]
    assert "--class-names: found 'tool', expected" in message(*first, *run, "--class-names", "tool")
    Image.new("L", (9, 9)).save(tmp_path / "first" / "larynx6_0137_mask.png")
    assert "found a class map of the shape (9, 9), expected (256, 256)" in message(*first, *run)
    words = ["--image", CT / "images" / "lung1.nii.gz", "--label", CT / "labels" / "lung1.nii.gz"]
    words += ["--run", f"a={CT / 'labels'}", "--slice", 99]
    assert "found slice 99, expected 0 to 23" in message(*words)
    assert not (tmp_path / "figure.png").exists()
