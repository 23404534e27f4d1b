"""The bundle in the hands of MONAI's own clients: federated learning and Auto3DSeg's data analysis."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import monai
import pytest
import torch
from monai.apps.auto3dseg import DataAnalyzer
from monai.fl.client import MonaiAlgo, MonaiAlgoStats
from monai.fl.utils.constants import ExtraItems, FlStatistics, WeightType
from monai.fl.utils.exchange_object import ExchangeObject

from monai_margincal.samples import sample_dir

BUNDLE = Path(__file__).resolve().parents[2] / "bundles" / "covid19_ct_lesion_coplenet"
SAMPLES = Path(sample_dir("lung_ct"))


@pytest.fixture
def settings(tmp_path, monkeypatch):
    """Flags of a small run below ``tmp_path``, from a folder that is not the bundle's."""
    monkeypatch.chdir(tmp_path)
    yield {
        "features": [8, 16, 32, 64, 128], "num_workers": 0, "patch_size": [32, 32], "slices_per_volume": 2, "device": "cpu",
        "output_dir": str(tmp_path / "eval"), "ckpt_dir": str(tmp_path / "models"),
    }  # fmt: skip
    monai.utils.set_determinism(None)
    torch.use_deterministic_algorithms(False)


def test_federated_training_and_evaluation(settings):
    """Weights go out, come back, are trained on and evaluated; `epochs` of the bundle is replaced by the round's."""
    client = MonaiAlgo(
        bundle_root=str(BUNDLE), local_epochs=1, send_weight_diff=False, train_kwargs=settings, eval_kwargs=settings
    )
    client.initialize(extra={ExtraItems.CLIENT_NAME: "site-1"})
    start = ExchangeObject(weights=copy.deepcopy(client.get_weights().weights), weight_type=WeightType.WEIGHTS)
    assert all(torch.is_tensor(torch.as_tensor(value)) for value in start.weights.values())

    before = client.evaluate(start).metrics
    assert 0 <= before["val_iou"] <= 1
    client.train(start, extra={})
    trained = client.get_weights().weights
    assert set(trained) == set(start.weights)
    assert any((torch.as_tensor(trained[key]) != torch.as_tensor(start.weights[key])).any() for key in trained)
    after = client.evaluate(ExchangeObject(weights=trained, weight_type=WeightType.WEIGHTS)).metrics
    assert after["val_iou_images_lesion"] == 1
    client.finalize()


def test_federated_statistics(settings):
    client = MonaiAlgoStats(bundle_root=str(BUNDLE))
    client.initialize(extra={ExtraItems.CLIENT_NAME: "site-1"})
    requested = {
        FlStatistics.STATISTICS: ["mean"], FlStatistics.HIST_BINS: [50], FlStatistics.HIST_RANGE: [[-1400, 600]],
    }  # fmt: skip
    statistics = client.get_data_stats(extra=requested).statistics
    assert statistics


def test_the_margins_are_those_of_the_data_list_that_a_client_gives(workflow):
    """MONAI Label's train task replaces `train#dataset#data`; what `dataset_dir` holds is then trained on by nobody."""
    given = [{kind: str(SAMPLES / f"{kind}s" / "lung1.nii.gz") for kind in ("image", "label")}]
    loaded = workflow(("train",), "train", train_cases="lung2", val_cases="lung1", **{"train#dataset#data": given})
    assert loaded.parser.get_parsed_content("class_counts").counts.tolist() == [883_899, 837]


def test_auto3dseg_analyses_the_same_data_list(tmp_path):
    case = {kind: str(SAMPLES / f"{kind}s" / "lung2.nii.gz") for kind in ("image", "label")}
    (tmp_path / "list.json").write_text(json.dumps({"training": [case]}))
    analyzer = DataAnalyzer(
        str(tmp_path / "list.json"), str(tmp_path), output_path=str(tmp_path / "stats.yaml"), do_ccp=False, device="cpu"
    )
    result = analyzer.get_all_case_stats()
    (stats,) = result["stats_by_cases"]
    share = stats["label_stats"]["label"][1]["foreground_percentage"]
    assert share == pytest.approx(24_644 / (24_644 + 860_092), rel=1e-5)
