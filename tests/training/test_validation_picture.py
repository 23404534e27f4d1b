"""The picture of a validation: which slice, which way up, what it shows, and that it comes with every validation."""

from __future__ import annotations

import io

import nibabel
import numpy as np
import pytest
import torch
from monai.data import DataLoader, Dataset, MetaTensor
from monai.engines import SupervisedEvaluator
from monai.transforms import AsDiscreted, Compose, Invertd, NormalizeIntensityd, Orientationd, SpatialCropd
from PIL import Image, ImageColor
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from monai_margincal.palette import class_colour
from monai_margincal.training import ValidationPictureHandler
from monai_margincal.training.picture_row import picture_row
from monai_margincal.training.rare_slice import RareSlice, plane_of, rarest_slice

NAMES = ["background", "common", "rare"]
VOXELS = [10_000, 1000, 10]


@pytest.mark.parametrize("codes", ["RAS", "LPS", "PLS", "SAR", "IPR", "ALI"])
def test_a_slice_is_shown_as_a_radiologist_views_it(codes):
    """Whatever the order of the array: in the picture columns run to the patient's left and rows to the back."""
    patient = torch.arange(24.0).reshape(2, 3, 4)  # RAS: x to the right, y to the front, z to the head
    ras = nibabel.Nifti1Image(patient.numpy(), np.eye(4))
    turned = ras.as_reoriented(
        nibabel.orientations.ornt_transform(
            nibabel.orientations.io_orientation(np.eye(4)), nibabel.orientations.axcodes2ornt(codes)
        )
    )
    label = torch.zeros(1, *turned.shape)
    seen = torch.from_numpy(np.asarray(turned.dataobj).copy())[None]
    label[seen == patient[1, 0, 2]] = 1
    affine = torch.from_numpy(turned.affine)
    chosen = rarest_slice(label, affine, [1, 1])
    expected = patient[:, :, 2].T.flip(0, 1)  # right to left, front to back
    assert torch.equal(plane_of(seen, affine, chosen)[0], expected)


def test_one_rare_voxel_outweighs_many_common_ones():
    label = torch.zeros(1, 5, 5, 4)
    label[0, :, :, 1] = 1  # 25 of 1000
    label[0, 2, 2, 3] = 2  # 1 of 10
    label[0, 0, 0, 0] = 255
    chosen = rarest_slice(label, torch.eye(4), VOXELS)
    assert chosen == RareSlice(pytest.approx(0.1), 2, 3)


def test_a_plane_is_whole_and_its_width_comes_first():
    chosen = rarest_slice(torch.ones(1, 5, 4), torch.eye(4), VOXELS)
    assert chosen == RareSlice(pytest.approx(20 / 1000), None, 0)
    frame = torch.rand(3, 5, 4)
    assert torch.equal(plane_of(frame, torch.eye(4), chosen), frame.transpose(1, 2))


def test_a_label_without_classes_is_no_error():
    assert rarest_slice(torch.zeros(1, 3, 3, 3), torch.eye(4), VOXELS).score == 0


def test_the_three_pictures():
    plane = np.linspace(0, 1, 320 * 320).reshape(1, 320, 320)
    truth, prediction = np.zeros((2, 320, 320), np.uint8)
    truth[10, 20], prediction[10, 30] = 1, 2
    truth[0, 0] = 255
    picture = picture_row(plane, truth, prediction, NAMES, "a case with a name that is far too long to stand over it")
    panels = [picture[26:346, left : left + 320] for left in (0, 326, 652)]
    grey = np.rint(plane[0] * 255)[..., None].repeat(3, 2)
    assert np.array_equal(panels[0], grey)
    assert not picture[:26, 320:326].any(), "the title stays over its picture"
    for panel, place, index in ((panels[1], (10, 20), 1), (panels[2], (10, 30), 2)):
        colour = np.array(ImageColor.getrgb(class_colour(index)))
        assert np.allclose(panel[place], 0.4 * grey[place] + 0.6 * colour, atol=1)
        changed = (panel != grey).any(2)
        assert changed.sum() == 1


@pytest.mark.parametrize(
    ("size", "shown"), [((100, 80), (400, 320)), ((640, 512), (640, 512)), ((1280, 1024), (640, 512))]
)
def test_small_slices_are_enlarged_and_large_ones_reduced(size, shown):
    picture = picture_row(np.zeros((3, *size)), np.zeros(size), np.zeros(size), NAMES, "frame")
    assert picture.shape == (shown[0] + 52, 3 * shown[1] + 12, 3)


