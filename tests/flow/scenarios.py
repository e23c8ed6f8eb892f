"""Random worlds: what arrives when, in which pieces, what relations do meanwhile, and where the engine is restarted."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

import windrow
from tests.flow.random_flows import KEYED, NAMES, SQL_COLUMNS, STREAMS, TICKS
from windrow.testing import Reference, RelationUpdate, assert_same

EARLY = -1000
"""Updates before every tuple and every query are there from the beginning."""
Tuple = tuple[int, int | None, int | None, str | None]
OTHERS = (
    "SELECT a, COUNT(*) AS n FROM p [RANGE 5 SLIDE 2] GROUP BY a",
    "SELECT DISTINCT x.a FROM p [RANGE 6] AS x, q [ROWS 3] AS y WHERE x.a = y.a",
)


@dataclass(frozen=True)
class Event:
    """push (tuples), advance (ticks behind the newest), update (inserted and deleted places, ticks ahead), restart."""

    kind: str
    name: str = ""
    tuples: tuple[Tuple, ...] = ()
    amount: int = 0
    deleted: tuple[int, ...] = ()


@dataclass(frozen=True)
class Scenario:
    """Events in their order; `ended`: the input ends, else its streams only fall silent and are advanced."""

    lateness: int
    events: tuple[Event, ...]
    ended: bool
    begins: int = 0
    """Before which event the query is registered."""


few = st.one_of(st.none(), st.integers(0, 2))
value = st.tuples(few, few, st.sampled_from([None, "x", "y"]))


@st.composite
def scenarios(draw: st.DrawFn, rows: int = 14, horizon: int = 24, *, later: bool = True) -> Scenario:
    """Bursts, ties, disorder within the lateness (rarely beyond), streams at different pace, heartbeats, silence."""
    lateness = draw(st.sampled_from([0, 0, 2, 5]))
    begin = draw(st.sampled_from([0, 0, 0, -9]))
    end = begin + horizon
    arrivals: list[tuple[int, int, Event]] = []
    for number, name in enumerate(STREAMS):
        lag = draw(st.sampled_from([0, 0, 0, 7, -7]))
        ticks = draw(st.lists(st.integers(begin, end), max_size=rows))
        if draw(st.integers(0, 3)) == 0:  # a burst
            ticks += [draw(st.integers(begin, end))] * draw(st.integers(2, 6))
        values = draw(st.lists(value, min_size=len(ticks), max_size=len(ticks)))
        late = [draw(st.integers(0, lateness)) for _ in ticks] if lateness else [0] * len(ticks)
        for tick, delay, (a, b, s) in zip(ticks, late, values, strict=True):
            arrivals.append((tick + delay + lag, number, Event("push", name, ((tick, a, b, s),))))
    for name in ("names", "prices"):
        for _ in range(draw(st.integers(0, 5))):
            came = tuple((0, *one) for one in draw(st.lists(value, max_size=2)))
            deleted = tuple(draw(st.lists(st.integers(0, 9), max_size=2)))
            ahead = draw(st.sampled_from([-1, -1, 0, 1, 4]))
            arrivals.append((draw(st.integers(begin, end)), 8, Event("update", name, came, ahead, deleted)))
    for _ in range(draw(st.integers(0, 4))):
        beat = Event("advance", draw(st.sampled_from(STREAMS)), amount=draw(st.integers(-3, 6)))
        arrivals.append((draw(st.integers(begin, end + 6)), 9, beat))
    restarts = draw(st.lists(st.integers(begin, end), max_size=2)) if draw(st.booleans()) else []
    arrivals += [(when, 9, Event("restart")) for when in restarts]
    ordered = [event for _, _, event in sorted(arrivals, key=lambda one: one[:2])]
    joined = _batched(ordered, draw(st.sampled_from([1, 1, 3, 50])))
    begins = draw(st.integers(0, len(joined) // 2)) if later and draw(st.integers(0, 3)) == 0 else 0
    return Scenario(lateness, tuple(joined), draw(st.booleans()), begins)


def _batched(events: list[Event], size: int) -> list[Event]:
    """Pushes of one stream that stand together become one, up to a size."""
    result: list[Event] = []
    for event in events:
        last = result[-1] if result else None
        same = last is not None and last.kind == event.kind == "push" and last.name == event.name
        if last is not None and same and len(last.tuples) < size:
            result[-1] = Event("push", event.name, last.tuples + event.tuples)
        else:
            result.append(event)
    return result


@dataclass
class World:
    """A database that plays a scenario, and what the reference must know of it."""

    lateness: int
    text: str
    strategy: str
    others: bool = True
    optimizer: bool = True
    pushed: dict[str, list[Tuple]] = field(default_factory=lambda: {name: [] for name in STREAMS})
    late: dict[str, list[pa.Table]] = field(default_factory=lambda: {name: [] for name in STREAMS})
    updates: dict[str, list[RelationUpdate]] = field(default_factory=lambda: {"names": [], "prices": []})
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {"names": [], "prices": []})
    answers: list[pa.Table] = field(default_factory=list)
    keys: int = 0
    newest: int = -20

    def __post_init__(self) -> None:
        self.ended = False
        # The end brings what fills no slide, at the last instant: which must not have been answered already.
        self.sliding_rows = re.search(r"ROWS \d+ SLIDE", self.text) is not None
        self.db = self._declared()
        self.query: windrow.Query | None = None

    def _declared(self) -> windrow.Database:
        db = windrow.connect(optimizer=self.optimizer)
        for name in STREAMS:
            db.execute(f"CREATE STREAM {name} {SQL_COLUMNS} LATENESS {self.lateness}")
        db.execute(f"CREATE RELATION names {NAMES}; CREATE RELATION prices {KEYED} NON RETROACTIVE")
        return db

    def register(self) -> None:
        """The query begins now."""
        self.query = self.db.query(self.text, name="mine", strategy=self.strategy)

    def play(self, scenario: Scenario) -> None:
        """All events, then the end or a heartbeat beyond it."""
        self.ended = scenario.ended
        if self.others:
            self.db.query(OTHERS[0], name="panes")
        for number, event in enumerate(scenario.events):
            if number == scenario.begins:
                self.register()
            if self.others and number == 3:
                self.db.query(OTHERS[1], name="joined")
            if self.others and number == 8:
                self.db.drop("joined")
            getattr(self, f"_{event.kind}")(event)
        if self.query is None:
            self.register()
        if scenario.ended:
            self.db.finish()
        else:
            for name in STREAMS:
                self.db.advance(name, self.newest + 15)
        self._take()

    def _push(self, event: Event) -> None:
        columns = list(zip(*event.tuples, strict=True))
        self.db.push(
            event.name, pa.table([pa.array(c, f.type) for c, f in zip(columns, TICKS, strict=True)], TICKS.names)
        )
        self.pushed[event.name] += event.tuples
        self.newest = max(self.newest, *columns[0])

    def _advance(self, event: Event) -> None:
        to = self.newest - event.amount
        if self.ended:  # a heartbeat beyond the last tuple would move the end, of which the reference knows nothing
            own = [tick for tick, *_ in self.pushed[event.name]]
            if not own:
                return
            to = min(to, max(own) - self.sliding_rows)
        self.db.advance(event.name, to)
        self.newest = max(self.newest, to)

    def _update(self, event: Event) -> None:
        held = self.rows[event.name]
        places = {place for place in event.deleted if place < len(held)}
        gone = [held[place] for place in sorted(places)]
        came = []
        for _, a, b, s in event.tuples:
            self.keys += 1
            came.append({"a": a, "b": b, "s": s} | ({"id": self.keys} if event.name == "prices" else {}))
        if not came and not gone:
            return
        inserted = pa.Table.from_pylist(came, self._schema(event.name)) if came else None
        deleted = pa.Table.from_pylist(gone, self._schema(event.name)) if gone else None
        time = None if event.amount < 0 else self.newest + event.amount
        try:
            when = self.db.update(event.name, inserted, deleted, time=time)
        except windrow.InputError:
            when = self.db.update(event.name, inserted, deleted)
        self.rows[event.name] = [row for place, row in enumerate(held) if place not in places] + came
        self.updates[event.name] += [RelationUpdate(when, "-", row) for row in gone]
        self.updates[event.name] += [RelationUpdate(when, "+", row) for row in came]

    def _schema(self, relation: str) -> pa.Schema:
        return self.db.catalog.get(relation).schema

    def _restart(self, event: Event) -> None:
        """Another engine, from a snapshot."""
        self._take()
        meta, blobs = self.db._engine.snapshot()
        copy = self._declared()
        for query in self.db.queries():
            strategy = self.strategy if query.name == "mine" else "upa"
            registered = copy.query(query.text, name=query.name, strategy=strategy)
            self.query = registered if query.name == "mine" else self.query
        copy._engine.restore(json.loads(json.dumps(meta)), blobs)
        self.db = copy

    def _take(self) -> None:
        if self.query is not None:
            assert self.query.status == "running", self.query.error
            self.answers.append(self.query.answers())
        for name in STREAMS:
            self.late[name].append(self.db.late(name))

    def expected(self, scenario: Scenario) -> pa.Table:
        """What the reference says."""
        assert self.query is not None
        tables = {}
        for name in STREAMS:
            left = Counter(self.pushed[name])
            for table in self.late[name]:
                left -= Counter(tuple(row.values()) for row in table.to_pylist())
            tables[name] = pa.Table.from_pylist(
                [dict(zip(TICKS.names, row, strict=True)) for row in left.elements()], TICKS
            )
        marks = [self.db._engine.streams[name].watermark.value for name in self.query.running.streams]
        until = None if scenario.ended else min(marks)
        since = self.query.since
        updates = {name: _from_then_on(content, since) for name, content in self.updates.items()}
        return Reference(self.query.bound, tables, updates, since=since, until=until).answers()

    def check(self, scenario: Scenario) -> None:
        """The answers are those of the reference."""
        found = pa.concat_tables(self.answers)
        times = found["_time"].to_pylist()
        assert times == sorted(times)
        ordered = "ORDER BY" in self.text and "_change" not in found.schema.names and "STREAM" not in self.text
        assert_same(found, self.expected(scenario), ordered=ordered, absolute=1e-9)


def _from_then_on(updates: list[RelationUpdate], since: int | None) -> list[RelationUpdate]:
    """What a query that begins after `since` sees: the rows of then are there from the beginning."""
    rows: list[Any] = []
    later = [one for one in updates if one.time is not None and one.time > (EARLY if since is None else since)]
    for update in updates:
        if update not in later:
            if update.change == "+":
                rows.append(update.row)
            else:
                rows.remove(update.row)
    return [*(RelationUpdate(None, "+", row) for row in rows), *later]
