"""results.csv, tables, figures and one self-contained HTML page from the finished cells of a study."""

from __future__ import annotations

import base64
import html
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..files import replacing, write_text
from .figures import (
    class_figure,
    convergence_figure,
    decoder_figure,
    difference_figure,
    figure_bytes,
    margin_figure,
    overview_figure,
    panel_figure,
    sensitivity_figure,
    surrogate_figure,
)
from .results import Run, Summary, collect_runs, results_csv, summarise
from .runner import load_record, record_path
from .study import PRETRAINING, Study
from .tables import Table, study_tables

__all__ = ["write_report"]

#: convergence, margins and pictures stay readable with this many objectives
_SHOWN = 5


def write_report(study: Study, output: str | os.PathLike[str]) -> list[Path]:
    """Write everything that the finished cells give; what is missing is said on the page.

    Args:
        study: what was compared.
        output: folder of the cells, and of the report.

    Returns:
        the files, ``report.html`` last.

    Raises:
        ValueError: no cell is finished.
    """
    folder = Path(output)
    runs = collect_runs(study, folder)
    if not runs:
        raise ValueError(f"{folder}: found no finished cell of this study, expected at least one")
    summaries = summarise(study, runs)
    tables = study_tables(study, summaries)
    figures = _figures(study, folder, runs, summaries)
    written = [folder / "results.csv", folder / "tables.md", folder / "tables.tex"]
    write_text(written[0], results_csv(runs))
    write_text(
        written[1], "\n".join([f"# {study.title}\n", _state(study, runs), *(table.markdown() for table in tables)])
    )
    write_text(written[2], "\n".join(table.latex() for table in tables))
    pictures = {}
    for name, (_, figure) in figures.items():
        path = folder / "figures" / f"{name}.png"
        pictures[name] = figure_bytes(figure)
        with replacing(path) as beside:
            beside.write_bytes(pictures[name])
        written.append(path)
    page = folder / "report.html"
    write_text(page, _page(study, _state(study, runs), tables, {n: (c, pictures[n]) for n, (c, _) in figures.items()}))
    return [*written, page]


def _state(study: Study, runs: Sequence[Run]) -> str:
    """How much of the study is done: nobody should take a part for the whole."""
    planned, done = study.cells(), {run.cell.key for run in runs}
    lines = [f"{len(done)} of {len(planned)} runs are finished."]
    for task in dict.fromkeys(cell.task for cell in planned):
        cells = [cell for cell in planned if cell.task == task]
        finished = [cell for cell in cells if cell.key in done]
        seeds = sorted({cell.seed for cell in finished})
        complete = [seed for seed in seeds if all(cell.key in done for cell in cells if cell.seed == seed)]
        lines.append(
            f"{study.tasks[task].get('title', task)}: {len(finished)} of {len(cells)} runs; seeds with every objective: "
            f"{', '.join(map(str, complete)) or 'none'}."
        )
    made: dict[str, int] = {}
    for run in runs:
        # cells of different machines and versions may stand side by side: say so
        words = ", ".join(f"{name} {value}" for name, value in run.record["environment"].items())
        made[words] = made.get(words, 0) + 1
    lines += [f"{number} runs made with {words}." for words, number in made.items()]
    return "\n".join(f"* {line}" for line in lines) + "\n"


def _figures(
    study: Study, folder: Path, runs: Sequence[Run], summaries: Sequence[Summary]
) -> dict[str, tuple[str, Any]]:
    """File name -> (caption, figure)."""
    first = next(iter(study.decoders))
    figures: dict[str, tuple[str, Any]] = {
        "loss_functions": (
            "The two losses of a margin: the one in the bound, and the one that is trained.",
            surrogate_figure(),
        )
    }
    for protocol in dict.fromkeys(summary.protocol for summary in summaries):
        overview = overview_figure(study, runs, [s for s in summaries if (s.protocol, s.decoder) == (protocol, first)])
        if overview is not None:
            figures[f"{protocol}_overview"] = (f"Every objective in every task: {protocol}.", overview)
    for task, protocol in dict.fromkeys((summary.task, summary.protocol) for summary in summaries):
        here = [s for s in summaries if (s.task, s.protocol) == (task, protocol)]
        plain = [s for s in here if s.decoder == first]
        names = list(study.tasks[task]["class_names"])
        where = f"{study.tasks[task].get('title', task)}, {protocol}"
        shown = _leaders(study, plain)
        stem = f"{task}_{protocol}"
        made: dict[str, tuple[str, Any]] = {
            "differences": (f"Paired differences to the best baseline: {where}.", difference_figure(study, plain)),
            "classes": (f"IoU per class: {where}. The axes do not start at 0.", class_figure(study, plain, names)),
            "decoders": (f"What a free decoder gains: {where}.", decoder_figure(study, here)),
            "sensitivity": (f"Sensitivity to tau and upsilon: {where}.", sensitivity_figure(study, plain)),
        }
        if protocol == "finetune":
            made["convergence"] = (f"Convergence: {where}.", convergence_figure(study, runs, task, shown))
            made["margins"] = (
                f"Margins of the test voxels before and after fine-tuning: {where}.",
                margin_figure(_histograms(study, folder, runs, task, shown), names),
            )
        made["panels"] = (
            f"Test slices: {where}.",
            panel_figure(_pictures(study, folder, runs, task, protocol, shown), names),
        )
        figures |= {f"{stem}_{name}": entry for name, entry in made.items() if entry[1] is not None}
    return figures


