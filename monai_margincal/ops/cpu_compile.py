"""The compiled kernels for the CPU: ``cpu_kernels.c``, built with the machine's own compiler when they are first used.

Nothing depends on them. Where there is no compiler, or no folder to keep what it makes, the blockwise computation does the
work. The library is kept in ``$XDG_CACHE_HOME/monai_margincal`` (``~/.cache/monai_margincal``), under a name that tells source,
command, compiler and processor apart, so that machines with one home folder do not take each other's.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
from pathlib import Path

from ..files import replacing

__all__ = ["compiled_library"]

_SOURCE = Path(__file__).with_name("cpu_kernels.c")
#: NaN stays NaN, but no operation may trap or set errno: only so do the loops become vector instructions
_FLAGS = ("-O3", "-fno-math-errno", "-fno-trapping-math", "-fopenmp-simd", "-shared", "-fPIC")
_OF_THIS_MACHINE = {
    "x86_64": ("-march=native", "-mprefer-vector-width=512"),
    "arm64": ("-mcpu=native",),
    "aarch64": ("-mcpu=native",),
}
_LONGEST_BUILD = 120  # seconds


@functools.cache
def compiled_library() -> ctypes.CDLL | None:
    """The library, built if need be; None where that is not possible."""
    compiler = shutil.which(os.environ.get("CC") or "cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or os.name != "posix":
        return None
    command = [compiler, *_FLAGS, *_OF_THIS_MACHINE.get(platform.machine(), ()), str(_SOURCE)]
    try:
        path = _folder() / f"cpu_kernels-{_fingerprint(command)}.so"
        if not path.exists():
            _build(command, path)
        library = ctypes.CDLL(str(path))
    except (OSError, subprocess.SubprocessError):
        return None
    library.margincal_chunks.restype = None
    return library


def _folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(base) if base else Path.home() / ".cache") / "monai_margincal"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _fingerprint(command: list[str]) -> str:
    version = subprocess.run([command[0], "--version"], capture_output=True, check=True, timeout=_LONGEST_BUILD).stdout
    parts = [_SOURCE.read_bytes(), repr(command[:-1]).encode(), version, _processor().encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:20]


def _processor() -> str:
    """What the processor can do; code made for one need not run on another."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8", errors="replace").splitlines() if info.exists() else []
    kept = sorted({line for line in lines if line.lower().startswith(("model name", "flags", "features", "cpu part"))})
    return "\n".join([platform.machine(), platform.processor(), *kept])


def _build(command: list[str], path: Path) -> None:
    with replacing(path) as beside:
        subprocess.run([*command, "-o", str(beside)], capture_output=True, check=True, timeout=_LONGEST_BUILD)
