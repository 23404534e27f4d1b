"""How far a run over many scans is, and how fast."""

from __future__ import annotations

from typing import Any

from ignite.engine import Engine, Events
from tqdm import tqdm


class ScanProgress:
    """A progress bar on standard error with the scans done, the time left and the scans per second; none outside of a terminal.

    Args:
        unit: what a scan is called.

    Example:
        >>> engine = Engine(lambda engine, batch: batch)
        >>> ScanProgress(unit="frame").attach(engine)
        >>> engine.run(range(3)).iteration
        3
    """

    def __init__(self, unit: str = "scan") -> None:
        self.unit = unit

    def attach(self, engine: Engine) -> None:
        """Show the runs of an engine."""
        engine.add_event_handler(Events.STARTED, self._begin)
        engine.add_event_handler(Events.ITERATION_COMPLETED, lambda: self._bar.update())
        engine.add_event_handler(Events.COMPLETED | Events.TERMINATE, lambda: self._bar.close())

    def _begin(self, engine: Engine) -> None:
        # None: no bar where nobody watches it
        self._bar: Any = tqdm(total=engine.state.epoch_length, unit=self.unit, disable=None)
