"""What the demos say of the decision that they fitted."""

from __future__ import annotations

from ...decisions import ClassOffsets


def tell_decision(offsets: ClassOffsets) -> None:
    """Print the offsets, or that none is kept."""
    if any(offsets.offsets):
        print(f"   added to the logits: {offsets}")
    else:
        print("   no offset gains anything on cases that it was not chosen on: the largest logit decides")
