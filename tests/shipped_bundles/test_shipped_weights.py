"""What the documentation says of the shipped weights is what they do: model-zoo pull 29, numbers that nobody could reproduce."""

from __future__ import annotations

import re

import pytest
import torch
from metrics_rows import last_metrics

from monai_margincal.decisions import ClassOffsets
from monai_margincal.margins import class_margins
from monai_margincal.workflows.chosen_offsets import digest_of_file

METRICS = ("val_iou", "val_iou_recall_lesion", "val_iou_precision_lesion")
FEATURES = [16, 32, 64, 128, 256]


def evaluate(command, folder, **flags):
    run = command(folder, ("train", "evaluate"), features=FEATURES, device="cpu", **flags)
    found = last_metrics(run.cwd / "eval" / "metrics.csv")
    return [found[name] for name in METRICS]


@pytest.fixture(scope="module")
def checkpoint(bundle):
    return bundle / "models" / "model.pt"


@pytest.mark.parametrize(
    ("row", "flags"),
    [
        ("both shipped crops", {"val_cases": "all"}),
        ("`lung1` alone", {"val_cases": "lung1"}),
        ("`lung2` alone", {"val_cases": "lung2"}),
    ],
    ids=["both", "lung1", "lung2"],
)
def test_evaluation_gives_the_numbers_of_the_documentation(command, bundle, configs, checkpoint, tmp_path, row, flags):
    found = [round(value, 4) for value in evaluate(command, tmp_path, checkpoint=checkpoint, **flags)]
    (line,) = [text for text in (bundle / "docs" / "README.md").read_text().splitlines() if text.startswith(f"| {row}")]
    (flag,) = (f"--{key} {value}" for key, value in flags.items())
    assert f"`{flag}`" in line, "the row tells the command"
    # another processor may add in another order and move a few voxels of the 25,000
    stated = [float(number) for number in re.findall(r"\| *(\d\.\d{4}) *(?=\|)", line)]
    assert stated == pytest.approx(found, abs=5e-4)
    if row == "both shipped crops":
        assert configs["metadata"]["eval_metrics"] == dict(zip(METRICS, stated, strict=True))


def test_the_shipped_decision_is_that_of_the_shipped_weights_and_says_what_it_knows(bundle, configs, checkpoint):
    decision = ClassOffsets.from_json(bundle / "models" / "decision.json")
    known = decision.fitted_on
    assert known["weights"] == digest_of_file(checkpoint)
    assert "trained on" in known["note"]
    assert (known["cases"], known["voxels"]) == (2, 2 * 192 * 192 * 24)
    assert known["before"][1] == pytest.approx(configs["metadata"]["eval_metrics"]["val_iou"], abs=5e-4)
    assert any(decision.offsets) == (known["cross_fitted_gain"] > 0)
    assert f"Its cross-fitted gain is {'' if any(decision.offsets) else 'not '}positive" in (
        bundle / "docs" / "README.md"
    ).read_text(encoding="utf-8")


def test_the_weights_are_small_and_hold_only_numbers(checkpoint):
    assert checkpoint.stat().st_size < 6e6
    weights = torch.load(checkpoint, weights_only=True)
    assert {tensor.dtype for tensor in weights.values()} == {torch.float16}
    assert all(torch.isfinite(tensor).all() for tensor in weights.values())


@pytest.mark.parametrize(("counts", "kept"), [((12_582_075, 837), 0.617), ((15_966_140, 24_644), 0.692)])
def test_counts_of_whole_labels_give_the_margins_of_the_crop(counts, kept):
    """The crop keeps this share of two real scans and takes away background only."""
    cropped = round(sum(counts) * kept) - counts[1], counts[1]
    whole, crop = class_margins(counts), class_margins(cropped)
    for side in ("negative", "positive"):
        assert torch.allclose(getattr(whole, side), getattr(crop, side), rtol=0, atol=1e-4)
    raw = [class_margins(n, normalization="counts").negative[1] for n in (counts, cropped)]
    assert 0.78 < raw[1] / raw[0] < 0.84
