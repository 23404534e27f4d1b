"""What the configs of a bundle would otherwise spell out in expressions: cases of a run, network on its device, decision."""

from __future__ import annotations

from .chosen_offsets import chosen_offsets
from .placed_network import placed_network
from .training_data import training_data

__all__ = ["chosen_offsets", "placed_network", "training_data"]
