"""What a reader of the code can count on, and no linter looks at."""

from __future__ import annotations

import ast
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import monai_margincal

PACKAGE = Path(monai_margincal.__file__).parent
REPOSITORY = Path(__file__).parents[1]
#: what lies at the top, beside files that begin with a dot; what a run writes belongs into folders that git ignores
TOP_LEVEL = {"monai_margincal", "bundles", "tests", "docs", "pyproject.toml", "README.md"}
TOP_LEVEL |= {"LICENSE", "CHANGELOG.md", "CITATION.cff"}
MOST_POSITIONAL = 4
#: Calls that may have more, with the reason.
ALLOWED = {
    # columns of a table, one argument each
    "zip",
    # one argument per tensor that the backward pass needs
    "ctx.save_for_backward",
    # torch's own operators and autograd functions take everything by position
    "torch.ops.margincal.margin_calibration",
    "torch.ops.margincal.margin_overlap",
    "torch.ops.margincal.margin_overlap_backward",
    "TransformableLoss.apply",
    "TransformableGradient.apply",
    "_MarginCalibration.apply",
    "_MarginOverlap.apply",
}
#: Triton compiles functions that call each other with the addresses and sizes of everything they touch.
KERNELS = {
    "ops/triton_kernels.py",
    "ops/triton_launch.py",
    "ops/triton_overlap.py",
    "ops/triton_overlap_launch.py",
}


def long_calls(source: str) -> list[str]:
    """The calls of a source text that have more than four positional arguments; a starred one counts once."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return [ast.unparse(call.func) for call in calls if len(call.args) > MOST_POSITIONAL]


def test_the_check_itself():
    assert long_calls("f(1, 2, 3, 4, 5)\ng(1, 2, 3, 4, k=5)\nh(1, *a, 3, 4)\ni(j(1, 2, 3, 4, *a))") == ["f", "j"]


def test_no_call_has_more_than_four_positional_arguments():
    places = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        calls = [call for call in long_calls(path.read_text(encoding="utf-8")) if call not in ALLOWED]
        if name not in KERNELS and calls:
            places.append(f"{name}: {', '.join(calls)}")
    assert not places, "say the fifth and later arguments by name:\n" + "\n".join(places)


@pytest.mark.skipif(not (REPOSITORY / ".git").exists(), reason="not a clone: what is tracked cannot be told")
def test_nothing_strays_into_the_top_level():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    top = {name.split("/")[0] for name in listed.stdout.split("\0") if name}
    assert {name for name in top if not name.startswith(".")} == TOP_LEVEL


def test_no_module_name_exists_twice():
    """Except a package's ``__init__`` and the modules of verbs and sub-verbs, which are called as the user calls them."""
    verbs = {PACKAGE / "cli", PACKAGE / "cli" / "decide"}
    names = Counter(
        path.name for path in PACKAGE.rglob("*.py") if path.name != "__init__.py" and path.parent not in verbs
    )
    assert [name for name, number in names.items() if number > 1] == []
