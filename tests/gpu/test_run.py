"""The shell script: search path, wheels that it carries along, exit status."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

RUN = Path(__file__).with_name("run")
PROGRAM = """
import importlib.util, sys
import monai_margincal
carried = importlib.util.find_spec("carried")
print(monai_margincal.__file__, carried and carried.origin, sys.argv[1:])
sys.exit(7)
"""


@pytest.fixture
def root(tmp_path):
    """A project that has the script, and in place of what it runs a program that tells what it sees."""
    for name, text in {"tests/gpu/conduct.py": PROGRAM, "monai_margincal/__init__.py": ""}.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    shutil.copy(RUN, tmp_path / "tests" / "gpu" / "run")
    return tmp_path


def wheel(folder: Path, tag: str) -> None:
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / f"carried-1.0-{tag}.whl", "w") as file:
        file.writestr("carried.py", "")
        file.writestr("carried-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: carried\nVersion: 1.0\n")
        file.writestr("carried-1.0.dist-info/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n")
        file.writestr("carried-1.0.dist-info/RECORD", "")


def started(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHON": sys.executable, "TMPDIR": str(root)}
    command = [str(root / "tests" / "gpu" / "run"), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd="/")


def test_the_clone_is_what_runs(root):
    done = started(root, "--small", "loss")
    assert done.stdout.split() == [str(root / "monai_margincal" / "__init__.py"), "None", "['--small',", "'loss']"]
    assert done.returncode == 7


def test_wheels_are_there_for_this_run_alone(root):
    wheel(root / ".wheels", "py3-none-any")
    done = started(root)
    assert done.returncode == 7, done.stderr
    place = Path(done.stdout.split()[1])
    assert place.name == "carried.py"
    assert root in place.parents
    assert not place.parent.exists()


def test_wheels_of_another_python(root):
    wheel(root / ".wheels", "cp27-cp27m-win32")
    done = started(root)
    assert done.returncode == 1
    assert f"the wheels of {root}/.wheels do not suit Python 3" in done.stderr
    assert done.stdout == ""
