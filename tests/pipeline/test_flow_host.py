"""Continuous queries on a host that is killed: joins, negation, groups and relations end with the same answers."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import windrow
from tests.pipeline.faulty_disk import Crash, FaultyDisk, WatchedDisk
from tests.pipeline.test_host import Folder
from windrow.engine import Engine
from windrow.language import types
from windrow.language.catalog import Catalog, Column, Relation, stream_from_schema
from windrow.pipeline import durable, sink_directory
from windrow.pipeline.checkpoint import Checkpoint
from windrow.pipeline.definitions import QueryDefinition
from windrow.pipeline.host import Host
from windrow.pipeline.reconcile import Resumption, add_intake, load_relations, reconcile
from windrow.sliced import pack
from windrow.slicer import Slicer
from windrow.state.choice import Strategy
from windrow.testing import Reference, RelationUpdate

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int64()), ("v", pa.float64())])
STREAMS = {name: stream_from_schema(name, SCHEMA, time="t") for name in ("p", "q")}
_COLUMNS = (Column("k", types.from_arrow(pa.int64())), Column("name", types.from_arrow(pa.string())))
RELATIONS = {
    "names": Relation("names", _COLUMNS, ("k",)),
    "rates": Relation("rates", _COLUMNS, ("k",), non_retroactive=True),
    "later_names": Relation("later_names", _COLUMNS),
}
ROWS = {
    "names": pa.table({"k": [0, 1, 2], "name": ["zero", "one", "two"]}),
    "rates": pa.table({"k": [0, 1], "name": ["low", "high"]}),
    "later_names": pa.table({"k": [1, 3], "name": ["uno", "tres"]}),
}
TEXTS: dict[str, tuple[str, Strategy]] = {
    "joined": ("SELECT x.k, x.v, y.v AS w FROM p [RANGE 6] AS x, q [RANGE 9] AS y WHERE x.k = y.k", "upa"),
    "unmatched": (
        "SELECT x.k, x.v FROM p [RANGE 5] AS x WHERE NOT EXISTS (SELECT * FROM q [RANGE 4] AS y WHERE y.k = x.k)", "nt",
    ),
    "different": ("SELECT DISTINCT x.k FROM p [RANGE 6] AS x", "upa"),
    "counts": ("SELECT k, COUNT(*) AS n, SUM(v) AS v FROM p [RANGE 7] GROUP BY k", "upa"),
    "named": ("SELECT x.v, n.name FROM p [RANGE 8] AS x, names AS n WHERE x.k = n.k", "direct"),
    "rated": ("SELECT x.v, r.name FROM q [RANGE 8] AS x, rates AS r WHERE x.k = r.k", "upa"),
    "rows": ("SELECT x.v, y.v AS w FROM p [ROWS 3] AS x, q [PARTITION BY k ROWS 1] AS y WHERE x.k = y.k", "upa"),
    "every": ("SELECT DISTINCT k FROM p [RANGE 6 SLIDE 4] EXCEPT SELECT k FROM q [RANGE 6 SLIDE 4]", "upa"),
    "panes": ("SELECT k, SUM(v) AS v FROM p [RANGE 10 SLIDE 5] GROUP BY k", "upa"),
}  # fmt: skip
KILLED = ("joined", "different", "unmatched", "named")
"""A join, DISTINCT, a negation, a relation that changes; and `later`, which comes while the run goes on."""
STRIDE = 1 if "WINDROW_EXAMPLES" in os.environ else 11
"""To lose what was not synced, a run is played up to the operation: every one of them takes minutes."""
LATER = "SELECT x.k, m.name FROM q [RANGE 6] AS x, later_names AS m WHERE x.k = m.k"
CAME, GONE = [{"k": 3, "name": "three"}], [{"k": 1}]
UPDATES = [("names", CAME, GONE), ("rates", [{"k": 2, "name": "middle"}], None)]


def table(rows: int, per_tick: int, keys: int) -> pa.Table:
    return pa.table(
        {
            "t": [i // per_tick for i in range(rows)],
            "k": [i * 7 % keys for i in range(rows)],
            "v": [i / 4 for i in range(rows)],
        },
        schema=SCHEMA,
    )


TABLES = {"p": table(48, 2, 4), "q": table(28, 1, 5)}
BATCHES = [(name, number, TABLES[name].slice(number * size, size)) for number in range(4)
           for name, size in (("p", 12), ("q", 7))]  # fmt: skip


def definitions(folder: Folder) -> dict[str, QueryDefinition]:
    made = {}
    for name, (text, strategy) in TEXTS.items():
        sink = folder.definition(name, text).sink
        made[name] = QueryDefinition(name, text, sink, strategy)
    return made


def opened(
    root: Path, wanted: dict[str, QueryDefinition] | None = None, relations: dict[str, Relation] | None = None,
    marks: dict[str, str] | None = None,
) -> tuple[Host, Folder, Resumption]:  # fmt: skip
    """A host on this checkpoint: begun, or recovered and reconciled."""
    folder = Folder(root / "out")
    wanted = wanted or definitions(folder)
    relations = relations or {name: RELATIONS[name] for name in ("names", "rates")}
    fingerprints = [(stream, (marks or {}).get(name, "f")) for name, stream in STREAMS.items()]
    rows = lambda relation: ROWS[relation.name]  # noqa: E731
    checkpoint = Checkpoint.open(root / "checkpoint")
    host = Host(Engine(), Catalog(), checkpoint, folder)
    if checkpoint.snapshot is None:
        for stream, mark in fingerprints:
            host.catalog.add(stream)
            host.engine.add_stream(stream)
            add_intake(host, stream, mark)
        for relation in relations.values():
            host.catalog.add(relation)
        for definition in wanted.values():
            host.register(definition)
        load_relations(host, rows)
        host.open_sinks()
        host.compact()
        return host, folder, Resumption()
    try:
        host.recover(wanted)
        if "later" in host.queries:  # it was registered while the run went on, and the script has it now
            wanted["later"] = folder.definition("later", LATER)
            relations["later_names"] = RELATIONS["later_names"]
        return host, folder, reconcile(host, fingerprints, list(wanted.values()), relations, rows)
    except BaseException:
        host.close()
        raise


def packed(host: Host, stream: str, piece: pa.Table) -> pa.Table:
    job = host.jobs.of(stream)
    worker = Slicer(job.text)
    worker.begin(host.watermark(stream))
    worker.take(piece.select(list(job.columns)))
    return pa.Table.from_batches(list(pack(worker.result())))


def feed(host: Host, folder: Folder, steps: range, *, compact_at: int = -1) -> None:
    for step in steps:
        stream, number, piece = BATCHES[step]
        if number <= host.done.get(stream, -1):
            continue
        for name, came, gone in UPDATES if step == 4 else ():
            known = host.engine.flows.relations.table(RELATIONS[name]).to_pylist()
            if came[0] not in known:
                host.update(RELATIONS[name], came, gone, 16)
        if step == 5 and "later" not in host.queries:
            if host.catalog.get("later_names") is None:
                host.catalog.add(RELATIONS["later_names"])
            if not host.engine.flows.relations.known(RELATIONS["later_names"]):
                host.load(RELATIONS["later_names"], ROWS["later_names"])
            host.add(folder.definition("later", LATER))
        host.take(stream, number, packed(host, stream, piece), flush=step % 2 == 0)
        if step == compact_at:
            host.flush()
            host.compact()


def play(root: Path) -> dict[str, list[str]]:
    """The whole run, or what is left of it."""
    host, folder, _ = opened(root)
    feed(host, folder, range(len(BATCHES)), compact_at=3)
    if not host.finished:
        host.finish(list(STREAMS))
    host.compact()
    host.close()
    return folder.contents()


def by_time(contents: dict[str, list[str]]) -> dict[str, list[str]]:
    """Rows of one instant have no order."""
    found = {}
    for name, lines in contents.items():
        ticks = [int(line.split(",")[0]) for line in lines]
        assert ticks == sorted(ticks), f"{name} is not in the order of time"
        found[name] = sorted(lines)
    return found


def test_the_undisturbed_run_is_that_of_the_reference(tmp_path: Path) -> None:
    found = play(tmp_path)
    host, _, _ = opened(tmp_path)
    names = [RelationUpdate(-100, "+", row) for row in ROWS["names"].to_pylist()]
    names += [RelationUpdate(16, "+", CAME[0]), RelationUpdate(16, "-", GONE[0])]
    rates = [RelationUpdate(-100, "+", row) for row in ROWS["rates"].to_pylist()]
    rates += [RelationUpdate(16, "+", {"k": 2, "name": "middle"})]
    for name in TEXTS:
        running = host.queries[name].running
        plan = getattr(running, "flow", None)
        if plan is None:
            continue
        wanted = Reference(plan.query, TABLES, {"names": names, "rates": rates}).answers()
        lines = ["\t".join(str(value) for value in row.values()) for row in wanted.to_pylist()]
        ours = ["\t".join(str(_number(part)) for part in line.split(",")) for line in found[name]]
        assert sorted(ours) == sorted(lines), name
    host.close()


def _number(part: str) -> Any:
    part = part.strip('"')
    return float(part) if re.fullmatch(r"-?\d+\.\d+", part) else part


@contextmanager
def on(disk: FaultyDisk, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All that the host writes goes there."""
    with monkeypatch.context() as patch:
        patch.setattr(durable, "os", disk)
        patch.setattr(sink_directory, "os", disk)
        yield


