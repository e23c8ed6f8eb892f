"""Operators that depend only on how many copies of a row each input has: set operations, and DISTINCT over STR.

What is kept is the number of copies of each row on each side (thesis 2.2.2 for negation, 3.2.2 for the strict form of
DISTINCT), and when copies will end. A negative tuple needs no search: the count goes down at once, and an opposite
entry at the row's old end cancels what was scheduled there. What comes later decides when an output row goes, so its
exp is NEVER, and a negative tuple ends it (strict non-monotonic). Cost O(changes), amortised, apart from the sort of
an epoch's events by time; space O(distinct rows + rows whose end is scheduled).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from windrow.errors import StateError
from windrow.kernels import counted as kernels
from windrow.kernels.jit import Ints, frozen
from windrow.kernels.schedule import Weights
from windrow.operators.operator import Operator
from windrow.state.row_table import RowTable
from windrow.state.rows import NEVER, Delta, Epoch, Rows
from windrow.state.schedule import Schedule

FEW = 1024
"""So many rows of no use are not worth a clean-up."""
WEIGHTS = (1, 2)
"""Of a copy on the left, and on the right."""


class Rule(IntEnum):
    """How many copies the output has, when the inputs have l and r."""

    DISTINCT = kernels.DISTINCT
    """l > 0 (one input)."""
    EXCEPT_ALL = kernels.EXCEPT_ALL
    """max(l - r, 0)"""
    EXCEPT = kernels.EXCEPT
    """l > 0 and r = 0"""
    INTERSECT_ALL = kernels.INTERSECT_ALL
    """min(l, r)"""
    INTERSECT = kernels.INTERSECT
    """l > 0 and r > 0"""

    @property
    def inputs(self) -> int:
        """How many inputs there are."""
        return 1 if self is Rule.DISTINCT else 2


class Counted(Operator):
    """The rows of the inputs, as many copies of each as the rule says; all inputs have the types of `schema`."""

    name: ClassVar[str] = "counted"

    def __init__(self, schema: pa.Schema, rule: Rule) -> None:
        self.schema = schema
        self.rule = rule
        self._table = RowTable(schema, (0, 0, -1, -1))
        self._ends = Schedule()
        self._live = 0

    def step(self, inputs: Sequence[Delta], epoch: Epoch) -> Delta:
        """The net changes of each instant of the epoch."""
        if len(inputs) != self.rule.inputs:
            raise ValueError(f"{self.rule.name} has {self.rule.inputs} input(s), and got {len(inputs)}")
        due_times, due_codes, due_weights = self._ends.due(epoch.upto)
        room = 2 * sum(len(delta) for delta in inputs)
        codes, times, weights = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int8)
        count = 0
        for delta, side in zip(inputs, WEIGHTS, strict=False):
            for rows, weight in ((delta.came, side), (delta.cut, -side)):
                if len(rows):
                    found, exp = self._table.encode(rows.batch), frozen(rows.exp)
                    ts = frozen(rows.ts)
                    count = kernels.note_events(found, ts, exp, weight, epoch.upto, codes, times, weights, count)
                    self._ends.add(exp, found, -weight)
        if not count + len(due_times):
            return Delta(self.nothing, self.nothing)
        result = self._sweep(
            np.concatenate([codes[:count], due_codes]),
            np.concatenate([times[:count], due_times]),
            np.concatenate([weights[:count], due_weights]),
        )
        self._forget()
        return result

    def _sweep(self, codes: Ints, times: Ints, weights: Weights) -> Delta:
        came_codes, came_ts, came_exp, older, cut_codes, cut_ts = (np.empty(len(codes), np.int64) for _ in range(6))
        came, cut, live, sound = kernels.sweep(
            codes,
            times,
            weights,
            np.argsort(times, kind="stable"),
            int(self.rule),
            NEVER,
            self._table.words,
            came_codes,
            came_ts,
            came_exp,
            older,
            cut_codes,
            cut_ts,
        )
        if not sound:
            raise StateError(
                f"{self.rule.name}: more copies of a row ended than had come; a negative tuple must have the columns "
                "and the exp of a row that came in an earlier epoch"
            )
        self._live += live
        return Delta(
            self._rows(came_codes[:came], came_ts[:came], came_exp[:came]),
            self._rows(cut_codes[:cut], cut_ts[:cut], np.full(cut, NEVER)),
        )

    def _rows(self, codes: Ints, ts: Ints, exp: Ints) -> Rows:
        return Rows(self._table.rows(codes), ts, exp) if len(codes) else self.nothing

    def _live_codes(self) -> Ints:
        words = self._table.words[: len(self._table)]
        return np.flatnonzero(words[:, kernels.LEFT_COPIES] | words[:, kernels.RIGHT_COPIES])

    def _forget(self) -> None:
        """Drop rows without copies once they are most of the state: O(1) for each of them.

        What is still scheduled for such a row cancels out, instant by instant, and goes with it.
        """
        if len(self._table) - self._live > max(FEW, self._live + len(self._ends)):
            self._ends.rename(self._table.keep(self._live_codes()))

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return self._table.nbytes + self._ends.nbytes

    @property
    def rows(self) -> int:
        """Distinct rows, and ends that are scheduled."""
        return self._live + len(self._ends)

    def snapshot(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        """The distinct rows with their counts, and the ends that are scheduled."""
        live = self._live_codes()
        places = np.full(len(self._table), -1, np.int64)
        places[live] = np.arange(len(live))
        times, codes, weights = self._ends.entries()
        kept = places[codes] >= 0
        ends = pa.table({"time": times[kept], "row": places[codes[kept]], "weight": weights[kept]})
        return {"now": self._ends.now}, {"rows": self._table.table(live), "ends": ends}

    def restore(self, meta: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> None:
        """Rows get new codes; what is scheduled follows them."""
        codes = self._table.load(tables["rows"])
        times, places, weights = (tables["ends"].column(name).to_numpy() for name in ("time", "row", "weight"))
        self._ends.load(int(meta["now"]), times, codes[places], weights)
        self._live = len(codes)

    def describe(self) -> str:
        """For EXPLAIN."""
        sides = "" if self.rule is Rule.DISTINCT else " on each side"
        name = self.rule.name.replace("_", " ")
        return f"{name}: how many copies{sides} of each row, and a schedule of their ends; negative tuples out"
