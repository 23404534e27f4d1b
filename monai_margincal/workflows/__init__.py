"""What the configs of a bundle would otherwise spell out in expressions: the cases of a run, and the network on its device."""

from __future__ import annotations

from .placed_network import placed_network
from .training_data import training_data

__all__ = ["placed_network", "training_data"]
