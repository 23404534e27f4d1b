"""Offsets that a validation fits on the way: when, from what, into which file, in one process and in several."""

from __future__ import annotations

import json
import logging
import socket

import pytest
import torch
import torch.distributed as dist
from ignite.engine import Engine
from monai.data import DataLoader, Dataset, DistributedSampler, MetaTensor
from monai.engines import SupervisedEvaluator
from monai.handlers import from_engine
from monai.transforms import AsDiscreted, Compose, Invertd, Orientationd, SpatialCropd

from monai_margincal import ClassOffsets, ClassOffsetsHandler, DatasetIoUHandler, fit_class_offsets
from monai_margincal.decisions.weights_digest import weights_digest

NAMES = ["background", "lesion"]


class Stacked(torch.nn.Module):
    """Two logits from an image; the weight is there to be noted."""

    def __init__(self):
        super().__init__()
        self.shift = torch.nn.Parameter(torch.tensor(0.0))

    def forward(self, image):
        return torch.cat([torch.zeros_like(image), image - self.shift], dim=1)


def scan(seed, size=(12, 10, 8)):
    """A case whose lesion logits are too low."""
    generator = torch.Generator().manual_seed(seed)
    label = (torch.rand(1, *size, generator=generator) < 0.05).float()
    image = 3 * (2 * label - 1) + 2 * torch.randn(1, *size, generator=generator) - 4
    affine = torch.diag(torch.tensor([0.7, 0.7, 2.0, 1.0], dtype=torch.float64))
    meta = {"filename_or_obj": f"/data/case{seed}.nii.gz"}
    return {
        key: MetaTensor(value, affine=affine, meta=dict(meta)) for key, value in (("image", image), ("label", label))
    }


def evaluator(handler, cases, network=None, sampler=None, geometry=()):
    """As the bundle's validation: the image is turned and cropped, the decision turned back, the label stays."""
    preparation = Compose(list(geometry))
    after = [AsDiscreted(keys="pred", argmax=True)]
    if geometry:
        after.append(Invertd(keys="pred", transform=preparation, orig_keys="image", nearest_interp=True))
    data = Dataset(cases, preparation)
    return SupervisedEvaluator(
        torch.device("cpu"),
        DataLoader(data, batch_size=1, num_workers=0, sampler=None if sampler is None else sampler(data)),
        network or Stacked(),
        postprocessing=Compose(after),
        key_val_metric={"iou": DatasetIoUHandler(num_classes=2, output_transform=from_engine(["pred", "label"]))},
        val_handlers=[handler],
    )


TURNED = [
    Orientationd(keys="image", axcodes="PLS", labels=None),
    SpatialCropd(keys="image", roi_start=[1, 2, 0], roi_end=[9, 11, 7]),
]


@pytest.mark.parametrize("geometry", [(), TURNED], ids=["one grid", "turned and cropped"])
def test_what_it_counts_is_what_the_metric_counts(geometry, tmp_path):
    cases = [scan(seed) for seed in range(4)]
    path = tmp_path / "new" / "decision.json"
    network = Stacked()
    engine = evaluator(
        ClassOffsetsHandler(path, 2, network, class_names=NAMES, note="drawn"), cases, network, geometry=geometry
    )
    engine.run()
    offsets = ClassOffsets.from_json(path)
    known = offsets.fitted_on
    assert known["before"][1] == pytest.approx(engine.state.metrics["iou"], abs=1e-12)
    assert known["voxels"] == 4 * 12 * 10 * 8
    assert offsets.offsets[1] > 0
    assert known["cross_fitted_gain"] > 0
    assert known["note"] == "drawn"
    assert known["weights"] == weights_digest(network.state_dict())
    assert offsets.class_names == ("background", "lesion")
    if not geometry:
        plain = [(network(case["image"][None].as_tensor())[0].detach(), case["label"].as_tensor()) for case in cases]
        expected = fit_class_offsets(plain, 2, class_names=NAMES, progress=False).fitted_on
        assert {key: known[key] for key in expected} == expected


@pytest.mark.parametrize("names", [list("aabb"), [1, 1, 2, 2]], ids=["texts", "numbers"])
@pytest.mark.parametrize("decollate", [True, False])
def test_cases_of_a_group_stay_in_one_fold(names, decollate, tmp_path):
    cases = [scan(seed) for seed in range(4)]
    grouped = [{**case, "group": name} for case, name in zip(cases, names, strict=True)]
    engine = evaluator(ClassOffsetsHandler(tmp_path / "d.json", 2, class_names=NAMES), grouped)
    engine.should_decollate = decollate
    engine.run()
    plain = [(Stacked()(case["image"][None].as_tensor())[0].detach(), case["label"].as_tensor()) for case in cases]
    expected = fit_class_offsets(plain, 2, class_names=NAMES, progress=False, groups=list("aabb"))
    assert ClassOffsets.from_json(tmp_path / "d.json") == expected
    assert expected.fitted_on["groups"] == 2


