"""What a fit needs beside the cases: bounded, whatever the size of the scans, the classes and the number of cases."""

from __future__ import annotations

import subprocess
import sys

import pytest

#: a case of 512 x 512 x 300 voxels all of which offsets can move; its slices share their memory, so that whatever the fit
#: copies shows, and nothing else does
PROGRAM = """
import resource, sys, torch
import monai_margincal.decisions.votes as votes
from monai_margincal import fit_class_offsets

classes, cases, kept = (int(word) for word in sys.argv[1:])
votes.MOST_BYTES = kept
generator = torch.Generator().manual_seed(0)

def case():
    plane = torch.randn(classes, 512, 512, 1, generator=generator)
    labels = torch.randint(0, classes, (512, 512, 1), generator=generator).to(torch.uint8)
    return plane.expand(-1, -1, -1, 300), labels.expand(-1, -1, 300)

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

# what PyTorch allocates once
fit_class_offsets([(x[..., :1], y[..., :1]) for x, y in (case(), case())], classes, progress=False)
before = peak()
import warnings
warnings.simplefilter("ignore")
offsets = fit_class_offsets((case() for _ in range(cases)), classes, folds=2, progress=False)
print(peak() - before, offsets.fitted_on["voxels"], offsets.fitted_on["one_in"])
"""


@pytest.mark.slow
@pytest.mark.parametrize(("classes", "cases"), [(2, 2), (14, 2)])
def test_whole_scans(classes, cases):
    """14 classes are 4.4 GB of logits per scan; kept are as many bytes as allowed, here 64 MiB, plus a few slabs."""
    kept = 64 << 20
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(classes), str(cases), str(kept)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    grown, voxels, one_in = map(int, done.stdout.split())
    assert voxels == pytest.approx(cases * 512 * 512 * 300, rel=0.001)
    assert one_in > 1
    # while they are thinned, a block of 64 MiB more; and a few slabs of 14 MiB
    assert grown < kept + (400 << 20), f"{grown / 2**20:.0f} MiB"
