"""Aggregates that are computed from all rows of a group, wherever the group changes: the rest of them.

The rows of every cell are collected, a bounded number at a time, and put into a share group of their own, in which each
cell is a pane: the code that answers windows from panes answers here, so every aggregate works. Cost: the rows of the
group for each change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.errors import QueryError
from windrow.expressions import Program
from windrow.kernels.jit import Ints
from windrow.kernels.lists import NONE, collect_members, count_members, span_cells
from windrow.operators.group_events import Events, Kept, Part
from windrow.state.held_rows import HeldRows
from windrow.state.lists import Lists, resized
from windrow.synopses.share_group import ShareGroup
from windrow.synopses.spec import ComponentSpec
from windrow.windows.grid import Grid
from windrow.windows.spec import MAX_TICK

MOST_ROWS = 1 << 19
"""Rows that are collected at once; a group with more is taken alone."""
EACH = Grid(((1, 0),))
"""Every number is a pane of its own."""


class GroupContents(Kept):
    """Lists of the held rows of each group."""

    kind = "contents"

    def __init__(self, parts: Sequence[Part], held: HeldRows, columns: Mapping[Program, int]) -> None:
        self.parts = tuple(parts)
        self._held = held
        programs = list(dict.fromkeys(program for _, program in self.parts if program is not None))
        self._columns = [columns[program] for program in programs]
        self._specs = [
            ComponentSpec(component, None if program is None else programs.index(program))
            for component, program in self.parts
        ]
        self._lists = Lists()
        self._begin: Ints = np.zeros(0, np.int64)
        self._end: Ints = np.zeros(0, np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self._lists.nbytes + self._begin.nbytes + self._end.nbytes

    def grow(self, groups: int, slots: int) -> None:
        """Empty lists for new groups."""
        self._lists.grow(slots, groups)
        if slots > len(self._begin):
            self._begin = resized(self._begin, slots, NONE)
            self._end = resized(self._end, slots, NONE)

    def keep(self, live: Ints) -> None:
        """Gather."""
        self._lists.renumber(live)

    def step(self, events: Events) -> dict[Part, tuple[Any, ...]]:
        """Rows that begin join their lists, all cells are answered, rows that end leave."""
        lists = self._lists
        begins, ends = events.sign > 0, events.sign < 0
        came = events.slots[begins]
        lists.append(came, events.groups[events.cells[begins]])
        there = events.sign != 0
        slots = events.slots[there]
        span_cells(events.cells[there], slots, begins[there], self._begin, self._end)
        counts = count_members(events.groups, lists.first, lists.after, self._begin, self._end)
        found: list[list[tuple[Any, ...]]] = []
        for low, high in _chunks(counts):
            members, cells = collect_members(
                events.groups, lists.first, lists.after, self._begin, self._end, counts, low, high
            )
            found.append(self._answered(members, cells, low, high))
        self._begin[slots] = NONE
        self._end[slots] = NONE
        lists.remove(events.slots[ends])
        return {part: _joined([one[i] for one in found]) for i, part in enumerate(self.parts)}

    def _answered(self, slots: Ints, cells: Ints, low: int, high: int) -> list[tuple[Any, ...]]:
        """The words of all parts at the cells low … high-1, which have these rows."""
        group = ShareGroup([], self._specs, EACH)
        if len(slots):
            group.insert(cells - low, [], self._held.values(slots, self._columns))
        for error in group.failures.values():
            raise QueryError(str(error)) from error
        group.close(MAX_TICK)
        numbers = np.arange(high - low)
        places = [group.specs.index(spec) for spec in self._specs]
        return list(group.lookup(numbers - 1, numbers, places).words)

    def restore(self, arrays: Mapping[str, Any], held: HeldRows, slots: Ints, values: Mapping[Program, Any]) -> None:
        """Lists of the rows that live."""
        self._lists.append(slots, held.group[slots])


def _chunks(counts: Ints) -> list[tuple[int, int]]:
    """Runs of cells with a bounded number of rows, or one cell each."""
    weights = np.cumsum(counts + 1)  # also cells without rows cost something
    edges = [0]
    while edges[-1] < len(counts):
        before = int(weights[edges[-1] - 1]) if edges[-1] else 0
        stop = int(np.searchsorted(weights, before + MOST_ROWS, side="right"))
        edges.append(max(stop, edges[-1] + 1))
    return list(pairwise(edges))


def _joined(parts: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    if len(parts) == 1:
        return parts[0]
    return tuple(
        pa.concat_arrays(words) if isinstance(words[0], pa.Array) else np.concatenate(words)
        for words in zip(*parts, strict=True)
    )
