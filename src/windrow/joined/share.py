"""One join for many periodic aggregates (thesis 8.3.2, rules SS3 and CS5).

tuples ─► one join, with the longest windows ─► results with both timestamps ─► axes of panes ─► answers of each query

To the engine each query is a flow like any other; what it is told goes to the join that it shares, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from windrow.errors import QueryError
from windrow.expressions import Compiler
from windrow.flow.emission import Stamped
from windrow.flow.flow import Flow
from windrow.flow.leaves import BEGINNING
from windrow.joined.axis import Asker, Axis, Results
from windrow.joined.shape import JoinShape, join_query, result_column
from windrow.kernels.jit import Ints
from windrow.language.bound import BoundQuery
from windrow.operators.answer import AnswerRows
from windrow.plan import nodes
from windrow.plan.build import build
from windrow.plan.periodic import Aggregation
from windrow.sharing.slice import Member, Term
from windrow.state.rows import Epoch
from windrow.windows.due import first_due


class JoinFlow(Flow):
    """The join: its results come out as they come, whenever they will end."""

    def _step(self, epoch: Epoch, due: Ints) -> list[Stamped]:
        self._begun = self._begun or (self._oldest is not None and self._oldest <= epoch.upto)
        came = self.graph.step(epoch)[self._root.node].came
        return [(came.batch, came.ts)] if len(came) else []


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
        """Whether a query can come in: any one before the first tuple, then one whose windows and columns are there."""
        if shape.key != self.shape.key:
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
        try:
            batches = go()
        except QueryError as error:
            for one in self.members:
                one.asker.error = error
            return
        due = {one.asker: due_of(one) for one in self.members}
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
        return self.flow.nbytes + sum(axis.part.group.nbytes for axis in self.axes if axis.part.group is not None)

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


class SharedJoin(Flow):
    """A query that shares a join. Made like a flow, for its schema and plan; its own operators stay empty."""

    def __init__(
        self,
        name: str,
        share: JoinShare,
        shape: JoinShape,
        term: Callable[[Aggregation], Term],
        query: BoundQuery,
        plan: nodes.Output,
        compiler: Compiler,
        *,
        since: int,
        notes: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(query, plan, compiler, since=since, notes=notes)
        over = shape.plan
        member = Member(over.window, over.slide, tuple(term(one) for one in over.aggregations))
        self.asker = Asker(name, shape, AnswerRows.of(over, compiler), member, since)
        self.share = share
        share.add(self)

    @property
    def leads(self) -> bool:
        """What comes is taken from one of the queries only, and that one accounts for all that is shared."""
        return self.share.members[0] is self

    def columns(self, stream: str) -> set[str]:
        return self.share.flow.columns(stream)

    def wanted(self, stream: str) -> list[exp.Expr | None]:
        return self.share.flow.wanted(stream)

    def see(self, stream: str, oldest: int) -> None:
        if self.leads:
            self.share.flow.see(stream, oldest)

    def add(self, stream: str, table: pa.Table, ts: Ints) -> None:
        if self.leads:
            self.share.take(stream, table, ts)

    def advance(self, upto: int, oldest: int | None) -> list[pa.RecordBatch]:
        self.share.advance(upto, oldest)
        return self._answers()

    def finish(self, newest: Mapping[str, int | None], oldest: Mapping[str, int | None]) -> list[pa.RecordBatch]:
        self.share.finish(newest, oldest)
        return self._answers()

    def _answers(self) -> list[pa.RecordBatch]:
        if self.asker.error is not None:
            raise self.asker.error
        out, self.asker.out = self.asker.out, []
        return [pa.RecordBatch.from_arrays(one.columns, schema=self.schema) for one in out if one.num_rows]

    def close(self) -> None:
        """The query has ended."""
        self.share.remove(self)

    # ---- state ----------------------------------------------------------------------------------------------------

    @property
    def untouched(self) -> bool:
        return self.upto == BEGINNING and self.share.flow.untouched

    @property
    def rows(self) -> int:
        return self.share.flow.rows if self.leads else 0

    @property
    def nbytes(self) -> int:
        return self.share.nbytes if self.leads else 0

    def snapshot(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        shared, tables = self.share.snapshot() if self.leads else (None, {})
        first = self.share.members[0].asker.name
        return {"joined": first, "since": self.since, "upto": self.upto, "shared": shared}, tables

    def restore(self, meta: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> None:
        self.since = self.asker.since = meta["since"]
        self.upto = self.asker.upto = meta["upto"]
        if meta["shared"] is not None:
            self.share.restore(meta["shared"], tables)
        self.share.settle()

    def describe(self) -> list[tuple[str, str]]:
        names = [one.asker.name for one in self.share.members]
        axis = next(axis for axis in self.share.axes if self.asker in axis.askers)
        beside = [asker.name for asker in axis.askers]
        return [
            *self.share.flow.describe(),
            ("join", f"one for {_listed(names)}, with windows of {' and '.join(map(str, self.share.shape.windows))}"),
            ("shared", f"{_listed(beside)} look at the same panes of join results, by the time at which these expire "
                       "(rule SS3, thesis 8.3.2), in one scan (rule CS5, thesis 8.3.2)"),
        ]  # fmt: skip


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def shares_of(flows: Iterable[Flow]) -> list[JoinShare]:
    """The joins that these queries share, each once."""
    return list({id(one.share): one.share for one in flows if isinstance(one, SharedJoin)}.values())