def test_killed_in_front_of_and_within_every_operation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From what a kill leaves at that moment, the run goes on to the answers of an undisturbed one."""
    monkeypatch.setattr(sys.modules[__name__], "TEXTS", {name: TEXTS[name] for name in KILLED})
    root = tmp_path / "run"
    root.mkdir()
    disk = WatchedDisk(root, tmp_path / "copies")
    with on(disk, monkeypatch):
        expected = by_time(play(root))
    assert {*KILLED, "later"} == set(expected)
    for copy in disk.kept:
        shutil.rmtree(root)
        copy.rename(root)
        with on(FaultyDisk(), monkeypatch):
            assert by_time(play(root)) == expected, f"killed at operation {copy.name}"
    assert disk.count > 200 and sum("torn" in copy.name for copy in disk.kept) > 20


def test_the_power_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As above, and what was not synced is lost."""
    monkeypatch.setattr(sys.modules[__name__], "TEXTS", {name: TEXTS[name] for name in KILLED})
    expected = by_time(play(tmp_path / "whole"))
    for at in range(1, 4000, STRIDE):
        root, disk = tmp_path / str(at), FaultyDisk(at)
        with on(disk, monkeypatch):
            try:
                play(root)
            except Crash:
                disk.die()
        if not disk.dead:
            break
        disk.power_failure()
        assert by_time(play(root)) == expected, f"the power failed in front of operation {at}"
    assert at > 200


