"""Whether the kernels compute on this device what they compute under the interpreter; writes one row per check.

    python -m gpu.checks golden oracle --device cuda:0 --output results/

Many checks are tests of ``tests/ops``, run with the device as torch's default device. On a CPU, with TRITON_INTERPRET=1, all of
this runs too; ``--small`` takes few and tiny cases.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import functools
import gc
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from gpu import large
from gpu.parts import CHECKS
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from losses.golden import has_proper_margins
from ops import test_operator, test_triton
from ops.ways import loss_and_gradient, terms

from monai_margincal import MarginCalibrationDiceLoss, MarginCalibrationLoss, MarginCalibrationTverskyLoss
from monai_margincal.ops import margin_calibration, triton_launch

FIELDS = ["check", "device", "torch", "cases", "status", "seconds", "reason"]
RUNS = 20


class LeftOut(Exception):
    """A check has no sense here."""


@dataclass(frozen=True)
class Setting:
    """Where a check runs, and whether it may take its time."""

    device: torch.device
    small: bool


def cases_of(test: Callable[..., None]) -> Iterator[dict[str, Any]]:
    """The arguments of a parametrised test, one mapping per case."""
    axes = []
    for mark in test.pytestmark:  # type: ignore[attr-defined]
        if mark.name == "parametrize":
            names, values = mark.args[:2]
            names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
            axes.append([dict(zip(names, value if len(names) > 1 else [value], strict=True)) for value in values])
    for chosen in itertools.product(*axes):
        yield {key: value for part in chosen for key, value in part.items()}


def _each(test: Callable[..., None], setting: Setting, keep: Callable[[dict[str, Any]], bool] = lambda _: True) -> int:
    """Run a parametrised test on the device; in a small run some three of its cases."""
    cases = [case for case in cases_of(test) if keep(case)]
    if setting.small:
        cases = cases[:: max(1, len(cases) // 2)]
    for case in cases:
        triton_launch._REPORTS.clear()
        with torch.device(setting.device):
            test(**case)
    return len(cases)


def _by_kernels(case: dict[str, Any]) -> bool:
    return case["way"] == "triton"


def golden(setting: Setting) -> int:
    """The golden vectors whose margins are proper; refusing others is the host's affair."""
    return _each(test_operator.test_golden, setting, lambda c: _by_kernels(c) and has_proper_margins(c["case"]))


def golden_in_half(setting: Setting) -> int:
    """The golden vectors in single, half and bfloat16."""
    return _each(test_operator.test_golden_in_lower_precision, setting, _by_kernels)


