"""The slicer: one pass over the rows fills the panes of all slices of a job, anywhere, and gives their partials.

rows ─► late ones apart ─► one Context per batch ─► the panes of every slice ─► Sliced
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from functools import lru_cache, reduce
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windrow.aggregates import aggregate
from windrow.errors import QueryError
from windrow.expressions import Compiler, Context, Program
from windrow.input import conform, timestamps
from windrow.job import EVERY_TERM, load, load_user
from windrow.language.catalog import Column, Stream
from windrow.parallel import each
from windrow.sharing.member import Member, Term
from windrow.sharing.slice import Slice
from windrow.sliced import Sliced
from windrow.synopses.open_panes import AssignedPanes
from windrow.windows.grid import Grid
from windrow.windows.spec import RangeWindow

PARALLEL_ROWS = 50_000
"""Below this, handing work to threads costs more than it saves."""


class Slicer:
    """A job, compiled. `take` batches, then `result`; one slicer serves one pass at a time."""

    def __init__(self, text: str) -> None:
        job = json.loads(text)
        compiler = Compiler()
        self.stream = _stream(job["stream"])
        self.columns: list[str] = job["columns"]
        self._tuples: list[str] | None = job["tuples"]
        self._wanted = None if job["wanted"] is None else [compiler.compile(load(one)) for one in job["wanted"]]
        self._read = replace(self.stream, columns=tuple(self.stream.column(name) for name in self.columns))
        self._plans = [_SlicePlan(one, compiler) for one in job["slices"]]
        self.begin(None)

    def begin(self, watermark: int | None) -> None:
        """A new pass: rows at or before the watermark are late."""
        self._watermark = watermark
        self._result = Sliced()
        self._slices = [plan.build() for plan in self._plans]

    def take(self, data: pa.Table | pa.RecordBatch) -> NDArray[np.bool_] | None:
        """Slice a batch with the columns of the job (all of it or, with an InputError, nothing); says who was late."""
        began = perf_counter()
        table = conform(self._read, data)
        ts = timestamps(self._read, table)
        if not len(ts):
            return None
        oldest, newest = int(np.min(ts)), int(np.max(ts))
        self._result.see(len(ts), oldest, newest)
        late = None
        if self._watermark is not None and oldest <= self._watermark:
            late = ts <= self._watermark
            self._result.late_rows += int(late.sum())
            table, ts = table.filter(pa.array(~late)), ts[~late]
        if len(ts):
            self._result.keep(int(np.min(ts)), int(np.max(ts)))
            context = Context.of(table.combine_chunks())
            self._insert(context, ts)
            if self._tuples is not None:
                self._keep_tuples(table, context)
        self._result.spend("slice", perf_counter() - began)
        return late

    def _insert(self, context: Context, ts: NDArray[np.int64]) -> None:
        parts = [part for part, _ in self._slices]
        panes = shared_panes(parts, ts)
        failures = each(lambda part: part.insert(context, ts, panes), parts, worthwhile=len(ts) >= PARALLEL_ROWS)
        for number, ((_, members), failed) in enumerate(zip(self._slices, failures, strict=True)):
            for member, error in failed.items():
                self._result.failed[number, members[member]] = str(error)

    def _keep_tuples(self, table: pa.Table, context: Context) -> None:
        """The rows that somebody wants; they travel with the columns that somebody reads."""
        assert self._tuples is not None
        rows = table.select(self._tuples)
        if self._wanted is not None:
            try:
                taken = [pc.fill_null(context.value(one), True) for one in self._wanted]
            except QueryError:
                taken = []  # a query fails on some row; it is stopped where it runs
            if taken:
                rows = rows.filter(reduce(pc.or_, taken))
        if rows.num_rows:
            self._result.tuples.append(rows)

    def keep_late(self, table: pa.Table) -> None:
        """The late rows, with all their columns."""
        self._result.late.append(table)

    def note(self, *, files: int = 0, read: float = 0.0) -> None:
        """Files read, and the seconds that reading took."""
        self._result.files += files
        self._result.spend("read", read)

    def result(self) -> Sliced:
        """What the pass brought."""
        began = perf_counter()
        for number, (part, _) in enumerate(self._slices):
            assert part.group is not None
            partials = part.group.partials()
            if len(partials):
                self._result.partials.append((number, partials))
        self._result.spend("slice", perf_counter() - began)
        return self._result


def shared_panes(parts: list[Slice], ts: NDArray[np.int64]) -> dict[Grid, AssignedPanes]:
    """The pane of each row, found once for all slices that have the same grid and take every row."""
    grids = Counter(part.group.grid for part in parts if part.group is not None and part.predicate is None)
    return {grid: AssignedPanes.of(grid, ts) for grid, users in grids.items() if users > 1}


@lru_cache(maxsize=16)
def slicer(text: str) -> Slicer:
    """The slicer of a job; a worker process compiles a job once."""
    return Slicer(text)


class _SlicePlan:
    """One slice of a job, compiled; `build` makes an empty one."""

    def __init__(self, described: dict[str, Any], compiler: Compiler) -> None:
        def compiled(dump: Any) -> Program | None:
            return None if dump is None else compiler.compile(load(dump))

        self._predicate = compiled(described["predicate"])
        self._keys = tuple(compiler.compile(load(key)) for key in described["keys"])
        self._terms = []
        for name, value, parameters, user in described["terms"]:
            program = compiled(value)
            kind = None if program is None else program.type
            self._terms.append(Term(aggregate(name, kind, tuple(parameters), load_user(name, user)), program))
        self._grid = Grid(tuple((step, phase) for step, phase in described["grid"]))
        self._begin = described["begin"]
        self._synopsis = described["synopsis"]

    def build(self) -> tuple[Slice, dict[Member, int]]:
        """The slice, and the number of the term that each of its members stands for."""
        part = Slice(self._predicate, self._keys, self._synopsis)
        members: dict[Member, int] = {}
        for number, terms in enumerate([(), *((term,) for term in self._terms)], EVERY_TERM):
            member = Member(RangeWindow(1, 1), 1, terms)
            part.add(member, None)
            members[member] = number
        part.pin(self._grid, self._begin)
        return part, members


def _stream(described: dict[str, Any]) -> Stream:
    columns = tuple(Column(name, load(kind)) for name, kind in described["columns"])
    return Stream(
        described["name"],
        columns,
        described["time"],
        described["sequence"],
        described["lateness"],
        options=described["options"],
    )
