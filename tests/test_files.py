"""Nothing half written, whatever happens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from monai_margincal.files import replacing, write_text


def test_an_error_leaves_the_old_file_and_no_rest(tmp_path):
    target = tmp_path / "a.nii.gz"
    target.write_text("old")

    def write_and_fail():
        with replacing(target) as beside:
            beside.write_text("half")
            raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        write_and_fail()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_the_temporary_name_keeps_the_suffixes(tmp_path):
    with replacing(tmp_path / "scan.nii.gz") as beside:
        assert beside.name.endswith(".nii.gz")
        assert beside.parent == tmp_path


def test_mode_follows_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "a.txt", "x")
    finally:
        os.umask(before)
    assert (tmp_path / "a.txt").stat().st_mode & 0o777 == 0o640


def test_a_killed_writer_leaves_the_old_file(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    code = (
        "import os, signal, sys; from monai_margincal.files import replacing\n"
        "with replacing(sys.argv[1]) as beside:\n"
        "    beside.write_text('half'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(target)], check=False).returncode == -signal.SIGKILL
    assert target.read_text() == "old"