def test_only_the_best_validation_is_written(tmp_path):
    path = tmp_path / "decision.json"
    network = Stacked()
    engine = evaluator(ClassOffsetsHandler(path, 2, network), [scan(seed) for seed in range(3)], network)
    engine.run(1)
    first = path.read_text()
    for epoch, shift, same in ((2, 5.0, True), (3, -2.0, False)):
        network.shift.data.fill_(shift)
        engine.run(epoch)
        assert (path.read_text() == first) == same
    assert ClassOffsets.from_json(path).fitted_on["weights"] == weights_digest(network.state_dict())


def test_one_case_gives_no_file_and_says_so(tmp_path, caplog):
    with caplog.at_level(logging.INFO):
        evaluator(ClassOffsetsHandler(tmp_path / "decision.json", 2), [scan(0)]).run()
    assert list(tmp_path.iterdir()) == []
    assert "found 1 validation case(s), expected two or more to fit offsets on" in caplog.text


def test_beside_the_weights_an_existing_file_is_kept_and_scored(tmp_path, caplog):
    cases = [scan(seed) for seed in range(3)]
    handler = ClassOffsetsHandler(None, 2, weights_file=tmp_path / "model.pt", class_names=NAMES)
    evaluator(handler, cases).run()
    assert ClassOffsets.from_json(tmp_path / "decision.json").offsets[1] > 0
    mine = ClassOffsets([0.0, -0.5], NAMES)
    mine.to_json(tmp_path / "decision.json")
    with caplog.at_level(logging.INFO):
        evaluator(handler, cases).run()
    assert ClassOffsets.from_json(tmp_path / "decision.json") == mine
    path = tmp_path / "decision.json"
    (line,) = [text for text in caplog.messages if text.startswith(f"with the offsets of {path}: lesion iou ")]
    hits = unions = 0
    for case in cases:
        decided = mine(Stacked()(case["image"][None].as_tensor()))
        truth = case["label"].as_tensor() == 1
        hits += int((decided == 1)[truth].sum())
        unions += int(((decided == 1) | truth).sum())
    assert f"lesion iou {hits / unions:.4f}," in line
    assert f"kept {path}, which exists" in caplog.text


def test_files_of_others_and_folders_without_permission_are_named_before_anything_runs(tmp_path):
    (tmp_path / "decision.json").write_text("{}")
    (tmp_path / "note").write_text("")
    seen = []

    def network(image):
        seen.append(image)
        return Stacked()(image)

    for path, error in (("decision.json", FileExistsError), ("note/decision.json", NotADirectoryError)):
        with pytest.raises(error, match=path):
            evaluator(ClassOffsetsHandler(tmp_path / path, 2), [scan(0)], torch.nn.Module()).run()
    assert (tmp_path / "decision.json").read_text() == "{}"
    assert seen == []
    with pytest.raises(ValueError, match="path: found None, expected a file, or weights_file"):
        ClassOffsetsHandler(None, 2)
    with pytest.raises(ValueError, match=r"class_names: found \['a'\], expected 2 names"):
        ClassOffsetsHandler("a.json", 2, class_names=["a"])


def test_an_engine_of_ignite_with_pairs_of_logits_and_labels(tmp_path):
    pairs = [
        (Stacked()(case["image"][None].as_tensor()).detach(), case["label"][None].as_tensor())
        for case in map(scan, range(3))
    ]
    handler = ClassOffsetsHandler(tmp_path / "decision.json", 2, output_transform=lambda output: output)
    engine = Engine(lambda engine, batch: batch)
    handler.attach(engine)
    engine.run(pairs)
    expected = fit_class_offsets([(logits[0], labels[0]) for logits, labels in pairs], 2, progress=False)
    assert ClassOffsets.from_json(tmp_path / "decision.json") == expected


def worker(rank: int, size: int, port: int, path: str, even: bool) -> None:
    torch.set_num_threads(1)
    if size > 1:
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=size)
    cases = [scan(seed) for seed in (3, 0, 4, 1, 2)]
    sampler = (lambda data: DistributedSampler(data, even_divisible=even, shuffle=False)) if size > 1 else None
    # every rank has its own idea of the path, as on machines of their own; only the first writes
    handler = ClassOffsetsHandler(path if rank == 0 else f"{path}.{rank}", 2, Stacked(), class_names=NAMES)
    evaluator(handler, cases, sampler=sampler, geometry=TURNED).run()
    if size > 1:
        dist.destroy_process_group()


@pytest.mark.parametrize(("size", "even"), [(2, False), (3, False), (3, True)])
def test_several_processes_give_the_file_of_one(size, even, tmp_path):
    """Uneven shares; and a sampler that repeats a case to make them even, as most do."""
    worker(0, 1, 0, str(tmp_path / "one.json"), False)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    torch.multiprocessing.spawn(worker, args=(size, port, str(tmp_path / "several.json"), even), nprocs=size)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.json", "several.json"]
    assert (tmp_path / "several.json").read_text() == (tmp_path / "one.json").read_text()
    assert json.loads((tmp_path / "one.json").read_text())["fitted_on"]["cases"] == 5
