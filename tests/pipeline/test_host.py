"""A host killed in front of every single operation on the disk ends with exactly the answers of an undisturbed run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow
from tests.pipeline.faulty_disk import Crash, FaultyDisk
from tests.random_queries import TICKS, queries, tables
from windrow.engine import Engine
from windrow.language.catalog import Catalog, Stream, stream_from_schema
from windrow.pipeline import durable, sink_directory
from windrow.pipeline.checkpoint import Checkpoint
from windrow.pipeline.definitions import QueryDefinition
from windrow.pipeline.host import Host
from windrow.pipeline.reconcile import Resumption, add_intake, reconcile
from windrow.pipeline.sinks import Sink, open_sink, output_spec
from windrow.sliced import pack
from windrow.slicer import Slicer
from windrow.testing import cut

STREAM = stream_from_schema("s", TICKS, time="t", lateness=3)
LATER = "SELECT s, COUNT(*) AS n FROM s [RANGE 12 SLIDE 4] GROUP BY s"


class Folder:
    """Answers as CSV, late rows as Parquet, all below one directory."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def definition(self, name: str, text: str) -> QueryDefinition:
        return QueryDefinition(name, text, output_spec(self.path, name, "csv"))

    def open(self, definition: QueryDefinition, schema: pa.Schema, *, fresh: bool) -> Sink:
        assert definition.sink is not None
        return open_sink(definition.sink, definition.name, schema, None, fresh=fresh)

    def open_late(self, stream: Stream) -> Sink:
        return open_sink(output_spec(self.path / "_late", stream.name, "csv"), "late", stream.schema, None, fresh=False)

    def contents(self) -> dict[str, list[str]]:
        """The lines of each query, in the order of their steps."""
        found: dict[str, list[str]] = {}
        for file in sorted(self.path.rglob("part-*.csv")):
            lines = file.read_text().splitlines()
            found.setdefault(str(file.parent.relative_to(self.path)), []).extend(lines[1:])
        return found


def opened(root: Path, texts: list[str]) -> tuple[Host, Folder, Resumption]:
    """A host on this checkpoint: begun, or recovered and reconciled."""
    folder = Folder(root / "out")
    wanted = {f"q{number}": folder.definition(f"q{number}", text) for number, text in enumerate(texts)}
    checkpoint = Checkpoint.open(root / "checkpoint")
    host = Host(Engine(), Catalog(), checkpoint, folder)
    if checkpoint.snapshot is None:
        host.catalog.add(STREAM)
        host.engine.add_stream(STREAM)
        add_intake(host, STREAM, "f")
        for definition in wanted.values():
            host.register(definition)
        host.open_sinks()
        host.compact()
        return host, folder, Resumption()
    host.recover(wanted)
    if "later" in host.queries:  # it was registered while the run went on, and the script has it now
        wanted["later"] = folder.definition("later", LATER)
    try:
        return host, folder, reconcile(host, [(STREAM, "f")], list(wanted.values()))
    except BaseException:
        host.close()
        raise


def packed(host: Host, pieces: list[pa.Table]) -> pa.Table:
    job = host.jobs.of("s")
    batches = []
    for piece in pieces:
        worker = Slicer(job.text)
        worker.begin(host.watermark("s"))
        late = worker.take(piece.select(list(job.columns)))
        if late is not None:
            worker.keep_late(piece.filter(pa.array(late)))
        batches += list(pack(worker.result()))
    return pa.Table.from_batches(batches)


def play(root: Path, texts: list[str], batches: list[pa.Table], *, compact_at: int = -1) -> dict[str, list[str]]:
    """The whole run, or what is left of it."""
    host, folder, _ = opened(root, texts)
    for number, batch in enumerate(batches):
        if number <= host.done.get("s", -1):
            continue
        if number == 2 and "later" not in host.queries:
            host.add(folder.definition("later", LATER))
        host.take("s", number, packed(host, cut(batch, number, 2)), flush=number % 2 == 0)
        if number == compact_at:
            host.flush()
            host.compact()
    if not host.finished:
        host.finish(["s"])
    host.compact()
    host.close()
    return folder.contents()


def example() -> tuple[list[str], list[pa.Table]]:
    rows = 48
    table = pa.table(
        {
            "t": [i - 6 * (i % 12 == 0) for i in range(rows)],
            "a": [i % 4 for i in range(rows)],
            "b": list(range(rows)),
            "x": [i / 3 for i in range(rows)],
            "s": ["uvw"[i % 3] for i in range(rows)],
            "f": [i % 2 == 0 for i in range(rows)],
            "d": [0] * rows,
        },
        schema=TICKS,
    )
    texts = [
        "SELECT s, SUM(x) AS v, MAX(s) AS m FROM s [RANGE 10 SLIDE 5] GROUP BY s",
        "SELECT COUNT(*) AS n FROM s [RANGE 7 SLIDE 2] WHERE a > 1",
    ]
    return texts, [table.slice(start, 12) for start in range(0, rows, 12)]


@pytest.mark.parametrize("torn", [False, True])
def test_killed_in_front_of_every_operation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torn: bool) -> None:
    texts, batches = example()
    expected = play(tmp_path / "whole", texts, batches, compact_at=2)
    assert {"q0", "q1", "later", "_late/s"} <= set(expected)
    for at in range(1, 2000):
        root, disk = tmp_path / str(at), FaultyDisk(at, torn=torn)
        with monkeypatch.context() as patch:
            patch.setattr(durable, "os", disk)
            patch.setattr(sink_directory, "os", disk)
            try:
                play(root, texts, batches, compact_at=2)
            except Crash:
                disk.die()
        if not disk.dead:
            break
        again = play(root, texts, batches, compact_at=2)
        assert again == expected, f"killed in front of operation {at}"
    assert at > 60


