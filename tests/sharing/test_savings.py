"""What each rule saves in the engine, counted where the work is done; and where it must not apply."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import windrow
from tests.engine.test_slicing_elsewhere import absorb
from windrow.answering import Due, same_output
from windrow.sharing.covers import Combine
from windrow.sharing.slice import Slice
from windrow.synopses.share_group import ShareGroup
from windrow.testing import Reference, assert_same

ROWS, BATCHES = 2000, 4
DECLARED = "CREATE STREAM packets (t BIGINT, proto STRING, src INT, length INT, x DOUBLE, who STRING) TIME t"


def packets(batch: int) -> pa.Table:
    random = np.random.default_rng(batch)
    return pa.table(
        {
            "t": np.sort(random.integers(batch * 100, (batch + 1) * 100, ROWS)),
            "proto": np.array(["tcp", "udp", "icmp"])[random.integers(0, 3, ROWS)],
            "src": random.integers(0, 5, ROWS).astype(np.int32),
            "length": random.integers(0, 1500, ROWS).astype(np.int32),
            "x": random.random(ROWS),
            "who": np.array(["U", "V", "W"])[random.integers(0, 3, ROWS)],
        }
    )


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Rows put into panes one by one, lookups, and the windows in them."""
    counted: Counter[str] = Counter()
    insert, lookup = ShareGroup.insert, ShareGroup.lookup

    def counting_insert(self: ShareGroup, ts: Any, *rest: Any) -> None:
        counted["rows"] += len(ts)
        insert(self, ts, *rest)

    def counting_lookup(self: ShareGroup, starts: Any, *rest: Any) -> Any:
        counted["lookups"] += 1
        counted["windows"] += len(starts)
        return lookup(self, starts, *rest)

    monkeypatch.setattr(ShareGroup, "insert", counting_insert)
    monkeypatch.setattr(ShareGroup, "lookup", counting_lookup)
    yield counted


def run(queries: dict[str, str], deriving: str = "always") -> windrow.Database:
    """All batches, and every answer compared with the reference."""
    db = windrow.connect()
    db._engine.deriving = deriving  # type: ignore[assignment]
    db.execute(DECLARED)
    for name, text in queries.items():
        db.query(text, name=name)
    batches = [packets(number) for number in range(BATCHES)]
    for batch in batches:
        db.push("packets", batch)
    db.finish()
    for query in db.queries():
        reference = Reference(query.bound, {"packets": pa.concat_tables(batches)})
        assert_same(query.answers(), reference.answers(), absolute=1e-9)
    return db


def saved(db: windrow.Database, rule: str) -> dict[str, int]:
    rows = db.execute("SHOW SHARING").to_pylist()
    return {row["unit"]: row["saved"] for row in rows if row["rule"] == rule}


def slice_of(db: windrow.Database, name: str) -> Slice:
    return db._engine.streams["packets"].queries[name].slice


def query(select: str, where: str = "", by: str = "", window: int = 60, slide: int = 10) -> str:
    text = f"SELECT {by + ', ' if by else ''}{select} AS v FROM packets [RANGE {window} SLIDE {slide}]"
    return text + (f" WHERE {where}" if where else "") + (f" GROUP BY {by}" if by else "")


TCP, UDP, BOTH = "proto = 'tcp'", "proto = 'udp'", "proto IN ('tcp', 'udp')"


def test_ss1_panes_and_updates(work: Counter[str]) -> None:
    db = run({"a": query("SUM(length)"), "b": query("SUM(length)", window=100), "c": query("AVG(length)", window=30)})
    assert work["rows"] == ROWS * BATCHES
    assert saved(db, "SS1") == {"panes": 6 + 10 + 3 - 10, "tuple updates": 2 * ROWS * BATCHES}
    assert saved(db, "SS2") == {"components": 4}  # of three sums and three counts, one each is kept


def test_ss2_not_with_another_column() -> None:
    db = run({"a": query("SUM(length)"), "b": query("AVG(src)")})
    assert saved(db, "SS2") == {}


