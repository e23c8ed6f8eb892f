"""A query over a join that it shares: to the engine a flow like any other; what it is told goes to the join, once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa
from sqlglot import exp

from windrow.expressions import Compiler
from windrow.flow.flow import Flow
from windrow.flow.leaves import BEGINNING
from windrow.joined.asker import Asker
from windrow.joined.choice import reason
from windrow.joined.described import shares_state, together
from windrow.joined.shape import JoinShape
from windrow.joined.share import JoinShare
from windrow.joined.worth import pays
from windrow.kernels.jit import Ints
from windrow.language.bound import BoundQuery
from windrow.operators.answer import AnswerRows
from windrow.plan import nodes
from windrow.plan.periodic import Aggregation
from windrow.sharing.member import Term
from windrow.sharing.rules.computation import CS5


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
        terms = tuple(term(one) for one in over.aggregations)
        self.asker = Asker(name, shape, AnswerRows.of(over, compiler), terms, since)
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
        kind, costs = axis.kind, axis.load.costs
        notes = [
            *self.share.flow.describe(),
            ("join", f"one for {_listed(names)}, with windows of {' and '.join(map(str, self.share.shape.windows))}"),
            ("results", f"{kind.upper()} synopsis, by the time at which they expire; {reason(kind, costs)}"),
        ]
        if len(beside) > 1 and shares_state(axis):
            notes.append(
                ("shared", f"{_listed(beside)} look at the same panes of join results (rule SS3, thesis 8.3.2)")
            )
        for rule, askers in together(axis):
            if self.asker in askers:
                how = "are found in one scan" if isinstance(rule, CS5) else "have the same windows, looked up once"
                told = _listed([asker.name for asker in askers])
                notes.append(("together", f"{told} {how} (rule {rule.name}, thesis {rule.section})"))
        return notes


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def shares_of(flows: Iterable[Flow]) -> list[JoinShare]:
    """The joins that these queries share, each once."""
    return list({id(one.share): one.share for one in flows if isinstance(one, SharedJoin)}.values())


class Lone(Protocol):
    """A query that has a join of its own."""

    name: str
    shape: JoinShape | None


def would_share(shape: JoinShape, joins: Iterable[JoinShare], lone: Sequence[Lone]) -> list[tuple[str, str]]:
    """For EXPLAIN of a query that is not registered: whose join it would share."""
    share = next((one for one in joins if one.admits(shape)), None)
    names = [one.name for one in lone] if share is None else [one.asker.name for one in share.members]
    if share is None and not pays([shape, *(one.shape for one in lone if one.shape is not None)]):
        return []
    return [("join", f"it would be made once with {_listed(names)} (rule SS3, thesis 8.3.2)")] if names else []
