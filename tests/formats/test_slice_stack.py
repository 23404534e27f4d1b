"""Which slices are a straight and even stack, in any direction, and by how much others are not."""

from __future__ import annotations

import re

import numpy as np
import pytest

from monai_margincal.formats.slice_stack import MissingSlice, slots_of_slices, stack_slices
from monai_margincal.geometry import plane_affine

SIZE = (64, 48)
SPACING = (0.7, 0.9)  # rows, columns
COUNT, STEP = 12, 4.0


def _turned(x: float, y: float, z: float) -> np.ndarray:
    a, b, c = np.deg2rad([x, y, z])
    about_x = np.array([[1, 0, 0], [0, np.cos(a), -np.sin(a)], [0, np.sin(a), np.cos(a)]])
    about_y = np.array([[np.cos(b), 0, np.sin(b)], [0, 1, 0], [-np.sin(b), 0, np.cos(b)]])
    about_z = np.array([[np.cos(c), -np.sin(c), 0], [np.sin(c), np.cos(c), 0], [0, 0, 1]])
    return about_z @ about_y @ about_x


#: columns are the directions of a row, of a column and of the normal
WORLDS = {
    "axial": np.eye(3),
    "coronal": np.array([[1, 0, 0], [0, 0, 1], [0, -1, 0]], float),
    "sagittal": np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]], float),
    "feet first": np.diag([-1.0, -1, 1]),
    "face down": np.diag([1.0, -1, -1]),
    "oblique": _turned(20, -35, 50),
}
NAMES = [f"IM{k}" for k in range(COUNT)]


def _planes(world: np.ndarray, places=None, digits: int = 6) -> list[np.ndarray]:
    """Slices of a scan; ``places`` are along row, column and normal of the stack."""
    places = [(0.0, 0.0, STEP * k) for k in range(COUNT)] if places is None else places
    orientation = np.round(np.concatenate([world[:, 0], world[:, 1]]), 6)
    return [
        plane_affine(orientation, np.round(world @ place + (-200.0, 150.0, 30.0), digits), SPACING) for place in places
    ]


def _refusal(planes: list[np.ndarray], gaps: bool = False, names: list[str] | None = None) -> str:
    with pytest.raises(ValueError, match=r"^ct: found ") as raised:
        stack_slices("ct", names or NAMES[: len(planes)], planes, SIZE, gaps=gaps)
    return str(raised.value)


@pytest.fixture(params=list(WORLDS))
def world(request: pytest.FixtureRequest) -> np.ndarray:
    return WORLDS[request.param]


@pytest.mark.parametrize("digits", [2, 3, 6])
@pytest.mark.parametrize("order", ["upwards", "downwards", "shuffled"])
def test_a_good_stack_in_any_direction_and_order(world, order, digits):
    numbers = np.arange(COUNT)
    if order == "downwards":
        numbers = numbers[::-1]
    elif order == "shuffled":
        numbers = np.random.RandomState(1).permutation(COUNT)
    planes = _planes(world, digits=digits)
    stack = stack_slices("ct", NAMES, [planes[k] for k in numbers], SIZE)
    assert [numbers[k] for k in stack.order] == list(range(COUNT))
    truth = np.column_stack([world[:, 0] * 0.9, world[:, 1] * 0.7, world[:, 2] * STEP])
    assert np.abs(stack.affine[:3, :3] - truth).max() < (2e-3 if digits == 2 else 2e-4)
    assert np.allclose(stack.affine[:3, 3], planes[0][:3, 3])


def test_the_jitter_of_a_scanner_passes_and_ten_times_as_much_does_not(world):
    jitter = np.random.RandomState(0).uniform(-1, 1, (COUNT, 3))
    grid = np.array([(0.0, 0.0, STEP * k) for k in range(COUNT)])
    stack_slices("ct", NAMES, _planes(world, grid + 0.01 * jitter), SIZE)
    _refusal(_planes(world, grid + 0.2 * jitter))


@pytest.mark.parametrize("degrees", [-18.5, 0.5, 30.0])
def test_a_tilted_gantry_is_named_with_its_angle_and_the_way_out(world, degrees):
    lean = np.tan(np.deg2rad(degrees))
    message = _refusal(_planes(world, [(0, STEP * k * lean, STEP * k) for k in range(COUNT)]))
    angle, moved = re.search(r"askew by (\S+) degrees.* moves the slice IM11 by (\S+) mm", message).groups()
    assert float(angle) == pytest.approx(abs(degrees), rel=1e-3)
    assert float(moved) == pytest.approx(11 * STEP * abs(lean), rel=1e-3)
    assert "expected at most 0.1 mm" in message
    assert "resample the series to a straight grid" in message


