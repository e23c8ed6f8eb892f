"""One-time queries: exact from what registered queries keep, at the newest window update; else told what is covered."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow
from tests.oracle.test_rows_windows import CALLS, crowded, rows_queries
from tests.random_queries import TICKS, tables
from windrow.language.binder import bind
from windrow.testing import Reference, assert_same, cut, shuffle_within

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int64())])


def rows(*times: int) -> pa.Table:
    return pa.table([pa.array(times, pa.int64()), ["even" if t % 2 == 0 else "odd" for t in times], times], SCHEMA)


def stream(*texts: str, schema: pa.Schema = SCHEMA) -> windrow.Database:
    db = windrow.connect()
    db.stream("s", schema, time="t")
    for number, text in enumerate(texts):
        db.query(text, name=f"q{number}")
    return db


def expected(db: windrow.Database, text: str, table: pa.Table, found: pa.Table) -> pa.Table:
    """Q(τ) by DuckDB, at the τ of the answer."""
    (tau, *_) = found.column("_time").cast(pa.int64()).to_pylist()
    answer = Reference(bind(text, db.catalog), {"s": table}).answer(tau)
    return answer.add_column(
        0, found.schema.field(0), pa.array([tau] * answer.num_rows).cast(found.schema.field(0).type)
    )


# ---- RANGE ---------------------------------------------------------------------------------------------------------


def test_a_window_that_was_never_registered() -> None:
    db = stream("SELECT SUM(v) AS total, COUNT(*) AS n FROM s [RANGE 20 SLIDE 5]")
    db.push("s", rows(*range(1, 33)))  # the watermark is 31
    assert db.ask("SELECT SUM(v) AS total FROM s [RANGE 10]").to_pylist() == [
        {"_time": 30, "total": sum(range(21, 31))}
    ]
    assert db.ask("SELECT COUNT(*) AS n FROM s [RANGE 5 OFFSET 10]").to_pylist() == [{"_time": 30, "n": 5}]
    assert db.ask("SELECT SUM(v) // COUNT(*) AS m FROM s [RANGE 20]").to_pylist() == [{"_time": 30, "m": 20}]


def test_the_rest_of_the_language_works_on_the_answer() -> None:
    db = stream("SELECT k, SUM(v) AS total, COUNT(*) AS n FROM s [RANGE 20 SLIDE 5] GROUP BY k")
    db.push("s", rows(1, 3, 4, 6, 9, 11))
    found = db.ask("SELECT k, COUNT(*) AS n FROM s [RANGE 10] GROUP BY k HAVING COUNT(*) > 1 ORDER BY n DESC LIMIT 1")
    assert found.to_pylist() == [{"_time": 10, "k": "odd", "n": 3}]
    assert db.ask("SELECT k FROM s [RANGE 10] GROUP BY k HAVING SUM(v) > 100").num_rows == 0


def test_nothing_changes_for_the_registered_queries() -> None:
    text = "SELECT k, MAX(v) AS m FROM s [RANGE 7 SLIDE 3] GROUP BY k"
    alone, asked = stream(text), stream(text)
    for db in (alone, asked):
        for time in range(40):
            db.push("s", rows(time))
            if db is asked and time:
                db.ask("SELECT k, MAX(v) AS m FROM s [RANGE 3] GROUP BY k")
        db.finish()
    assert alone.queries()[0].answers() == asked.queries()[0].answers()


@st.composite
def questions(draw: Any) -> tuple[list[str], str]:
    """Registered queries, and a question with the same aggregates and a window that their panes cover."""
    step = draw(st.integers(1, 6))
    length, slide = step * draw(st.integers(1, 6)), step * draw(st.integers(1, 3))
    offset = step * draw(st.integers(0, 2))
    key = draw(st.sampled_from(["", "a", "s"]))
    call = draw(st.sampled_from(CALLS))
    where = draw(st.sampled_from(["", "WHERE a > 0"]))
    form = f"SELECT {key + ', ' if key else ''}{call} AS v FROM s [{{}}] {where}" + (f" GROUP BY {key}" if key else "")
    asked_offset = step * draw(st.integers(0, (length + offset) // step - 1))
    asked = step * draw(st.integers(1, (length + offset - asked_offset) // step))
    registered = [
        form.format(f"RANGE {length} SLIDE {slide} OFFSET {offset}"),
        form.format(f"RANGE {step} SLIDE {step}"),
    ]
    return registered, form.format(f"RANGE {asked} OFFSET {asked_offset}")


@given(tables(), questions(), st.integers(0, 2**32), st.sampled_from([0, 0, 7]))
def test_any_covered_window_is_exact(table: pa.Table, pair: tuple[list[str], str], seed: int, lateness: int) -> None:
    """Whenever it is asked it is answered, and that is what DuckDB says at its `_time`."""
    db = windrow.connect()
    db.stream("s", TICKS, time="t", lateness=lateness)
    registered, question = pair
    for text in registered:
        db.query(text)
    for batch in [*cut(shuffle_within(table, "t", lateness, seed), seed, 5), None]:
        if batch is None:
            db.finish()
        else:
            db.push("s", batch)
        if db.metrics()["streams"]["s"]["watermark"] is not None:
            found = db.ask(question)
            if found.num_rows:
                assert_same(found, expected(db, question, table, found), absolute=1e-9)


def test_grouped_answers_are_complete() -> None:
    db = stream("SELECT k, COUNT(*) AS n FROM s [RANGE 20 SLIDE 5] GROUP BY k")
    table = rows(*range(1, 43))
    db.push("s", table)
    text = "SELECT k, COUNT(*) AS n FROM s [RANGE 15] GROUP BY k"
    found = db.ask(text)
    assert found.num_rows == 2 and set(found.column("_time").to_pylist()) == {40}
    assert_same(found, expected(db, text, table, found))


def test_the_window_of_the_registered_query_is_always_covered() -> None:
    db = stream("SELECT SUM(v) AS v FROM s [RANGE 10 SLIDE 5]")
    for time in range(1, 50):
        db.push("s", rows(time))
        tau = (time - 1) // 5 * 5
        answer = sum(range(max(1, tau - 9), tau + 1)) or None
        assert db.ask("SELECT SUM(v) AS v FROM s [RANGE 10]").to_pylist() == [{"_time": tau, "v": answer}]
    db.finish()
    assert db.ask("SELECT SUM(v) AS v FROM s [RANGE 10]").to_pylist() == [{"_time": 50, "v": sum(range(41, 50))}]
    assert db.ask("SELECT SUM(v) AS v FROM s [RANGE 10]") == db.ask("SELECT SUM(v) AS v FROM s [RANGE 10 OFFSET 0]")


def test_timestamps() -> None:
    db = windrow.connect()
    db.execute("CREATE STREAM s (t TIMESTAMP, v INT) TIME t")
    db.query("SELECT MAX(v) AS m FROM s [RANGE 10 MIN SLIDE 1 MIN]")
    times = [datetime(2024, 1, 1, 0, minute) for minute in range(20)]
    db.push("s", pa.table({"t": pa.array(times, pa.timestamp("us")), "v": pa.array(range(20), pa.int32())}))
    (row,) = db.ask("SELECT MAX(v) AS m FROM s [RANGE 5 MIN]").to_pylist()
    assert row == {"_time": datetime(2024, 1, 1, 0, 18), "m": 18}
    with pytest.raises(
        windrow.CoverageError, match=r"cover only 2024-01-01 00:08:00 to 2024-01-01 00:18:00.*most 10 min"
    ):
        db.ask("SELECT MAX(v) AS m FROM s [RANGE 1 HOUR]")


# ---- ROWS ----------------------------------------------------------------------------------------------------------


@given(crowded(), rows_queries(slide=False), st.integers(0, 2**32))
def test_rows_windows(table: pa.Table, question: str, seed: int) -> None:
    """Of all predicates and groupings, from the rows that other queries keep."""
    db = windrow.connect()
    db.stream("s", TICKS, time="t")
    count = "SELECT COUNT(*) + COUNT(a) + COUNT(x) + COUNT(s) + COUNT(f) + COUNT(b) + COUNT(d) AS n FROM s"
    for window in (
        "ROWS 60 SLIDE 7",
        *(f"PARTITION BY {k} ROWS 60 SLIDE 9" for k in ("a", "s", "f, a", "x", "t", "d, b")),
    ):
        db.query(f"{count} [{window}]")
    for batch in [*cut(table, seed, 4), None]:
        if batch is None:
            db.finish()
        else:
            db.push("s", batch)
        mark = db.metrics()["streams"]["s"]["watermark"]
        arrived = [] if mark is None else [t for t in table["t"].to_pylist() if t <= mark or batch is None]
        if not arrived:
            with pytest.raises(windrow.CoverageError, match="nothing of stream s is complete yet"):
                db.ask(question)
            continue
        found = db.ask(question)
        reference = Reference(bind(question, db.catalog), {"s": table})
        assert set(found.column("_time").to_pylist()) <= {arrived[-1]}
        assert_same(found.drop_columns(["_time"]), reference.answer(arrived[-1]), absolute=1e-9)


def test_rows_that_are_kept() -> None:
    db = stream("SELECT SUM(v) AS v FROM s [ROWS 5 SLIDE 2]")
    for time in range(1, 21):
        db.push("s", rows(time))
    assert db.ask("SELECT SUM(v) AS v FROM s [ROWS 3]").to_pylist() == [{"_time": 19, "v": 17 + 18 + 19}]
    assert db.ask("SELECT MIN(v) AS v FROM s [ROWS 2 OFFSET 3] WHERE v > 15").to_pylist() == [{"_time": 19, "v": 16}]
    with pytest.raises(
        windrow.CoverageError, match=r"\[ROWS 6\] needs more than is kept: q0 keeps the last 5 rows, with t, v"
    ):
        db.ask("SELECT SUM(v) AS v FROM s [ROWS 6]")
    with pytest.raises(
        windrow.CoverageError, match=r"column k is not kept: .*Register a query with FROM s \[ROWS 3 SLIDE …\]"
    ):
        db.ask("SELECT k, SUM(v) AS v FROM s [ROWS 3] GROUP BY k")
    with pytest.raises(windrow.CoverageError, match=r"keeps the last rows of each \(k\)\. Register"):
        db.ask("SELECT SUM(v) AS v FROM s [PARTITION BY k ROWS 3]")


def test_the_last_rows_of_each_key() -> None:
    db = stream("SELECT SUM(v) AS v FROM s [PARTITION BY k ROWS 2 SLIDE 5]")
    db.push("s", rows(*range(1, 20_002)))
    assert db.ask("SELECT k, SUM(v) AS v FROM s [PARTITION BY k ROWS 2] GROUP BY k ORDER BY k").to_pylist() == [
        {"_time": 20_000, "k": "even", "v": 20_000 + 19_998},
        {"_time": 20_000, "k": "odd", "v": 19_999 + 19_997},
    ]
    assert db.ask("SELECT MAX(v) AS v FROM s [PARTITION BY k ROWS 1 OFFSET 1]").to_pylist() == [
        {"_time": 20_000, "v": 19_998}
    ]
    with pytest.raises(windrow.CoverageError, match=r"ROWS 3\] needs more than is kept: .*last 2 rows of each \(k\)"):
        db.ask("SELECT SUM(v) AS v FROM s [PARTITION BY k ROWS 3]")
    with pytest.raises(windrow.CoverageError, match=r"keeps the last rows\. Register"):
        db.ask("SELECT SUM(v) AS v FROM s [ROWS 3]")


def test_rows_that_came_before_the_first_rows_query() -> None:
    db = stream()
    db.push("s", rows(1, 2, 3))
    db.query("SELECT SUM(v) AS v FROM s [ROWS 5 SLIDE 1]", name="late")
    db.query("SELECT SUM(v) AS v FROM s [PARTITION BY k ROWS 5 SLIDE 1]", name="later")
    db.push("s", rows(4, 5, 6, 7))
    assert db.ask("SELECT SUM(v) AS v FROM s [ROWS 3]").to_pylist() == [{"_time": 6, "v": 15}]
    with pytest.raises(windrow.CoverageError, match="late keeps the last 3 rows, of those after 3, with t, v"):
        db.ask("SELECT SUM(v) AS v FROM s [ROWS 4]")
    with pytest.raises(windrow.CoverageError, match=r"later keeps the last 5 rows of each \(k\), of those after 3"):
        db.ask("SELECT SUM(v) AS v FROM s [PARTITION BY k ROWS 1]")


# ---- what is not covered -------------------------------------------------------------------------------------------


def test_another_predicate_or_grouping() -> None:
    db = stream(
        "SELECT SUM(v) AS total FROM s [RANGE 20 SLIDE 5] WHERE v > 3",
        "SELECT k, COUNT(*) AS n FROM s [RANGE 20 SLIDE 5] GROUP BY k",
    )
    db.push("s", rows(1, 12))
    message = (
        r"no registered query on stream s has the WHERE and GROUP BY of this question \(no WHERE, no GROUP BY\), and "
        r"no combination of them has exactly its rows, with its aggregates and window\. There are panes of: "
        r"q0 \(WHERE v > 3, no GROUP BY\); q1 \(no WHERE, GROUP BY k\)\. Register a query with "
        r"FROM s \[RANGE 5 SLIDE …\], and ask again"
    )
    with pytest.raises(windrow.CoverageError, match=message):
        db.ask("SELECT SUM(v) AS total FROM s [RANGE 5]")
    with pytest.raises(windrow.CoverageError, match="There are panes of: none"):
        stream().ask("SELECT SUM(v) AS total FROM s [RANGE 5]")


def test_another_aggregate() -> None:
    db = stream(
        "SELECT SUM(v) AS total, COUNT(*) AS n FROM s [RANGE 20 SLIDE 5]", "SELECT AVG(v) AS m FROM s [NOW SLIDE 5]"
    )
    db.push("s", rows(1, 12))
    with pytest.raises(
        windrow.CoverageError,
        match=r"MAX\(v\), SUM\(t\) are not kept: .* \(q0, q1\) keep SUM\(v\), COUNT\(\*\), AVG\(v\)",
    ):
        db.ask("SELECT MAX(v) AS m, SUM(v) AS total, SUM(t) AS u FROM s [RANGE 5]")


def test_windows_that_are_no_unions_of_panes() -> None:
    db = stream("SELECT SUM(v) AS v FROM s [RANGE 20 SLIDE 5]")
    db.push("s", rows(1, 32))
    for window in ("RANGE 7", "RANGE 5 OFFSET 2", "NOW"):
        with pytest.raises(
            windrow.CoverageError, match="panes are 5 long, and RANGE and OFFSET must be multiples of that"
        ):
            db.ask(f"SELECT SUM(v) AS v FROM s [{window}]")
    several = stream("SELECT SUM(v) AS v FROM s [RANGE 1 SLIDE 100]")
    several.push("s", rows(1, 450))
    with pytest.raises(windrow.CoverageError, match="panes have the edges of 2 progressions"):
        several.ask("SELECT SUM(v) AS v FROM s [RANGE 5]")


def test_windows_that_reach_back_too_far() -> None:
    db = stream("SELECT SUM(v) AS v FROM s [RANGE 20 SLIDE 5]")
    db.push("s", rows(*range(1, 53)))
    message = (
        r"the window \[RANGE 25\] begins at 25, but the panes of q0 cover only 30 to 50\. Ask for a RANGE and OFFSET "
        "of at most 20 together, or register a query with a longer RANGE"
    )
    with pytest.raises(windrow.CoverageError, match=message):
        db.ask("SELECT SUM(v) AS v FROM s [RANGE 25]")


def test_before_anything_is_complete() -> None:
    db = stream("SELECT SUM(v) AS v FROM s [RANGE 20 SLIDE 5]", "SELECT SUM(v) AS v FROM s [ROWS 20 SLIDE 5]")
    for window in ("RANGE 5", "ROWS 5"):
        with pytest.raises(windrow.CoverageError, match="nothing of stream s is complete yet"):
            db.ask(f"SELECT SUM(v) AS v FROM s [{window}]")
    late = stream()
    late.push("s", rows(1, 33))
    late.query("SELECT SUM(v) AS v FROM s [RANGE 20 SLIDE 5]", name="late")
    with pytest.raises(
        windrow.CoverageError, match="late know every tuple only after 33, and the newest complete pane ends at 30"
    ):
        late.ask("SELECT SUM(v) AS v FROM s [RANGE 5]")


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("SELECT SUM(v) FROM s [RANGE 5 SLIDE 5]", windrow.UnsupportedError, "a one-time query has no SLIDE"),
        (
            "SELECT SUM(v) FROM s",
            windrow.UnsupportedError,
            "RANGE UNBOUNDED cannot be run by the engine yet; it answers",
        ),
        ("SELECT v FROM s [RANGE 5]", windrow.UnsupportedError, "a select list without aggregates.*one-time"),
        ("ISTREAM(SELECT SUM(v) FROM s [RANGE 5])", windrow.UnsupportedError, "ISTREAM"),
        ("SELECT SUM(w) FROM s [RANGE 5]", windrow.BindError, "unknown column w"),
        ("SELECT SUM(v) FROM nowhere [RANGE 5]", windrow.BindError, "unknown stream"),
        ("", windrow.SyntaxError, "expected one statement"),
        (5, windrow.InputError, "the text of a question"),
    ],
)
def test_what_is_no_question(text: Any, error: type, message: str) -> None:
    db = stream("SELECT SUM(v) AS v FROM s [RANGE 20 SLIDE 5]")
    db.push("s", rows(1, 33))
    with pytest.raises(error, match=message):
        db.ask(text)


def test_panes_from_before_a_finer_query_are_longer() -> None:
    db = windrow.connect()
    db.execute("CREATE STREAM s (t BIGINT, x INT) TIME t")
    db.query("SELECT SUM(x) AS a FROM s [RANGE 50 SLIDE 10]", name="a")
    ticks = pa.table({"t": np.arange(123), "x": np.ones(123, np.int32)})
    db.push("s", ticks.slice(0, 100))
    db.query("SELECT SUM(x) AS a FROM s [RANGE 30 SLIDE 5]", name="b")
    db.push("s", ticks.slice(100))
    with pytest.raises(windrow.CoverageError, match=r"those up to 99 are longer, because a query with a finer SLIDE"):
        db.ask("SELECT SUM(x) AS a FROM s [RANGE 25]")
    assert db.ask("SELECT SUM(x) AS a FROM s [RANGE 20]").to_pylist() == [{"_time": 120, "a": 20}]
    with pytest.raises(windrow.CoverageError, match="panes are 5 long, and RANGE and OFFSET must be multiples"):
        db.ask("SELECT SUM(x) AS a FROM s [RANGE 7]")


def test_a_synopsis_that_is_none() -> None:
    with pytest.raises(windrow.SetupError, match="there is no synopsis 'bogus'; the synopses are running, "):
        windrow.connect(synopsis="bogus")


def test_what_is_collected_answers_other_questions_too() -> None:
    db = windrow.connect()
    db.execute("CREATE STREAM s (t BIGINT, x INT, y INT) TIME t")
    median = db.query("SELECT MEDIAN(x) AS m FROM s [RANGE 20 SLIDE 10]", name="median")
    values = pa.array([3, 1, 3, 7, 5], pa.int32())
    db.push("s", pa.table({"t": [1, 2, 3, 4, 11], "x": values, "y": values}))
    asked = db.ask("SELECT MEDIAN(x) AS m, QUANTILE(x, 1) AS q, MODE(x) AS o, COUNT(DISTINCT x) AS n FROM s [RANGE 10]")
    assert asked.to_pylist() == [{"_time": 10, "m": 3.0, "q": 7, "o": 3, "n": 3}]
    assert db.ask("SELECT MODE(x) AS o FROM s [RANGE 10]").to_pylist() == [{"_time": 10, "o": 3}]
    with pytest.raises(windrow.CoverageError, match=r"MODE\(y\) is not kept"):
        db.ask("SELECT MODE(y) AS o FROM s [RANGE 10]")
    db.finish()
    assert median.answers().to_pydict() == {"_time": [10, 20], "m": [3.0, 3.0]}
