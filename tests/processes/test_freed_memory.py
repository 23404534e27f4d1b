"""Keeping freed memory: whether the pages of a block are fetched from the system again, counted by the system."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from monai_margincal.processes import freed_memory

glibc_only = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no such setting")

#: prints whether memory is kept, and the page faults of ten blocks of 64 MiB; the blocks before let the heap settle
FAULTS = """
import resource, sys
import torch
from monai_margincal.processes.freed_memory import keep_freed_memory

kept = keep_freed_memory() if sys.argv[1] == "keep" else False

def fill():
    torch.full((1 << 24,), 1.0)

for _ in range(40):
    fill()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    fill()
print(kept, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def kept_and_faults(choice: str, **variables: str) -> tuple[bool, int]:
    environment = {
        name: value for name, value in os.environ.items() if "MALLOC" not in name and name != "GLIBC_TUNABLES"
    }
    command = [sys.executable, "-c", FAULTS, choice]
    done = subprocess.run(command, env={**environment, **variables}, capture_output=True, text=True, check=True)
    kept, faults = done.stdout.split()
    return kept == "True", int(faults)


@glibc_only
def test_a_block_is_fetched_from_the_system_once() -> None:
    _, fetched_every_time = kept_and_faults("leave")
    kept, fetched = kept_and_faults("keep")
    assert kept
    # at least a fault for every 2 MiB, also where pages are huge; usually one for every 4 KiB
    assert fetched_every_time >= 10 * 32
    assert fetched < fetched_every_time / 20


@glibc_only
@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("MALLOC_TRIM_THRESHOLD_", "131072"),
        ("MALLOC_MMAP_THRESHOLD_", "131072"),
        ("MALLOC_MMAP_MAX_", "65536"),
        ("MALLOC_TOP_PAD_", "0"),
        ("GLIBC_TUNABLES", "glibc.malloc.trim_threshold=131072"),
    ],
)
def test_what_the_user_chose_stays(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    monkeypatch.setenv(variable, value)
    monkeypatch.setattr(freed_memory.ctypes, "CDLL", lambda name: pytest.fail("asked the C library"))
    assert not freed_memory.keep_freed_memory()


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    monkeypatch.setattr(freed_memory.ctypes, "CDLL", lambda name: pytest.fail("asked the C library"))
    assert not freed_memory.keep_freed_memory()