def test_ss4_addition(work: Counter[str]) -> None:
    queries = {"a": query("SUM(length)", TCP), "b": query("SUM(length)", UDP), "c": query("SUM(length)", BOTH)}
    run(queries, "never")
    alone = work.pop("rows")
    db = run(queries)
    derivation = slice_of(db, "c").derivation
    assert derivation is not None and derivation.how is Combine.ADD
    assert work["rows"] * 2 == alone  # every packet of both protocols was counted in c, too
    saves = slice_of(db, "c").saved
    assert saves.derived_updates == alone - work["rows"]
    assert saves.partials <= 2 * (10 + 1) * BATCHES
    assert saved(db, "SS4") == {"tuple updates": saves.derived_updates - saves.partials}


def test_ss4_union_of_maxima(work: Counter[str]) -> None:
    queries = {"a": query("MAX(length)", TCP), "b": query("MAX(length)", "who = 'U'")}
    db = run(queries)
    before = work.pop("rows")
    db = run(queries | {"c": query("MAX(length)", f"{TCP} OR who = 'U'", window=80)})
    assert work["rows"] == before
    derivation = slice_of(db, "c").derivation
    assert derivation is not None and derivation.how is Combine.UNITE


def test_ss4_no_union_of_sums(work: Counter[str]) -> None:
    queries = {"a": query("SUM(length)", TCP), "b": query("SUM(length)", "who = 'U'")}
    db = run(queries | {"c": query("SUM(length)", f"{TCP} OR who = 'U'")})
    assert slice_of(db, "c").derivation is None


def test_ss4_subtraction(work: Counter[str]) -> None:
    """All packets, those of two protocols, and all others: these are what the first has more than the second."""
    queries = {"all": query("AVG(length)", by="src"), "both": query("SUM(length)", BOTH, by="src")}
    run(queries)
    before = work.pop("rows")
    db = run(queries | {"others": query("SUM(length)", f"NOT ({BOTH}) OR proto IS NULL", by="src")})
    derivation = slice_of(db, "others").derivation
    assert derivation is not None and derivation.how is Combine.SUBTRACT
    assert work["rows"] == before
    told = "the partials of both are subtracted from those of all (rule SS4, thesis 8.3.3)"
    assert told in db._registry.find("others", windrow.Query).explain()


def test_ss4_no_subtraction_of_a_slice_from_itself() -> None:
    """Of a query that no packet satisfies."""
    db = run({"all": query("COUNT(*)"), "none": query("COUNT(*)", "src < 1 AND src > 2")})
    assert slice_of(db, "none").derivation is None


def test_ss4_an_addition_is_found_later() -> None:
    """What is there first is no source of the new query, but can be had from it."""
    db = run({"both": query("SUM(length)", BOTH), "a": query("SUM(length)", TCP), "b": query("SUM(length)", UDP)})
    assert slice_of(db, "both").derivation is None  # b is what both has more than a
    assert slice_of(db, "b").derivation is not None
    db = run({"both": query("MAX(length)", BOTH), "a": query("MAX(length)", TCP), "b": query("MAX(length)", UDP)})
    assert slice_of(db, "both").derivation is not None
    assert slice_of(db, "b").derivation is None


@pytest.mark.parametrize("select", ["MAX(length)", "SUM(x)", "SUM(length + 1)", "MEDIAN(length)"])
def test_ss4_what_cannot_be_subtracted(select: str) -> None:
    """An extreme, a floating sum, a value that might fail for a row that is not wanted, and counters."""
    db = windrow.connect()
    db.execute(DECLARED)
    for name, where in (("whole", "src IN (1, 2, 3)"), ("one", "src = 1"), ("use", "src = 1 OR src = 5")):
        db.query(query(select, where), name=name)
    db.query(query(select, "src IN (2, 3)"), name="rest")
    rest = slice_of(db, "rest").derivation
    assert rest is None  # but the whole is what both have together
    assert slice_of(db, "whole").derivation is not None


def test_gb_roll_up(work: Counter[str]) -> None:
    queries = {"fine": query("SUM(x)", by="src, proto"), "coarse": query("AVG(x)", by="proto"), "all": query("SUM(x)")}
    db = run(queries)
    assert work["rows"] == ROWS * BATCHES
    assert slice_of(db, "all").saved.derived_updates == ROWS * BATCHES
    assert slice_of(db, "all").saved.partials < ROWS * BATCHES / 4
    assert set(saved(db, "GB")) == {"tuple updates"}


