"""Random streams and random periodic queries over them, as hypothesis strategies: small values shrink well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

TICKS = pa.schema(
    [
        ("t", pa.int64()),
        ("a", pa.int32()),
        ("b", pa.int64()),
        ("x", pa.float64()),
        ("s", pa.string()),
        ("f", pa.bool_()),
        ("d", pa.timestamp("us")),
    ]
)
_FLOATS = st.sampled_from([0.0, -0.0, 1.5, -2.25, 1e10, 1e-3, 3.0, float("nan"), float("inf"), float("-inf")])
_CELLS: dict[str, st.SearchStrategy[Any]] = {
    "a": st.one_of(st.none(), st.integers(-3, 5)),
    "b": st.one_of(st.none(), st.integers(-3, 3), st.sampled_from([2**40, -(2**40), 2**62, -(2**62)])),
    "x": st.one_of(st.none(), _FLOATS),
    "s": st.one_of(st.none(), st.sampled_from(["", "u", "v", "höst", "tcp"])),
    "f": st.one_of(st.none(), st.booleans()),
    "d": st.one_of(st.none(), st.sampled_from([0, 1_700_000_000_000_000, -5])),
}


@st.composite
def tables(draw: Callable[..., Any], most: int = 40, span: int = 60) -> pa.Table:
    """Rows of TICKS in the order of time, with ties, gaps and negative timestamps."""
    start = draw(st.sampled_from([0, -37, 1_000_003]))
    times = sorted(draw(st.lists(st.integers(0, span), min_size=0, max_size=most)))
    columns: dict[str, Any] = {"t": [start + time for time in times]}
    for name, cells in _CELLS.items():
        columns[name] = draw(st.lists(cells, min_size=len(times), max_size=len(times)))
    return pa.table([pa.array(columns[field.name], field.type) for field in TICKS], schema=TICKS)


_KEYS = ["a", "s", "f", "d", "b", "x", "a % 2", "CASE WHEN a > 1 THEN 'big' ELSE s END", "COALESCE(a, 0)", "a + 1"]
_VALUES = ["a", "a", "x", "a * 2", "COALESCE(a, -1)", "CASE WHEN f THEN a END"]
_AGGREGATES = [
    "COUNT(*)",
    "COUNT({v})",
    "SUM({v})",
    "AVG({v})",
    "MIN({v})",
    "MAX({v})",
    "MIN(d)",
    "MAX(s)",
    "MIN(b)",
    "SUM(a) FILTER (WHERE f)",
    "COUNT(*) FILTER (WHERE a > 0)",
    "MAX(x) FILTER (WHERE s IS NOT NULL)",
    "SUM(a) + 1",
    "VAR_POP(a)",
    "STDDEV_SAMP(a)",
    "VAR_SAMP({v}) FILTER (WHERE {v} < 1000)",
    "COUNT(DISTINCT {v})",
    "COUNT(DISTINCT s) FILTER (WHERE f)",
    "SUM(DISTINCT a)",
    "AVG(DISTINCT {v})",
    "MEDIAN({v})",
    "PERCENTILE_CONT(0.3) WITHIN GROUP (ORDER BY a DESC)",
    "PERCENTILE_DISC(0.7) WITHIN GROUP (ORDER BY {v})",
    "PERCENTILE_DISC(0.2) WITHIN GROUP (ORDER BY b DESC)",
    "QUANTILE({v}, 0.9)",
    "QUANTILE(s, 0.5)",
    "QUANTILE(d, 0)",
    "PERCENTILE_DISC(0) WITHIN GROUP (ORDER BY x DESC)",
    "PERCENTILE_CONT(1) WITHIN GROUP (ORDER BY x)",
    "TOP_K(s, 2)",
    "TOP_K({v}, 1)",
    "APPROX_COUNT_DISTINCT({v})",
    "APPROX_QUANTILE(s, 0.5)",
    "APPROX_MEDIAN({v})",
    "APPROX_TOP_K({v}, 2)",
    "TOP_K(x, 3)",
    "MODE({v})",
    "MODE(s) FILTER (WHERE a > 0)",
    "SUM(DISTINCT x)",
]
_PREDICATES = [
    "",
    "",
    "WHERE a > 0",
    "WHERE f",
    "WHERE s LIKE 'u%' OR a IS NULL",
    "WHERE x > 1",
    "WHERE NOT f AND a < 3",
]
_HAVINGS = ["", "", "HAVING COUNT(*) > 1", "HAVING SUM(a) > 0 OR COUNT(a) = 0"]


@st.composite
def windows(draw: Callable[..., Any]) -> str:
    """RANGE shorter than, equal to, a multiple of, and no multiple of SLIDE; ROWS too; with and without OFFSET."""
    kind = draw(st.sampled_from(["RANGE", "RANGE", "ROWS", "PARTITION BY {key} ROWS"]))
    kind = kind.format(key=draw(st.sampled_from(["a", "s", "f, a", "x", "d, b", "t"]))) if "{" in kind else kind
    length, slide = draw(st.integers(1, 25)), draw(st.integers(1, 12))
    offset = draw(st.sampled_from([0, 0, 0, 1, 7]))
    return f"[{kind} {length} SLIDE {slide}" + (f" OFFSET {offset}]" if offset else "]")


@st.composite
def queries(draw: Callable[..., Any]) -> str:
    """A periodic query over the stream `s`, in all parts that the engine runs."""
    keys = draw(st.lists(st.sampled_from(_KEYS), max_size=2, unique=True))
    count = draw(st.integers(0 if keys else 1, 3))
    calls = [draw(st.sampled_from(_AGGREGATES)).format(v=draw(st.sampled_from(_VALUES))) for _ in range(count)]
    parts = [f"{key} AS k{i}" for i, key in enumerate(keys)] + [f"{call} AS v{i}" for i, call in enumerate(calls)]
    text = f"SELECT {', '.join(parts)} FROM s {draw(windows())} {draw(st.sampled_from(_PREDICATES))}"
    if keys:
        text += f" GROUP BY {', '.join(keys)} {draw(st.sampled_from(_HAVINGS))}"
        if draw(st.booleans()):
            text += f" ORDER BY {draw(st.integers(1, len(parts)))} {draw(st.sampled_from(['', 'DESC', 'NULLS FIRST']))}"
        if draw(st.integers(0, 3)) == 0:
            text += f" LIMIT {draw(st.integers(0, 3))}"
    return " ".join(text.split())
