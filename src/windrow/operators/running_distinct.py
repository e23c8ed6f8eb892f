"""COUNT, SUM and AVG of the different values of a group, while rows come and go.

Of each group and value the number of copies is kept. Only the first copy and the last one are events for the set of
values; over these, COUNT, SUM and AVG are running totals like those of all rows. O(1) per event; space: the different
values of each group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates import Aggregate, aggregate
from windrow.aggregates.collected import Collected
from windrow.aggregates.component import Subtractable
from windrow.aggregates.holistic import FREQUENCIES
from windrow.expressions import Program
from windrow.kernels.copies import first_and_last
from windrow.kernels.jit import Codes, Ints
from windrow.operators.group_events import Events, Kept, Part
from windrow.operators.running_floats import RunningFloats
from windrow.operators.running_totals import RunningTotals
from windrow.state.held_rows import HeldRows
from windrow.state.lists import resized
from windrow.synopses.groups import Groups
from windrow.synopses.snapshot import numpy_of, prefixed, within

QUESTIONS = {"count_distinct": "COUNT", "sum_distinct": "SUM", "avg_distinct": "AVG"}
"""What is asked of the frequencies of values, and the aggregate of the different values that answers it."""
FEW = 1024


def is_of_distinct(part: Part) -> bool:
    """Whether a component is about the set of values."""
    component = part[0]
    return (
        isinstance(component, Collected)
        and component.store.name == FREQUENCIES
        and component.question.name in QUESTIONS
    )


class RunningDistinct(Kept):
    """All that is asked of the different values of one program."""

    kind = "copies of each value"

    def __init__(self, parts: Sequence[Part], program: Program) -> None:
        self.parts = tuple(parts)
        self._program = program
        self._aggregates: dict[Part, Aggregate] = {}
        for part in self.parts:
            component = part[0]
            assert isinstance(component, Collected)
            self._aggregates[part] = aggregate(QUESTIONS[component.question.name], component.store.kind)
        inner = dict.fromkeys((one, program) for found in self._aggregates.values() for one in found.components)
        totals = [part for part in inner if isinstance(part[0], Subtractable)]
        self._inner: list[Kept] = [RunningTotals(totals)]
        self._inner += [RunningFloats(part) for part in inner if part not in totals]
        self._clear()

    def _clear(self) -> None:
        self._values = Groups([pa.int32(), self._program.type])
        """Codes of (group, value)."""
        self._copies: Ints = np.zeros(0, np.int64)
        self._live = 0

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self._values.nbytes + self._copies.nbytes + sum(one.nbytes for one in self._inner)

    def grow(self, groups: int, slots: int) -> None:
        """Nothing yet for new groups."""
        for one in self._inner:
            one.grow(groups, slots)

    def step(self, events: Events) -> dict[Part, tuple[Any, ...]]:
        """Which events change the set, and the totals over them."""
        changes = np.zeros_like(events.sign)
        self._live += first_and_last(events.by_cell, self._codes(events), events.sign, self._copies, changes)
        of_set = replace(events, sign=changes)
        words: dict[Part, tuple[Any, ...]] = {}
        for one in self._inner:
            words.update(one.step(of_set))
        return {
            part: (found.lower([words[one, self._program] for one in found.components]),)
            for part, found in self._aggregates.items()
        }

    def _codes(self, events: Events) -> Codes:
        """The code of (group, value) of each event, -1 where there is no value."""
        valid = events.valid(self._program)
        every = bool(valid.all())
        groups, values = events.groups[events.cells], events.values[self._program]
        if not every:
            groups, values = groups[valid], values.filter(pa.array(valid))
        found = self._values.encode([pa.array(groups), values])
        if len(self._values) > len(self._copies):
            self._copies = resized(self._copies, 2 * len(self._values), 0)
        codes: Codes = np.full(len(valid), -1, np.int32)
        codes[valid] = found
        return codes

    def settle(self, held: HeldRows) -> None:
        """Forget values without copies, once they are most of what is kept."""
        if len(self._values) > 2 * self._live + FEW:
            live = np.flatnonzero(self._copies[: len(self._values)] > 0)
            self._values.compact(live)
            self._copies = self._copies[live]

    def keep(self, live: Ints) -> None:
        """The groups of the codes get new numbers; groups that are forgotten have no values."""
        for one in self._inner:
            one.keep(live)
        codes = np.flatnonzero(self._copies[: len(self._values)] > 0)
        groups, values = self._values.keys(codes)
        copies = self._copies[codes]
        self._load(np.searchsorted(live, np.asarray(groups)), values, copies)

    def _load(self, groups: Any, values: pa.Array, copies: Ints) -> None:
        self._clear()
        if len(copies):
            codes = self._values.encode([pa.array(groups, pa.int32()), values])
            self._copies = np.zeros(len(self._values), np.int64)
            self._copies[codes] = copies
        self._live = len(copies)

    def snapshot(self, groups: int) -> dict[str, Any]:
        """The values with their copies, and the totals."""
        codes = np.flatnonzero(self._copies[: len(self._values)] > 0)
        owners, values = self._values.keys(codes)
        arrays: dict[str, Any] = {"groups": owners, "values": values, "copies": self._copies[codes]}
        for number, one in enumerate(self._inner):
            arrays |= prefixed(str(number), one.snapshot(groups))
        return arrays

    def restore(self, arrays: Mapping[str, Any], held: HeldRows, slots: Ints, values: Mapping[Program, Any]) -> None:
        """Become what `snapshot` gave."""
        self._load(numpy_of(arrays["groups"]), arrays["values"], numpy_of(arrays["copies"]))
        for number, one in enumerate(self._inner):
            one.restore(within(str(number), arrays), held, slots, values)
