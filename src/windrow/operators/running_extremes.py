"""MIN and MAX by group over rows that end in any order: a heap of the held rows per group (kernels/heaps.py).

A row that begins costs O(1), one that ends O(log n) amortised, an answer is the root. Strings are compared by labels of
the same order. Space: four words per held row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.columns import validity
from windrow.aggregates.extremes import MaxText, Min, MinText
from windrow.expressions import Program
from windrow.kernels.heaps import NONE, fill_heaps, sweep_heaps
from windrow.kernels.jit import Ints
from windrow.operators.group_events import Events, Kept, Part
from windrow.state.held_rows import HeldRows
from windrow.state.lists import resized
from windrow.synopses.ranks import TextRanks

FEW = 1024


class RunningExtremes(Kept):
    """The heaps of one value, the greatest key on top; for MIN keys are turned round."""

    kind = "heaps"

    def __init__(self, part: Part) -> None:
        self.parts = (part,)
        component, program = part
        assert program is not None
        # ~x reverses the order of integers without overflowing at the least one.
        self._turn = -1 if isinstance(component, Min) else 0
        self._ranks = TextRanks(program.type) if isinstance(component, MinText | MaxText) else None
        self._root: Ints = np.full(0, NONE, np.int64)
        self._keys: Ints = np.zeros(0, np.int64)
        self._child: Ints = np.zeros(0, np.int64)
        self._after: Ints = np.zeros(0, np.int64)
        self._before: Ints = np.zeros(0, np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        ranks = 0 if self._ranks is None else self._ranks.nbytes
        return self._root.nbytes + 4 * self._keys.nbytes + ranks

    def grow(self, groups: int, slots: int) -> None:
        """Empty heaps for new groups."""
        if groups > len(self._root):
            self._root = resized(self._root, groups, NONE)
        if slots > len(self._keys):
            for name in ("_keys", "_child", "_after", "_before"):
                setattr(self, name, resized(getattr(self, name), slots, 0))

    def keep(self, live: Ints) -> None:
        """Gather."""
        self._root = self._root[live]

    def step(self, events: Events) -> dict[Part, tuple[Any, ...]]:
        """One sweep along the cells."""
        (part,) = self.parts
        valid, begins = events.valid(part[1]), events.sign > 0
        assert part[1] is not None
        self._note(events.slots, events.values[part[1]], valid & begins)
        out = np.full(events.count, int(part[0].identity[0]) ^ self._turn, np.int64)
        sweep_heaps(
            events.by_cell, events.cells, events.groups, begins, valid, events.slots,
            self._keys, self._child, self._after, self._before, self._root, out,
        )  # fmt: skip
        out ^= self._turn
        return {part: (out if self._ranks is None else self._ranks.decode(out),)}

    def _note(self, slots: Ints, values: pa.Array, chosen: Any) -> None:
        """The keys of these slots."""
        component = self.parts[0][0]
        if self._ranks is None:
            keys = component.lift(values)[chosen].astype(np.int64)
        elif chosen.any():
            keys = self._ranks.encode(values.filter(pa.array(chosen)), self._translate)
        else:
            return
        self._keys[slots[chosen]] = keys ^ self._turn

    def _translate(self, old: Ints, new: Ints) -> None:
        """All labels are others now, in the same order: the heaps stay as they are."""
        labels = self._keys ^ self._turn
        place = np.minimum(np.searchsorted(old, labels), len(old) - 1)
        self._keys = np.where(old[place] == labels, new[place], labels) ^ self._turn

    def settle(self, held: HeldRows) -> None:
        """Forget strings that no row has."""
        if self._ranks is not None and len(self._ranks) > 4 * len(held) + FEW:
            self._ranks.compact(np.unique(self._keys[np.flatnonzero(held.alive)] ^ self._turn))

    def restore(self, arrays: Mapping[str, Any], held: HeldRows, slots: Ints, values: Mapping[Program, Any]) -> None:
        """Heaps of the rows that live."""
        program = self.parts[0][1]
        assert program is not None
        valid = validity(values[program])
        chosen = np.ones(len(slots), np.bool_) if valid is None else valid
        self._note(slots, values[program], chosen)
        fill_heaps(
            slots[chosen], held.group[slots[chosen]], self._keys, self._child, self._after, self._before, self._root
        )