def test_gb_not_with_other_rows_or_keys_that_may_fail() -> None:
    db = windrow.connect()
    db.execute(DECLARED)
    db.query(query("SUM(x)", "x > length", by="src, proto"), name="fine")
    db.query(query("SUM(x)", "x > src", by="proto"), name="other")
    db.query(query("COUNT(*)", by="src, length // src"), name="fails")
    db.query(query("COUNT(*)", by="src"), name="coarse")
    assert slice_of(db, "other").derivation is None
    assert slice_of(db, "coarse").derivation is None


def test_by_cost_small_batches_go_by_their_rows(work: Counter[str]) -> None:
    db = windrow.connect()
    db.execute(DECLARED)
    db.query(query("SUM(length)", TCP), name="a")
    db.query(query("SUM(length)", "proto = 'tcp' OR FALSE AND length = 1"), name="b")
    db.push("packets", packets(0).slice(0, 100))
    assert slice_of(db, "b").derivation is not None
    assert slice_of(db, "b").saved.derived_updates == 0
    db.push("packets", packets(1))
    assert slice_of(db, "b").saved.derived_updates > 0


def test_cs1_and_cs2_lookups_together(work: Counter[str]) -> None:
    """Whatever their windows, queries with the same components are looked up at once."""
    together = {str(n): query("SUM(length)", window=10 * n) for n in range(1, 7)}
    db = run(together)
    lookups = work.pop("lookups")
    assert lookups <= BATCHES + 1
    assert slice_of(db, "1").saved.lookups == 5 * lookups
    db = run({"a": query("SUM(length)"), "b": query("MAX(length)")})
    assert work["lookups"] == 2 * lookups  # of other components: each by itself
    assert slice_of(db, "a").saved.lookups == 0


def test_cs3_an_average_is_looked_up_with_the_sum(work: Counter[str]) -> None:
    run({"a": query("SUM(length)")})
    alone = work.pop("lookups")
    run({"a": query("SUM(length)"), "b": query("AVG(length)")})
    assert work["lookups"] == alone


def test_cs8_answers_are_taken(work: Counter[str]) -> None:
    often = {"often": query("MAX(length)", by="src") + " ORDER BY v LIMIT 2"}
    run(often)
    windows = work.pop("windows")
    db = run(often | {"seldom": query("MAX(length)", by="src", slide=30) + " ORDER BY v LIMIT 2"})
    assert work["windows"] == windows + 1  # at the end of the input, where only one of them is due
    assert saved(db, "CS8") == {"lookups": db._registry.find("seldom", windrow.Query).metrics()["due"] - 1}
    assert "the answers of often are taken (rule CS8" in db._registry.find("seldom", windrow.Query).explain()


@pytest.mark.parametrize(
    "other",
    [
        query("MAX(length)", by="src", slide=15) + " LIMIT 2",  # due where the other is not
        query("MAX(length)", by="src", slide=30) + " LIMIT 3",
        query("MAX(length)", by="src", slide=30, window=50) + " LIMIT 2",
        query("MIN(length)", by="src", slide=30) + " LIMIT 2",
    ],
)
def test_cs8_not_from_another_query(work: Counter[str], other: str) -> None:
    often = query("MAX(length)", by="src") + " LIMIT 2"
    db = run({"often": often, "other": other})
    assert saved(db, "CS8") == {}
    assert db._engine.streams["packets"].queries["other"].taken == 0


def test_cs8_not_where_less_is_known() -> None:
    """A query that came later knows fewer tuples; its first windows are its own."""
    db = windrow.connect()
    db.execute(DECLARED)
    db.query(query("COUNT(*)", window=60), name="often")
    db.push("packets", packets(0))
    db.query(query("COUNT(*)", window=60, slide=30), name="seldom")
    running = db._engine.streams["packets"].queries
    taus = np.array([120])
    due = [Due(running[name], taus, taus) for name in ("often", "seldom")]
    assert list(same_output(due)) == [running["often"]]
    running["seldom"].member.since = 70
    assert same_output(due) == {}


def test_a_source_that_goes_leaves_the_others_whole() -> None:
    """The derived query looks at the tuples itself from that moment; its panes hold what came before."""
    db = windrow.connect()
    db._engine.deriving = "always"
    db.execute(DECLARED)
    for name, where in (("a", TCP), ("b", UDP), ("c", BOTH)):
        db.query(query("SUM(length)", where), name=name)
    batches = [packets(number) for number in range(BATCHES)]
    for number, batch in enumerate(batches):
        if number == 2:
            db.drop("a")
            assert slice_of(db, "c").derivation is None
        if number == 3:
            db.query(query("SUM(length)", TCP), name="a")  # what c has more than b, from now on
            assert slice_of(db, "a").derivation is not None
        db.push("packets", batch)
    db.finish()
    kept = db._registry.find("c", windrow.Query)
    assert_same(kept.answers(), Reference(kept.bound, {"packets": pa.concat_tables(batches)}).answers())


