"""The public face: every promised name is there, and importing the package is light."""

from __future__ import annotations

import subprocess
import sys

import pytest

import monai_margincal


@pytest.mark.parametrize("name", monai_margincal.__all__)
def test_every_public_name_resolves(name):
    assert getattr(monai_margincal, name) is not None
    assert name in dir(monai_margincal)


def test_unknown_name():
    with pytest.raises(AttributeError, match="'nothing'"):
        monai_margincal.nothing


def test_import_is_light():
    code = (
        "import sys, monai_margincal; heavy = {'torch', 'monai', 'itk', 'matplotlib', 'triton', 'numpy'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# monai itself imports matplotlib and pydicom where they are installed
def test_the_losses_do_not_import_triton_or_readers():
    code = (
        "import sys; from monai_margincal import MarginCalibrationLoss;"
        "heavy = {'triton', 'SimpleITK'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
