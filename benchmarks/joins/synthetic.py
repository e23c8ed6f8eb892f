"""The streams of thesis 5.4.1, and a multi-way join over them.

A loop makes one tuple per turn, of stream i with probability λi / Σλ; its timestamp is the number of the turn, its join
attribute uniform in 1 … vi, so the values of one stream are contained in those of another. A unit of time is Σλ turns.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from time import process_time

import numpy as np
import pyarrow as pa
from sqlglot import exp

from windrow.expressions import Compiler
from windrow.flow.leaves import rounded_up
from windrow.flow.names import column_of
from windrow.kernels.jit import Ints
from windrow.language import types
from windrow.operators.join import Equality, Join, Residual
from windrow.plan.patterns import Pattern
from windrow.state.choice import make_buffer
from windrow.state.rows import Delta, Epoch, Rows

Order = tuple[int, ...]


@dataclass(frozen=True)
class Stream:
    """λ tuples per unit of time, a window of T units, v values of the join attribute."""

    rate: int
    length: int
    values: int


TABLE_5_5 = (Stream(10, 100, 40), Stream(1, 100, 100), Stream(1, 100, 8), Stream(1, 100, 5))
"""The costs that the thesis works out (16200, 21000, 42600) come from λ1 = 10."""

QUICK = tuple(Stream(one.rate, 40, one.values) for one in TABLE_5_5)
"""The same with shorter windows."""


class Tuples:
    """Turns 1 … n of the loop, by stream."""

    def __init__(self, streams: Sequence[Stream], units: int, seed: int = 5) -> None:
        rng = np.random.default_rng(seed)
        self.streams = tuple(streams)
        self.unit = sum(one.rate for one in streams)
        """Turns per unit of time."""
        turns = units * self.unit
        which = rng.choice(len(streams), turns, p=[one.rate / self.unit for one in streams])
        self.ts: list[Ints] = [np.flatnonzero(which == number) + 1 for number in range(len(streams))]
        self.values: list[Ints] = [
            rng.integers(1, one.values + 1, len(ts)) for one, ts in zip(streams, self.ts, strict=True)
        ]

    def deltas(self, since: int, upto: int, slide: int | None) -> list[Delta]:
        """What comes in an epoch; with `slide` lifetimes are those of a query that is looked at every so many turns."""
        found = []
        for number, (stream, ts, values) in enumerate(zip(self.streams, self.ts, self.values, strict=True)):
            low, high = np.searchsorted(ts, (since, upto), side="right").tolist()
            begins = ts[low:high]
            ends = begins + stream.length * self.unit
            if slide is not None:
                begins, ends = rounded_up(begins, slide), rounded_up(ends, slide)
            batch = pa.RecordBatch.from_arrays([pa.array(values[low:high])], schema=schema(number))
            found.append(Delta.of(Rows(batch, begins, ends)))
        return found


def schema(number: int) -> pa.Schema:
    """The join attribute of a stream."""
    return pa.schema([pa.field(f"s{number + 1}.k", pa.int64())])


def join(count: int, order: Order, *, nested_loops: bool) -> Join:
    """A join of all streams on their attribute; new rows of each meet the others in the global order.

    The conditions tie every stream to the first of the order, so each probe has exactly one.
    """
    compiler = Compiler()
    first = order[0]
    equalities, residuals = [], []
    for number in order[1:]:
        if nested_loops:
            residuals.append(Residual(frozenset((first, number)), compiler.compile(_equal(first, number))))
        else:
            sides = tuple(compiler.column(f"s{one + 1}.k", pa.int64()) for one in (first, number))
            equalities.append(Equality((first, number), (sides[0], sides[1])))
    return Join(
        [schema(number) for number in range(count)],
        [partial(make_buffer, Pattern.WKS, "upa")] * count,
        equalities,
        residuals,
        [[other for other in order if other != number] for number in range(count)],
        strict=[False] * count,
    )


def _equal(left: int, right: int) -> exp.Expr:
    sides = [column_of(f"s{number + 1}.k", pa.int64()) for number in (left, right)]
    node = exp.EQ(this=sides[0], expression=sides[1])
    node.type = types.BOOLEAN
    return node


@dataclass(frozen=True)
class Evaluation:
    """eager: an epoch per tuple; lazy: one per Δ, with lifetimes rounded to it, or, restoring, as they are."""

    name: str
    every: float
    """Units of time; 0 is eager."""
    restore: bool = True

    @classmethod
    def eager(cls) -> Evaluation:
        """Algorithms 2 and 3."""
        return cls("eager", 0)

    @classmethod
    def lazy(cls, every: float) -> Evaluation:
        """Algorithm 4: results that came and went between two evaluations are lost."""
        return cls("lazy", every, restore=False)

    @classmethod
    def lazy_restore(cls, every: float) -> Evaluation:
        """Algorithm 5: they are found all the same."""
        return cls("lazy, restore", every)


def seconds(tuples: Tuples, order: Order, how: Evaluation, *, nested_loops: bool, epochs: int) -> tuple[float, float]:
    """Processor seconds and results, both per 1,000 tuples, once the windows are full."""
    operator = join(len(tuples.streams), order, nested_loops=nested_loops)
    size = max(1, round(how.every * tuples.unit))
    slide = None if how.restore else size
    # The windows are filled up to a multiple of the slide.
    now = -(-max(one.length for one in tuples.streams) * tuples.unit // size) * size
    operator.step(tuples.deltas(0, now, slide), Epoch(0, now))
    inputs = []
    for _ in range(epochs):
        inputs.append((tuples.deltas(now, now + size, slide), Epoch(now, now + size)))
        now += size
    gc.collect()
    results = 0
    began = process_time()
    for deltas, epoch in inputs:
        results += len(operator.step(deltas, epoch))
    spent = process_time() - began
    return spent / (epochs * size) * 1000, results / (epochs * size) * 1000
