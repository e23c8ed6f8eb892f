"""A snapshot of other streams or queries, or a damaged one, is refused, and the engine stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import windrow
from tests.engine.test_queries_come_and_go import rows
from tests.engine.test_snapshot import snapshot_of
from tests.random_queries import TICKS
from windrow.errors import CheckpointError

COUNT = "SELECT a, COUNT(*) AS n FROM s [RANGE 10 SLIDE 5] WHERE a > 0 GROUP BY a"


def other(**changed: Any) -> windrow.Database:
    """A database that is not quite that of the snapshot."""
    db = windrow.Database(synopsis=changed.get("synopsis"))
    schema = changed.get("schema", TICKS)
    for name in changed.get("streams", ["s"]):
        db.stream(name, schema, time=changed.get("time", "t"))
    for name, text in changed.get("queries", {"q": COUNT}).items():
        db.query(text, name=name)
    return db


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"streams": ["s", "r"]}, "streams are not those .* does not know r"),
        ({"streams": [], "queries": {}}, "streams are not those .*, which has s: s must be registered first"),
        ({"queries": {}}, "queries on stream s are not those .*, which has q: q must be registered first"),
        ({"queries": {"q": COUNT, "r": COUNT}}, "does not know r: register them after it is restored"),
        ({"queries": {"Q": COUNT}}, "q must be registered first; it does not know Q"),
        ({"queries": {"q": COUNT.replace("a > 0", "a > 1")}}, "query q on stream s .* predicate was a > 0 there"),
        ({"queries": {"q": COUNT.replace("BY a", "BY a, b")}}, "query q on stream s .* its keys"),
        ({"queries": {"q": COUNT.replace("RANGE 10", "RANGE 20")}}, "query q on stream s .* its window"),
        ({"queries": {"q": COUNT.replace("SLIDE 5", "SLIDE 10")}}, "query q on stream s .* its slide was 5"),
        ({"queries": {"q": COUNT.replace("(*)", "(b)")}}, "query q on stream s .* its aggregates"),
        ({"schema": TICKS.set(1, pa.field("a", pa.int64()))}, "stream s is not that .* its columns"),
        ({"time": "b"}, "stream s is not that .* its time was t there and is b now"),
        ({"synopsis": "basic_interval"}, "synopsis=None, and this engine has synopsis='basic_interval'"),
    ],
)
def test_another_engine_is_refused_and_not_changed(changed: dict[str, Any], message: str) -> None:
    db = other()
    db.push("s", rows(3, 4, 17))
    there = other(**changed)
    before = snapshot_of(there)
    with pytest.raises(CheckpointError, match=message):
        there._engine.restore(*snapshot_of(db))
    assert snapshot_of(there) == before


def damages() -> dict[str, Callable[[dict[str, Any], dict[str, bytes]], Any]]:
    return {
        "no streams": lambda meta, blobs: meta.pop("streams"),
        "no blob": lambda meta, blobs: blobs.clear(),
        "half a blob": lambda meta, blobs: blobs.update({name: data[: len(data) // 2] for name, data in blobs.items()}),
        "not Arrow": lambda meta, blobs: blobs.update(dict.fromkeys(blobs, b"?")),
        "another slice's blob": lambda meta, blobs: blobs.update({"slice-000000": blobs["slice-000001"]}),
        "no counter": lambda meta, blobs: meta["streams"][0].pop("late_rows"),
        "text for a number": lambda meta, blobs: meta["streams"][0]["queries"][0].update(next_due="soon"),
        "an index too far": lambda meta, blobs: meta["streams"][0]["queries"][0].update(slice=7),
        "a slice of nobody": lambda meta, blobs: meta["streams"][0]["slices"].append(meta["streams"][0]["slices"][0]),
        "a query twice": lambda meta, blobs: meta["streams"][0]["queries"].append(meta["streams"][0]["queries"][0]),
        "too few beginnings": lambda meta, blobs: meta["streams"][0]["slices"][0].update(since=[]),
        "not a record": lambda meta, blobs: meta.update(streams=[5]),
    }


@pytest.mark.parametrize("damage", damages())
def test_a_damaged_snapshot_is_refused_and_nothing_changes(damage: str) -> None:
    two = {"q": COUNT, "r": "SELECT SUM(b) AS v FROM s [RANGE 10 SLIDE 5]"}
    db, there = other(queries=two), other(queries=two)
    db.push("s", rows(3, 4, 17))
    meta, blobs = snapshot_of(db)
    damages()[damage](meta, blobs)
    before = snapshot_of(there)
    with pytest.raises(CheckpointError, match="snapshot is damaged"):
        there._engine.restore(meta, blobs)
    assert snapshot_of(there) == before


def test_a_snapshot_of_another_version_is_refused() -> None:
    meta, blobs = snapshot_of(other())
    with pytest.raises(CheckpointError, match="has version 99, and this Windrow reads version 5"):
        other()._engine.restore({**meta, "version": 99}, blobs)
