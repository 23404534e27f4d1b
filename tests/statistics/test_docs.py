"""The page on label statistics answers what is asked again and again, in few lines that run."""

from __future__ import annotations

import re
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
import torch

PAGE = (Path(__file__).parents[2] / "docs" / "statistics.md").read_text(encoding="utf-8")


@pytest.fixture
def datalist(tmp_path: Path) -> list[dict[str, str]]:
    items = []
    for case, (size, thickness) in enumerate([(6, 2.0), (8, 3.0), (9, 5.0)]):
        label = np.random.default_rng(case).choice(3, (size, 7, 5), p=(0.8, 0.15, 0.05)).astype(np.uint8)
        nib.save(nib.Nifti1Image(label, np.diag([-0.7, 0.7, thickness, 1.0])), tmp_path / f"{case}.nii.gz")
        items.append({"label": str(tmp_path / f"{case}.nii.gz")})
    return items


def test_how_to_choose_weights_and_spacing_takes_ten_lines(datalist: list[dict[str, str]]) -> None:
    """Project-MONAI/tutorials#298, MIC-DKFZ/nnUNet#2008, #1274; mlcommons/GaNDLF#956 (median spacing and size)."""
    section = PAGE.split("## Which weights, which spacing?")[1].split("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
    assert len([line for line in code.splitlines() if line]) <= 10
    names = {"datalist": datalist}
    exec(code, names)
    assert names["pixdim"] == pytest.approx([0.7, 0.7, 3.0])
    assert names["size"] == [8, 7, 5]
    assert names["weight"].argmax() == 2, "the rarest class weighs most"
    logits = torch.randn(1, 3, 4, 4, requires_grad=True)
    names["loss_function"](logits, torch.randint(0, 3, (1, 1, 4, 4))).backward()
    assert logits.grad.abs().sum() > 0


def test_every_example_of_the_page_runs(datalist: list[dict[str, str]], tmp_path: Path, monkeypatch) -> None:
    from monai.transforms import Compose, EnsureChannelFirstd, LoadImaged

    monkeypatch.chdir(tmp_path)
    (tmp_path / "labels").mkdir()
    for item in datalist:
        (tmp_path / "labels" / Path(item["label"]).name).write_bytes(Path(item["label"]).read_bytes())
    names = {"datalist": datalist, "train_transforms": Compose([LoadImaged("label"), EnsureChannelFirstd("label")])}
    blocks = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    assert len(blocks) >= 4
    for code in blocks:
        exec(code, names)
    assert (tmp_path / "report.html").is_file()
