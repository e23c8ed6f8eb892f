"""One join for many periodic aggregates (thesis 8.3.2, rule SS3).

tuples ─► one join, with the longest windows ─► results with both timestamps ─► axes of panes ─► answers of each query
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windrow.errors import QueryError
from windrow.expressions import Compiler
from windrow.joined.asker import Asker, Results
from windrow.joined.axis import Axis
from windrow.joined.join_flow import JoinFlow
from windrow.joined.shape import JoinShape, join_query, result_column
from windrow.joined.worth import pays
from windrow.kernels.jit import Ints
from windrow.language.bound import BoundQuery
from windrow.plan import nodes
from windrow.plan.build import build
from windrow.windows.due import first_due

if TYPE_CHECKING:
    from windrow.joined.shared_join import SharedJoin


class Saved:
    """What the queries of one join did not do each for itself; counted as it happens."""

    def __init__(self) -> None:
        self.tuples = self.results = 0


class JoinShare:
    """One join and the queries over it; all that fit into its windows and columns may come."""

    def __init__(
        self,
        template: BoundQuery,
        shape: JoinShape,
        since: int,
        compiler: Compiler,
        optimized: Callable[[nodes.Output], nodes.Output],
    ) -> None:
        self.shape = shape
        """The join; its windows are the longest, its columns all that are read."""
        self.since = since
        self.members: list[SharedJoin] = []
        self.axes: list[Axis] = []
        self.saved = Saved()
        self._template, self._compiler, self._optimized = template, compiler, optimized
        self._moved: object = None
        self._waiting: tuple[Mapping[str, Any], Mapping[str, pa.Table]] | None = None
        self.flow = self._joined()

    def _joined(self) -> JoinFlow:
        query = join_query(self._template, self.shape)
        return JoinFlow(query, self._optimized(build(query)), self._compiler, since=self.since)

    @property
    def names(self) -> list[str]:
        """The streams that are joined."""
        return [source.name for source in self._template.sources]

    # ---- queries come and go --------------------------------------------------------------------------------------

    def admits(self, shape: JoinShape) -> bool:
        """Whether a query can come in: before the first tuple if it pays, then if its windows and columns are there."""
        if shape.key != self.shape.key:
            return False
        if self.flow.untouched and not pays([shape, *(one.asker.shape for one in self.members)]):
            return False
        longest = all(own >= asked for own, asked in zip(self.shape.windows, shape.windows, strict=True))
        known = all(own >= asked for own, asked in zip(self.shape.columns, shape.columns, strict=True))
        return self.flow.untouched or (longest and known)

    def add(self, one: SharedJoin) -> None:
        """One more query; it knows the tuples that come from now on."""
        own, asked = self.shape, one.asker.shape
        wider = replace(
            own,
            windows=(max(own.windows[0], asked.windows[0]), max(own.windows[1], asked.windows[1])),
            columns=(own.columns[0] | asked.columns[0], own.columns[1] | asked.columns[1]),
        )
        if self.flow.untouched and (wider != own or one.since < self.since):
            self.shape, self.since = wider, min(self.since, one.since)
            self.flow = self._joined()
        self.members.append(one)
        self._place(one.asker)

    def _place(self, asker: Asker) -> None:
        axis = next((axis for axis in self.axes if axis.fits(asker)), None)
        if axis is None:
            axis = Axis(asker.shape, asker.since, self._compiler)
            self.axes.append(axis)
        axis.add(asker)
        self._moved = None

    def remove(self, one: SharedJoin) -> None:
        """A query goes; what the others use stays."""
        self.members.remove(one)
        for axis in self.axes:
            if one.asker in axis.askers:
                axis.remove(one.asker)
        self.axes = [axis for axis in self.axes if axis.askers]
        if self.members:
            self._shrink()

    def _shrink(self) -> None:
        """Windows that were those of a query that has gone get shorter, and lose their old tuples (thesis 8.2)."""
        first, second = (max(one.asker.shape.windows[side] for one in self.members) for side in (0, 1))
        if (first, second) != self.shape.windows:
            self.shape, wider = replace(self.shape, windows=(first, second)), self.flow
            self.flow = self._joined()
            self.flow.take_over(wider)

    # ---- tuples in, answers out -----------------------------------------------------------------------------------

    def take(self, stream: str, table: pa.Table, ts: Ints) -> None:
        """Tuples of a stream, for all queries."""
        self.saved.tuples += (len(self.members) - 1) * len(ts)
        self.flow.add(stream, table, ts)

    def advance(self, upto: int, oldest: int | None) -> None:
        """The watermark has come to `upto`; told by each query, and done once."""
        if self._moved != (upto, oldest):
            self._move(lambda: self.flow.advance(upto, oldest), lambda one: one._due(upto, oldest))
            self._moved = (upto, oldest)

    def finish(self, newest: Mapping[str, int | None], oldest: Mapping[str, int | None]) -> None:
        """The end of both streams; told by each query, and done once."""
        times = [end for name in self.flow.streams if (end := newest[name]) is not None]
        first = min((begin for name in self.flow.streams if (begin := oldest[name]) is not None), default=None)
        if not times or self._moved == "finished":
            return
        last = max(times)

        def due(one: SharedJoin) -> Ints:
            assert one.query.slide is not None
            return one._due(max(first_due(last, one.query.slide), one.upto), first)

        self._move(lambda: self.flow.finish(newest, oldest), due)
        self._moved = "finished"

    def _move(self, go: Callable[[], list[pa.RecordBatch]], due_of: Callable[[SharedJoin], Ints]) -> None:
        due = {one.asker: due_of(one) for one in self.members}
        if not any(map(len, due.values())):
            return  # tuples wait until a query is due, as they would without sharing
        try:
            batches = go()
        except QueryError as error:
            for one in self.members:
                one.asker.error = error
            return
        results = self._results(batches)
        self.saved.results += (len(self.members) - 1) * len(results)
        for axis in self.axes:
            axis.move(results, due)
        for one in self.members:
            one.upto = one.asker.upto

    def _results(self, batches: Sequence[pa.RecordBatch]) -> Results:
        """In the order in which they came."""
        whole = pa.Table.from_batches(batches, self.flow.schema).combine_chunks().to_batches()
        batch = whole[0] if whole else pa.RecordBatch.from_pylist([], self.flow.schema)
        birth = batch.column(0).view(pa.int64()).to_numpy()
        if (np.diff(birth) < 0).any():
            order = np.argsort(birth, kind="stable")
            batch, birth = batch.take(pa.array(order)), birth[order]
        sources = self.flow.query.sources
        left, right = (
            batch.column(result_column(side, source.stream.time if source.stream else "")).view(pa.int64()).to_numpy()
            for side, source in enumerate(sources, start=1)
        )
        return Results(batch, birth, left, right)

    # ---- state ----------------------------------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        """Bytes of the join and of the panes."""
        return self.flow.nbytes + sum(axis.nbytes for axis in self.axes)

    def snapshot(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        """The join, and all axes."""
        meta, tables = self.flow.snapshot()
        axes, panes = [], []
        for axis in self.axes:
            about, kept = axis.snapshot()
            axes.append(about | {"queries": [asker.name for asker in axis.askers]})
            panes.append(kept)
        record = {
            "flow": meta,
            "axes": axes,
            "windows": list(self.shape.windows),
            "columns": [sorted(names) for names in self.shape.columns],
            "members": [one.asker.name for one in self.members],
        }
        return record, tables | {"panes": pa.table({"panes": pa.array(panes, pa.large_binary())})}

    def restore(self, meta: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> None:
        """Become what `snapshot` gave, once all its queries are here."""
        self._waiting = (meta, tables)

    def settle(self) -> None:
        """All queries of a snapshot are here: put the state in place."""
        if self._waiting is None or len(self.members) < len(self._waiting[0]["members"]):
            return
        (meta, tables), self._waiting = self._waiting, None
        left, right = meta["columns"]
        first, second = meta["windows"]
        self.shape = replace(self.shape, windows=(first, second), columns=(frozenset(left), frozenset(right)))
        self.since = meta["flow"]["state"][0]
        self.flow = self._joined()
        self.flow.restore(meta["flow"], tables)
        by_name = {one.asker.name: one for one in self.members}
        self.members = [by_name[name] for name in meta["members"]]
        self.axes = []
        for about, panes in zip(meta["axes"], tables["panes"].column("panes").to_pylist(), strict=True):
            askers = [by_name[name].asker for name in about["queries"]]
            axis = Axis(askers[0].shape, askers[0].since, self._compiler)
            for asker in askers:
                axis.add(asker)
            axis.restore(about, panes)
            self.axes.append(axis)
