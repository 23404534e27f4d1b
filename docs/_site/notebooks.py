"""Notebooks: run them and keep what they print, and show them as pages of the site.

`python docs/_site/notebooks.py` runs all of `docs/notebooks` again. The site shows what is kept in them and needs no Jupyter.
"""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"

#: text beyond this is no reading matter on a page
_LONGEST = 3000


def run_notebook(path: Path, folder: Path, timeout: int = 540) -> Any:
    """Run every cell, in a folder that takes what they write.

    Args:
        path: the notebook.
        folder: working folder of its code.
        timeout: seconds for one cell.

    Returns:
        the notebook with its outputs, without anything that differs between two runs of the same code.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell failed.
    """
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook, timeout=timeout, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            # a warning names paths of this machine
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def page_of_notebook(path: Path) -> tuple[str, dict[str, bytes]]:
    """A notebook as a page: its text, its code, what it printed.

    Args:
        path: the notebook, with outputs.

    Returns:
        the page in Markdown, with links as they lead from the notebook, and the pictures on it by file name.
    """
    pictures: dict[str, bytes] = {}
    parts: list[str] = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for kind, content in _outputs(cell):
            if kind == "text":
                parts.append(f"```text\n{content.strip()[:_LONGEST]}\n```")
            else:
                name = f"{path.stem}_{len(pictures) + 1}.png"
                pictures[name] = base64.b64decode(content)
                parts.append(f"![What the code above draws]({name})")
    title, *rest = parts
    download = f"{{download}}`This page as a notebook <../../notebooks/{path.name}>`, to run and to change."
    return "\n\n".join([title, download, *rest]) + "\n", pictures


def _outputs(cell: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for output in cell["outputs"]:
        if output["output_type"] == "stream":
            yield "text", "".join(output["text"])
        elif "image/png" in output.get("data", {}):
            yield "picture", "".join(output["data"]["image/png"])
        elif "text/plain" in output.get("data", {}):
            yield "text", "".join(output["data"]["text/plain"])


if __name__ == "__main__":
    import nbformat

    for notebook in sorted(NOTEBOOKS.glob("*.ipynb")):
        with tempfile.TemporaryDirectory() as scratch:
            ran = run_notebook(notebook, Path(scratch))
        nbformat.write(ran, notebook)
