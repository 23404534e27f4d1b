"""A page in Chromium, without the network: as a picture, and on a telephone."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

_CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

needs_browser = pytest.mark.skipif(_CHROMIUM is None, reason="no Chromium on this machine")


def _run(page: Path, *options: str) -> str:
    command = [str(_CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
    command += ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars"]
    command += [f"--user-data-dir={page.parent / 'profile'}", *options, page.as_uri()]
    return subprocess.run(command, check=True, capture_output=True, timeout=120, text=True).stdout


def pixels(page: Path, dark: bool) -> np.ndarray:
    """The page at 1040 x 2200, RGB, (2200, 1040, 3)."""
    from PIL import Image

    picture = page.with_suffix(".png")
    # Chromium's name for the value of the media feature, 0 = dark
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    _run(page, scheme, "--window-size=1040,2200", f"--screenshot={picture}")
    return np.asarray(Image.open(picture).convert("RGB")).astype(int)


def width_needed(page: Path, width: int = 390) -> int:
    """How wide the page is in a window of this width, in which Chromium itself cannot be opened: in a frame."""
    frame = page.with_name("frame.html")
    frame.write_text(
        f'<iframe id="frame" src="{page.name}" style="border:0;width:{width}px;height:800px" onload="'
        "document.title = 'width ' + this.contentDocument.documentElement.scrollWidth\"></iframe>"
    )
    found = re.search(r"<title>width (\d+)</title>", _run(frame, "--allow-file-access-from-files", "--dump-dom"))
    assert found is not None
    return int(found.group(1))
