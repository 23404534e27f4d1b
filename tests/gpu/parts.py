"""The parts of a run: the commands of each, what they need and how long they may take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
#: what the package itself needs, and two that only tests need
PACKAGE = ("torch", "numpy", "monai", "ignite", "nibabel", "PIL", "isal", "tqdm", "jinja2", "markupsafe")
CHECKS = (
    "golden",
    "golden_in_half",
    "oracle",
    "classes",
    "label_types",
    "few_voxels",
    "half",
    "numerics",
    "compounds",
    "determinism",
    "undeclared",
    "large",
    "graphs",
    "compiled",
)
#: with 33 to 220 million logits, and one where launching kernels takes longer than running them
SHAPES = ("64x2x512x512", "2x14x192x192x192", "16x5x768x960", "1x105x128x128x128", "6x2x224x336")
SMALL_FEATURES = ("--features", "8", "16", "32", "64", "128")


@dataclass(frozen=True)
class Step:
    """One process: arguments of Python, to which ``--output FOLDER`` is added, and the table that it writes there."""

    name: str
    arguments: tuple[str, ...]
    table: str


def _nothing_wrong(row: dict[str, Any]) -> str:
    return ""


@dataclass(frozen=True)
class Part:
    """Steps that share ``seconds`` and what other parts have left of theirs; ``wrong`` says what is wrong with a row."""

    name: str
    seconds: float
    steps: tuple[Step, ...]
    needs: tuple[str, ...] = ()
    at_once: int = 1
    optional: bool = False
    wrong: Callable[[dict[str, Any]], str] = _nothing_wrong


def _own_loss_failed(row: dict[str, Any]) -> str:
    """The other losses are there for comparison and may run out of memory."""
    own = str(row["loss"]).startswith("MarginCalibration")
    return f"{row['loss']}, {row['shape']}, {row['dtype']}: {row['error']}" if own and row["error"] else ""


def _check_failed(row: dict[str, Any]) -> str:
    return f"{row['check']}: {row['reason']}" if row["status"] == "failed" else ""


def _step(name: str, script: str, *arguments: str) -> Step:
    return Step(name, (str(BENCHMARKS / f"{script}.py"), *arguments), f"{script}.csv")


def parts(small: bool) -> list[Part]:
    """The parts in their order; small ones take tiny shapes on a CPU, in as few processes as possible."""
    device = ("--device", "cpu" if small else "cuda:0")
    checks = [CHECKS] if small else [(name,) for name in CHECKS]
    run_checks = [
        Step(" ".join(names), ("-m", "gpu.checks", *names, *device, *(["--small"] if small else [])), "correctness.csv")
        for names in checks
    ]
    engine = ("-m", "gpu.tensorrt", *device, *(["--plane", "32", "--slices", "2"] if small else []))
    loss, inference, training = _small_benchmarks() if small else _benchmarks()
    return [
        Part(
            "correctness",
            600 if small else 110,
            tuple(run_checks),
            (*PACKAGE, "triton", "pytest", "hypothesis"),
            # nothing is timed here, and most of the time goes into compiling kernels, one core each
            at_once=1 if small else 8,
            wrong=_check_failed,
        ),
        Part("loss", 600 if small else 120, loss, (*PACKAGE, "triton", "matplotlib"), wrong=_own_loss_failed),
        Part("inference", 600 if small else 110, inference, (*PACKAGE, "scipy", "matplotlib")),
        Part("training", 600 if small else 90, training, (*PACKAGE, "scipy")),
        Part(
            "tensorrt",
            600 if small else 40,
            (Step("engine", engine, "tensorrt.csv"),),
            (*PACKAGE, "torch_tensorrt"),
            optional=True,
        ),
    ]


Steps = tuple[Step, ...]


def _benchmarks() -> tuple[Steps, Steps, Steps]:
    volume = SHAPES[1]
    # bfloat16 moves the bytes of float16 through other kernels, whose compilation takes longer than measuring: one shape shows it
    loss = [
        _step(
            *(shape, "loss", "--shapes", shape, "--rounds", "12", "--no-compile", "--dtypes", "float32", "float16"),
            *(["bfloat16"] if shape == volume else []),
        )
        for shape in SHAPES
    ]
    loss.append(_step("compiled form", "loss", "--shapes", volume, "--dtypes", "float32", "--rounds", "12"))
    inference = [
        _step(way, "inference", "--parts", "network", "--ways", way) for way in ("ours", "reference", "compiled")
    ]
    inference.insert(2, _step("file to mask", "inference", "--parts", "file"))
    rounds = ("--steps", "10", "--rounds", "3")
    ways = (("32", "recipe", "recipe, cudnn_benchmark"), ("8", "recipe"), ("32", "recipe, compile"))
    training = [
        _step(f"{images} images, {' and '.join(names)}", "training", "--images", images, *rounds, "--ways", *names)
        for images, *names in ways
    ]
    return tuple(loss), tuple(inference), tuple(training)


def _small_benchmarks() -> tuple[Steps, Steps, Steps]:
    cpu = ("--device", "cpu")
    loss = _step("tiny", "loss", *cpu, "--shapes", "1x3x8x8", "--rounds", "1", "--no-compile")
    size = (*cpu, "--slices", "3", "--plane", "64", *SMALL_FEATURES)
    inference = _step("tiny", "inference", *size, "--parts", "network", "file", "--ways", "ours")
    training = _step(
        *("tiny", "training", *cpu, "--images", "2", "--patch", "32", "--steps", "1", "--rounds", "1", *SMALL_FEATURES)
    )
    return (loss,), (inference,), (training,)
