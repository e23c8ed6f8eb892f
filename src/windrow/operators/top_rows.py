"""ORDER BY … LIMIT n OFFSET m over a changing relation: at every instant the rows in those places of the whole input.

The best rows are in a pool, all others wait outside; a bar (a row) is between them. As long as the pool has the n + m
rows that count, an epoch is answered from the pool and the new rows before the bar: they are sorted once, and a sweep
over their events moves the two bounds of the chosen ranks. When too many rows have left the pool, all rows are sorted
and it is filled with 2 (n + m) rows again, so at least n + m rows must leave before that happens once more.
Cost: O(pool) per epoch, O(log) per event, amortised; without LIMIT all rows are the pool. Space: the rows of the input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.expressions import Context, Program
from windrow.kernels.jit import Ints
from windrow.kernels.ranking import sweep_top
from windrow.operators.operator import Operator
from windrow.operators.ordering import SortKey, order
from windrow.state.held_rows import HeldRows
from windrow.state.rows import NEVER, Delta, Epoch, Rows, empty_batch, one_batch

SPARE = 64
"""The pool has so many rows more than it must."""
NOTHING: Ints = np.empty(0, np.int64)


class TopRows(Operator):
    """Terms are (value, descending, NULLs first); ties are broken by all columns, from left to right."""

    name = "top_rows"

    def __init__(
        self, terms: Sequence[tuple[Program, bool, bool]], limit: int | None, offset: int, schema: pa.Schema
    ) -> None:
        self.schema = schema
        self._terms, self._limit, self._offset = tuple(terms), limit, offset
        self._held = HeldRows(schema.types)
        self._alive = 0
        self._pool: Ints = NOTHING
        self._bar: pa.RecordBatch | None = None
        """No row outside the pool comes before it; None when all rows are in the pool."""
        self._place: Ints = np.empty(0, np.int64)

    def step(self, inputs: Sequence[Delta], epoch: Epoch) -> Delta:
        """Find the rows that may be chosen in the epoch, sort them, sweep over the events."""
        (delta,) = inputs
        came, cut = delta.came, delta.cut
        held = self._held
        cut_slots = held.cut(np.zeros(len(cut), np.int32), cut.batch.columns, cut.exp) if len(cut) else NOTHING
        new = held.insert(np.zeros(len(came), np.int32), came.batch.columns, came.exp) if len(came) else NOTHING
        due_times, due_slots, gone = held.due(epoch.upto)
        times = np.concatenate([came.ts, cut.ts, due_times])
        if not len(times):
            return Delta(self.nothing, self.nothing)
        slots = np.concatenate([new, cut_slots, due_slots])
        by_time = np.argsort(times, kind="stable")
        times, slots, begins = times[by_time], slots[by_time], by_time < len(new)
        self._alive += 2 * len(new) - len(slots)
        self._place = np.full(held.capacity, -1, np.int64) if len(self._place) < held.capacity else self._place
        output = self._swept(new, slots, times, begins)
        held.free(np.concatenate([due_slots, gone, cut_slots[cut.exp == NEVER]]))
        return output

    def _swept(self, new: Ints, slots: Ints, times: Ints, begins: Any) -> Delta:
        """From the pool if it has enough rows at every instant, else from all rows."""
        ranked, batch = self._ranked(self._pool, new)
        outside = self._bar is not None
        candidates = ranked[0]
        self._place[candidates] = np.arange(len(candidates))
        ranks = self._place[slots]
        if outside and not self._enough(ranks, times, begins, len(self._pool)):
            self._place[candidates] = -1
            self._bar = None
            started = slots[~begins]
            everything = self._held.alive.copy()
            everything[started] = True
            everything[new] = False
            ranked, batch = self._ranked(np.flatnonzero(everything), new)
            candidates = ranked[0]
            self._place[candidates] = np.arange(len(candidates))
            ranks = self._place[slots]
        self._place[candidates] = -1
        known = ranks >= 0
        if not known.all():
            ranks, times, begins = ranks[known], times[known], begins[known]
        alive = ranked[1]
        count = len(candidates) if self._limit is None else self._limit
        made, since, until, cuts, cut_at = sweep_top(alive, ranks, times, begins, self._offset, count)
        came = Rows(_taken(batch, made), since, until) if len(made) else self.nothing
        went = self.nothing
        if len(cuts):
            went = Rows(_taken(batch, cuts), cut_at, np.full(len(cuts), NEVER))
        self._fill(candidates, alive, batch)
        return Delta(came, went)

    def _ranked(self, old: Ints, new: Ints) -> tuple[tuple[Ints, Any], pa.RecordBatch]:
        """Slots in their order, as far as they are before the bar, which of them lived before; and their columns."""
        slots = np.concatenate([old, new])
        arrays = self._held.values(slots) if len(slots) else empty_batch(self.schema).columns
        batch = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        if self._bar is not None:
            # Behind the others, so that rows that are equal to it come before it: those of the pool stay there.
            batch = one_batch([batch, self._bar], self.schema)
        context = Context.of(batch)
        keys = [SortKey(context.value(program), desc, first) for program, desc, first in self._terms]
        keys += [SortKey(array) for array in batch.columns]
        places = order(np.zeros(batch.num_rows, np.int8), keys)
        if self._bar is not None:
            places = places[: int(np.flatnonzero(places == len(slots))[0])]
        return (slots[places], places < len(old)), batch.take(pa.array(places))

    def _enough(self, ranks: Ints, times: Ints, begins: Any, alive: int) -> bool:
        """Whether the pool has all rows that count, at every instant of the epoch."""
        assert self._limit is not None
        inside = np.where(ranks >= 0, np.where(begins, 1, -1), 0)
        after = alive + np.cumsum(inside)
        settled = np.ones(len(times), np.bool_)
        settled[:-1] = times[1:] != times[:-1]
        return bool(after[settled].min() >= self._limit + self._offset)

    def _fill(self, candidates: Ints, alive: Any, batch: pa.RecordBatch) -> None:
        """The pool of the next epoch: the rows that are left, or the best of them."""
        ranks = np.flatnonzero(alive)
        if self._limit is not None:
            needed = self._limit + self._offset
            if len(ranks) > 4 * needed + 4 * SPARE:
                out = int(ranks[2 * needed + SPARE])
                self._bar = batch.slice(out, 1)
                ranks = ranks[: 2 * needed + SPARE]
        self._pool = candidates[ranks]
        if len(self._pool) == self._alive:
            self._bar = None

    # ---- for the owner ----------------------------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        """Held rows and the pool."""
        return self._held.nbytes + self._pool.nbytes + self._place.nbytes

    @property
    def rows(self) -> int:
        """Held rows."""
        return len(self._held)

    def describe(self) -> str:
        """What is kept."""
        if self._limit is None:
            return "replaced whenever the rows in these places change; all rows are sorted"
        kept = 4 * (self._limit + self._offset) + 4 * SPARE
        return f"replaced whenever the rows in these places change; a pool of at most {kept} rows is sorted"

    def snapshot(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        """The rows: of equal ones any may be in the output, so nothing else needs to be known."""
        return {"alive": self._alive}, {"held": self._held.snapshot()}

    def restore(self, meta: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> None:
        """All rows are in the pool at first."""
        self._alive = meta["alive"]
        self._pool = self._held.restore(tables["held"])
        self._place = np.full(self._held.capacity, -1, np.int64)


def _taken(batch: pa.RecordBatch, places: Ints) -> pa.RecordBatch:
    return batch.take(pa.array(places))
