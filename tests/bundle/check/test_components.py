"""Components that can be made, and those that cannot: no such class, misspelt or missing arguments."""

from __future__ import annotations

import pytest
from monai.bundle import ConfigParser

from monai_margincal.bundle.check.components import check_components


def components(**config):
    return [str(f) for f in check_components(ConfigParser(config), "c.json")]


def test_components_that_are_right():
    assert components(
        net={"_target_": "BasicUNet", "spatial_dims": 2, "_desc_": "x"},
        part={"_target_": "monai.losses.DiceLoss", "_mode_": "callable", "softmax": True},
        late={"_target_": "monai_margincal.datasets.select_cases", "_mode_": "callable", "cases": ["a"]},
        free={"_target_": "monai_margincal.inferers.ScanEvaluator", "amp": True},
        off={"_target_": "no.such.thing", "_disabled_": "$not @flag"},
        text={"_target_": "$@net"},
        flag=False,
        _meta_={"_target_": "nothing"},
    ) == []  # fmt: skip


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"_target_": "BasicUNett"}, "a#0#b: no BasicUNett"),
        ({"_target_": "monai_margincal.inferers.ScanEvaluatr"}, "a#0#b: no monai_margincal.inferers.ScanEvaluatr"),
        ({"_target_": "no_such_package.Thing"}, "a#0#b: no no_such_package.Thing"),
        (
            {"_target_": "SimpleInferer", "_disabled_": "$not os.path.exists('x')"},
            "a#0#b: NameError: name 'os' is not defined in $not os.path.exists('x')",
        ),
        (
            {"_target_": "monai_margincal.inferers.VolumeSliceInferer", "roi_sizee": 1},
            "a#0#b: monai_margincal.inferers.VolumeSliceInferer with the argument 'roi_sizee' (did you mean 'roi_size'?)",
        ),
        (
            {"_target_": "LoadImaged", "key": "image"},
            "a#0#b: LoadImaged without the argument(s) ['keys']",
        ),
    ],
)
def test_components_that_cannot_be_made(config, message):
    (text,) = components(a=[{"b": config}])
    assert text.startswith(f"error: c.json: found {message}, expected ")