def test_a_count_on_united_panes_begins_when_they_count_again() -> None:
    db = windrow.connect()
    db._engine.deriving = "always"
    db.execute(DECLARED)
    db.query(query("MAX(length)", TCP), name="a")
    db.query(query("MAX(length)", "who = 'U'"), name="b")
    db.query(query("MAX(length)", f"{TCP} OR who = 'U'"), name="c")
    db.push("packets", packets(0))
    late = db.query(query("COUNT(*)", f"{TCP} OR who = 'U'"), name="late")
    assert slice_of(db, "late") is slice_of(db, "c") and slice_of(db, "c").derivation is None
    assert late.since == 99
    db.push("packets", packets(1))
    db.finish()
    whole = pa.concat_tables([packets(0), packets(1)])
    reference = Reference(late.bound, {"packets": whole}, start=98, since=late.since)
    assert_same(late.answers(), reference.answers())
    with pytest.raises(windrow.CoverageError):
        db.ask(f"SELECT COUNT(*) FROM packets [RANGE 150] WHERE {TCP} OR who = 'U'")


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_value_that_fails_stops_its_query_only(elsewhere: bool) -> None:
    """The sources compute it for the derived query, but need it not."""
    db = windrow.connect()
    db._engine.deriving = "always"
    db.execute("CREATE STREAM s (t BIGINT, a INT, b BIGINT) TIME t")
    for name, select, where in (
        ("one", "MAX(b)", "a = 1"), ("two", "MAX(b)", "a = 2"), ("both", "SUM(b * b)", "a IN (1, 2)"),
    ):  # fmt: skip
        db.query(f"SELECT {select} AS v FROM s [RANGE 10 SLIDE 5] WHERE {where}", name=name)
    table = pa.table({"t": [1, 2, 7], "a": pa.array([1, 2, 3], pa.int32()), "b": [1 << 40, 2, 3]})
    assert db._engine.streams["s"].queries["both"].slice.derivation is not None
    with pytest.raises(windrow.QueryError, match="query both was stopped"):
        absorb(db._engine, "s", [table]) if elsewhere else db.push("s", table)
    db.finish()
    assert [query.status for query in db.queries()] == ["running", "running", "stopped"]
    assert [query.answers().column("v").to_pylist() for query in db.queries()[:2]] == [[1 << 40, 1 << 40], [2, 2]]


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_key_that_fails_stops_all_that_need_it(elsewhere: bool) -> None:
    db = windrow.connect()
    db._engine.deriving = "always"
    db.execute("CREATE STREAM s (t BIGINT, a INT, b BIGINT) TIME t")
    for name, where in (("one", "a = 1"), ("two", "a = 2"), ("both", "a IN (1, 2)")):
        db.query(f"SELECT b * b AS k, COUNT(*) AS v FROM s [RANGE 10 SLIDE 5] WHERE {where} GROUP BY b * b", name=name)
    table = pa.table({"t": [1, 2, 7], "a": pa.array([1, 2, 3], pa.int32()), "b": [1 << 40, 2, 3]})
    with pytest.raises(windrow.QueryError, match=r"query one was stopped.*query both was stopped"):
        absorb(db._engine, "s", [table]) if elsewhere else db.push("s", table)
    assert [query.status for query in db.queries()] == ["stopped", "running", "stopped"]


def test_explain_names_the_rules() -> None:
    db = run({"a": query("SUM(length)", TCP), "b": query("SUM(length)", UDP), "c": query("SUM(length)", BOTH)})
    assert "the partials of a, b are added (rule SS4, thesis 8.3.3)" in db._registry.find("c", windrow.Query).explain()
    assert "partials from here go to c" in db._registry.find("a", windrow.Query).explain()
    new = db.execute(f"EXPLAIN {query('COUNT(*)', BOTH + ' OR FALSE AND length = 1')}")
    assert "derived: no tuple is looked at where that pays: the partials of a, b are added" in new
    assert db.sharing().column("rule").to_pylist() == ["SS4"]
