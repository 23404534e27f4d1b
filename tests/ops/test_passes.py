"""Which backend does the work."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from ops.ways import terms

from monai_margincal import MarginCalibrationLoss
from monai_margincal.ops import margin_calibration, triton_launch


class TestBackend:
    def test_module(self):
        logits, labels = torch.randn(1, 3, 20, requires_grad=True), torch.randint(0, 3, (1, 1, 20))
        kernels = MarginCalibrationLoss(class_counts=[90, 9, 1], backend="triton")
        plain = MarginCalibrationLoss(class_counts=[90, 9, 1], backend="eager")
        torch.testing.assert_close(kernels(logits, labels), plain(logits, labels))
        assert "backend='triton'" in repr(kernels)
        half = kernels.half()
        assert half.margin_negative.dtype == torch.float32
        shared = MarginCalibrationLoss(margins=0.5, backend="triton")
        torch.testing.assert_close(shared(logits, labels), MarginCalibrationLoss(margins=0.5)(logits, labels))

    def test_environment(self, monkeypatch):
        logits, labels, values = torch.randn(1, 3, 20), torch.randint(0, 3, (1, 20)), terms(3)
        calls = []
        original = triton_launch.kernel_forward
        monkeypatch.setattr(triton_launch, "kernel_forward", lambda *a, **k: (calls.append(1), original(*a, **k))[1])
        for variable, argument, expected in [
            (None, "auto", 0),
            ("eager", "auto", 0),
            ("triton", "auto", 1),
            ("triton", "eager", 0),
            ("eager", "triton", 1),
            ("", "auto", 0),
        ]:
            monkeypatch.delenv("MARGINCAL_KERNEL", raising=False)
            if variable is not None:
                monkeypatch.setenv("MARGINCAL_KERNEL", variable)
            calls.clear()
            margin_calibration(logits, labels, *values, backend=argument)
            assert len(calls) == expected, (variable, argument)
        monkeypatch.setenv("MARGINCAL_KERNEL", "off")
        with pytest.raises(
            ValueError,
            match="environment variable MARGINCAL_KERNEL must be one of 'auto', 'eager', 'triton', found 'off'",
        ):
            margin_calibration(logits, labels, *values)

    def test_unknown(self):
        with pytest.raises(ValueError, match="backend must be 'auto', 'eager' or 'triton', found 'cuda'"):
            MarginCalibrationLoss(margins=0.0, backend="cuda")
        with pytest.raises(ValueError, match="backend must be one of"):
            margin_calibration(torch.randn(1, 2, 3), torch.zeros(1, 3), *terms(2), backend="cuda")

    @pytest.mark.parametrize(
        ("logits", "target", "found"),
        [
            (torch.randn(1, 2, 3, dtype=torch.float64), torch.zeros(1, 3), "float64 logits"),
            (torch.randn(1, 2, 3), torch.full((1, 2, 3), 0.5), "targets with one value per class"),
            (torch.randn(1, 2, 3), torch.zeros(1, 3, dtype=torch.uint16), "torch.uint16"),
            (torch.randn(1, 2, 3, 1, 1, 1), torch.zeros(1, 3, 1, 1, 1), "more than three spatial dimensions"),
            (torch.randn(1, 2, 0), torch.zeros(1, 0), "empty logits"),
        ],
    )
    def test_what_the_kernels_do_not_take(self, logits, target, found, monkeypatch):
        with pytest.raises(ValueError, match=f"does not take .*{found}.*'auto' or 'eager'"):
            margin_calibration(logits, target, *terms(2), backend="triton")
        margin_calibration(logits, target, *terms(2))

    def test_without_triton(self):
        """Nobody who uses the loss imports Triton; asking for the kernels says what to install."""
        code = (
            "import sys, torch, monai_margincal as m\n"
            "m.MarginCalibrationLoss(margins=0.0)(torch.randn(1, 2, 3), torch.zeros(1, 3))\n"
            "assert not any(name.split('.')[0] == 'triton' for name in sys.modules)\n"
            "sys.modules['triton'] = None\n"
            "try: m.MarginCalibrationLoss(margins=0.0, backend='triton')(torch.randn(1, 2, 3), torch.zeros(1, 3))\n"
            "except ImportError as error: assert 'monai-margincal[triton]' in str(error)\n"
            "else: raise SystemExit('no error')\n"
        )
        done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