class Threshold(torch.nn.Module):
    """Logits of three grey values."""

    def forward(self, x):
        return torch.cat([-((x - k / 2) ** 2) for k in range(3)], dim=1)


def evaluate(folder, cases, preprocessing, epochs=(1, 2), **options):
    """Validate after some epochs; the pictures of TensorBoard by epoch."""
    post = Compose([
        AsDiscreted("pred", argmax=True),
        Invertd("pred", preprocessing, orig_keys="image", nearest_interp=True),
    ])  # fmt: skip
    handler = ValidationPictureHandler(folder, preprocessing, VOXELS, NAMES, **options)
    evaluator = SupervisedEvaluator(
        "cpu", DataLoader(Dataset(cases, preprocessing), batch_size=1), Threshold(), postprocessing=post,
        val_handlers=[handler],
    )  # fmt: skip
    for epoch in epochs:
        evaluator.run(epoch)
    events = EventAccumulator(str(folder), size_guidance={"images": 0}).Reload()
    images = events.Images("validation")
    return {one.step: np.asarray(Image.open(io.BytesIO(one.encoded_image_string))) for one in images}


def scan(rare_at, name):
    label = torch.zeros(1, 32, 40, 6)
    label[0, 3:9, 4:8, rare_at] = 2
    return {
        key: MetaTensor(data, affine=torch.diag(torch.tensor([-1.0, -1.0, 2.0, 1.0])), meta={"filename_or_obj": name})
        for key, data in (("image", label / 2), ("label", label))
    }


def test_the_image_is_put_back_onto_the_grid_of_the_label(tmp_path):
    """The network sees it cropped and turned."""
    cases = [scan(1, "a.nii.gz"), scan(4, "b.nii.gz")]
    cases[1]["label"][0, 9, 9, 4] = 2
    preprocessing = Compose([
        Orientationd("image", "PLS", labels=[["L", "R"], ["P", "A"], ["I", "S"]]),
        SpatialCropd("image", roi_start=[2, 1, 0], roi_end=[30, 30, 6]),
    ])  # fmt: skip
    pictures = evaluate(tmp_path, cases, preprocessing)
    assert sorted(pictures) == [1, 2]
    assert np.array_equal(pictures[1], pictures[2]), "the same slice, of the same network"
    panels = [pictures[1][26:-26, left : left + 256][::8, ::8] for left in (0, 262, 524)]
    seen = cases[1]["image"][0, :, :, 4].T.numpy() * 255  # already LPS
    assert np.array_equal(panels[0][..., 0], seen)
    orange = (panels[1] != panels[0]).any(2)
    assert np.array_equal(orange, cases[1]["label"][0, :, :, 4].T.numpy() == 2)
    assert np.array_equal((panels[2] != panels[0]).any(2), seen == 255)


def test_a_frame_has_its_own_colours_again(tmp_path):
    pixels = torch.randint(0, 256, (3, 40, 32)).float()
    label = torch.zeros(1, 40, 32)
    mean, std = [0.4, 0.5, 0.6], [0.2, 0.25, 0.3]
    preprocessing = Compose([
        SpatialCropd("image", roi_start=[0, 0], roi_end=[9999, 9999]),
        NormalizeIntensityd(
            "image", [255 * value for value in mean], [255 * value for value in std], channel_wise=True
        ),
    ])  # fmt: skip
    item = {"image": MetaTensor(pixels.clone()), "label": MetaTensor(label)}

    class Grey(Threshold):
        def forward(self, x):
            return super().forward(x[:, :1])

    handler = ValidationPictureHandler(tmp_path, preprocessing, VOXELS, NAMES, mean=mean, std=std)
    evaluator = SupervisedEvaluator(
        "cpu", DataLoader(Dataset([item], preprocessing), batch_size=1), Grey(),
        postprocessing=AsDiscreted("pred", argmax=True), val_handlers=[handler],
    )  # fmt: skip
    evaluator.run()
    (event,) = EventAccumulator(str(tmp_path), size_guidance={"images": 0}).Reload().Images("validation")
    picture = np.asarray(Image.open(io.BytesIO(event.encoded_image_string)))
    assert np.abs(picture[26:-26, :320][::8, ::8].transpose(2, 1, 0) - pixels.numpy()).max() <= 1
