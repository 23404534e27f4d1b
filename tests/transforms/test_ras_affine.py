"""Affines of every space that a file may speak of, and what MONAI's readers make of them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import SimpleITK
import torch
from monai.data import MetaTensor
from monai.transforms import LoadImaged
from monai.utils import SpaceKeys

from monai_margincal.formats import describe_label
from monai_margincal.transforms import AffineToRAS, AffineToRASd

nrrd = pytest.importorskip("nrrd")

WORDS = (("right", "left"), ("anterior", "posterior"), ("superior", "inferior"))
SPACES = list(itertools.product((0, 1), repeat=3))


def image(**meta):
    affine = torch.tensor([[1.0, 2, 3, 4], [5, 6, 7, 8], [9, 10, 12, 11], [0, 0, 0, 1]], dtype=torch.float64)
    return MetaTensor(torch.arange(6.0).reshape(1, 2, 3), affine=affine, meta=meta)


@pytest.mark.parametrize("choice", SPACES)
@pytest.mark.parametrize("form", ["words", "letters", "upper"])
def test_every_space(choice, form):
    words = [axis[index] for axis, index in zip(WORDS, choice, strict=True)]
    space = {"words": "-".join(words), "letters": "".join(w[0] for w in words), "upper": "-".join(words).upper()}[form]
    given = image(space=space, original_affine=image().affine.numpy())
    turned = AffineToRAS()(given)
    expected = image().affine * torch.tensor([1.0 - 2 * index for index in choice] + [1])[:, None]
    assert torch.equal(turned.affine, expected)
    assert torch.equal(torch.as_tensor(turned.meta["original_affine"]), expected)
    assert turned.meta["space"] == SpaceKeys.RAS
    assert torch.equal(turned.as_tensor(), given.as_tensor())
    assert torch.equal(given.affine, image().affine), "the input is left as it was"


def test_what_says_nothing_is_left_alone():
    assert torch.equal(AffineToRAS()(image()).affine, image().affine)
    assert torch.equal(AffineToRAS()(image(space=SpaceKeys.RAS)).affine, image().affine)
    assert torch.equal(AffineToRAS()(image(space=SpaceKeys.LPS)).affine[2], image().affine[2])
    assert AffineToRASd("image", allow_missing_keys=True)({"other": 1}) == {"other": 1}
    plain = torch.zeros(2, 2)
    assert AffineToRAS()(plain) is plain


@pytest.mark.parametrize(
    "space", ["scanner-xyz", "3D-right-handed", "left-anterior-superior-time", "LAX", "ALS", "a-l-s"]
)
def test_a_space_without_left_is_refused_with_the_file(space):
    with pytest.raises(
        ValueError, match=rf"scans/a\.nrrd: found the space '{space}', expected one that says where left is"
    ):
        AffineToRAS()(image(space=space, filename_or_obj="scans/a.nrrd"))


@pytest.mark.parametrize("space", ["left-posterior-superior", "left-anterior-superior", "right-anterior-superior"])
def test_a_nrrd_lies_where_itk_says(tmp_path, space):
    """Oblique, with an origin; SimpleITK is the oracle."""
    directions = np.array([[0.8, 0.1, 0.0], [-0.1, 0.9, 0.2], [0.05, -0.3, 5.0]])
    header = {"space": space, "space directions": directions, "space origin": [-20.0, 30.0, 100.0]}
    nrrd.write(str(tmp_path / "a.nrrd"), np.zeros((4, 5, 6), np.int16), header)
    turned = AffineToRASd("image")(LoadImaged("image")({"image": str(tmp_path / "a.nrrd")}))["image"]
    assert np.allclose(describe_label(tmp_path / "a.nrrd").affine, turned.affine), "the counts' reader says the same"
    theirs = SimpleITK.ReadImage(str(tmp_path / "a.nrrd"))
    for index in ((0, 0, 0), (3, 0, 0), (0, 4, 0), (0, 0, 5)):
        left, posterior, superior = theirs.TransformIndexToPhysicalPoint(index)
        ours = turned.affine @ torch.tensor([*index, 1.0], dtype=torch.float64)
        # SimpleITK makes the directions orthonormal, which these are to about a percent
        assert np.allclose(ours[:3], (-left, -posterior, superior), atol=1.5)
