"""Every block of code on the pages for beginners runs as it stands; only the reader's own files are put in place before it."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from monai.bundle import ConfigParser

from monai_margincal.cli import main
from monai_margincal.metrics import DatasetIoUHandler
from monai_margincal.samples import sample_dir

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(
    [*(path for folder in ("start", "howto") for path in (DOCS / folder).glob("*.md")), DOCS / "objectives.md"]
)
#: run by tests/clients in an environment that has the program, and by torchrun below
ELSEWHERE = {"lightning", "nnunet", "several_gpus"}
LUNG = Path(sample_dir("lung_ct"))


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def _files(*cases: str) -> list[dict[str, str]]:
    return [{kind[:-1]: str(LUNG / kind / f"{case}.nii.gz") for kind in ("images", "labels")} for case in cases]


def _patches() -> Callable[..., Any]:
    from monai.transforms import Compose, EnsureChannelFirstd, LoadImaged, RandCropByPosNegLabeld

    crop = RandCropByPosNegLabeld("label", "label", spatial_size=(32, 32, 8), num_samples=4)
    return Compose([LoadImaged("label"), EnsureChannelFirstd("label"), crop])


#: what the reader has: names in the page's code
READERS_OWN: dict[str, Callable[[], dict[str, Any]]] = {
    "script": lambda: {"train_files": _files("lung2"), "val_files": _files("lung1", "lung2"), "epochs": 1},
    "auto3dseg": lambda: {"train_files": _files("lung2")},
    "patches": lambda: {"train_files": _files("lung2"), "train_transforms": _patches()},
    "objectives": lambda: {
        "train_files": _files("lung2"),
        "train": lambda loss: loss,
        "validation_cases": _validation_cases,
    },
    "decision": lambda: {"val_files": _files("lung1", "lung2"), "network": _network()},
}


def _validation_cases(network: Any) -> list[Any]:
    """Logits that a trained network might give, and their labels."""
    import torch

    labels = (torch.rand(3, 1, 8, 8, 8, generator=torch.Generator().manual_seed(0)) < 0.1).long()
    return [(torch.cat([1 - case, case - 0.5]).float(), case) for case in labels]


def _network() -> Any:
    """A convolution, which nobody has trained."""
    import torch

    torch.manual_seed(0)
    return torch.nn.Conv3d(1, 2, 1)


def _save_logits(folder: Path) -> None:
    """What the commands of the page about decisions start from: weights, and the logits that they gave."""
    import numpy as np
    import torch

    network = _network()
    torch.save(network.state_dict(), folder / "model.pt")
    (folder / "logits").mkdir()
    for case in ("lung1", "lung2"):
        image = torch.randn(1, 192, 192, 24, generator=torch.Generator().manual_seed(0))
        with torch.no_grad():
            np.save(folder / "logits" / f"{case}.npy", network(image).numpy())


def _own_data(folder: Path) -> None:
    """A few scans with labels, as a folder of the reader's."""
    nodules = Path(sample_dir("lidc_nodules"))
    for kind in ("images", "labels"):
        (folder / "my_data" / kind).mkdir(parents=True)
        for file in sorted((nodules / kind).glob("*.nii.gz"))[:5]:
            shutil.copy(file, folder / "my_data" / kind)


#: files of the reader beside labels
READERS_FILES: dict[str, Callable[[Path], None]] = {"decision": _save_logits, "compare": _own_data}


@pytest.fixture
def in_labels_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(LUNG / "labels", tmp_path / "labels")
    scans = [f"P{patient}_{side}" for patient in range(5) for side in ("left", "right")]
    for kind in ("images", "labels"):
        (tmp_path / "DATA" / kind).mkdir(parents=True)
        for scan in scans:
            (tmp_path / "DATA" / kind / f"{scan}.nii.gz").touch()
    rows = [f"{scan},50,{scan[:2]}" for scan in scans]
    (tmp_path / "DATA" / "cases.csv").write_text("\n".join(["case,age,patient_id", *rows]))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if blocks(page, "python") and page.stem not in ELSEWHERE],
    ids=lambda page: page.stem,
)
def test_python_runs(page: Path, in_labels_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = READERS_OWN.get(page.stem, dict)()
    for code in blocks(page, "python"):
        exec(compile(code, page.name, "exec"), names)
        # what a line prints stands behind it, where the page says so
        expected = re.findall(r"^print\(.*\)  # ([\w.]+)$", code, flags=re.MULTILINE)
        found = capsys.readouterr().out
        for text in expected:
            assert text in found.replace("tensor(", "").replace(".)", ""), code


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "bash")], ids=lambda page: page.stem)
def test_commands_run(page: Path, in_labels_folder: Path) -> None:
    commands = [line for block in blocks(page, "bash") for line in block.strip().splitlines()]
    READERS_FILES.get(page.stem, lambda folder: None)(in_labels_folder)
    own = [shlex.split(line)[1:] for line in commands if line.startswith("margincal ")]
    for words in own:
        assert main(words) == 0, words
    assert len(own) == len(commands) or page.stem == "bundle"


