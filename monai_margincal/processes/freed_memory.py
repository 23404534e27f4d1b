"""Keep what this process frees: a network on a CPU asks for the same memory in every step."""

from __future__ import annotations

import ctypes
import os
import platform

__all__ = ["keep_freed_memory"]

# the numbers of glibc's malloc.h
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3

#: bytes; the activations of a few planes of 512 x 512 are below, whole scans above
_LARGEST_KEPT = 1 << 28
#: bytes that may lie free at the end of the heap; `mallopt` takes no more
_MOST_KEPT = (1 << 31) - 1


def keep_freed_memory() -> bool:
    """Let the C library keep memory that this process frees for its next request, instead of returning it to the system.

    PyTorch takes CPU memory from the C library. glibc returns blocks of more than 32 MiB, and what is free at the end of the
    heap, at once; the next window of an inference fetches them again, page by page, in the kernel, which can take as long as the
    arithmetic (``docs/benchmarks/inference.md``). Kept are blocks of up to 256 MiB, and up to 2 GiB at the end of the heap; the
    whole scan, which is larger, still goes back when it is freed. It holds for the whole process, until its end: meant for
    programs of our own, and not for a host application.

    Returns:
        whether memory is kept from now on: not with another C library than glibc, and not where the environment says already
        how memory is to be handled (``GLIBC_TUNABLES`` with ``glibc.malloc``, ``MALLOC_TRIM_THRESHOLD_``,
        ``MALLOC_MMAP_THRESHOLD_``, ``MALLOC_MMAP_MAX_``, ``MALLOC_TOP_PAD_``).
    """
    if platform.libc_ver()[0] != "glibc" or _is_chosen_already():
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return bool(mallopt(_M_MMAP_THRESHOLD, _LARGEST_KEPT)) and bool(mallopt(_M_TRIM_THRESHOLD, _MOST_KEPT))


def _is_chosen_already() -> bool:
    names = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_MMAP_MAX_", "MALLOC_TOP_PAD_")
    return any(name in os.environ for name in names) or "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", "")
