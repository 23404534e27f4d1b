"""Tables and a chart for ``docs/benchmarks`` from what a run has left.

    python -m gpu.pages gpu_results --output docs/benchmarks/NAME

Prints the tables as Markdown and writes them to gpu.md, and the chart to gpu.png. What was not measured is missing or says so; of
a small run, which measures nothing, both say what it was, and there are no targets.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from gpu import results as found

from monai_margincal.files import replacing, write_text
from monai_margincal.palette import SERIES

Rows = list[dict[str, Any]]
OURS = "MarginCalibrationLoss"
COPY = "copy of the logits"
#: for which launching kernels takes longer than running them
LAUNCHES = "6x2x224x336"


def title(machine: dict[str, Any]) -> str:
    """Card, versions and date in one line."""
    if machine["small"]:
        return f"SMALL RUN on a CPU, which measures nothing; torch {machine['torch']}; {machine['date']}"
    about = f"{machine['card']}, driver {machine['driver']}, torch {machine['torch']}, triton {machine['triton']}"
    return f"{about}, MONAI {machine['monai']}; {machine['date']}"


def rows_of(results: dict[str, Any], part: str) -> Rows:
    """What a part has found; nothing of a part that was not asked for."""
    return results["parts"].get(part, {"rows": []})["rows"]


def table(head: list[str], lines: Iterable[list[Any]]) -> str:
    """A table in Markdown; None becomes a dash."""
    shown = [[_cell(value) for value in line] for line in lines]
    rule = ["---", *("---:" for _ in head[1:])]
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, rule, *shown])


def _cell(value: Any) -> str:
    if value is None or value == "":
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _by_shape(rows: Rows, dtype: str, column: str) -> str:
    chosen = [row for row in rows if row["dtype"] == dtype]
    shapes, losses = (list(dict.fromkeys(row[name] for row in chosen)) for name in ("shape", "loss"))
    # the last of equal ones: a shape that was measured again has its compiled form too
    values = {(row["shape"], row["loss"]): row[column] for row in chosen}
    lines = ([loss, *(values.get((shape, loss)) for shape in shapes)] for loss in losses)
    return table(["", *shapes], lines)


def _loss_tables(rows: Rows) -> list[str]:
    texts = []
    for dtype in dict.fromkeys(row["dtype"] for row in rows):
        texts.append(f"Time, cross-entropy = 1, {dtype}:\n\n{_by_shape(rows, dtype, 'to_cross_entropy')}")
    texts.append(f"Milliseconds, float32:\n\n{_by_shape(rows, 'float32', 'milliseconds')}")
    texts.append(f"Extra memory, logits = 1, float32:\n\n{_by_shape(rows, 'float32', 'extra_to_logits')}")
    return texts


def _inference_tables(rows: Rows) -> list[str]:
    network = [row for row in rows if row["part"] == "network"]
    columns = ("name", "seconds", "first_seconds", "peak_gib")
    texts = [table(["network part", "s", "first s", "peak GiB"], ([row[c] for c in columns] for row in network))]
    runs = file_seconds(rows)
    steps = list(dict.fromkeys(step for parts in runs.values() for step in parts))
    lines = ([run, sum(parts.values()), *(parts.get(step) for step in steps)] for run, parts in runs.items())
    return [*texts, table(["file to saved mask, s", "total", *steps], lines)]


def file_seconds(rows: Rows) -> dict[str, dict[str, float]]:
    """Seconds of every step from file to mask, of the whole planes and with the lung crop."""
    runs: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["part"] in ("whole", "lung crop"):
            runs.setdefault(row["part"], {})[row["name"]] = row["seconds"]
    return runs


def _training_tables(rows: Rows) -> list[str]:
    columns = ("images", "patch", "way", "milliseconds", "ratio", "peak_gib")
    head = ["images", "patch", "way", "ms per step", "to the reference", "GiB"]
    return [table(head, ([row[c] for c in columns] for row in rows))]


def _correctness_tables(rows: Rows) -> list[str]:
    columns = ("check", "cases", "status", "seconds", "reason")
    return [table(["check", "cases", "result", "s", "why"], ([row[c] for c in columns] for row in rows))]


def _tensorrt_tables(rows: Rows) -> list[str]:
    columns = ("name", "shape", "seconds", "export_seconds", "different")
    head = ["network part", "scan", "s", "export s", "share of voxels whose class differs"]
    return [table(head, ([row[c] for c in columns] for row in rows))]


TABLES: dict[str, Callable[[Rows], list[str]]] = {
    "correctness": _correctness_tables,
    "loss": _loss_tables,
    "inference": _inference_tables,
    "training": _training_tables,
    "tensorrt": _tensorrt_tables,
}


def _worst(values: Iterable[float | None], of: Callable[[list[float]], float] = max) -> float | None:
    numbers = [value for value in values if value is not None]
    return of(numbers) if numbers else None


def _loss_column(rows: Rows, column: str, dtypes: tuple[str, ...], large: bool = True) -> list[float | None]:
    return [
        row[column]
        for row in rows
        if row["loss"] == OURS and row["dtype"] in dtypes and (row["shape"] != LAUNCHES) == large
    ]


def targets(results: dict[str, Any]) -> list[tuple[str, str, float, float | None]]:
    """What, how it is bounded ("at most" or "at least"), the bound, and the worst that was measured; None: nothing was."""
    loss, inference, training = (rows_of(results, part) for part in ("loss", "inference", "training"))
    single, halves = ("float32",), ("float16", "bfloat16")
    network = {row["name"]: row for row in inference if row["part"] == "network"}
    totals = [sum(steps.values()) for steps in file_seconds(inference).values()]
    recipe = [row["ratio"] for row in training if row["way"] == "recipe" and row["images"] == 32]
    most, least = "at most", "at least"
    return [
        ("loss to cross-entropy, float32", most, 0.5, _worst(_loss_column(loss, "to_cross_entropy", single))),
        ("loss to cross-entropy, half", most, 0.6, _worst(_loss_column(loss, "to_cross_entropy", halves))),
        ("loss to a copy of the logits, float32", most, 2.2, _worst(_loss_column(loss, "to_copy", single))),
        ("extra memory, logits = 1", most, 1.1, _worst(_loss_column(loss, "extra_to_logits", single + halves))),
        (
            f"loss to cross-entropy, {LAUNCHES}",
            most,
            1.2,
            _worst(_loss_column(loss, "to_cross_entropy", single + halves, large=False)),
        ),
        ("network part, compiled, s", most, 0.16, network.get("compiled", {}).get("seconds")),
        ("network part, uncompiled, s", most, 0.36, network.get("ours", {}).get("seconds")),
        ("network part, peak GiB", most, 4.5, _worst(network[w]["peak_gib"] for w in network if w != "reference")),
        ("file to saved mask, s", most, 4.0, _worst(totals)),
        ("training, 32 images, to the reference", least, 1.4, _worst(recipe, min)),
    ]


def target_table(results: dict[str, Any]) -> str:
    """The targets with what was measured, the worst of each."""
    lines = []
    for what, bound, value, measured in targets(results):
        if measured is None:
            shown, verdict = "not measured", ""
        else:
            shown = f"{measured:.3g}"
            verdict = "yes" if (measured <= value if bound == "at most" else measured >= value) else "no"
        lines.append([what, f"{bound} {value:g}", shown, verdict])
    return table(["what", "target", "measured", "reached"], lines)


def markdown(results: dict[str, Any]) -> str:
    """All tables, with what went wrong."""
    sections = [title(results["machine"])]
    if not results["machine"]["small"]:
        sections.append(target_table(results))
    for part, tables in TABLES.items():
        record = results["parts"].get(part)
        if record is None:
            continue
        state = f"## {part}: {record['status']}" + (f" ({record['reason']})" if record["reason"] else "")
        sections += [state, *(tables(record["rows"]) if record["rows"] else [])]
    return "\n\n".join(sections) + "\n"


def chart(results: dict[str, Any], path: Path) -> None:
    """Loss against cross-entropy, network part and training step, as far as there are any."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    loss = [row for row in rows_of(results, "loss") if row["dtype"] == "float32" and row["loss"] != COPY]
    inference = [row for row in rows_of(results, "inference") if row["part"] == "network"]
    training = rows_of(results, "training")
    shapes = list(dict.fromkeys(row["shape"] for row in loss))
    bars = [
        (shape, "time, cross-entropy = 1", {r["loss"]: r["to_cross_entropy"] for r in loss if r["shape"] == shape})
        for shape in shapes
    ]
    bars.append(("network part", "seconds", {row["name"]: row["seconds"] for row in inference}))
    speed = {f"{row['images']} images, {row['way']}": row["ratio"] for row in training}
    bars.append(("training step", "images per second, reference = 1", speed))
    bars = [(name, axis, values) for name, axis, values in bars if values]
    figure = Figure(figsize=(9, 0.6 + 2.6 * max(1, len(bars))), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title(results["machine"]), fontsize=8)
    axes = figure.subplots(max(1, len(bars)), 1, squeeze=False)[:, 0]
    for panel, (name, axis, values) in zip(axes, bars, strict=False):
        ours = [label.startswith(("MarginCalibration", "ours", "compiled")) or "recipe" in label for label in values]
        drawn = panel.barh(
            list(values), [value or 0.0 for value in values.values()], color=[SERIES[not own] for own in ours]
        )
        panel.bar_label(drawn, fmt="%.3g", padding=3, fontsize=7)
        panel.set_title(name, fontsize=9)
        panel.set_xlabel(axis, fontsize=8)
        panel.tick_params(labelsize=7)
        panel.margins(x=0.12)
        panel.invert_yaxis()
        if axis.startswith("time"):
            panel.set_xscale("log")
    with replacing(path) as beside:
        figure.savefig(beside, dpi=110, format="png")


def main(arguments: list[str] | None = None) -> None:
    """Read, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="the folder with results.json")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args(arguments)
    results = found.read(options.results)
    options.output.mkdir(parents=True, exist_ok=True)
    text = markdown(results)
    write_text(options.output / "gpu.md", text)
    chart(results, options.output / "gpu.png")
    print(text)


if __name__ == "__main__":
    main()
