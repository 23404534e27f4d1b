"""Arrays that NumPy saved: MONAI reads them as images; as labels they say nothing of spacing or orientation."""

from __future__ import annotations

from .format import Format

FORMAT = Format((".npy", ".npz"), describe=None)
