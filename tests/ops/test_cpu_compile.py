"""The compiled kernels are built when they are wanted, kept, and missed by nobody where they cannot be had."""

from __future__ import annotations

import ctypes
import subprocess

import pytest
import torch
from ops.ways import terms

from monai_margincal.ops import cpu_compile, cpu_launch, margin_calibration, margin_overlap


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """No library has been looked for, and none is kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    cpu_compile.compiled_library.cache_clear()
    yield tmp_path
    cpu_compile.compiled_library.cache_clear()


def problem():
    return torch.randn(1, 4, 100, 100, requires_grad=True), torch.randint(0, 4, (1, 1, 100, 100))


def results(logits, labels, values, backend="auto"):
    loss, _, sums, _ = margin_overlap(logits, labels, *values, backend=backend)
    (gradient,) = torch.autograd.grad(loss + sums[:, :2].sum(), logits)
    return loss.detach(), sums.detach(), gradient


def test_built_once_and_kept(fresh, monkeypatch):
    calls = []
    run = subprocess.run
    monkeypatch.setattr(
        subprocess, "run", lambda command, **options: (calls.append(command), run(command, **options))[1]
    )
    assert isinstance(cpu_compile.compiled_library(), ctypes.CDLL)
    (kept,) = (fresh / "monai_margincal").iterdir()
    assert kept.name.startswith("cpu_kernels-")
    assert kept.suffix == ".so"
    assert len([command for command in calls if "-o" in command]) == 1
    cpu_compile.compiled_library.cache_clear()
    assert isinstance(cpu_compile.compiled_library(), ctypes.CDLL)
    assert len([command for command in calls if "-o" in command]) == 1


@pytest.mark.parametrize("obstacle", ["no compiler", "broken compiler", "no folder", "broken library"])
def test_without(fresh, monkeypatch, obstacle):
    """The blockwise computation does the work, and nothing is said."""
    if obstacle == "no compiler":
        monkeypatch.setenv("PATH", "")
    elif obstacle == "broken compiler":
        monkeypatch.setattr(cpu_compile, "_FLAGS", ("-fno-such-flag", "-shared"))
    elif obstacle == "no folder":
        (fresh / "monai_margincal").write_text("in the way")
    else:
        monkeypatch.setattr(cpu_compile, "_build", lambda command, path: path.write_bytes(b"no library"))
    logits, labels = problem()
    values = terms(4)
    torch.testing.assert_close(
        results(logits, labels, values), results(logits, labels, values, "eager"), rtol=0, atol=0
    )
    assert cpu_compile.compiled_library() is None


def test_small_problems_wait_for_no_compiler(fresh):
    margin_calibration(torch.randn(1, 2, 30), torch.randint(0, 2, (1, 30)), *terms(2))
    margin_calibration(*problem(), *terms(4), backend="eager")
    assert not (fresh / "monai_margincal").exists()
    margin_calibration(*problem(), *terms(4))
    assert (fresh / "monai_margincal").exists()


def test_any_number_of_threads_gives_the_same(monkeypatch):
    logits = torch.randn(3, 5, 60, 50, requires_grad=True)
    labels, values = torch.randint(0, 5, (3, 60, 50)), terms(5)
    before, found = torch.get_num_threads(), []
    monkeypatch.setattr(cpu_launch, "_CHUNKS_AT_ONCE", 1)
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            found.append(results(logits, labels, values))
    finally:
        torch.set_num_threads(before)
    torch.testing.assert_close(*found, rtol=0, atol=0)
    torch.testing.assert_close(found[0], results(logits, labels, values, "eager"), rtol=1e-5, atol=1e-5)
