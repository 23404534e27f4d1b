"""Packages that only some features need: imported where they are used, and named along with their extra if they are missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["install_command", "require"]


def require(module: str, *, extra: str, purpose: str) -> Any:
    """Import a package that is not among the hard dependencies.

    Args:
        module: what to import, such as ``"highdicom"`` or ``"scipy.ndimage"``.
        extra: the extra of this package that brings it, see ``pyproject.toml``.
        purpose: what needs it, as the subject of a sentence.

    Returns:
        the module.

    Raises:
        ImportError: it is not installed, or cannot be imported for some other reason; the message says how to install it.

    Example:
        >>> require("json", extra="dicom", purpose="this example").dumps([1])
        '[1]'
        >>> require("no_such_package", extra="dicom", purpose="writing DICOM SEG")
        Traceback (most recent call last):
        ImportError: writing DICOM SEG needs no_such_package, which is not installed: pip install "monai-margincal[dicom]"
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        absent = isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == package
        reason = "is not installed" if absent else f"cannot be imported ({error})"
        raise ImportError(
            f"{purpose} needs {package}, which {reason}: {install_command(extra)}", name=module
        ) from error


def install_command(extra: str) -> str:
    """How to install an extra of this package.

    Example:
        >>> install_command("dicom")
        'pip install "monai-margincal[dicom]"'
    """
    return f'pip install "monai-margincal[{extra}]"'
