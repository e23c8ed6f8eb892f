"""Cells (slot, group) as one number."""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.kernels.jit import Codes, Ints

LOW = 0xFFFFFFFF


def cell_keys(slots: Codes | Ints, gids: Codes | Ints) -> Ints:
    """Slot and group of each cell in one number."""
    return np.asarray((slots.astype(np.int64) << 32) | gids)


def places_of(known: Ints, keys: Ints) -> tuple[Ints, Any]:
    """Where each key stands among different known ones in any order, and which are known; some must be."""
    order = np.argsort(known)
    place = np.asarray(order[np.minimum(np.searchsorted(known[order], keys), len(known) - 1)])
    return place, known[place] == keys
