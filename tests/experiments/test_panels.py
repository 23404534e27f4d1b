"""Pictures: photographs the right way up and in colour, slices as before."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from monai_margincal.experiments.cases import Case
from monai_margincal.experiments.decoders import ArgmaxDecoder
from monai_margincal.experiments.evaluation import evaluate
from monai_margincal.experiments.figures import panel_figure


class _Brightest(torch.nn.Module):
    """Class 1 where the first channel is bright."""

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return torch.cat([torch.full_like(image[:, :1], 0.5), image[:, :1]], dim=1)


def _pictures(image: torch.Tensor, label: torch.Tensor, slice_axis: int | None = None) -> dict[str, np.ndarray]:
    case = Case("a", image, label)
    size = label.shape if slice_axis is None else [n for axis, n in enumerate(label.shape) if axis != slice_axis]
    found = evaluate(
        _Brightest(), {"argmax": ArgmaxDecoder()}, [], [case], size, slice_axis=slice_axis, device=torch.device("cpu")
    )
    return found.pictures


def _first_image(pictures: dict[str, np.ndarray]) -> np.ndarray:
    """What the first axis shows, first row at the top."""
    axis = panel_figure({"ce": pictures}, ["background", "lesion"]).axes[0]
    (shown,) = axis.images
    bottom, top = axis.get_ylim()
    array = np.asarray(shown.get_array())
    return array[::-1] if top > bottom and shown.origin == "lower" else array


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_a_photograph_is_upright_and_in_its_colours(channels):
    photograph = np.zeros((6, 8, channels), np.float32)  # rows, columns
    photograph[0, 2] = 1.0
    photograph[5, 7, 0] = 0.5
    image = torch.from_numpy(photograph.transpose(2, 1, 0).copy())  # as MONAI's PILReader gives it
    shown = _first_image(_pictures(image, torch.zeros(8, 6, dtype=torch.uint8)))
    wanted = photograph[..., 0] if channels == 1 else photograph[..., :3]
    np.testing.assert_allclose(shown, wanted, atol=1e-3)


def test_colours_of_any_scale_are_shown():
    image = torch.tensor([-2.0, 0.0, 2.0])[:, None, None].expand(3, 4, 4).contiguous()
    shown = _first_image(_pictures(image, torch.zeros(4, 4, dtype=torch.uint8)))
    np.testing.assert_allclose(shown[0, 0], [0, 0.5, 1], atol=1e-3)


def test_a_slice_has_its_head_or_front_at_the_top():
    image = torch.zeros(1, 4, 5, 3)
    image[0, 1, 4, 2] = 1.0  # the last y is the front (RAS)
    label = torch.zeros(4, 5, 3, dtype=torch.uint8)
    label[1, 4, 2] = 1
    shown = _first_image(_pictures(image, label, slice_axis=2))
    assert shown.shape == (5, 4)
    assert shown[0, 1] == 1.0


@pytest.mark.parametrize("objectives", [1, 5])
def test_long_names_are_wrapped_and_nothing_is_cut_off(objectives):
    pictures = _pictures(torch.rand(1, 8, 6), torch.ones(8, 6, dtype=torch.uint8))
    names = ["background", "microaneurysms", "a class with a long name", *map(str, range(6))]
    shown = {f"an objective with a very long name indeed, {k}": pictures for k in range(objectives)}
    figure = panel_figure(shown, names)
    assert "\n" in figure.axes[2].get_title()
    figure.canvas.draw()
    texts = [*figure.legends[0].get_texts(), *(axis.title for axis in figure.axes)]
    for text in texts:
        box = text.get_window_extent()
        assert box.x0 >= 0 and box.x1 <= figure.bbox.width, text.get_text()  # noqa: PT018
