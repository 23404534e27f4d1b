"""Overlay pictures: the right slice, turned as radiologists look at it, under the scan's own name."""

from __future__ import annotations

import nibabel
import numpy as np
import pytest
import torch
from matplotlib.image import imread
from monai.data import MetaTensor

from monai_margincal.outputs import Outputs, SaveImageOutputsd
from monai_margincal.outputs.kinds.overlay import view_in_lps


def volumes(codes="RAS"):
    affine = np.diag([2.0, 3.0, 4.0, 1.0])
    image, mask = np.arange(4 * 5 * 6, dtype=np.float32).reshape(4, 5, 6) / 120, np.zeros((4, 5, 6), np.uint8)
    mask[1, 2, 3:] = mask[3, 2, 4] = 1
    change = nibabel.orientations.ornt_transform(
        nibabel.orientations.axcodes2ornt("RAS"), nibabel.orientations.axcodes2ornt(codes)
    )
    turned = [nibabel.Nifti1Image(volume, affine).as_reoriented(change) for volume in (image, mask)]
    return [
        MetaTensor(torch.from_numpy(np.asarray(v.dataobj).copy())[None], affine=torch.as_tensor(v.affine),
                   meta={"filename_or_obj": "/data/sub/a.nii.gz"})
        for v in turned
    ]  # fmt: skip


@pytest.mark.parametrize("codes", ["RAS", "LPS", "PLS", "SAR"])
def test_any_orientation_gives_one_picture(codes):
    view, reference = view_in_lps("a", *volumes(codes)), view_in_lps("a", *volumes("LPS"))
    np.testing.assert_array_equal(view.image, reference.image)
    np.testing.assert_array_equal(view.prediction, reference.prediction)
    assert view.spacing == (2.0, 3.0, 4.0)
    assert view.best_slice == 4
    assert view.truth is None


@pytest.mark.parametrize("lesion", [True, False])
def test_the_picture(tmp_path, lesion):
    image, mask = volumes()
    save = SaveImageOutputsd("pred", Outputs("overlay", tmp_path, data_root_dir="/data"), grid="network")
    save({"image": image, "pred": mask * int(lesion)})
    picture = imread(tmp_path / "sub" / "a_overlay.png")
    orange = (picture[:-60, :, 0] > picture[:-60, :, 2] + 0.3).mean()
    assert bool(orange > 0.005) is lesion


def test_an_image_of_another_grid_is_refused(tmp_path):
    image, mask = volumes()
    save = SaveImageOutputsd("pred", Outputs("overlay", tmp_path), grid="network")
    with pytest.raises(ValueError, match=r"a\.nii\.gz: found the shapes .*expected the same"):
        save({"image": image[:, 1:], "pred": mask})
    assert not list(tmp_path.iterdir())