def _leaders(study: Study, summaries: Sequence[Summary]) -> list[str]:
    """Cross-entropy or the first baseline, the best baseline, the best of every other group."""
    by_group: dict[str, list[Summary]] = {}
    most = max(len(summary.seeds) for summary in summaries)
    for summary in summaries:
        if len(summary.seeds) < most:
            continue  # its mean is over other training sets
        by_group.setdefault(str(study.objectives[summary.objective].get("group", "other")), []).append(summary)
    chosen = [summary.objective for summary in by_group.get("baseline", [])[:1]]
    for group in by_group.values():
        chosen.append(max(group, key=lambda summary: summary.miou.mean()).objective)
    chosen += [s.objective for s in summaries if study.objectives[s.objective].get("paper") == "Ours"]
    return list(dict.fromkeys(chosen))[:_SHOWN]


def _histograms(
    study: Study, folder: Path, runs: Sequence[Run], task: str, objectives: Sequence[str]
) -> dict[str, Any]:
    """Sums over the seeds, pre-training first."""
    found: dict[str, Any] = {}
    seeds = sorted({run.cell.seed for run in runs if run.cell.task == task})
    before = [load_record(folder, study.cell(task, PRETRAINING, "", seed)) for seed in seeds]
    sums = [np.asarray(record["evaluation"]["margin_histogram"]) for record in before if record is not None]
    if sums:
        found["before"] = np.sum(sums, axis=0)
    for objective in objectives:
        sums = [
            np.asarray(run.record["evaluation"]["margin_histogram"])
            for run in runs
            if (run.cell.task, run.cell.protocol, run.cell.objective) == (task, "finetune", objective)
        ]
        if sums:
            found[study.label(objective)] = np.sum(sums, axis=0)
    return found


def _pictures(
    study: Study, folder: Path, runs: Sequence[Run], task: str, protocol: str, objectives: Sequence[str]
) -> dict[str, dict[str, np.ndarray]]:
    """Pictures of the first seed that all shown objectives have."""
    by_objective = {
        objective: {
            run.cell.seed: run
            for run in runs
            if (run.cell.task, run.cell.protocol, run.cell.objective) == (task, protocol, objective)
        }
        for objective in objectives
    }
    common = set.intersection(*(set(by_seed) for by_seed in by_objective.values())) if by_objective else set()
    if not common:
        return {}
    seed = min(common)
    found = {}
    for objective, by_seed in by_objective.items():
        with np.load(record_path(folder, by_seed[seed].cell).with_suffix(".npz"), allow_pickle=False) as arrays:
            found[study.label(objective)] = {name: arrays[name] for name in arrays.files}
    return found


_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 2em auto; padding: 0 1em; color: #222; }
table { border-collapse: collapse; font-size: 13px; } td, th { padding: 3px 8px; border-bottom: 1px solid #ddd; }
td + td, th + th { text-align: right; } thead th { border-bottom: 2px solid #888; } .scroll { overflow-x: auto; }
img { max-width: 100%; } figure { margin: 1.5em 0; } figcaption, .note { color: #666; font-size: 13px; }
"""


def _page(study: Study, state: str, tables: Sequence[Table], figures: dict[str, tuple[str, bytes]]) -> str:
    items = "".join(f"<li>{html.escape(line[2:])}</li>" for line in state.splitlines())
    pictures = "\n".join(
        f"<figure><img alt='{html.escape(caption, quote=True)}' src='data:image/png;base64,{base64.b64encode(content).decode()}'>"
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
        for caption, content in figures.values()
    )
    title = html.escape(study.title)
    return (
        f"<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><title>{title}</title><style>{_STYLE}</style></head>"
        f"<body><h1>{title}</h1><ul>{items}</ul>\n<h2>Tables</h2>\n"
        + "\n".join(table.html() for table in tables)
        + f"\n<h2>Figures</h2>\n{pictures}\n</body></html>\n"
    )