@given(tables(), st.lists(queries(), min_size=1, max_size=3), st.integers(0, 2**32), st.data())
def test_recovered_after_any_batch(
    tmp_path_factory: pytest.TempPathFactory, table: pa.Table, texts: list[str], seed: int, data: Any
) -> None:
    root = tmp_path_factory.mktemp("host")
    batches = cut(table, seed, 5)
    expected = play(root / "whole", texts, batches)
    stops = data.draw(st.sets(st.integers(0, len(batches) - 1)))
    host, folder, _ = opened(root / "cut", texts)
    for number, batch in enumerate(batches):
        if number == 2:
            host.add(folder.definition("later", LATER))
        host.take("s", number, packed(host, cut(batch, number, 2)), flush=number % 2 == 0)
        if number in stops:
            host.close()  # without a snapshot: the journal alone has it
            host, folder, found = opened(root / "cut", texts)
            assert set(found.resumed) >= {f"q{i}" for i in range(len(texts))}
            assert not found.afresh
    host.finish(["s"])
    host.close()
    assert folder.contents() == expected


def feed(root: Path, texts: list[str], numbers: range, batches: list[pa.Table]) -> tuple[Host, Folder, Resumption]:
    host, folder, found = opened(root, texts)
    for number in numbers:
        host.take("s", number, packed(host, [batches[number]]), flush=False)
    return host, folder, found


def test_a_changed_script_resumes_what_did_not_change(tmp_path: Path) -> None:
    texts, batches = example()
    whole = play(tmp_path / "whole", texts, batches)
    host, _, _ = feed(tmp_path / "run", texts, range(2), batches)
    host.close()
    changed = [texts[0].replace("SELECT", "SELECT  /* laid out anew */ "), texts[1].replace("RANGE 7", "RANGE 9")]
    host, folder, found = feed(tmp_path / "run", [*changed, LATER], range(2, 4), batches)
    host.finish(["s"])
    host.close()
    assert found.resumed == ["q0"]
    assert folder.contents()["q0"] == whole["q0"]
    assert any("query q1 is new or has changed" in one and "_replaced" in one for one in found.afresh)
    assert any("query q2 is new" in one for one in found.afresh)
    assert folder.contents()["q1"]
    kept = [name for name in folder.contents() if name.startswith("_replaced")]
    assert [folder.contents()[name] for name in kept] == [whole["q1"][: len(folder.contents()[kept[0]])]]


def test_a_query_that_left_the_script_keeps_its_answers(tmp_path: Path) -> None:
    texts, batches = example()
    host, _, _ = feed(tmp_path / "run", texts, range(2), batches)
    host.close()
    host, folder, found = feed(tmp_path / "run", texts[:1], range(2, 4), batches)
    host.finish(["s"])
    host.close()
    assert found.afresh == ["query q1 is not in the script any more; its answers so far stay where they are"]
    assert folder.contents()["q1"]


def test_a_changed_stream_starts_afresh(tmp_path: Path) -> None:
    texts, batches = example()
    host, folder, _ = feed(tmp_path / "run", texts, range(2), batches)
    host.close()
    checkpoint = Checkpoint.open(tmp_path / "run" / "checkpoint")
    host = Host(Engine(), Catalog(), checkpoint, folder)
    wanted = [folder.definition(f"q{number}", text) for number, text in enumerate(texts)]
    host.recover({one.name: one for one in wanted})
    before = host.intakes["s"]
    found = reconcile(host, [(STREAM, "another")], wanted)
    assert not found.resumed
    assert any("stream s is another one now" in one for one in found.afresh)
    assert host.intakes["s"] != before and "s" not in host.done
    host.close()


def test_a_stopped_query_stays_stopped(tmp_path: Path) -> None:
    text = "SELECT SUM(b * b) AS v FROM s [RANGE 10 SLIDE 5]"
    other = "SELECT COUNT(*) AS v FROM s [RANGE 10 SLIDE 5]"
    rows: Callable[[int], dict[str, Any]] = lambda b: {  # noqa: E731
        "t": [1], "a": [1], "b": [b], "x": [1.0], "s": ["u"], "f": [True], "d": [0]
    }  # fmt: skip
    batches = [pa.table(rows(1 << 40), schema=TICKS)]
    host, _, _ = feed(tmp_path / "run", [text, other], range(1), batches)
    assert host.queries["q0"].running.status == "stopped"
    host.compact()
    host.close()
    host, folder, _ = opened(tmp_path / "run", [text, other])
    assert host.queries["q0"].running.status == "stopped"
    assert "q0 was stopped" in str(host.queries["q0"].running.error)
    host.finish(["s"])
    assert folder.contents() == {"q1": ["5,1"]}
    host.close()


def test_an_ended_run_does_not_take_another_script(tmp_path: Path) -> None:
    texts, batches = example()
    before = play(tmp_path / "run", texts, batches)
    changed = [texts[0].replace("SUM(x)", "MIN(x)"), texts[1]]
    with pytest.raises(windrow.StateError, match="has ended, and the script has changed since: query q0"):
        opened(tmp_path / "run", changed)
    assert Folder(tmp_path / "run" / "out").contents() == before
    host, _, found = opened(tmp_path / "run", [*texts])
    assert host.finished and len(found.resumed) >= 2
    host.close()