@pytest.mark.parametrize("stop", range(1, len(BATCHES)))
def test_recovered_after_any_batch(tmp_path: Path, stop: int) -> None:
    """Once from the journal alone, once from a snapshot."""
    expected = by_time(play(tmp_path / "whole"))
    for compacted in (False, True):
        root = tmp_path / str(compacted)
        host, folder, _ = opened(root)
        feed(host, folder, range(stop))
        if compacted:
            host.flush()
            host.compact()
        host.close()
        host, folder, found = opened(root)
        assert {*found.resumed} >= {*TEXTS} and not found.afresh
        feed(host, folder, range(len(BATCHES)))
        host.finish(list(STREAMS))
        host.close()
        assert by_time(folder.contents()) == expected


def test_a_changed_relation_starts_its_queries_afresh(tmp_path: Path) -> None:
    host, folder, _ = opened(tmp_path)
    feed(host, folder, range(3))
    host.close()
    changed = {**RELATIONS, "names": Relation("names", _COLUMNS)}  # without its KEY
    del changed["later_names"]
    host, folder, found = opened(tmp_path, relations=changed)
    assert "relation names is declared otherwise now and is read anew" in found.afresh
    assert any(one.startswith("query named starts afresh with its relation names") for one in found.afresh)
    assert {*found.resumed} == {*TEXTS} - {"named"}
    assert host.engine.flows.relations.table(changed["names"]).equals(ROWS["names"])
    feed(host, folder, range(len(BATCHES)))
    host.finish(list(STREAMS))
    host.close()
    assert by_time(folder.contents())["named"]


