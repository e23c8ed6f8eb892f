"""The same small worlds through the engine: every strategy, tuple by tuple and all at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

import windrow
from windrow.testing import RelationUpdate

STRATEGIES = ("upa", "nt", "direct")
PUSHES = ("tuple by tuple", "all at once")


def engine_answers(
    query: str,
    streams: Mapping[str, pa.Table],
    relations: Mapping[str, list[RelationUpdate] | pa.Table],
    *,
    ddl: str = "",
    until: int | None = None,
) -> Iterator[tuple[str, pa.Table]]:
    """The answers of the engine, and how they came about."""
    for strategy in STRATEGIES:
        for pushes in PUSHES:
            db = windrow.connect()
            if ddl:
                db.execute(ddl)
            for name, table in streams.items():
                if db.catalog.get(name) is None:
                    db.stream(name, table.schema, time="ts")
            updates = []
            for name, content in relations.items():
                if isinstance(content, pa.Table):
                    db.update(name, content)
                else:
                    updates += [(update.time, name, update) for update in content]
            registered = db.query(query, strategy=strategy)
            _play(db, streams, sorted(updates, key=lambda one: one[:2]), one_by_one=pushes == PUSHES[0])
            if until is None:
                db.finish()
            else:
                for name in streams:
                    db.advance(name, until)
            yield f"{strategy}, {pushes}", registered.answers()


def _play(
    db: windrow.Database,
    streams: Mapping[str, pa.Table],
    updates: list[tuple[int, str, RelationUpdate]],
    *,
    one_by_one: bool,
) -> None:
    if not one_by_one:
        for _, name, update in updates:
            _update(db, name, update)
        for name, table in streams.items():
            db.push(name, table)
        return
    events = []
    for name, table in streams.items():
        times = table[db.catalog.get(name).time].cast(pa.int64()).to_pylist()
        events += [(time, 1, name, place) for place, time in enumerate(times)]
    events += [(time, 0, name, place) for place, (time, name, _) in enumerate(updates)]
    for _, kind, name, place in sorted(events):
        if kind:
            db.push(name, streams[name].slice(place, 1))
        else:
            _update(db, name, updates[place][2])


def _update(db: windrow.Database, name: str, update: RelationUpdate) -> None:
    given = {column.lower(): value for column, value in update.row.items()}
    rows = [given]
    if update.change == "+":
        rows = [{column.name: given.get(column.name.lower()) for column in db.catalog.get(name).columns}]
    change = {"insert": rows} if update.change == "+" else {"delete": rows}
    db.update(name, **change, time=update.time)
