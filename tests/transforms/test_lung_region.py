"""The box around the lungs: on drawn chests whose lungs are known, on real scans, and its exact inverse."""

from __future__ import annotations

import warnings

import nibabel
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from monai.data import MetaTensor
from monai.transforms import Compose, Invertd, LoadImage, Orientationd, ScaleIntensityRanged
from shared import SHARED, needs_shared

from monai_margincal.samples import sample_dir
from monai_margincal.transforms import LungRegionCrop, LungRegionCropd, find_lung_region

SHAPE = (96, 80, 24)
LUNGS = ((20, 24, 4), (76, 60, 20))  # start, stop


def chest(shape=SHAPE, room=-1000.0):
    """Right, front, head: an ellipse of tissue in room air, two lungs of noise, a trachea that opens to the room above."""
    hu = np.full(shape, room, dtype=np.float32)
    x, y = np.meshgrid(np.arange(shape[0]) - 48, np.arange(shape[1]) - 40, indexing="ij")
    hu[(x / 40) ** 2 + (y / 34) ** 2 <= 1] = 40
    noise = np.random.RandomState(0).normal(-850, 40, shape)
    for side in (slice(20, 40), slice(56, 76)):
        hu[side, 24:60, 4:20] = noise[side, 24:60, 4:20]
    hu[46:50, 40:44, 4:] = -1000
    return hu


def contains(region, start, stop):
    return all(a <= b for a, b in zip(region.start, start, strict=True)) and all(
        a >= b for a, b in zip(region.stop, stop, strict=True)
    )


def test_both_lungs_and_little_else():
    region = find_lung_region(chest(), margin_mm=0)
    assert region.kind == "lungs"
    assert contains(region, *LUNGS)
    assert np.prod(np.subtract(region.stop, region.start)) < 1.25 * np.prod(np.subtract(*LUNGS[::-1]))


@pytest.mark.parametrize("margin", [0, 5, (1, 2, 3), 1000])
def test_the_margin_is_in_mm_and_stays_in_the_image(margin):
    affine = np.diag([0.5, 2.0, 5.0, 1.0])
    tight, wide = find_lung_region(chest(), affine, 0), find_lung_region(chest(), affine, margin)
    for axis, mm in enumerate(np.broadcast_to(margin, 3)):
        voxels = int(np.ceil(mm / affine[axis, axis]))
        assert wide.start[axis] == max(0, tight.start[axis] - voxels)
        assert wide.stop[axis] == min(SHAPE[axis], tight.stop[axis] + voxels)


@pytest.mark.parametrize("axcodes", ["RAS", "LPS", "PLS", "SAR", "ILP", "ASL"])
def test_any_orientation(axcodes):
    image = nibabel.Nifti1Image(chest(), np.eye(4))
    change = nibabel.orientations.ornt_transform(
        nibabel.orientations.io_orientation(image.affine), nibabel.orientations.axcodes2ornt(axcodes)
    )
    turned = image.as_reoriented(change)
    region = find_lung_region(np.asarray(turned.dataobj), turned.affine, margin_mm=0)
    marks = np.zeros(SHAPE, dtype=np.uint8)
    marks[tuple(slice(a, b) for a, b in zip(*LUNGS, strict=True))] = 1
    found = np.argwhere(np.asarray(nibabel.Nifti1Image(marks, np.eye(4)).as_reoriented(change).dataobj))
    assert region.kind == "lungs"
    assert contains(region, found.min(0), found.max(0) + 1)


def test_a_lung_without_air_is_kept():
    """A white lung looks like soft tissue: the other one says where it lies."""
    hu = chest()
    hu[56:76, 24:60, 4:20] = 30
    assert contains(find_lung_region(hu, margin_mm=0), *LUNGS)


def test_a_table_is_not_lung():
    hu = chest()
    hu[:, 4:6] = 0  # the table's shell
    hu[:, :4] = np.random.RandomState(1).normal(-930, 5, hu[:, :4].shape)  # its foam
    region = find_lung_region(hu, margin_mm=0)
    assert region.kind == "lungs"
    assert region.start[1] > 6


def test_a_scan_cut_to_the_lungs_keeps_them():
    hu = chest()[22:74, 26:58, 6:18]
    assert find_lung_region(hu, margin_mm=0).start == (0, 0, 0)
    assert find_lung_region(hu, margin_mm=0).stop == hu.shape


