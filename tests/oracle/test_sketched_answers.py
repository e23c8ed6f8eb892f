"""FREQUENT and the APPROX_ aggregates against the reference: on small data they are what they approximate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow
from tests.oracle.test_engine_answers import answers
from tests.random_queries import TICKS, tables
from windrow.testing import Reference, assert_same, cut

CALLS = [
    "FREQUENT(s, 2)",
    "FREQUENT(a, 1)",
    "FREQUENT(x, 3)",
    "FREQUENT(b, 2) FILTER (WHERE f)",
    "FREQUENT(d, 1)",
    "APPROX_FREQUENT(s, 2)",
    "APPROX_FREQUENT(a, 3)",
    "APPROX_COUNT_DISTINCT(a)",
    "APPROX_COUNT_DISTINCT(s)",
    "APPROX_COUNT_DISTINCT(x)",
    "APPROX_COUNT_DISTINCT(d)",
    "APPROX_COUNT_DISTINCT(b) FILTER (WHERE f)",
    "HLL_SKETCH_AGG(a)",
    "HLL_SKETCH_AGG(s, 4)",
    "HLL_SKETCH_AGG(x, 8) FILTER (WHERE f)",
    "THETA_SKETCH_AGG(b)",
    "THETA_SKETCH_AGG(s, 4)",
    "THETA_SKETCH_AGG(x, 4)",
    "THETA_SKETCH_AGG(d, 26)",
    "THETA_SKETCH_AGG(f) FILTER (WHERE a > 0)",
    "KLL_SKETCH_AGG(a)",
    "KLL_SKETCH_AGG(x, 8)",
    "KLL_SKETCH_AGG(b) FILTER (WHERE f)",
    "ITEMS_SKETCH_AGG(s)",
    "ITEMS_SKETCH_AGG(a)",
    "ITEMS_SKETCH_AGG(b) FILTER (WHERE f)",
    "APPROX_QUANTILE(a, 0.5)",
    "APPROX_QUANTILE(s, 0.9)",
    "APPROX_QUANTILE(x, 0.3)",
    "APPROX_QUANTILE(d, 0)",
    "APPROX_MEDIAN(a)",
    "APPROX_MEDIAN(x)",
    "APPROX_TOP_K(s, 2)",
    "APPROX_TOP_K(x, 1)",
    "APPROX_TOP_K(b, 3)",
]


def many_rows(rows: int, seed: int) -> pa.Table:
    """More different values than any summary keeps."""
    rng = np.random.default_rng(seed)
    return pa.table(
        [
            pa.array(np.sort(rng.integers(0, 100, rows))),
            pa.nulls(rows, pa.int32()),
            pa.array(rng.zipf(1.1, rows) % (1 << 40), mask=rng.random(rows) < 0.1),
            pa.array(rng.random(rows)),
            pa.array(rng.choice(["u", "v", "höst"], rows)),
            pa.array(rng.random(rows) < 0.5),
            pa.nulls(rows, pa.timestamp("us")),
        ],
        schema=TICKS,
    )


@st.composite
def sketched_queries(draw: Callable[..., Any]) -> str:
    """RANGE is a multiple of SLIDE, which FREQUENT needs."""
    slide = draw(st.integers(1, 9))
    offset = draw(st.sampled_from([0, 0, 1, 7]))
    window = f"[RANGE {slide * draw(st.integers(1, 6))} SLIDE {slide}" + (f" OFFSET {offset}]" if offset else "]")
    calls = draw(st.lists(st.sampled_from(CALLS), min_size=1, max_size=3, unique=True))
    key = draw(st.sampled_from(["", "s", "a", "f", "a % 2"]))
    parts = ([f"{key} AS k"] if key else []) + [f"{call} AS v{i}" for i, call in enumerate(calls)]
    where = draw(st.sampled_from(["", "", "WHERE a > 0"]))
    return f"SELECT {', '.join(parts)} FROM s {window} {where}" + (f" GROUP BY {key}" if key else "")


@given(tables(), st.lists(sketched_queries(), min_size=1, max_size=4), st.integers(1, 4))
def test_random_query_sets(table: pa.Table, texts: list[str], pieces: int) -> None:
    for query in answers(texts, cut(table, 7, pieces)):
        assert_same(query.answers(), Reference(query.bound, {"s": table}).answers(), absolute=1e-9)


def test_frequent_needs_whole_sub_windows() -> None:
    db = windrow.connect()
    db.execute("CREATE STREAM s (t BIGINT, a INT) TIME t")
    for name in ("FREQUENT", "APPROX_FREQUENT"):
        message = f"{name} .*multiple of its SLIDE; found a window of 7 and SLIDE 5"
        with pytest.raises(windrow.UnsupportedError, match=message):
            db.query(f"SELECT {name}(a, 2) FROM s [RANGE 7 SLIDE 5]")
        with pytest.raises(windrow.UnsupportedError, match="do not slide together; use TOP_K"):
            db.query(f"SELECT {name}(a, 2) FROM s [PARTITION BY a ROWS 4 SLIDE 2]")
        with pytest.raises(windrow.UnsupportedError, match="which a one-time query does not have"):
            db.ask(f"SELECT {name}(a, 2) FROM s [RANGE 10]")
    assert db.queries() == []
    db.query("SELECT COUNT(*) FROM s [ROWS 4 SLIDE 2]")
    db.push("s", pa.table({"t": [1, 2, 3, 4], "a": pa.array([1, 2, 3, 4], pa.int32())}))
    with pytest.raises(windrow.UnsupportedError, match="3 tuples have been counted"):
        db.query("SELECT FREQUENT(a, 2) FROM s [ROWS 4 SLIDE 2]")


@pytest.mark.parametrize("window", ["[ROWS 6 SLIDE 3]", "[ROWS 12 SLIDE 4 OFFSET 2]", "[ROWS 5 SLIDE 5]"])
@given(table=tables(most=30), pieces=st.integers(1, 4))
def test_windows_of_tuples(window: str, table: pa.Table, pieces: int) -> None:
    texts = [
        f"SELECT FREQUENT(s, 2) AS f, APPROX_FREQUENT(a, 1) AS g FROM s {window}",
        f"SELECT f AS k, FREQUENT(a, 1) AS v, APPROX_COUNT_DISTINCT(s) AS n FROM s {window} GROUP BY f",
        f"SELECT f AS k, THETA_SKETCH_AGG(s) AS v, HLL_SKETCH_AGG(a) AS n FROM s {window} GROUP BY f",
        f"SELECT f AS k, KLL_SKETCH_AGG(x, 8) AS v, ITEMS_SKETCH_AGG(s) AS n FROM s {window} GROUP BY f",
    ]
    for query in answers(texts, cut(table, 7, pieces)):
        assert_same(query.answers(), Reference(query.bound, {"s": table}).answers())


@pytest.mark.parametrize("window", ["[RANGE 30 SLIDE 10]", "[RANGE 7 SLIDE 3]", "[ROWS 900 SLIDE 300]"])
def test_sketches_of_many_values(window: str) -> None:
    """More values than a sketch has entries: still a function of the set of values, byte for byte."""
    table = many_rows(3_000, 4)
    texts = [
        f"SELECT THETA_SKETCH_AGG(b, 4) AS t, THETA_SKETCH_AGG(x, 8) AS u, THETA_SKETCH_AGG(x) AS w FROM s {window}",
        f"SELECT f, HLL_SKETCH_AGG(b, 5) AS h, HLL_SKETCH_AGG(x, 9) AS i, HLL_SKETCH_AGG(x) AS j FROM s {window} "
        "GROUP BY f",
        # At most 512 values in a pane: what KLL is made of is all there, and is rounded for each window.
        f"SELECT KLL_SKETCH_AGG(x) AS l, KLL_SKETCH_AGG(b, 20) AS m, ITEMS_SKETCH_AGG(b) AS i FROM s {window}",
    ]
    for query in answers(texts, cut(table, 7, 5)):
        assert_same(query.answers(), Reference(query.bound, {"s": table}).answers())


def test_the_last_rows_of_each_key() -> None:
    table = many_rows(200, 5)
    calls = "THETA_SKETCH_AGG(b, 4) AS t, HLL_SKETCH_AGG(b) AS h, KLL_SKETCH_AGG(x, 8) AS l, ITEMS_SKETCH_AGG(b) AS i"
    text = f"SELECT s AS k, {calls} FROM s [PARTITION BY s ROWS 30 SLIDE 20]"
    (query,) = answers([f"{text} GROUP BY s"], cut(table, 7, 3))
    assert_same(query.answers(), Reference(query.bound, {"s": table}).answers())


def test_lg_k_has_limits() -> None:
    db = windrow.connect()
    db.execute("CREATE STREAM s (t BIGINT, a INT) TIME t")
    for call, message in (
        ("THETA_SKETCH_AGG(a, 3)", "THETA_SKETCH_AGG needs a whole number lg_k from 4 to 26, found 3"),
        ("THETA_SKETCH_AGG(a, 4.5)", "lg_k from 4 to 26, found 4.5"),
        ("HLL_SKETCH_AGG(a, 13)", "HLL_SKETCH_AGG needs a whole number lg_k from 4 to 12, found 13"),
        ("HLL_SKETCH_AGG(a, t)", "lg_k from 4 to 12, found t"),
        ("KLL_SKETCH_AGG(a, 7)", "KLL_SKETCH_AGG needs a whole number k from 8 to 256, found 7"),
        ("KLL_SKETCH_AGG(a, 257)", "k from 8 to 256, found 257"),
        ("ITEMS_SKETCH_AGG(a, 8)", "ITEMS_SKETCH_AGG takes 1 argument, found 2"),
        ("HLL_SKETCH_AGG(a, 4, 5)", "HLL_SKETCH_AGG takes 1 or 2 arguments, found 3"),
        ("THETA_SKETCH_AGG()", "THETA_SKETCH_AGG takes 1 or 2 arguments, found 0"),
        ("THETA_SKETCH_AGG(DISTINCT a)", "DISTINCT is not defined for THETA_SKETCH_AGG"),
        ("THETA_SKETCH_AGG(*)", r"THETA_SKETCH_AGG\(\*\) is not defined"),
    ):
        with pytest.raises(windrow.BindError, match=message):
            db.query(f"SELECT {call} FROM s [RANGE 7 SLIDE 5]")
    assert db.queries() == []
