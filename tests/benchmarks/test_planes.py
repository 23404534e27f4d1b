"""What windows of the trained size are for: the same small nodules are found wherever their box lies."""

from __future__ import annotations

import csv

import pytest
import torch
from benchmarks import planes as benchmark
from shared import SHARED, needs_shared

networks = benchmark.networks


def test_only_the_time(tmp_path, capsys):
    benchmark.main(["--side", "32", "--output", str(tmp_path)])
    printed = capsys.readouterr().out
    assert all(f"32 x 32, {way}: " in printed for way in ("whole", "windows of 256", "windows of 128", "windows of 64"))
    with (tmp_path / "planes.csv").open(newline="") as file:
        assert list(csv.DictReader(file)) == []


@needs_shared
def test_small_nodules_of_other_patients_are_not_lost_in_larger_planes():
    """Whole planes of three times the side lose most of the small nodules, windows at most one.

    Of 400 steps, as on the page: after 250 it depended on the processor whether the network had learnt enough.
    """
    train, test = networks.boxes(SHARED / "data")
    assert not {box.patient for box in train} & {box.patient for box in test}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        network = networks.trained("group", train, SHARED / "data", steps=400)
    finally:
        torch.set_num_threads(threads)
    planes = benchmark.presentations(benchmark.one_per_patient(test), SHARED / "data")
    rows = {(row["around"], row["side"], row["way"]): row for row in benchmark.score("group", network, planes)}
    alone = rows["empty", networks.PLANE, "whole"]
    assert alone["small"] > 0.4, "too little was learnt to say anything"

    same_surroundings = rows["empty", 48, "windows"]
    assert same_surroundings["small"] > alone["small"] - 0.02
    assert same_surroundings["worst_fall"] < 0.3
    lungs = {way: rows["lung", benchmark.LUNG_SIDE, way] for way in ("whole", "windows")}
    assert lungs["windows"]["lost"] < 0.05
    assert lungs["whole"]["lost"] > 0.3
    assert lungs["windows"]["small"] > 3 * lungs["whole"]["small"]


@pytest.mark.parametrize("name", networks.NETWORKS)
def test_gates_are_left_out_where_the_name_says_so(name):
    gates = [module for module in networks.network(name).modules() if type(module).__name__ == "ResidualChannelGate"]
    assert bool(gates) == ("no gates" not in name)
