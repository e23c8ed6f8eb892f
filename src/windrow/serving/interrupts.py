"""Ctrl-C and SIGTERM: the first one asks the run to stop cleanly, the second one leaves at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """While it is entered, the first signal raises KeyboardInterrupt where the main thread is."""

    def __init__(self, on_leave: Callable[[], None]) -> None:
        self._on_leave = on_leave
        self._before: dict[int, Any] = {}
        self.signal: int | None = None
        """The first signal that came."""

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.getsignal(number) for number in _SIGNALS}
        self.hold()
        return self

    def __exit__(self, *exc: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def hold(self) -> None:
        """Take the signals, also back from Spark, which takes SIGINT when it starts in the main thread."""
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                signal.signal(number, self._handle)

    @property
    def exit_code(self) -> int:
        """As shells have it: 130 for Ctrl-C, 143 for SIGTERM."""
        return 128 + (self.signal or signal.SIGINT)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None:
            try:
                self._on_leave()
            finally:  # it may fail: the signal may have come in the middle of a write to the same terminal
                os._exit(128 + number)
        self.signal = number
        raise KeyboardInterrupt
