"""The committed study: its pages, tables, runs and settings say the same."""

from __future__ import annotations

import csv
import itertools
import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from shared import SHARED, needs_shared

from monai_margincal.experiments import Study
from monai_margincal.experiments.conclusions import in_points
from monai_margincal.experiments.read_summaries import read_summaries
from monai_margincal.experiments.regret_report import write_regret_report

DOCS = Path(__file__).parents[2] / "docs"
STUDY = DOCS / "study"
NAMES = sorted(path.parent.name for path in STUDY.glob("*/results.csv"))
REGRET = STUDY / "regret" / "regret.md"
REGRET_OF_OFFSETS = STUDY / "regret" / "offsets" / "regret.md"
OFFSETS = sorted(STUDY.glob("*/offsets.csv"))
DATA = {
    "hippocampus": "hippocampus_mr",
    "rarity": "hippocampus_mr",
    "lung": "lung_ct",
    "nodules": "lidc_cubes",
    "retina": "idrid_lesions",
}
#: what the two pages of regret are made of
REGRET_OF = {
    REGRET: ["hippocampus/results.csv", "rarity/results.csv"],
    REGRET_OF_OFFSETS: ["hippocampus/offsets.csv", "rarity/offsets.csv", "nodules/results.csv", "retina/results.csv"],
}

_EXPERIMENTS = "monai_margincal.experiments"

#: how the committed runs were decided: by the threshold that was best on the validation cases, without a cross-fit
DECODERS_THEN = {
    "argmax": {"_target_": f"{_EXPERIMENTS}.ArgmaxDecoder"},
    "IoU threshold": {"_target_": f"{_EXPERIMENTS}.IoUThresholdDecoder"},
    "RankSEG": {"_target_": f"{_EXPERIMENTS}.RankSEGDecoder"},
}
#: studies that were decided as their settings say today
AS_TODAY = {"nodules", "retina"}
DECODERS_OF_LUNG = {**DECODERS_THEN, "IoU threshold": {**DECODERS_THEN["IoU threshold"], "largest": 8.0}}

#: a difference with its interval, as the tables and the pages write it
DIFFERENCE = re.compile(r"[+−]\d+\.\d\d \[[+−]\d+\.\d\d, [+−]\d+\.\d\d\]")


