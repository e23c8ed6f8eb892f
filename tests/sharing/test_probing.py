"""Questions that several slices answer together (SS4, GB, CS6, CS7): exact, counted, or refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow
from tests.random_queries import TICKS, tables
from tests.sharing.test_savings import BATCHES, BOTH, DECLARED, TCP, UDP, packets, query, slice_of, work
from windrow.language.binder import bind
from windrow.plan.build import build
from windrow.plan.periodic import periodic_aggregate
from windrow.sharing.covers import Combine
from windrow.testing import Reference, assert_same, cut, shuffle_within

__all__ = ["work"]  # the fixture

TABLE = pa.concat_tables([packets(number) for number in range(BATCHES)])
EITHER = "proto = 'tcp' OR who = 'U'"


def running(queries: dict[str, str], *, synopsis: str | None = None, finish: bool = False) -> windrow.Database:
    """All packets; the watermark is 398, and the newest edge of panes of 10 is 390, or 400 at the end."""
    db = windrow.connect(synopsis=synopsis)
    db.execute(DECLARED)
    for name, text in queries.items():
        db.query(text, name=name)
    db.push("packets", TABLE)
    if finish:
        db.finish()
    return db


def question(select: str, where: str = "", by: str = "", window: str = "60") -> str:
    text = f"SELECT {by + ', ' if by else ''}{select} AS v FROM packets [RANGE {window}]"
    return text + (f" WHERE {where}" if where else "") + (f" GROUP BY {by}" if by else "")


def asked(db: windrow.Database, text: str, tau: int = 390) -> pa.Table:
    """The answer, which is that of DuckDB at τ."""
    found = db.ask(text)
    assert set(found.column("_time").to_pylist()) == {tau}
    expected = Reference(bind(text, db.catalog), {"packets": TABLE}).answer(tau)
    assert_same(found.drop_columns(["_time"]), expected, absolute=1e-9)
    return found


def saved(db: windrow.Database) -> dict[tuple[str, str], int]:
    """By rules and unit, what questions have saved."""
    rows = db.sharing().to_pylist()
    return {(row["rule"], row["unit"]): row["saved"] for row in rows if "question" in row["queries"]}


def in_window(start: int, end: int, *protos: str) -> int:
    times = TABLE["t"].to_numpy()
    return int(((times > start) & (times <= end) & np.isin(TABLE["proto"].to_pylist(), protos)).sum())


# ---- CS6 -----------------------------------------------------------------------------------------------------------


SUMS = {"tcp": query("SUM(length)", TCP), "udp": query("SUM(length)", UDP)}


def test_cs6_the_same_window_of_running_synopses(work: Counter[str]) -> None:
    db = running(SUMS)
    before, panes = Counter(work), [slice_of(db, name).group for name in SUMS]
    size = [0 if group is None else group.nbytes for group in panes]
    asked(db, question("AVG(length)", BOTH))
    assert saved(db) == {("SS4+CS6", "panes"): 6, ("SS4+CS6", "tuple updates"): in_window(330, 390, "tcp", "udp")}
    assert work["rows"] == before["rows"]  # no tuple was looked at
    assert work["windows"] == before["windows"] + len(SUMS) + 1  # one in each source, and one in what they are together
    assert len(db._engine.streams["packets"].slices) == len(SUMS)
    assert size == [0 if group is None else group.nbytes for group in panes]


def test_cs6_not_with_other_windows() -> None:
    """A shorter one is answered by SS4: nobody has just looked it up. A longer one is not kept."""
    db = running(SUMS)
    asked(db, question("SUM(length)", BOTH, window="30"))
    asked(db, question("SUM(length)", BOTH, window="20 OFFSET 40"))
    assert {rules for rules, _ in saved(db)} == {"SS4"}
    with pytest.raises(windrow.CoverageError, match="no combination of them has exactly its rows"):
        db.ask(question("SUM(length)", BOTH, window="120"))
    with pytest.raises(windrow.CoverageError, match="no combination of them has exactly its rows"):
        db.ask(question("SUM(length)", BOTH, window="15"))


def test_cs6_not_for_overlapping_rows() -> None:
    db = running({"tcp": query("SUM(length)", TCP), "user": query("SUM(length)", "who = 'U'")})
    with pytest.raises(windrow.CoverageError, match="no combination of them has exactly its rows"):
        db.ask(question("SUM(length)", EITHER))
    with pytest.raises(windrow.CoverageError, match="no combination of them has exactly its rows"):
        db.ask(question("SUM(length)", TCP + " AND who = 'U'"))
    assert saved(db) == {}


# ---- CS7 -----------------------------------------------------------------------------------------------------------


MAXIMA = {"tcp": query("MAX(length)", TCP), "user": query("MAX(length)", "who = 'U'", window=80)}


def test_cs7_any_window_of_basic_interval_synopses(work: Counter[str]) -> None:
    db = running(MAXIMA, synopsis="basic_interval")
    before = Counter(work)
    asked(db, question("MAX(length)", EITHER, window="40"))
    times, protos, users = (TABLE[name].to_numpy() for name in ("t", "proto", "who"))
    inside = (times > 350) & (times <= 390)
    most = max(int((inside & (protos == "tcp")).sum()), int((inside & (users == "U")).sum()))
    assert saved(db) == {("SS4+CS7", "panes"): 4, ("SS4+CS7", "tuple updates"): most}
    assert work["rows"] == before["rows"]
    assert work["windows"] == before["windows"] + len(MAXIMA) + 1


def test_cs7_not_of_interval_synopses() -> None:
    db = running(MAXIMA, synopsis="interval")
    asked(db, question("MAX(length)", EITHER, window="40"))
    assert {rules for rules, _ in saved(db)} == {"SS4"}


def test_cs7_not_for_sums_of_overlapping_rows_or_windows_that_are_not_kept() -> None:
    db = running(
        {"tcp": query("SUM(length)", TCP), "user": query("SUM(length)", "who = 'U'"), "max": query("MAX(length)", TCP)},
        synopsis="basic_interval",
    )
    for text in (question("SUM(length)", EITHER, window="40"), question("MAX(length)", EITHER, window="40")):
        with pytest.raises(windrow.CoverageError, match="no combination of them has exactly its rows"):
            db.ask(text)
    db = running(MAXIMA, synopsis="basic_interval")
    with pytest.raises(windrow.CoverageError, match="no combination of them has exactly its rows"):
        db.ask(question("MAX(length)", EITHER, window="80"))  # tcp has 60
    assert saved(db) == {}


# ---- what can be put together --------------------------------------------------------------------------------------


def test_a_difference() -> None:
    db = running({"all": query("AVG(length)", by="src"), "both": query("SUM(length)", BOTH, by="src")})
    rest = f"NOT ({BOTH}) OR proto IS NULL"
    asked(db, question("SUM(length)", rest, by="src"))
    asked(db, question("COUNT(*)", rest))
    assert saved(db)["SS4+CS6", "tuple updates"] == in_window(330, 390, "icmp")
    assert {rules for rules, _ in saved(db)} == {"SS4+CS6", "SS4+GB+CS6"}


@pytest.mark.parametrize("select", ["MAX(length)", "SUM(x)", "SUM(length + 1)", "MEDIAN(length)"])
def test_what_is_not_subtracted(select: str) -> None:
    db = running({"all": query(select, "src IN (1, 2, 3)"), "one": query(select, "src = 1")})
    with pytest.raises(windrow.CoverageError, match="no combination of them"):
        db.ask(question(select, "src IN (2, 3)"))


def test_groups_without_rows_are_not_left_over() -> None:
    """What is subtracted completely is no group; with no aggregate at all, the rows alone tell."""
    db = running({"all": query("COUNT(*)", by="src"), "some": query("COUNT(*)", "src < 3 OR proto = 'tcp'", by="src")})
    rest = "(src >= 3 OR src IS NULL) AND (proto <> 'tcp' OR proto IS NULL)"
    found = asked(db, "SELECT DISTINCT src FROM packets [RANGE 60] WHERE " + rest)
    assert sorted(found["src"].to_pylist()) == [3, 4]


@pytest.mark.parametrize(
    "select",
    [
        "COUNT(*)", "COUNT(x)", "SUM(length)", "SUM(x)", "AVG(x)", "MIN(x)", "MAX(who)", "VAR_SAMP(length)",
        "MEDIAN(length)", "MODE(who)", "TOP_K(who, 2)", "COUNT(DISTINCT length)", "SUM(DISTINCT length)",
        "SUM(length) FILTER (WHERE x < 0.5)",
    ],
)  # fmt: skip
@pytest.mark.parametrize("by", ["", "src", "src, who"])
def test_every_aggregate_that_can_be_put_together(select: str, by: str) -> None:
    fine = "who, src, proto"
    db = running({"tcp": query(select, TCP, by=fine), "udp": query(select, UDP, by=by)})
    asked(db, question(select, BOTH, by=by))
    asked(db, question(select, TCP, by=by, window="10 OFFSET 30"))


@pytest.mark.parametrize("select", ["APPROX_COUNT_DISTINCT(length)", "APPROX_MEDIAN(length)"])
def test_sketches_are_not_put_together(select: str) -> None:
    db = running({"tcp": query(f"SUM(src) AS s, {select}", TCP), "udp": query(f"SUM(src) AS s, {select}", UDP)})
    with pytest.raises(windrow.CoverageError, match="no combination of them"):
        db.ask(question(select, BOTH))
    asked(db, question("SUM(src)", BOTH))  # what is beside them is


def test_what_a_collection_has_answers_other_questions() -> None:
    db = running({"tcp": query("MEDIAN(length)", TCP, by="src"), "udp": query("COUNT(DISTINCT length)", UDP, by="src")})
    asked(
        db,
        "SELECT MEDIAN(length) AS m, QUANTILE(length, 0.9) AS q, COUNT(*) AS n FROM packets [RANGE 60] WHERE " + BOTH,
    )


def test_rows_are_always_counted() -> None:
    db = running({"all": query("MAX(length)", by="src")})
    asked(db, question("COUNT(*)", by="src"))
    assert saved(db) == {}
    asked(db, question("COUNT(*)"))
    assert {rules for rules, _ in saved(db)} == {"GB"}


def test_the_rest_of_the_language_works_on_the_answer() -> None:
    db = running({"tcp": query("SUM(length)", TCP, by="src, who"), "udp": query("AVG(length)", UDP, by="src")})
    text = question("SUM(length)", BOTH, by="src") + " HAVING COUNT(*) > 3 ORDER BY v DESC, src LIMIT 2"
    assert asked(db, text).num_rows == 2
    assert db.ask(question("SUM(length)", BOTH, by="src") + " HAVING COUNT(*) > 100000").num_rows == 0


def test_a_window_without_rows() -> None:
    db = running({"tcp": query("SUM(length)", TCP), "udp": query("SUM(length)", UDP, by="src")})
    db.advance("packets", 1000)
    assert db.ask(question("SUM(length)", BOTH)).to_pylist() == [{"_time": 1000, "v": None}]
    assert db.ask(question("COUNT(*)", BOTH)).to_pylist() == [{"_time": 1000, "v": 0}]


# ---- which sources -------------------------------------------------------------------------------------------------


def test_a_source_that_cannot_be_used_is_left_out() -> None:
    """Slices that would be preferred lack the aggregate, an edge, or some tuples."""
    db = running(
        {
            "old": query("SUM(length)", "proto = 'tcp' OR FALSE AND length = 1"),
            "udp": query("SUM(length)", UDP),
            "lacks": query("MAX(length)", "proto IN ('tcp', 'udp') OR FALSE AND length = 1"),
            "edges": query("SUM(length)", "proto = 'tcp'", slide=7, window=70),
        }
    )
    db.query(query("SUM(length)", "proto = 'udp' OR proto = 'tcp'"), name="late")
    asked(db, question("SUM(length)", BOTH))
    (row,) = [
        row for row in db.sharing().to_pylist() if row["unit"] == "tuple updates" and "question" in row["queries"]
    ]
    assert row["shared_with"] == "old, udp"


def test_sources_are_found_among_many() -> None:
    db = running({f"q{number}": query("SUM(length)", f"src = {number}") for number in range(100)})
    asked(db, question("SUM(length)", "src IN (1, 3)"))
    asked(db, question("SUM(length)", "src IN (0, 4, 99)"))


def test_a_derived_slice_is_a_source() -> None:
    db = windrow.connect()
    db._engine.deriving = "always"
    db.execute(DECLARED)
    for name, where in (("tcp", TCP), ("udp", UDP), ("both", BOTH), ("icmp", "proto = 'icmp'")):
        db.query(query("SUM(length)", where), name=name)
    db.drop("tcp")
    db.query(query("MIN(length)", "proto = 'gre'"), name="gre")
    db.query(query("MAX(length)", TCP), name="again")
    db.push("packets", TABLE)
    asked(db, question("SUM(length)", "proto IN ('tcp', 'udp', 'icmp')"))


def test_where_rows_were_counted_twice_they_do_not_count() -> None:
    db = windrow.connect()
    db._engine.deriving = "always"
    db.execute(DECLARED)
    for name, where in (("tcp", TCP), ("user", "who = 'U'"), ("either", EITHER)):
        db.query(query("MAX(length)", where, by="src"), name=name)
    db.push("packets", TABLE)
    derivation = slice_of(db, "either").derivation
    assert derivation is not None and derivation.how is Combine.UNITE
    asked(db, question("MAX(length)", EITHER + " AND TRUE"))
    assert saved(db)["SS4+GB+CS6", "tuple updates"] == 0  # nobody knows how many rows these were
    with pytest.raises(windrow.CoverageError):
        db.ask(question("COUNT(*)", EITHER + " AND TRUE"))


def test_slides_that_meet_seldom() -> None:
    """The panes of 4 and of 10 end together every 20; a window of both begins there, too."""
    db = running({"tcp": query("SUM(length)", TCP, slide=4, window=100), "udp": query("SUM(length)", UDP, window=100)})
    asked(db, question("SUM(length)", BOTH, window="20"), tau=380)
    asked(db, question("SUM(length)", BOTH, window="20 OFFSET 40"), tau=380)
    with pytest.raises(windrow.CoverageError, match="no combination"):
        db.ask(question("SUM(length)", BOTH, window="10"))
    db.finish()
    asked(db, question("SUM(length)", BOTH, window="20"), tau=400)


def test_at_the_end_of_the_input() -> None:
    """A query with long panes that has no part in it does not move the instant."""
    db = running(SUMS | {"seldom": query("SUM(length)", "proto = 'icmp'", slide=1000, window=1000)}, finish=True)
    asked(db, question("SUM(length)", BOTH), tau=400)


def test_finer_groups_have_what_the_slice_itself_does_not() -> None:
    """There are panes with the very same WHERE and GROUP BY, but without this aggregate."""
    db = running({"coarse": query("MAX(length)", TCP), "fine": query("SUM(length)", TCP, by="src")})
    asked(db, question("SUM(length)", TCP))
    with pytest.raises(windrow.CoverageError, match=r"AVG\(x\) is not kept: the queries with this WHERE and GROUP BY"):
        db.ask(question("AVG(x)", TCP))


def test_before_anything_is_complete() -> None:
    db = windrow.connect()
    db.execute(DECLARED)
    for name, text in SUMS.items():
        db.query(text, name=name)
    with pytest.raises(windrow.CoverageError, match="nothing of stream packets is complete yet"):
        db.ask(question("SUM(length)", BOTH))


# ---- EXPLAIN -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (question("SUM(length)", BOTH), "its window of tcp, udp are added (rules SS4, thesis 8.3.3 and CS6"),
        (question("SUM(length)", TCP, window="20"), "looks its window up in the panes of tcp (rule SS1, thesis 8.3.1)"),
        (question("COUNT(*)", "proto = 'tcp' OR FALSE AND length = 1"), "for its window of tcp are added (rules SS4"),
    ],
)  # fmt: skip
def test_explain(text: str, told: str) -> None:
    db = running(SUMS)
    lines = db.execute("EXPLAIN " + text).splitlines()
    (line,) = [line for line in lines if line.startswith("asked once: db.ask")]
    assert told in line
    assert saved(db) == {}


@pytest.mark.parametrize(
    "text", [question("SUM(length)"), question("MAX(length)", TCP), "SELECT src FROM packets [RANGE 5]"]
)
def test_explain_says_nothing_of_what_cannot_be_asked(text: str) -> None:
    assert "asked once" not in running(SUMS).execute("EXPLAIN " + text)


# ---- random questions ----------------------------------------------------------------------------------------------


PREDICATES = [
    "a < 1", "a >= 1", "a IS NULL", "a < 1 OR a IS NULL", "a IN (1, 2)", "a > 2", "a IS NOT NULL", "",
    "a BETWEEN 1 AND 2 OR a > 2",
    "s = 'u'", "s <> 'u'", "s IS NULL", "s IN ('u', 'v')", "NOT s = 'u' OR s IS NULL",
    "a < 1 AND s = 'u'", "a < 1 AND s <> 'u'", "a < 1 AND s IS NOT NULL", "a >= 1 AND s = 'u'", "a >= 1 AND s <> 'u'",
    "a >= 1 AND NOT s IS NULL", "a < 1 OR s = 'u'", "(a < 1 OR a >= 1) AND s = 'u'", "a >= 1 OR s = 'u'",
]  # fmt: skip
FAMILIES = [PREDICATES[:9], [*PREDICATES[9:14], ""], [*PREDICATES[14:], *PREDICATES[:2], "s = 'u'"], PREDICATES]
CALLS = [
    ["COUNT(*)", "SUM(a)", "AVG(a)"],
    ["MIN(a)", "MAX(s)", "COUNT(DISTINCT a)", "MAX(x)"],
    ["SUM(x)", "MEDIAN(a)", "TOP_K(s, 2)", "VAR_POP(a)", "COUNT(x)"],
]  # fmt: skip
KEYS = [(), ("a",), ("s", "f"), ("f", "s", "a")]


@st.composite
def workloads(draw: Callable[..., Any]) -> tuple[list[str], st.SearchStrategy[str]]:
    """Registered queries, and questions with similar predicates, groups and windows."""
    predicates, calls = draw(st.sampled_from(FAMILIES)), draw(st.sampled_from(CALLS))
    keys = draw(st.sampled_from([KEYS[:1], KEYS[:2], KEYS]))
    slides = draw(st.sampled_from([[2], [2, 6], [3, 2, 6]]))

    def text(window: str, predicate: str, by: tuple[str, ...], chosen: list[str]) -> str:
        outputs = [*by, *(f"{call} AS v{i}" for i, call in enumerate(chosen))]
        where = f" WHERE {predicate}" if predicate else ""
        return f"SELECT {', '.join(outputs)} FROM s [{window}]{where}" + (f" GROUP BY {', '.join(by)}" if by else "")

    some = st.lists(st.sampled_from(calls), min_size=1, max_size=3, unique=True)
    kept = st.builds("RANGE {} SLIDE {}".format, st.sampled_from([12, 24]), st.sampled_from(slides))
    shapes = st.lists(st.tuples(st.sampled_from(predicates), st.sampled_from(keys)), min_size=2, max_size=6)
    registered = [*draw(shapes), *((cell, keys[-1]) for cell in predicates[:3])]
    texts = [text(draw(kept), *shape, draw(st.one_of(st.just(calls), some))) for shape in registered]
    given_ones = st.sampled_from([predicate or "TRUE" for predicate, _ in registered])
    either = st.builds("({}) OR ({})".format, given_ones, given_ones)
    without = st.builds("({}) AND NOT ({})".format, given_ones, given_ones)
    wanted = st.one_of(given_ones, either, either, without, st.sampled_from(predicates))
    windows = st.builds("RANGE {}{}".format, st.sampled_from([6, 12]), st.sampled_from(["", "", " OFFSET 6"]))
    coarse = st.sampled_from([keys[0], *(by for _, by in registered)])
    questions = st.builds(text, windows, wanted, coarse, st.builds(lambda one: [one], st.sampled_from(calls)))
    return texts, questions


def shares_a_slice(db: windrow.Database, text: str) -> bool:
    bound = bind(text, db.catalog)
    return periodic_aggregate(bound, build(bound), one_time=True).share_key in db._engine.streams["s"].slices


def test_random_questions() -> None:
    """Queries come and go; what is answered is what DuckDB says at its `_time`, and that is a good part of all."""
    counted: Counter[str] = Counter()

    @settings(max_examples=3 * settings().max_examples)
    @given(tables(), workloads(), st.integers(0, 2**32), st.sampled_from([0, 0, 4]), st.booleans(), st.data())
    def check(
        table: pa.Table,
        workload: tuple[list[str], st.SearchStrategy[str]],
        seed: int,
        lateness: int,
        derived: bool,
        data: st.DataObject,
    ) -> None:
        texts, questions = workload
        db, quiet = windrow.connect(), windrow.connect()
        for each in (db, quiet):
            each._engine.deriving = "always" if derived else "never"
            each.stream("s", TICKS, time="t", lateness=lateness)
        waiting = list(enumerate(texts))
        late = data.draw(st.integers(0, 3), label="so many come later")
        for batch in [*cut(shuffle_within(table, "t", lateness, seed), seed, 4), None]:
            while len(waiting) > late or (waiting and data.draw(st.booleans(), label="register one now")):
                number, text = waiting.pop()
                for each in (db, quiet):
                    each.query(text, name=f"q{number}")
            if len(db.queries()) > 1 and data.draw(st.integers(0, 4), label="drop one at 0") == 0:
                name = data.draw(st.sampled_from([one.name for one in db.queries()]))
                for each in (db, quiet):
                    each.drop(name)
            for each in (db, quiet):
                if batch is None:
                    each.finish()
                else:
                    each.push("s", batch)
            if db.metrics()["streams"]["s"]["watermark"] is None:
                continue
            for text in data.draw(st.lists(questions, min_size=2, max_size=4)):
                _ask_one(db, text, table, counted)
        for one in db.queries():  # nothing has changed for them
            assert_same(one.answers(), quiet._registry.find(one.name, windrow.Query).answers())

    check()
    assert counted["answered"] > 0.3 * counted["asked"] and counted["compared"] > 0.15 * counted["asked"], counted


def _ask_one(db: windrow.Database, text: str, table: pa.Table, counted: Counter[str]) -> None:
    """Questions that no slice has for itself are counted."""
    other = not shares_a_slice(db, text)
    counted["asked"] += other
    try:
        found = db.ask(text)
    except windrow.CoverageError:
        return
    counted["answered"] += other
    if found.num_rows:  # else it does not tell its time
        counted["compared"] += other
        (tau,) = set(found.column("_time").to_pylist())
        expected = Reference(bind(text, db.catalog), {"s": table}).answer(tau)
        assert_same(found.drop_columns(["_time"]), expected, absolute=1e-9)
