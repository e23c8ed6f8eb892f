"""Random queries that overlap in predicates, groups, windows and slides, so that they are derived from each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

FAMILIES = [
    ["a = 1", "a = 2", "a IN (1, 2)", "a = 2 OR a = 1", "a > 0 AND a < 3", ""],
    ["", "a > 0", "a <= 0", "a IS NULL", "a < 1 OR a IS NULL", "a BETWEEN 1 AND 2 OR a > 2"],
    ["a = 1", "s = 'u'", "a = 1 OR s = 'u'", "s IN ('u', 'v')", "s = 'v'", "a > 0 AND s = 'u'"],
    ["f", "NOT f", "f OR a > 0", "f = TRUE OR NOT f", "f IS NULL", ""],
    ["s LIKE 'u%'", "s LIKE 'u%' OR a = 1", "a = 1", ""],
]
GROUPINGS = [
    [()],
    [(), ("a",), ("s",), ("a", "s"), ("s", "a"), ("a", "s", "f")],
    [("a",)],
    [("a % 2",), ("s", "a % 2"), ("a", "s"), ()],
]
CALLS = [
    "COUNT(*)", "COUNT(a)", "SUM(a)", "AVG(a)",
    "MIN(a)", "MAX(x)", "MAX(s)", "COUNT(DISTINCT a)",
    "MIN(s)", "SUM(x)", "AVG(x)", "SUM(b)", "MEDIAN(a)", "TOP_K(s, 2)", "VAR_POP(a)", "SUM(a + 1)", "MAX(b)",
    "SUM(DISTINCT a)", "APPROX_COUNT_DISTINCT(a)",
]  # fmt: skip


@st.composite
def overlapping(draw: Callable[..., Any], most: int = 8) -> list[str]:
    """Periodic queries over the stream `s` of `tests.random_queries`."""
    predicates, groupings = draw(st.sampled_from(FAMILIES)), draw(st.sampled_from(GROUPINGS))
    calls = draw(st.sampled_from([CALLS[:4], CALLS[4:8], CALLS]))  # those that may be subtracted, or united, or all
    chosen = st.tuples(st.sampled_from(predicates), st.sampled_from(groupings))
    return [_query(draw, *one, calls) for one in draw(st.lists(chosen, min_size=4, max_size=most))]


def _query(draw: Callable[..., Any], predicate: str, keys: tuple[str, ...], calls: list[str]) -> str:
    chosen = draw(st.lists(st.sampled_from(calls), min_size=0 if keys else 1, max_size=2, unique=True))
    length, slide = draw(st.sampled_from([4, 6, 10, 20])), draw(st.sampled_from([1, 2, 4, 5]))
    parts = [f"{key} AS k{i}" for i, key in enumerate(keys)] + [f"{call} AS v{i}" for i, call in enumerate(chosen)]
    text = f"SELECT {', '.join(parts)} FROM s [RANGE {length} SLIDE {slide}]"
    text += f" WHERE {predicate}" if predicate else ""
    return text + (f" GROUP BY {', '.join(keys)}" if keys else "")