@pytest.mark.parametrize("shift", [(30.0, 0.0), (0.0, -0.25), (3.0, 4.0)], ids=lambda shift: f"{np.hypot(*shift):g}mm")
@pytest.mark.parametrize("moved", ["second half", "one", "first", "last"])
def test_slices_beside_the_others_are_named_with_their_distance(world, shift, moved):
    which = {"second half": range(6, COUNT), "one": [5], "first": [0], "last": [COUNT - 1]}[moved]
    message = _refusal(
        _planes(world, [(*(np.array(shift) * (k in which)), STEP * k) for k in range(COUNT)]),
    )
    name, apart = re.search(r"the slice IM(\d+) (\S+) mm beside the others", message).groups()
    assert float(apart) == pytest.approx(np.hypot(*shift), rel=1e-3)
    # which half is "the others" is open
    assert int(name) in which or moved == "second half"


def test_a_shift_within_a_tenth_of_a_millimetre_passes(world):
    stack_slices("ct", NAMES, _planes(world, [(0.09 * (k > 5), 0, STEP * k) for k in range(COUNT)]), SIZE)


@pytest.mark.parametrize(
    ("steps", "worst", "moved"),
    [
        ([4.0] * 6 + [5.8] * 5, 6, 1.8 * 6 * 5 / 11),
        ([5.0] * 5 + [7.0] * 6, 5, 2.0 * 5 * 6 / 11),
        ([5.0, 7.0] * 5 + [5.0], 1, 10 / 11),
        ([4.0] * 4 + [4.5, 3.5] + [4.0] * 5, 5, 0.5),
    ],
    ids=["4 and 5.8", "5 and 7", "alternating", "one out of place"],
)
def test_uneven_steps_are_named_and_gaps_do_not_excuse_them(world, steps, worst, moved):
    heights = np.concatenate([[0.0], np.cumsum(steps)])
    planes = _planes(world, [(0, 0, height) for height in heights])
    for gaps in (False, True):
        message = _refusal(planes, gaps)
        found = re.search(r"steps from (\S+) mm .* to (\S+) mm .*moves the slice IM(\d+) by (\S+) mm", message).groups()
        assert (float(found[0]), float(found[1])) == pytest.approx((min(steps), max(steps)), rel=1e-3)
        assert float(found[3]) == pytest.approx(moved, rel=1e-3)
        if len(set(steps)) == 3 or steps[1] == steps[0]:  # the alternating ones tie but for rounding
            assert int(found[2]) == worst


def test_a_missing_slice_is_a_gap_that_can_be_taken(world):
    places = [(0, 0, STEP * k) for k in range(COUNT) if k not in (4, 8, 9)]
    planes, names = _planes(world, places), [NAMES[k] for k in range(COUNT) if k not in (4, 8, 9)]
    with pytest.raises(MissingSlice, match=r"gap of 12(\.\d+)? mm between IM7 and IM10, .* a slice is missing$"):
        stack_slices("ct", names, planes, SIZE)
    stack = stack_slices("ct", names, planes, SIZE, gaps=True)
    assert np.linalg.norm(stack.affine[:3, 2]) == pytest.approx(11 * STEP / 8, rel=1e-6), "spread evenly, as readers do"
    planes[6][:3, 3] += 3 * world[:, 0]
    assert "the slice IM7 3 mm beside" in _refusal(planes, gaps=True, names=names)


@pytest.mark.parametrize("where", [0, 5, COUNT - 1])
@pytest.mark.parametrize("degrees", [180.0, 90.0, 1.0])
def test_a_turned_slice_is_named_with_its_angle(world, where, degrees):
    planes = _planes(world)
    # about the normal, through the first pixel
    turn = world @ _turned(0, 0, degrees) @ world.T
    before = planes[where].copy()
    planes[where][:3, :3] = turn @ planes[where][:3, :3]
    message = _refusal(planes)
    angle, moved = re.search(
        rf"the slice IM{where} turned by (\S+) degrees .* a corner by (\S+) mm, expected at most 0\.1 mm", message
    ).groups()
    corners = np.array([(c, r, 0, 1) for c in (0, SIZE[0] - 1) for r in (0, SIZE[1] - 1)])
    truth = np.linalg.norm((corners @ (planes[where] - before).T)[:, :3], axis=1).max()
    assert float(angle) == pytest.approx(degrees, rel=1e-3)
    assert float(moved) == pytest.approx(truth, rel=1e-3)