def test_a_changed_stream_takes_its_joins_with_it(tmp_path: Path) -> None:
    host, folder, _ = opened(tmp_path)
    feed(host, folder, range(4))
    host.close()
    host, folder, found = opened(tmp_path, marks={"q": "another"})
    assert {*found.resumed} == {"counts", "different", "named", "panes"}
    assert any(one.startswith("query joined starts afresh with its stream q") for one in found.afresh)
    assert "q" not in host.done and host.done["p"] == 1
    host.take("q", 0, packed(host, "q", TABLES["q"]), flush=True)
    host.take("p", 2, packed(host, "p", TABLES["p"].slice(24, 12)), flush=True)
    host.finish(list(STREAMS))
    host.close()
    # Tuples up to the newest one that was known then are in none of its windows.
    assert all(int(line.split(",")[0]) > 11 for line in folder.contents()["joined"])
    assert folder.contents()["joined"]


def test_another_strategy_is_another_query(tmp_path: Path) -> None:
    host, folder, _ = opened(tmp_path)
    feed(host, folder, range(3))
    host.close()
    wanted = definitions(folder)
    wanted["joined"] = QueryDefinition("joined", TEXTS["joined"][0], wanted["joined"].sink, "nt")
    host, folder, found = opened(tmp_path, wanted)
    assert "joined" not in found.resumed
    assert any(
        "query joined is new or has changed: it starts with the tuples that come now" in one for one in found.afresh
    )
    host.close()


def test_damaged_state_is_refused(tmp_path: Path) -> None:
    host, folder, _ = opened(tmp_path)
    feed(host, folder, range(4))
    host.flush()
    host.compact()
    meta, blobs = host.engine.snapshot()
    host.close()
    copied: dict[str, Any] = json.loads(json.dumps(meta))
    flow = next(name for name in blobs if name.startswith("flow-"))

    def refused(damage: Any, cut: dict[str, bytes], told: str) -> None:
        host, _, _ = opened(tmp_path)
        before = json.dumps(host.engine.snapshot()[0])
        with pytest.raises(windrow.CheckpointError, match=told):
            host.engine.restore(damage, cut)
        assert json.dumps(host.engine.snapshot()[0]) == before
        host.close()

    refused(copied, {**blobs, flow: blobs[flow][:20]}, "damaged")
    refused(copied, {name: blob for name, blob in blobs.items() if name != flow}, "damaged")
    refused({**copied, "version": 2}, blobs, "has version 2")
    without = {name: value for name, value in copied.items() if name != "flows"}
    refused(without, blobs, "damaged")
    queries = copied["flows"]["queries"]
    refused({**copied, "flows": {**copied["flows"], "queries": queries[1:]}}, blobs, "are not those of the engine's")
    other = [{**queries[0], "strategy": "direct"}, *queries[1:]]
    refused({**copied, "flows": {**copied["flows"], "queries": other}}, blobs, "its strategy was direct")
    broken = [{**queries[0], "state": {**queries[0]["state"], "graph": []}}, *queries[1:]]
    refused({**copied, "flows": {**copied["flows"], "queries": broken}}, blobs, "damaged")


def test_a_far_timestamp_does_not_spoil_the_checkpoint(tmp_path: Path) -> None:
    host, folder, _ = opened(tmp_path)
    feed(host, folder, range(2))
    far = pa.table({"t": [1 << 50], "k": [1], "v": [1.0]}, schema=SCHEMA)
    with pytest.raises(windrow.InputError, match="is a timestamp wrong"):
        host.take("p", 1, packed(host, "p", far), flush=True)
    host.close()
    assert by_time(play(tmp_path)) == by_time(play(tmp_path / "whole"))
