"""A handle on a registered query: its answers, its state, its plan."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Any

import pyarrow as pa

from windrow.engine import Engine
from windrow.flowing import FlowQuery
from windrow.language.aggregates import aggregate_call, is_aggregate
from windrow.language.arguments import expect_text
from windrow.language.bound import BoundQuery
from windrow.language.user_functions import UserFunction
from windrow.plan.explain import explain
from windrow.plan.nodes import Output
from windrow.running import Registered


class Query:
    """What `db.query(…)` gives back; it takes turns with its database."""

    def __init__(
        self,
        bound: BoundQuery,
        plan: Output,
        running: Registered,
        engine: Engine,
        turn: RLock,
        more_notes: Callable[[], list[tuple[str, str]]],
    ) -> None:
        self._more_notes = more_notes
        self.bound = bound
        self.plan = plan
        self.running = running
        self._engine = engine
        self._turn = turn

    def attach(self, engine: Engine, running: Registered) -> None:
        """Go on with the state of a run that was recovered."""
        self._engine, self.running = engine, running

    @property
    def name(self) -> str:
        """Its name in the database."""
        return self.running.name

    @property
    def text(self) -> str:
        """The query as it was written."""
        return self.bound.text

    @property
    def functions(self) -> list[UserFunction]:
        """The aggregates of the user that it calls."""
        calls = [aggregate_call(node) for node in self.bound.ast.walk(prune=is_aggregate) if is_aggregate(node)]
        return [call.user for call in calls if call.user is not None]

    @property
    def status(self) -> str:
        """running, stopped (see `error`), or dropped."""
        return self.running.status

    @property
    def error(self) -> Exception | None:
        """Why the query was stopped, if it was."""
        return self.running.error

    @property
    def since(self) -> int | None:
        """Tuples at or before this tick are not in its answers, because nobody kept them; None: it has seen all."""
        return self.running.since

    def answers(self) -> pa.Table:
        """All answers that are kept: `_time` and the select list, in the order of `_time`."""
        with self._turn:
            return pa.Table.from_batches(self.running.batches, self.running.schema)

    def take(self) -> pa.Table:
        """The answers since the last take, which are then forgotten here: memory stays bounded on an endless stream."""
        with self._turn:
            table = self.answers()
            self.running.shown()
            return table

    def explain(self, format: str = "text") -> str:
        """The plan with its update patterns, panes, synopses and sharing; format is text, json or mermaid."""
        shown = expect_text(format, "the format of explain").lower()
        with self._turn:
            if self.status == "running":
                notes = [*self._more_notes(), *self._engine.describe_query(self.running)]
            else:  # the engine has forgotten it, and perhaps its stream
                notes = [("status", self.status + (f": {self.error}" if self.status == "stopped" else ""))]
            plan = self.running.flow.plan if isinstance(self.running, FlowQuery) else self.plan
            return explain(plan, notes, shown)

    def metrics(self) -> dict[str, Any]:
        """Counters: due times, answer rows, seconds spent on answers.

        A query that operators maintain also tells the `state_rows` and `state_bytes` that they hold.
        """
        with self._turn:
            return {
                "status": self.status,
                "due": self.running.due,
                "answers": self.running.answered,
                "seconds": self.running.seconds,
                "next_due": self.running.next_due,
                **self.running.state,
            }

    def __repr__(self) -> str:
        return f"<Query {self.name} {self.status}: {self.text}>"