@pytest.mark.parametrize("where", [0, 5, COUNT - 1])
def test_another_pixel_spacing_is_named(world, where):
    planes = _planes(world)
    planes[where][:3, 0] *= 1.0 / 0.9
    assert (
        f"ct: found pixels of 1 x 0.7 mm in the slice IM{where} and of 0.9 x 0.7 mm in most others, which moves a corner by "
        "6.3 mm, expected at most 0.1 mm"
    ) == _refusal(planes)


def test_an_orthogonal_slice_among_parallel_ones_is_turned():
    planes = _planes(WORLDS["axial"])
    planes[3] = _planes(WORLDS["sagittal"])[3]
    assert re.search(r"the slice IM3 turned by (120|90) degrees", _refusal(planes))


@pytest.mark.parametrize("times", [2, 3])
def test_repeated_positions_are_time_points_or_copies(world, times):
    places = [(0, 0, STEP * (k // times)) for k in range(COUNT)]
    message = _refusal(_planes(world, places))
    assert message.startswith("ct: found two slices at one position (IM0, IM1), expected one each")
    assert f"Each of {COUNT // times} positions occurs {times} times: time points, echoes or copies" in message


def test_one_repeated_position_is_no_time_series(world):
    message = _refusal(_planes(world, [(0, 0, STEP * (k - (k > 4))) for k in range(COUNT)]))
    assert message.endswith("found two slices at one position (IM4, IM5), expected one each")


def test_all_slices_at_one_height_side_by_side(world):
    assert "mm beside the others" in _refusal(_planes(world, [(50.0 * k, 0, 0) for k in range(3)]))
    assert "at one position" in _refusal(_planes(world, [(0, 0, 0)] * 3))


def test_one_slice_and_two(world):
    planes = _planes(world)[:2]
    alone = stack_slices("ct", ["a"], planes[:1], SIZE)
    assert alone.order == (0,)
    assert np.array_equal(alone.affine, planes[0])
    pair = stack_slices("ct", ["a", "b"], planes[::-1], SIZE)
    assert pair.order == (1, 0)
    assert np.linalg.norm(pair.affine[:3, 2]) == pytest.approx(STEP, rel=1e-5)


@pytest.mark.parametrize("step", [STEP, None, STEP / 2 + 1.3], ids=["given", "unknown", "wrong"])
def test_slots_of_stored_slices(world, step):
    numbers = (7, 2, 3, 11)
    planes = _planes(world, [(0, 0, STEP * k) for k in numbers], digits=3)
    assert slots_of_slices("seg", "abcd", planes, SIZE, step=step) == tuple(k - 2 for k in numbers)


def test_slots_know_a_smaller_step_than_any_between_stored_slices():
    planes = _planes(WORLDS["oblique"], [(0, 0, STEP * k) for k in (0, 2, 6)])
    assert slots_of_slices("seg", "abc", planes, SIZE, step=STEP) == (0, 2, 6)
    assert slots_of_slices("seg", "abc", planes, SIZE, step=None) == (0, 1, 3)


def test_slots_refuse_what_is_no_multiple_of_a_step(world):
    planes = _planes(world, [(0, 0, height) for height in (0, 4, 9.5, 13.5)])
    with pytest.raises(
        ValueError, match=r"^seg: found the slice \w \S+ mm from where slices every \S+ mm have it, exp"
    ):
        slots_of_slices("seg", "abcd", planes, SIZE, step=None)
    beside = _planes(world, [(3.0 * (k == 1), 0, STEP * k) for k in (0, 1, 3, 4)])
    with pytest.raises(ValueError, match=r"^seg: found the slice b 3 mm beside the others"):
        slots_of_slices("seg", "abcd", beside, SIZE, step=None)
    with pytest.raises(ValueError, match=r"^seg: found two slices at one position"):
        slots_of_slices("seg", "ab", [planes[0], planes[0]], SIZE, step=None)
