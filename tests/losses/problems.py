"""Random logits and labels, and the gradient of a loss, for the tests of the margin calibration loss."""

from __future__ import annotations

import torch


def logits_and_labels(*shape, classes=None, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(shape, generator=generator, dtype=dtype) * 2
    labels = torch.randint(0, classes or max(shape[1], 2), (shape[0], 1, *shape[2:]), generator=generator)
    return logits.requires_grad_(), labels


def gradient(loss, logits, *arguments):
    (result,) = torch.autograd.grad(loss(logits, *arguments), logits)
    return result