def oracle(setting: Setting) -> int:
    """Random problems against the literal transcription of the paper."""
    count = 0
    # each is another set of constants, for which three kernels are compiled
    most = 3 if setting.small else 24

    # a failure is not made smaller: that would compile many kernels more
    @settings(
        deadline=None,
        max_examples=most,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(
        problem=test_operator.problems(forms=("index", "index with channel")),
        reduction=st.sampled_from(["none", "mean", "sum"]),
        factor=st.sampled_from([1.0, -2.5]),
    )
    def compare(problem: Any, reduction: str, factor: float) -> None:
        nonlocal count
        count += 1
        test_operator.check_against_oracle("triton", problem, reduction, factor, torch.float32, 3e-6)

    with torch.device(setting.device):
        compare()
    return count


def classes(setting: Setting) -> int:
    """Both sides of every number of classes at which the kernels change their plan."""
    return _each(test_triton.test_any_number_of_classes, setting)


def label_types(setting: Setting) -> int:
    """Labels of every dtype."""
    return _each(test_triton.test_labels_are_read_as_they_are, setting)


def few_voxels(setting: Setting) -> int:
    """Cases that share a block."""
    return _each(test_triton.test_few_voxels_per_case, setting)


def half(setting: Setting) -> int:
    """A large incoming gradient in half and bfloat16."""
    return _each(test_triton.test_half_precision, setting)


def numerics(setting: Setting) -> int:
    """Huge, infinite, ignored and NaN logits."""
    numbers = test_triton.TestNumerics()
    count = _each(numbers.test_huge_and_infinite_logits, setting)
    count += _each(numbers.test_nan_in_a_valid_voxel_is_not_hidden, setting)
    count += _each(numbers.test_an_ignored_voxel_changes_nothing, setting)
    with torch.device(setting.device):
        numbers.test_all_ignored()
        numbers.test_small_terms_are_not_rounded_away()
    return count + 2


def _problem(setting: Setting, *shape: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(shape, generator=generator) * 3
    labels = torch.randint(0, shape[1], (shape[0], 1, *shape[2:]), generator=generator)
    labels.view(-1)[::7] = 255
    return logits.to(setting.device), labels.to(setting.device)


def _losses(counts: list[int], backend: str = "triton") -> list[torch.nn.Module]:
    options = {"class_counts": counts, "ignore_index": 255, "backend": backend}
    kinds = (MarginCalibrationLoss, MarginCalibrationDiceLoss, MarginCalibrationTverskyLoss)
    return [kind(**options) for kind in kinds]


def _value_and_gradient(
    loss: Callable[..., torch.Tensor], logits: torch.Tensor, labels: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    logits = logits.detach().requires_grad_()
    value = loss(logits, labels)
    (gradient,) = torch.autograd.grad(value, logits)
    return value.detach(), gradient


@contextlib.contextmanager
def _named(loss: torch.nn.Module) -> Iterator[None]:
    """Say in an error which loss it was."""
    try:
        yield
    except Exception as error:
        raise AssertionError(f"{type(loss).__name__}: {type(error).__name__}: {error}") from error


def compounds(setting: Setting) -> int:
    """The losses as they are used, against themselves in double precision on the CPU."""
    # both sides of the number from which on the gradient is corrected in memory
    numbers = (3,) if setting.small else (2, 3, 8, 9, 33)
    side = 5 if setting.small else 48
    for classes in numbers:
        logits, labels = _problem(setting, 2, classes, side, side)
        counts = [10 ** (6 - k % 4) for k in range(classes)]
        for loss, exact in zip(_losses(counts), _losses(counts, "eager"), strict=True):
            with _named(loss):
                value, gradient = _value_and_gradient(loss.to(setting.device), logits, labels)
                expected, slopes = _value_and_gradient(exact.double(), logits.cpu().double(), labels.cpu())
                torch.testing.assert_close(value.cpu().double(), expected, rtol=1e-5, atol=0)
                allowed = 1e-5 * float(slopes.abs().max())
                torch.testing.assert_close(gradient.cpu().double(), slopes, rtol=1e-4, atol=allowed)
    return 3 * len(numbers)


def determinism(setting: Setting) -> int:
    """The same bits in every run, forward and backward."""
    logits, labels = _problem(setting, *((1, 3, 40) if setting.small else (2, 14, 96, 96, 64)))
    for loss in _losses([10 ** (6 - k % 4) for k in range(logits.shape[1])]):
        with _named(loss):
            first = _value_and_gradient(loss.to(setting.device), logits, labels)
            for _ in range(1 if setting.small else RUNS - 1):
                again = _value_and_gradient(loss, logits, labels)
                torch.testing.assert_close(again, first, rtol=0, atol=0)
    return 3


def undeclared(setting: Setting) -> int:
    """NaN at once, the error with the next call after the device has finished, and said only once."""
    triton_launch._REPORTS.clear()
    with torch.device(setting.device):
        logits, values = torch.randn(1, 3, 600), terms(3)
        right = torch.zeros(1, 600, dtype=torch.long)
        wrong = right.clone()
        wrong[0, 5], wrong[0, 599] = 255, 17
    loss, valid, gradient = loss_and_gradient("triton", logits, wrong, values)
    if not (bool(loss.isnan()) and valid == 598 and bool(torch.isfinite(gradient).all())):
        raise AssertionError(f"found loss {loss}, {valid} valid voxels, expected NaN, 598 and finite gradients")
    expected = "label value(s) between 17 and 255 in 2 voxel(s)"
    try:
        margin_calibration(logits, right, *values, backend="triton")
    except ValueError as error:
        if expected not in str(error) or str(logits.device) not in str(error):
            raise
    else:
        raise AssertionError(f"found no error in the next call, expected one with {expected!r}")
    again, _ = margin_calibration(logits, right, *values, backend="triton")
    torch.testing.assert_close(torch.isfinite(again).cpu(), torch.tensor(True))
    return 1


def large_volumes(setting: Setting) -> int:
    """More than 2^31 logits, and more than 2^31 voxels, as far as the memory goes."""
    if setting.small:
        plans = [large.Plan(1_500, 400, torch.float16)]
    else:
        free, _ = torch.cuda.mem_get_info(setting.device)
        plans = large.plans(free)
        if not plans:
            raise LeftOut(f"{free / 2**30:.0f} GiB are free, it takes {large.LEAST_BYTES / 2**30:.0f}")
    for plan in plans:
        large.compare(plan, setting.device)
        gc.collect()
    return len(plans)


def graphs(setting: Setting) -> int:
    """A captured step follows new logits and labels; a CPU has no graphs and repeats the call instead."""
    logits, labels = _problem(setting, *((1, 3, 40) if setting.small else (2, 5, 64, 64)))
    others, other_labels = logits.flip(-1) + 1, labels.flip(-1)
    losses = _losses([10 ** (6 - k % 4) for k in range(logits.shape[1])])
    for loss in losses:
        with _named(loss):
            loss.to(setting.device)
            static, static_labels = logits.clone(), labels.clone()
            replay, result = _captured(functools.partial(_value_and_gradient, loss, static, static_labels), setting)
            static.copy_(others)
            static_labels.copy_(other_labels)
            replay()
            expected = list(_value_and_gradient(loss, others, other_labels))
            torch.testing.assert_close(result, expected, rtol=0, atol=0)
    return len(losses)


def _captured(
    call: Callable[[], tuple[torch.Tensor, ...]], setting: Setting
) -> tuple[Callable[[], None], list[torch.Tensor]]:
    """What runs the call again, and the tensors that its results appear in."""
    if setting.device.type != "cuda":
        result = [tensor.clone() for tensor in call()]

        def repeat() -> None:
            for kept, new in zip(result, call(), strict=True):
                kept.copy_(new)

        return repeat, result
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = list(call())
    return graph.replay, result


def _small_network() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(4, 3, 1))


def _step(network: torch.nn.Module, loss: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return loss(network(images), labels)


def _trained(network: torch.nn.Module, step: Callable[[], torch.Tensor]) -> list[torch.Tensor]:
    """Loss and gradients of a step."""
    network.zero_grad(set_to_none=True)
    value = step()
    value.backward()
    return [value.detach(), *(parameter.grad.clone() for parameter in network.parameters())]


def compiled(setting: Setting) -> int:
    """A training step with network and loss as one graph gives what it gives uncompiled."""
    backend = "aot_eager" if setting.small else "inductor"
    side = 6 if setting.small else 64
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(2, 1, side, side, generator=generator).to(setting.device)
    labels = torch.randint(0, 3, (2, 1, side, side), generator=generator).to(setting.device)
    losses = _losses([900, 90, 10])[: 1 if setting.small else 3]
    for loss in losses:
        with _named(loss):
            network = _small_network().to(setting.device)
            step = functools.partial(_step, network, loss.to(setting.device), images, labels)
            torch._dynamo.reset()
            whole = torch.compile(step, fullgraph=True, backend=backend)
            torch.testing.assert_close(_trained(network, whole), _trained(network, step), rtol=1e-3, atol=1e-4)
    return len(losses)


RUN: dict[str, Callable[[Setting], int]] = {
    "golden": golden,
    "golden_in_half": golden_in_half,
    "oracle": oracle,
    "classes": classes,
    "label_types": label_types,
    "few_voxels": few_voxels,
    "half": half,
    "numerics": numerics,
    "compounds": compounds,
    "determinism": determinism,
    "undeclared": undeclared,
    "large": large_volumes,
    "graphs": graphs,
    "compiled": compiled,
}


def one_row(name: str, setting: Setting) -> dict[str, Any]:
    """Run a check; what it raises becomes its reason."""
    row = {"check": name, "device": str(setting.device), "torch": torch.__version__, "cases": 0, "reason": ""}
    begun = time.perf_counter()
    torch.manual_seed(0)
    try:
        row |= {"cases": RUN[name](setting), "status": "passed"}
    except LeftOut as why:
        row |= {"status": "left out", "reason": str(why)}
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        row |= {"status": "failed", "reason": f"{type(error).__name__}: {' '.join(lines)[:200]}"}
    return {**row, "seconds": round(time.perf_counter() - begun, 2)}


def main(arguments: list[str] | None = None) -> int:
    """Run the checks that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checks", nargs="+", choices=CHECKS)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args(arguments)
    setting = Setting(torch.device(options.device), options.small)
    options.output.mkdir(parents=True, exist_ok=True)
    rows = []
    with (options.output / "correctness.csv").open("w", newline="", encoding="utf-8", buffering=1) as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        for name in options.checks:
            rows.append(one_row(name, setting))
            writer.writerow(rows[-1])  # at once: the next one may end the process
            print(f"{name}: {rows[-1]['status']} {rows[-1]['reason']} ({rows[-1]['seconds']} s)", flush=True)
    return int(any(row["status"] == "failed" for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