def runs_of(name: str) -> list[dict[str, str]]:
    with (STUDY / name / "results.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def settings_of(name: str) -> dict:
    return yaml.safe_load((STUDY / f"{name}.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", ["objectives.md", "study/README.md", "study/answers.md"])
def test_every_difference_on_a_page_stands_in_a_table(page: str) -> None:
    tables = "\n".join(
        path.read_text(encoding="utf-8") for path in [*STUDY.glob("*/tables.md"), REGRET, REGRET_OF_OFFSETS]
    )
    said = DIFFERENCE.findall((DOCS / page).read_text(encoding="utf-8"))
    assert said, "the page names no interval"
    assert not set(said) - set(DIFFERENCE.findall(tables))


@pytest.mark.parametrize("committed", REGRET_OF, ids=lambda path: path.parent.name)
def test_the_regret_is_that_of_the_runs(committed: Path, tmp_path: Path) -> None:
    write_regret_report([STUDY / name for name in REGRET_OF[committed]], tmp_path)
    assert committed.read_text(encoding="utf-8") == (tmp_path / "regret.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_labels_and_groups_of_the_runs_are_those_of_the_settings(name: str) -> None:
    objectives = settings_of(name)["objectives"]
    for run in runs_of(name):
        entry = objectives[run["objective"]]
        assert (run["label"], run["group"]) == (entry.get("label", run["objective"]), entry.get("group", "other"))


@pytest.mark.parametrize("name", NAMES)
def test_the_tables_are_the_means_of_the_runs(name: str) -> None:
    settings, runs = settings_of(name), runs_of(name)
    first = next(iter(settings["decoders"]))
    labels = {key: value.get("label", key) for key, value in settings["objectives"].items()}
    text = (STUDY / name / "tables.md").read_text(encoding="utf-8")
    checked = 0
    for part in re.split(r"\n(?=\*\*)", text):
        title = re.match(r"\*\*Comparison: (.*), (fine-tuned after cross-entropy|from scratch)\*\*", part)
        if not title:
            continue
        task = next(key for key, value in settings["tasks"].items() if value["title"] == title[1])
        protocol = "scratch" if title[2] == "from scratch" else "finetune"
        lines = [line.replace("**", "") for line in part.splitlines() if line[:2] == "| "]
        rows = {line.split(" | ")[0].lstrip("| "): line.split(" | ") for line in lines}
        for objective in dict.fromkeys(r["objective"] for r in runs if (r["task"], r["protocol"]) == (task, protocol)):
            scores = [
                float(r["miou"])
                for r in runs
                if (r["task"], r["protocol"], r["objective"], r["decoder"]) == (task, protocol, objective, first)
            ]
            row = rows[labels[objective]]
            assert int(row[1]) == len(scores)
            assert float(row[2].split(" ")[0]) == pytest.approx(100 * np.mean(scores), abs=0.0051)
            checked += 1
    assert checked == len({(r["task"], r["protocol"], r["objective"]) for r in runs})


@pytest.mark.parametrize("name", NAMES)
def test_the_paired_differences_are_those_of_the_tables_and_the_runs(name: str) -> None:
    """Of both, as the intervals need the test cases, which are not committed."""
    study = Study.from_file(STUDY / f"{name}.yaml")
    text = (STUDY / name / "tables.md").read_text(encoding="utf-8")
    in_tables = set(DIFFERENCE.findall(text))
    for summary in read_summaries(study, STUDY / name):
        if summary.comparison is None or summary.decoder != "argmax":
            continue
        assert in_points(summary.comparison.difference, summary.comparison.low, summary.comparison.high) in in_tables
        reference = {
            int(run["seed"]): float(run["miou"])
            for run in runs_of(name)
            if (run["task"], run["protocol"], run["decoder"]) == (summary.task, summary.protocol, "argmax")
            and run["objective"] == summary.baseline
        }
        paired = [
            score - reference[seed]
            for seed, score in zip(summary.seeds, summary.miou, strict=True)
            if seed in reference
        ]
        assert summary.comparison.difference == pytest.approx(np.mean(paired), abs=6e-5)


@needs_shared
@pytest.mark.parametrize("name", NAMES)
def test_the_runs_are_those_of_the_settings_and_the_data(name: str) -> None:
    """A fingerprint holds settings and data: whoever reruns a cell trains this one again, and decides it as we do today."""
    then = {"data_root": str(SHARED / "data" / DATA[name])}
    if name not in AS_TODAY:
        then["decoders"] = DECODERS_OF_LUNG if name == "lung" else DECODERS_THEN
    study = Study.from_file(STUDY / f"{name}.yaml", then)
    planned = {cell.key: (cell.task, cell.protocol, cell.objective, str(cell.seed)) for cell in study.cells()}
    for run in runs_of(name):
        # the folds of a run are cells of their own
        for cell in run["cell"].split("+"):
            assert planned[cell] == (run["task"], run["protocol"], run["objective"], run["seed"])


@needs_shared
@pytest.mark.parametrize("name", [path.parent.name for path in OFFSETS])
def test_runs_with_the_products_offsets_are_those_of_todays_settings(name: str) -> None:
    study = Study.from_file(STUDY / f"{name}.yaml", {"data_root": str(SHARED / "data" / DATA[name])})
    planned = {cell.key: cell.name for cell in study.cells()}
    with (STUDY / name / "offsets.csv").open(encoding="utf-8", newline="") as file:
        runs = list(csv.DictReader(file))
    assert {run["decoder"] for run in runs} == {"argmax", "offsets", "RankSEG"}
    for run in runs:
        assert planned[run["cell"]] == "/".join(run[key] for key in ("task", "protocol", "objective", "seed"))


def test_the_table_of_the_products_offsets_is_the_mean_of_its_runs() -> None:
    page = (STUDY / "README.md").read_text(encoding="utf-8")
    lines = page[page.index("| mIoU, argmax → offsets, RankSEG |") :].splitlines()
    names = {
        "S40": "slices-40",
        "S160": "slices-160",
        "V40": "volumes-40",
        "R2": "depth-2",
        "R3": "depth-3",
        "R4": "depth-4",
    }
    tasks = [names[word.strip()] for word in lines[0].strip("| ").split("|")[1:]]
    runs = [run for path in OFFSETS for run in csv.DictReader(path.read_text(encoding="utf-8").splitlines())]
    shown = 0
    for line in itertools.takewhile(lambda text: text.startswith("|"), lines[2:]):
        name, *cells = (cell.strip() for cell in line.strip("| ").split(" | "))
        for task, cell in zip(tasks, cells, strict=True):
            scores = {decoder: [] for decoder in ("argmax", "offsets", "RankSEG")}
            for run in runs:
                if run["task"] == task and run["label"] == name.removesuffix(" (seed 0)"):
                    scores[run["decoder"]].append(100 * float(run["miou"]))
            assert {len(found) for found in scores.values()} == {1 if "seed 0" in name else 2}
            assert [float(word) for word in re.split(" → |, ", cell)] == pytest.approx(
                [np.mean(found) for found in scores.values()], abs=0.0051
            )
            shown += 6 if "seed 0" not in name else 3
    assert shown == len(runs)


def test_what_is_said_of_the_kept_offsets_is_what_the_runs_say() -> None:
    changes = []
    for path in OFFSETS:
        scores: dict[tuple[str, ...], dict[str, float]] = {}
        for run in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
            key = tuple(run[column] for column in ("task", "objective", "seed"))
            scores.setdefault(key, {})[run["decoder"]] = 100 * float(run["miou"])
        changes += [one["offsets"] - one["argmax"] for one in scores.values()]
    kept = [change for change in changes if change]
    won = [change for change in kept if change > 0]
    page = (STUDY / "README.md").read_text(encoding="utf-8")
    assert f"Offsets were kept in {len(kept)} of {len(changes)} runs." in page
    assert f"{len(won)} of the {len(kept)} win, up to {max(won):.1f} points" in page
    assert f"one costs {-min(kept):.2f}." in page


def test_no_run_of_the_natural_tasks_loses_by_the_offsets() -> None:
    scores: dict[tuple[str, ...], dict[str, float]] = {}
    for name in ("nodules", "retina"):
        for run in runs_of(name):
            key = tuple(run[column] for column in ("task", "objective", "seed"))
            scores.setdefault(key, {})[run["decoder"]] = 100 * float(run["miou"])
    kept = [gain for one in scores.values() if (gain := one["offsets"] - one["argmax"])]
    page = " ".join((DOCS / "objectives.md").read_text(encoding="utf-8").split())
    assert f"In the natural tasks it kept offsets in {len(kept)} of {len(scores)} runs" in page
    assert f"all of them won, up to {max(kept):.1f} points" in page
    assert min(kept) > 0
