"""Ctrl-C that ends a program in order: once, in the main process alone, and even where Python would lose it."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ["advice_when_interrupted", "advise_when_interrupted", "forget_advice", "raise_interrupts_once"]

#: seconds after which an interrupt is raised again that a hook or a finaliser has swallowed
_AGAIN = 0.05

#: what the work in progress says about going on: one per process, as there is one work in progress
_ADVICE: list[Callable[[], str]] = []


def advise_when_interrupted(advice: Callable[[], str]) -> None:
    """Say what is to be told when the work that begins now is interrupted; takes the place of what was said before."""
    _ADVICE[:] = [advice]


def forget_advice() -> None:
    """Let go of the work that was advised about, and of the network and the group of processes that it holds."""
    _ADVICE.clear()


def advice_when_interrupted() -> str:
    """What the work in progress says about going on; empty where none does.

    Example:
        >>> advise_when_interrupted(lambda: "in epoch 3")
        >>> advice_when_interrupted()
        'in epoch 3'
        >>> advise_when_interrupted(lambda: "")
    """
    return _ADVICE[0]() if _ADVICE else ""


def raise_interrupts_once() -> None:
    """Let Ctrl-C raise one `KeyboardInterrupt` in this process, for programs that may take over its signals.

    * Worker processes that are forked later, which a terminal interrupts too, keep still: they end with this process.
    * Nothing is logged from then on: engines and handlers would log the interrupt as an error, each with a traceback.
    * Raised in a hook of fork or in a finaliser, where Python prints and forgets it, it is raised again.
    * A second Ctrl-C ends the process at once.

    Nothing happens in another thread than the main one, and where interrupts are ignored, as under ``nohup``.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, None):
        return
    interrupt = _interrupt_of(os.getpid())
    signal.signal(signal.SIGINT, interrupt)
    if hasattr(signal, "setitimer"):  # not on Windows
        signal.signal(signal.SIGALRM, interrupt)
        sys.unraisablehook = _raising_again(sys.unraisablehook)


def _interrupt_of(process: int) -> Callable[[int, FrameType | None], None]:
    def interrupt(number: int, frame: FrameType | None) -> None:
        if os.getpid() != process:
            return
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        logging.disable(logging.CRITICAL)
        raise KeyboardInterrupt

    return interrupt


def _raising_again(before: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def hook(unraisable: Any) -> None:
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, _AGAIN)
        else:
            before(unraisable)

    return hook
