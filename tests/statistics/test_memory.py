"""Memory does not grow with the volume, and counting files needs neither torch nor MONAI."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

CODE = """
import sys
from pathlib import Path
from monai_margincal.statistics import count_labels
counts = count_labels(sys.argv[1], num_classes=2, progress=False)
peak = next(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(counts.counts.tolist(), int(peak) // 1024, "torch" in sys.modules, "monai" in sys.modules)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_large_volume_in_little_memory(tmp_path: Path, dtype: str) -> None:
    """MONAI/issues/5277: less than 300 MB for 512 x 512 x 1000."""
    array = np.zeros((512, 512, 1000), dtype, order="F")
    array[100:200, 100:200, 300:600] = 1
    path = tmp_path / "label.nii.gz"
    nib.save(nib.Nifti1Image(array, np.eye(4)), path)
    inside = 100 * 100 * 300
    del array
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(path)], capture_output=True, text=True, check=True, timeout=300
    )
    counts, peak, torch, monai = done.stdout.replace(", ", ",").split()
    assert counts == f"[{512 * 512 * 1000 - inside},{inside}]"
    assert int(peak) < 300
    assert (torch, monai) == ("False", "False")
