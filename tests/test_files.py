"""Nothing half written, whatever happens."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from monai_margincal.files import expect_writable, locked, printable, replacing, write_text


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


def test_many_that_add_to_one_file_lose_nothing(tmp_path):
    """Threads open the lock as processes do; each reads, waits and writes back."""
    target = tmp_path / "new" / "sum.txt"

    def add():
        for _ in range(20):
            with locked(target):
                before = int(target.read_text()) if target.exists() else 0
                time.sleep(0.001)
                write_text(target, str(before + 1))

    threads = [threading.Thread(target=add) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert target.read_text() == "120"
    assert list(target.parent.iterdir()) == [target]


def test_a_lock_that_is_never_given_back_is_an_error_and_names_the_file(tmp_path):
    target = tmp_path / "a.csv"
    with (
        locked(target),
        pytest.raises(TimeoutError, match=r"a\.csv: found it locked by another process for 0 s, expected"),
        locked(target, patience=0.05),
    ):
        pass
    with locked(target, patience=0.05):
        pass


def test_a_process_that_died_holds_no_lock(tmp_path):
    target = tmp_path / "a.csv"
    code = (
        "import os, signal, sys; from monai_margincal.files import locked\n"
        "with locked(sys.argv[1]):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(target)], check=False).returncode == -signal.SIGKILL
    with locked(target, patience=0.05):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "shown"),
    [(b"L\xe4sion", "L\\xe4sion"), ("Läsion".encode(), "Läsion"), (b"a\xff\xfeb", "a\\xff\\xfeb")],
)
def test_names_that_are_no_utf8_can_be_written(tmp_path, name, shown):
    write_text(tmp_path / "a.csv", os.fsdecode(name))
    assert (tmp_path / "a.csv").read_text(encoding="utf-8") == shown
    assert printable("\ud800x") == "\\ud800x", "half a character from elsewhere"


def test_a_link_stays_one_and_its_file_is_replaced(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link.txt").symlink_to(tmp_path / "real" / "a.txt")
    for text in ("old", "new"):
        write_text(tmp_path / "link.txt", text)
        assert (tmp_path / "link.txt").is_symlink()
        assert (tmp_path / "real" / "a.txt").read_text() == text
    assert [path.name for path in (tmp_path / "real").iterdir()] == ["a.txt"]


def test_a_name_that_fills_what_a_file_system_takes(tmp_path):
    for name in ("x" * 251 + ".txt", "1.2.840." * 30 + "nii.gz", "ä" * 120 + ".json"):
        write_text(tmp_path / name, "whole")
        assert (tmp_path / name).read_text() == "whole"


def test_bytes_of_a_name_in_another_encoding_can_be_written(tmp_path):
    write_text(tmp_path / "a.html", os.fsdecode(b"L\xf6sung.nii"))
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == "L\\xf6sung.nii"


@pytest.mark.parametrize("write", [expect_writable, lambda path: write_text(path, "x")], ids=["before", "after"])
def test_what_cannot_be_written_is_named(tmp_path, write):
    (tmp_path / "note").write_text("mine")
    with pytest.raises(NotADirectoryError, match=r"note/a\.json: cannot be written: "):
        write(tmp_path / "note" / "a.json")
    with pytest.raises(IsADirectoryError, match="found a folder, expected a file"):
        write(tmp_path)
    with pytest.raises(OSError, match=r"^/proc/a\.json: cannot be written: "):
        write("/proc/a.json")
    with pytest.raises(OSError, match=r"^/dev/fd/987: cannot be written: Bad file descriptor"):
        write("/dev/fd/987")


def test_looking_leaves_nothing(tmp_path):
    expect_writable(tmp_path / "new" / "folder" / "a.json")
    assert list(tmp_path.iterdir()) == []


def test_an_error_about_another_file_keeps_its_own_name(tmp_path):
    def read_another():
        with replacing(tmp_path / "a.json"):
            (tmp_path / "source").read_text()

    with pytest.raises(FileNotFoundError, match=r"source'$"):
        read_another()


def test_a_full_disk_is_named(tmp_path):
    def fill():
        with replacing(tmp_path / "a.json"):
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match=r"a\.json: cannot be written: No space left on device") as raised:
        fill()
    assert raised.value.errno == errno.ENOSPC
    assert list(tmp_path.iterdir()) == []