@pytest.mark.parametrize("outside", [-1024.0, -2000.0, -3024.0])
def test_values_outside_the_field_of_view(outside):
    hu = chest()
    hu[:8] = hu[-8:] = outside
    assert contains(find_lung_region(hu, margin_mm=0), *LUNGS)
    assert find_lung_region(hu, margin_mm=0).kind == "lungs"


def test_the_body_where_there_is_no_lung_and_the_image_where_there_is_no_body():
    no_lung = np.where(chest() > -500, 40.0, -1000.0)
    no_lung[20:76, 24:60, 4:20] = 40
    no_lung[46:50, 40:44, :] = 40
    region = find_lung_region(no_lung, margin_mm=0)
    assert region.kind == "body"
    assert contains(region, (8, 6, 0), (89, 75, 24))
    assert region.start[1] >= 5
    assert find_lung_region(np.full(SHAPE, -1000.0)) == ((0, 0, 0), SHAPE, "image")
    assert find_lung_region(np.random.RandomState(0).rand(*SHAPE)).stop == SHAPE  # scaled already: no air anywhere
    assert find_lung_region(np.full(SHAPE, np.nan)).stop == SHAPE


@pytest.mark.parametrize("shape", [(96, 80, 1), (1, 1, 1), (5, 1, 9), (1, 80, 24)])
def test_thin_scans(shape):
    hu = chest()[: shape[0], : shape[1], 10 : 10 + shape[2]]
    region = find_lung_region(hu)
    assert all(0 <= a < b <= size for a, b, size in zip(region.start, region.stop, shape, strict=True))


@settings(deadline=None, max_examples=40)
@given(
    shape=st.tuples(*[st.integers(1, 30)] * 3),
    level=st.sampled_from([-1000.0, -850.0, -400.0, 0.0]),
    spread=st.sampled_from([0.0, 10.0, 600.0]),
    seed=st.integers(0, 3),
)
def test_the_box_is_never_empty_and_never_outside(shape, level, spread, seed):
    hu = np.random.RandomState(seed).normal(level, spread, shape)
    region = find_lung_region(hu, margin_mm=2)
    assert all(0 <= a < b <= size for a, b, size in zip(region.start, region.stop, shape, strict=True))


def test_the_crop_is_undone_exactly_in_a_chain():
    affine = torch.diag(torch.tensor([0.8, 0.7, 5.0, 1.0], dtype=torch.float64))
    affine[:3, 3] = torch.tensor([-40.0, 20.0, 7.0], dtype=torch.float64)
    image = MetaTensor(torch.from_numpy(chest())[None], affine=affine)
    chain = Compose(
        [
            Orientationd("image", "PLS", labels=(("L", "R"), ("P", "A"), ("I", "S"))),
            LungRegionCropd("image", "image", margin_mm=2),
            ScaleIntensityRanged("image", -1400, 100, 0, 1, clip=True),
        ]
    )
    item = chain({"image": image})
    assert item["image"].meta["cropped_to"] == "lungs"
    assert item["image"].numel() < image.numel() / 2
    prediction = MetaTensor((item["image"].as_tensor() > 0.5).to(torch.uint8) + 1).copy_meta_from(item["image"])
    back = Invertd("pred", chain, orig_keys="image", nearest_interp=True)({**item, "pred": prediction})["pred"]
    assert back.shape == image.shape
    assert torch.allclose(back.affine, affine)
    inside = back.as_tensor() > 0
    expected = ((image.as_tensor() + 1400) / 1500 > 0.5).to(back.dtype) + 1
    assert torch.equal(back.as_tensor()[inside], expected[inside])
    assert inside.sum() == item["image"].numel()


def test_image_and_label_are_cropped_alike_and_stay_where_they_are():
    label = torch.zeros(1, *SHAPE)
    label[:, 30, 40, 10] = 1
    crop = LungRegionCropd(["image", "label"], "image")
    item = crop({"image": MetaTensor(torch.from_numpy(chest())[None]), "label": MetaTensor(label)})
    assert item["label"].shape == item["image"].shape
    index = torch.tensor([*(int(n[0]) for n in torch.where(item["label"][0] == 1)), 1], dtype=torch.float64)
    assert (item["label"].affine @ index)[:3].tolist() == [30, 40, 10]


def test_a_crop_does_not_keep_the_whole_scan_in_memory():
    """A view would: a cache of crops would then cost as much as one of whole scans."""
    items = {key: MetaTensor(torch.from_numpy(chest())[None]) for key in ("image", "label")}
    cropped = LungRegionCropd(["image", "label"], "image", margin_mm=2)(items)
    for item in cropped.values():
        assert item.numel() < np.prod(SHAPE) / 2
        assert item.untyped_storage().nbytes() == 4 * item.numel()