def test_the_bundle_of_the_page_has_the_loss_and_the_metric(tmp_path: Path) -> None:
    config: dict[str, Any] = {"output_dir": str(tmp_path), "train": {"dataset": {"data": _files("lung1", "lung2")}}}
    for block in blocks(DOCS / "start" / "bundle.md", "json"):
        config.update({key.replace("#", "_"): value for key, value in json.loads(block).items()})
    parser = ConfigParser(config)
    loss = parser.get_parsed_content("loss")
    assert type(loss).__name__ == "MarginCalibrationTverskyLoss"
    assert parser.get_parsed_content("class_counts").counts.tolist() == [2 * 192 * 192 * 24 - 837 - 24644, 837 + 24644]
    assert isinstance(parser.get_parsed_content("validate_key_metric")["val_iou"], DatasetIoUHandler)


def test_scans_of_the_table_are_found(tmp_path: Path) -> None:
    """Each row of the page's table names keys that the inference has; the patterns fit the layouts that it says."""
    from monai_margincal.datasets import folder_datalist

    page = (DOCS / "start" / "segment.md").read_text(encoding="utf-8")
    patterns = re.findall(r'--image_pattern "([^"]+)"', page)
    assert patterns == ["{case}.*", "{case}"]
    shutil.copy(LUNG / "images" / "lung1.nii.gz", tmp_path / "NAME.nii.gz")
    (tmp_path / "series").mkdir()
    assert [item["case"] for item in folder_datalist(tmp_path, patterns[0], None)] == ["NAME"]
    assert [item["case"] for item in folder_datalist(tmp_path, patterns[1], None)] == ["series"]


@pytest.mark.parametrize("page", sorted(ELSEWHERE))
def test_what_code_for_other_programs_imports_from_here_is_there(page: str) -> None:
    found = 0
    for code in blocks(DOCS / "howto" / f"{page}.md", "python"):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "monai_margincal":
                for alias in node.names:
                    assert hasattr(import_module(node.module or ""), alias.name), alias.name
                    found += 1
    assert found


@pytest.mark.slow
def test_the_script_for_several_processes_runs(tmp_path: Path) -> None:
    (code,) = blocks(DOCS / "howto" / "several_gpus.md", "python")
    (tmp_path / "train.py").write_text(code, encoding="utf-8")
    line = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "train.py"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(DOCS.parent)}
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    said = sorted(re.findall(r"rank (\d): counts (\[\d+, \d+\])", done.stdout))
    assert [rank for rank, _ in said] == ["0", "1"]
    assert len({counts for _, counts in said}) == 1
    assert sum(json.loads(said[0][1])) == 8 * 16 * 16


def test_the_loss_of_an_algorithm_of_auto3dseg_is_wrapped_for_deep_supervision(in_labels_folder: Path) -> None:
    import torch
    import yaml
    from monai.losses import DeepSupervisionLoss

    assert main(["count", "labels/*.nii.gz", "--num-classes", "2", "--output", "counts.json"]) == 0
    (entry,) = blocks(DOCS / "howto" / "auto3dseg.md", "yaml")
    loss = DeepSupervisionLoss(ConfigParser(yaml.safe_load(entry)).get_parsed_content("loss"))
    outputs = [torch.randn(1, 2, size, size, size, requires_grad=True) for size in (8, 4)]
    loss(outputs, torch.randint(0, 2, (1, 1, 8, 8, 8)).float()).backward()
    assert all(output.grad is not None and output.grad.abs().sum() > 0 for output in outputs)
