"""The notebooks run as they stand, on data that comes with the package; the site shows what is kept in them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS))
from _site.notebooks import NOTEBOOKS, page_of_notebook, run_notebook  # noqa: E402

ALL = sorted(NOTEBOOKS.glob("*.ipynb"))


def printed(notebook: Any) -> str:
    """All that the cells have printed."""
    outputs = [output for cell in notebook["cells"] if cell["cell_type"] == "code" for output in cell["outputs"]]
    return "\n".join("".join(output.get("text", "")) for output in outputs)


def kept(name: str) -> Any:
    return json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_the_statistics_of_labels_are_those_that_are_kept(tmp_path: Path) -> None:
    """Counting is exact, so that every number is the same again."""
    ran = run_notebook(NOTEBOOKS / "label_statistics.ipynb", tmp_path)
    assert printed(ran) == printed(kept("label_statistics"))
    assert (tmp_path / "report.html").is_file()


@pytest.mark.slow
def test_the_pipeline_of_the_tutorial_learns(tmp_path: Path) -> None:
    said = printed(run_notebook(NOTEBOOKS / "spleen_tutorial.ipynb", tmp_path))
    losses = [float(value) for value in re.findall(r"average loss ([\d.]+)", said)]
    assert losses[-1] < 0.7 * losses[0]
    (iou,) = re.findall(r"IoU of all their voxels ([\d.]+)", said)
    assert float(iou) > 0.35


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_what_is_kept_is_whole_and_names_no_machine(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert any("image/png" in output.get("data", {}) for cell in code for output in cell["outputs"])
    assert not re.search(r"/(home|root|work|tmp)/", path.read_text(encoding="utf-8"))
    assert path.stat().st_size < 500_000


def test_a_notebook_becomes_a_page(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "\n", "text"]},
        {
            "cell_type": "code",
            "source": ["print(1)"],
            "outputs": [
                {"output_type": "stream", "name": "stdout", "text": ["1\n"]},
                {"output_type": "display_data", "data": {"image/png": "cGljdHVyZQ==", "text/plain": ["<Figure>"]}},
            ],
        },
    ]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}))
    page, pictures = page_of_notebook(tmp_path / "a.ipynb")
    assert pictures == {"a_1.png": b"picture"}
    assert page.startswith("# Title\n\ntext\n\n{download}`This page as a notebook <../../notebooks/a.ipynb>`")
    assert page.endswith("```python\nprint(1)\n```\n\n```text\n1\n```\n\n![What the code above draws](a_1.png)\n")