@pytest.mark.parametrize("label_key", ["label", None])
def test_labels_that_are_cut_off_are_told_with_their_file(label_key):
    label = torch.zeros(1, *SHAPE)
    label[:, 30, 40, 10:12] = 1  # in the right lung
    label[:, 2, 2, 0:3] = 2  # in the room
    label = MetaTensor(label, meta={"filename_or_obj": "labels/a.nii.gz"})
    crop = LungRegionCropd(["image", "label"], "image", label_key=label_key, margin_mm=2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        item = crop({"image": MetaTensor(torch.from_numpy(chest())[None]), "label": label})
    assert torch.count_nonzero(item["label"]) == 2
    told = [str(w.message) for w in caught]
    assert len(told) == (label_key is not None)
    if told:
        assert told[0].startswith("labels/a.nii.gz: 3 of 5 labelled voxels lie outside the region of the lungs")
    inside = MetaTensor(torch.where(label == 1, label, 0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        crop({"image": MetaTensor(torch.from_numpy(chest())[None]), "label": inside})


def test_a_label_key_that_is_not_cropped():
    with pytest.raises(ValueError, match=r"label_key must be one of keys \('image',\), found 'label'"):
        LungRegionCropd("image", "image", label_key="label")


@pytest.mark.parametrize("kind", ["image", "label"])
def test_wrong_input(kind):
    crop = LungRegionCropd(["image", "label"], "image")
    good = torch.zeros(1, 8, 8, 8)
    if kind == "image":
        with pytest.raises(ValueError, match=r"\(C, X, Y, Z\), found \(1, 8, 8\)"):
            crop({"image": torch.zeros(1, 8, 8), "label": good})
    else:
        with pytest.raises(ValueError, match=r"label has the spatial shape \(8, 8, 7\), expected that of image"):
            crop({"image": good, "label": good[..., :7]})


@pytest.mark.parametrize("margin", [-1, (1, -2, 3), float("nan")])
def test_wrong_margin(margin):
    with pytest.raises(ValueError, match="margin_mm must be one number or three"):
        LungRegionCrop(margin)
    with pytest.raises(ValueError, match=r"without an empty axis, found \(3, 0, 3\)"):
        find_lung_region(np.zeros((3, 0, 3)))


@pytest.mark.parametrize("case", ["lung1", "lung2"])
def test_the_shipped_crops_stay_whole(case):
    image = LoadImage()(f"{sample_dir('lung_ct')}/images/{case}.nii.gz")
    region = find_lung_region(image, image.affine)
    assert region == ((0, 0, 0), (192, 192, 24), "lungs")


@needs_shared
@pytest.mark.parametrize(("case", "largest_share"), [("lung1", 0.7), ("lung2", 0.75)])
def test_real_scans_lose_what_is_not_chest_and_no_lesion(case, largest_share):
    folder = SHARED / "data" / "lung_ct"
    image, label = (LoadImage()(str(folder / f"{case}_{kind}.nrrd")) for kind in ("image", "label"))
    region = find_lung_region(image, image.affine)
    lesion = np.argwhere(np.asarray(label) > 0)
    assert region.kind == "lungs"
    for margin in (0, 20):
        assert contains(find_lung_region(image, image.affine, margin), lesion.min(0), lesion.max(0) + 1)
    assert np.prod(np.subtract(region.stop, region.start)) < largest_share * image.numel()
    # aerated lung lies 10 mm inside of the box: within the body, well below soft tissue, well above room air
    hu = np.asarray(image)
    lung = (hu > -900) & (hu < -600)
    lung &= lung_box(hu.shape, find_lung_region(image, image.affine, 0))
    assert lung.mean() > 0.05


def lung_box(shape, region):
    mask = np.zeros(shape, dtype=bool)
    mask[tuple(slice(a, b) for a, b in zip(region.start, region.stop, strict=True))] = True
    return mask


@needs_shared
def test_a_turned_scan_has_the_same_lungs():
    """The same chest, rotated by 20 degrees."""
    truth = LoadImage()(str(SHARED / "data" / "chest_labelmaps" / "wholeLung-64.nrrd"))
    voxels = np.argwhere(np.asarray(truth) > 0)
    for name in ("ct-64.nrrd", "ct-64-transformed.nrrd"):
        image = LoadImage()(str(SHARED / "data" / "chest_labelmaps" / name))
        region = find_lung_region(image, image.affine)
        assert region.kind == "lungs"
        assert contains(region, voxels.min(0), voxels.max(0) + 1), name
