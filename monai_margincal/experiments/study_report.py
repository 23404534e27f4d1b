"""Tables, figures, what they are drawn from, and one self-contained HTML page from the finished cells of a study."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ..files import locked, replacing, write_text
from ..pages import render
from .best_pair import best_pair_says
from .comparisons import comparisons_csv
from .conclusions import first_letter
from .curves import curves_csv
from .figures import figure_bytes, figure_svg
from .pretraining import pretraining_warnings
from .regret_report import regret_by_protocol
from .results import Run, collect_runs, results_csv, summarise
from .runner import record_path
from .scored_runs import ScoredRun, scored_runs
from .study import Study
from .study_curves import study_curves
from .study_figures import study_figures
from .tables import PROTOCOL_NAMES, study_tables

__all__ = ["write_study_report"]


def write_study_report(study: Study, output: str | os.PathLike[str]) -> list[Path]:
    """Write everything that the finished cells give; the page says what is missing.

    Args:
        study: what was compared.
        output: folder of the cells, and of the report.

    Returns:
        the files, ``report.html`` last.

    Raises:
        ValueError: no cell is finished.
    """
    folder = Path(output)
    if not collect_runs(study, folder):
        raise ValueError(f"{folder}: found no finished cell of this study, expected at least one")
    # of several processes at the end of one study the last to come here reads what all of them did; figures take their time
    with locked(folder / "report.html", patience=3600):
        return _write(study, folder, collect_runs(study, folder))


def _write(study: Study, folder: Path, runs: Sequence[Run]) -> list[Path]:
    summaries = summarise(study, runs)
    state = [*_state(study, folder, runs), *pretraining_warnings(study, folder, runs)]
    scored = scored_runs(study, runs)
    says = _conclusions(study, scored)
    regrets = regret_by_protocol(scored)
    tables = [*(table for _, table, _ in regrets.values()), *study_tables(study, summaries)]
    markdown = [
        f"# {study.title}\n",
        _bullets([f"**{where}.** {line}" for where, line in says]),
        _bullets(state),
        *(table.markdown() for table in tables),
    ]
    texts = {
        "results.csv": results_csv(study, runs),
        "comparisons.csv": comparisons_csv(summaries),
        "curves.csv": curves_csv(study_curves(study, folder, runs)),
        "tables.md": "\n".join(markdown),
        "tables.tex": "\n".join(table.latex() for table in tables),
    }
    written = []
    for name, text in texts.items():
        write_text(folder / name, text)
        written.append(folder / name)
    pictures = []
    figures = {
        f"{protocol}_regret": (f"Regret in every task: {PROTOCOL_NAMES[protocol]}.", figure)
        for protocol, (_, _, figure) in regrets.items()
    }
    figures |= study_figures(study, folder, runs, summaries)
    for name, (caption, figure) in figures.items():
        path = folder / "figures" / f"{name}.png"
        png = figure_bytes(figure)
        with replacing(path) as beside:
            beside.write_bytes(png)
        written.append(path)
        pictures.append((caption, figure.get_label(), figure_svg(figure)))
    page = folder / "report.html"
    content = {"title": study.title, "says": says, "state": state, "tables": tables, "pictures": pictures}
    write_text(page, render("experiments/study_report.html", kind="study", **content))
    return [*written, page]


def _conclusions(study: Study, runs: Sequence[ScoredRun]) -> list[tuple[str, str]]:
    """Every task and protocol, and what it says in one or two sentences."""
    lines = []
    for task, protocol in dict.fromkeys((run.task, run.protocol) for run in runs):
        here = [run for run in runs if (run.task, run.protocol) == (task, protocol)]
        title = study.tasks[task].get("title", task)
        lines.append((first_letter(f"{title}, {PROTOCOL_NAMES[protocol]}"), best_pair_says(here)))
    return lines


def _bullets(lines: Sequence[str]) -> str:
    return "".join(f"* {line}\n" for line in lines)


def _state(study: Study, folder: Path, runs: Sequence[Run]) -> list[str]:
    """How much of the study is done, so that nobody takes a part for the whole."""
    planned = study.cells()
    done = {cell.key for cell in planned if record_path(folder, cell).is_file()}
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
        # cells from different machines and versions may be mixed: say so
        words = ", ".join(f"{name} {value}" for name, value in run.record["environment"].items())
        made[words] = made.get(words, 0) + 1
    lines += [f"{number} runs made with {words}." for words, number in made.items()]
    return lines
