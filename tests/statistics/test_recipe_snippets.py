"""What is offered for pasting loads in MONAI's parser, runs in a script, and trains what it says."""

from __future__ import annotations

import json

import pytest
import torch
from monai.bundle import ConfigParser
from monai.engines import SupervisedEvaluator
from monai.losses import DiceCELoss

from monai_margincal import ClassCounts, ClassOffsets, MarginCalibrationTverskyLoss, class_margins
from monai_margincal.statistics.recipe import DECISION, RECIPES
from monai_margincal.statistics.recipe_snippets import chosen_recipe, how_counted

NAMES = ["background", 'an "organ"', "läsion"]
RARE = ClassCounts([985_000, 13_000, 400], names=NAMES, source="raw label files")
BETWEEN = ClassCounts([985_000, 13_000, 14_000], source="raw label files")
FREQUENT = ClassCounts([850_000, 90_000, 60_000], source="raw label files")
MANY = ClassCounts({7 * k: 10 ** (k % 6) for k in range(40)})
LOSSES = [
    (RARE, MarginCalibrationTverskyLoss),
    (BETWEEN, MarginCalibrationTverskyLoss),
    (FREQUENT, DiceCELoss),
    (MANY, MarginCalibrationTverskyLoss),
]
every_recipe = pytest.mark.parametrize(("counts", "loss"), LOSSES, ids=["rare", "between", "frequent", "many classes"])


def cases_of(classes: int) -> list[dict[str, torch.Tensor]]:
    """Two cases whose image holds the class that a network of one convolution can find, and says so too rarely."""
    generator = torch.Generator().manual_seed(0)
    cases = []
    for _ in range(2):
        label = torch.randint(0, classes, (1, 12, 12), generator=generator)
        image = torch.nn.functional.one_hot(label[0], classes).movedim(-1, 0).float()
        image += 0.1 * torch.randn(image.shape, generator=generator)
        image[0] += 1.5
        cases.append({"image": image, "label": label})
    return cases


def network_of(classes: int) -> torch.nn.Module:
    network = torch.nn.Conv2d(classes, classes, 1)
    with torch.no_grad():
        network.weight.copy_(torch.eye(classes)[..., None, None])
        network.bias.zero_()
    return network


def check_loss(made, counts: ClassCounts, expected: type, **margins) -> None:
    assert type(made) is expected
    if expected is DiceCELoss:
        assert made.lambda_dice == 0
    else:
        torch.testing.assert_close(
            made.margin_calibration.margin_negative.double(),
            class_margins(counts, **margins).negative,
            rtol=1e-6,
            atol=0,
        )
        assert made.margin_calibration.base_e
    logits = torch.randn(2, len(counts), 4, 4, requires_grad=True)
    made(logits, torch.randint(0, len(counts), (2, 1, 4, 4))).backward()
    assert logits.grad.abs().sum() > 0


@every_recipe
def test_the_bundle_piece_loads_fits_and_decides(counts, loss, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    parser = ConfigParser(json.loads(chosen_recipe(counts)["bundle"]))
    check_loss(parser.get_parsed_content("loss"), counts, loss)
    classes = len(counts)
    cases = cases_of(classes)
    handler = parser.get_parsed_content("fit_offsets")
    data = [{key: value[None] for key, value in case.items()} for case in cases]
    SupervisedEvaluator("cpu", data, network_of(classes), val_handlers=[handler]).run()
    found = ClassOffsets.from_json(tmp_path / "models" / "decision.json")
    assert any(found.offsets), "the cases are made so that offsets help"
    assert found.class_names == (None if counts.names is None else counts.names)
    decided = parser.get_parsed_content("decide")({"pred": cases[0]["image"]})["pred"]
    assert torch.equal(decided[0], found(cases[0]["image"], dim=0).to(decided.dtype))


@every_recipe
def test_the_python_piece_runs(counts, loss, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cases = cases_of(len(counts))
    names = {"network": network_of(len(counts)), "validation_cases": cases}
    exec(chosen_recipe(counts)["python"], names)
    check_loss(names["loss_function"], counts, loss)
    assert ClassOffsets.from_json(tmp_path / "decision.json") == names["offsets"]
    decided = names["decide"]({"pred": cases[0]["image"]})["pred"]
    assert (decided[0] == cases[0]["label"][0]).float().mean() > 0.9


@pytest.mark.parametrize("piece", ["python", "bundle"])
def test_settings_of_the_margins_go_along(piece):
    text = chosen_recipe(RARE, tau=2.0, upsilon=3.0, normalization="counts")[piece]
    plain = chosen_recipe(RARE)[piece]
    for setting in ("tau", "upsilon", "normalization"):
        assert setting in text
        assert setting not in plain


def test_the_pieces_have_the_settings():
    recipe = chosen_recipe(RARE, tau=2.0)
    loss = ConfigParser(json.loads(recipe["bundle"])).get_parsed_content("loss")
    check_loss(loss, RARE, MarginCalibrationTverskyLoss, tau=2.0)
    assert recipe["loss"] == RECIPES[0].call
    assert recipe["decision"] == DECISION


def test_raw_counts_choose_and_sampled_counts_go_into_the_loss():
    seen = ClassCounts([500, 300, 200], source="after RandCropByLabelClassesd (random)")
    recipe = chosen_recipe(RARE, seen)
    assert (recipe["case"], recipe["chosen_by"], recipe["counted"]) == (
        "below 1 %",
        "raw counts",
        "counts after sampling",
    )
    assert json.loads(recipe["bundle"])["loss"]["class_counts"] == [500, 300, 200]
    assert "class_counts=[500, 300, 200],  # counts after sampling" in recipe["python"]
    alone = chosen_recipe(seen)
    assert (alone["case"], alone["chosen_by"], alone["counted"]) == ("5 % and more", "counts after sampling", None)


def test_counts_that_were_added_up_are_raw_only_if_all_are():
    raw, other = ClassCounts([9, 1], source="raw label files"), ClassCounts([9, 1], source="after Compose")
    assert how_counted(raw + raw) == "raw counts"
    assert how_counted(raw + ClassCounts([9, 1], source="raw label files of all sites (NVFlare)")) == "raw counts"
    assert how_counted(raw + other) == "counts after sampling"
    assert how_counted(ClassCounts([9, 1], source="labels as the data set gives them")) == "counts"


def test_no_recipe_where_there_are_no_margins():
    with pytest.raises(ValueError, match="found no voxel of any class but the first"):
        chosen_recipe(ClassCounts([5, 0]))
    with pytest.raises(ValueError, match=r"class '1' fills everything \(7 voxels\)"):
        chosen_recipe(RARE.named(["0", "1", "2"]), ClassCounts([0, 7, 0]))
