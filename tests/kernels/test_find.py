"""rank_ticks is numpy.searchsorted, for edges that are evenly spaced or not, up to the ends of int64."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.kernels.find import rank_ticks

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


@settings(derandomize=True, max_examples=300, deadline=None)
@given(st.sets(st.integers(-40, 40) | INT64, max_size=30), st.lists(st.integers(-45, 45) | INT64, max_size=30))
def test_any_edges(edges: set[int], ticks: list[int]) -> None:
    check(np.array(sorted(edges), np.int64), np.array(ticks, np.int64))


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.integers(1, 1 << 40), st.integers(-(1 << 60), 1 << 60), st.integers(1, 300), st.sets(st.integers(0, 299)))
def test_even_edges_with_gaps(step: int, start: int, count: int, missing: set[int]) -> None:
    edges = start + step * np.array([k for k in range(count) if k not in missing], np.int64)
    check(edges, np.concatenate([edges - 1, edges, edges + 1, edges + step // 2]))


def check(edges: np.ndarray, ticks: np.ndarray) -> None:
    out = np.empty(len(ticks), np.int64)
    rank_ticks(edges, ticks, out)
    assert out.tolist() == np.searchsorted(edges, ticks, side="right").tolist()
