"""Each check fails where the kernels are wrong, and says why in one line."""

from __future__ import annotations

import csv

import pytest
import torch
from gpu import checks, large
from gpu.checks import Setting, one_row

from monai_margincal.ops import triton_launch

SMALL = Setting(torch.device("cpu"), small=True)


@pytest.fixture(autouse=True)
def no_report_is_left():
    triton_launch._REPORTS.clear()
    yield
    triton_launch._REPORTS.clear()


def wrong_gradient(monkeypatch):
    right = triton_launch.kernel_backward
    monkeypatch.setattr(triton_launch, "kernel_backward", lambda *a, **k: right(*a, **k) * 1.01)


def wrong_loss(monkeypatch):
    right = triton_launch.kernel_forward

    def slightly_off(*arguments, **options):
        loss, valid = right(*arguments, **options)
        return loss * 1.001, valid

    monkeypatch.setattr(triton_launch, "kernel_forward", slightly_off)


def other_loss_every_time(monkeypatch):
    right, factor = triton_launch.kernel_forward, iter(range(1, 1000))

    def drifting(*arguments, **options):
        loss, valid = right(*arguments, **options)
        return loss * (1 + next(factor) * 1e-6), valid

    monkeypatch.setattr(triton_launch, "kernel_forward", drifting)


def silent(monkeypatch):
    monkeypatch.setattr(triton_launch, "_raise_if_reported", lambda *_: None)


def broken(monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("an illegal memory access\n\n  was encountered")

    monkeypatch.setattr(triton_launch, "kernel_forward", fail)


@pytest.mark.parametrize(
    ("check", "fault"),
    [
        *((name, fault) for name in ("golden", "oracle", "half", "large") for fault in (wrong_loss, wrong_gradient)),
        *((name, wrong_loss) for name in ("golden_in_half", "classes")),
        ("compounds", wrong_gradient),
        ("compounds", wrong_loss),
        ("determinism", other_loss_every_time),
        ("graphs", other_loss_every_time),
        ("compiled", broken),
        ("undeclared", silent),
        *((name, broken) for name in ("label_types", "numerics")),
    ],
)
def test_a_fault_is_found(check, fault, monkeypatch):
    fault(monkeypatch)
    row = one_row(check, SMALL)
    assert row["status"] == "failed"
    assert row["reason"]
    assert "\n" not in row["reason"]


def test_a_row_is_written_at_once(tmp_path, monkeypatch):
    """The next check may take the whole process with it."""

    class Crash(BaseException):
        pass

    def crash(_):
        raise Crash

    monkeypatch.setitem(checks.RUN, "half", lambda _: 3)
    monkeypatch.setitem(checks.RUN, "graphs", crash)
    with pytest.raises(Crash):
        checks.main(["half", "graphs", "--device", "cpu", "--small", "--output", str(tmp_path)])
    with (tmp_path / "correctness.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["check"], row["cases"], row["status"]) == ("half", "3", "passed")


def test_exit_status(tmp_path, monkeypatch):
    def fail(_):
        raise ValueError("found 1,\nexpected 2")

    def leave_out(_):
        raise checks.LeftOut("4 GiB are free, it takes 12")

    monkeypatch.setitem(checks.RUN, "half", fail)
    monkeypatch.setitem(checks.RUN, "large", leave_out)
    flags = ["--device", "cpu", "--small", "--output", str(tmp_path)]
    assert checks.main(["large", *flags]) == 0
    assert checks.main(["half", "large", *flags]) == 1
    with (tmp_path / "correctness.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["status"], row["reason"]) for row in rows] == [
        ("failed", "ValueError: found 1, expected 2"),
        ("left out", "4 GiB are free, it takes 12"),
    ]


def test_cases_of_a_parametrised_test():
    @pytest.mark.parametrize("a", [1, 2])
    @pytest.mark.parametrize(("b", "c"), [(3, 4), (5, 6)])
    def test(a, b, c):
        pass

    found = [tuple(case[name] for name in "abc") for case in checks.cases_of(test)]
    assert sorted(found) == [(1, 3, 4), (1, 5, 6), (2, 3, 4), (2, 5, 6)]


class TestSizeByFreeMemory:
    @pytest.mark.parametrize(("gib", "fit"), [(138, 2), (78, 2), (21, 1), (10, 0)])
    def test_what_fits(self, gib, fit):
        assert len(large.plans(gib * 2**30)) == fit

    def test_they_are_beyond_32_bits(self):
        logits, voxels = large.ALL
        assert 2 * logits.voxels > 2**31 > logits.voxels
        assert voxels.voxels > 2**31
        assert all(plan.voxels % 512 for plan in large.ALL)

    def test_the_memory_is_what_it_takes(self):
        """Counted on a much smaller plan: logits, gradient, labels, and the pieces."""
        from ops.memory import peak_allocation

        plan = large.Plan(10_001, 1_000, torch.float32)
        peak = peak_allocation(lambda: large.compare(plan, torch.device("cpu")))
        assert peak <= plan.bytes
