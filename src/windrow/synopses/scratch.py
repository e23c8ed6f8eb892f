"""Arrays of one batch that are re-used by the next one: fresh memory costs a page fault every 4 KiB."""

from __future__ import annotations

import threading

import numpy as np

from windrow.kernels.jit import Codes

_LOCAL = threading.local()


def scratch(name: str, size: int) -> Codes:
    """An int32 array of this thread, with anything in it; the next call of the same name gives the same memory."""
    kept: dict[str, Codes] = _LOCAL.__dict__.setdefault("kept", {})
    array = kept.get(name)
    if array is None or len(array) < size:
        array = kept[name] = np.empty(size + size // 4, np.int32)
    return array[:size]
