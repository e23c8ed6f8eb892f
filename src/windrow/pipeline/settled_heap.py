"""What is there when a live run begins is not looked at by Python's garbage collector until it ends.

A thousand queries are very many small objects (expressions, plans, programs). A full collection looks at all of them,
and nothing is answered meanwhile: that was the highest latency of a live run. They live as long as the run, so there
is nothing to be found.
"""

from __future__ import annotations

import gc
from threading import Lock


class SettledHeap:
    """Frozen as long as somebody wants it so, unless it was frozen before: that is not ours to undo."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._ours = False

    def settle(self) -> None:
        """Collect once more, then leave what is left alone; every call wants one of `release`."""
        with self._lock:
            self._users += 1
            if self._users == 1 and not gc.get_freeze_count():
                gc.collect()
                gc.freeze()
                self._ours = True

    def release(self) -> None:
        """The last one who wants this lets the collector look at everything again."""
        with self._lock:
            self._users -= 1
            if not self._users and self._ours:
                gc.unfreeze()
                self._ours = False


HEAP = SettledHeap()
"""A process has one."""
