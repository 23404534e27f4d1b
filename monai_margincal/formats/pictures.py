"""Pictures that are images but no labels: compression or colours change their values."""

from __future__ import annotations

from .format import Format

FORMAT = Format((".jpg", ".jpeg", ".bmp", ".tif", ".tiff"), describe=None, is_picture=True)
