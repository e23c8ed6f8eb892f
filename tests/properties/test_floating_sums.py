"""Invariant 5: after ten million panes a floating sum is exact to 1e-12, whatever passed through before."""

from __future__ import annotations

import math

import numpy as np
import pytest

from windrow.aggregates.sums import SumFloats, settle
from windrow.synopses import synopsis

CHUNK = 100_000
KEPT = 2000


@pytest.mark.parametrize("name", ["basic_interval", "interval", "landmark"])
def test_ten_million_panes(name: str) -> None:
    rng = np.random.default_rng(11)
    component = SumFloats()
    kept = synopsis(component, name, 1)
    kept.prepare([1000])
    worst = 0.0
    for number in range(100):
        values = rng.normal(size=CHUNK) * 10.0 ** rng.integers(-8, 8, CHUNK)
        # What would spoil a running sum for ever; it leaves with its pane.
        values[::5000] = rng.choice([1e300, -1e300, math.inf, -math.inf, math.nan, 1e-300], CHUNK // 5000)
        words = np.zeros((2, CHUNK, 1))
        words[0, :, 0] = values
        kept.update(np.arange(number * CHUNK, (number + 1) * CHUNK), words.view(np.int64))
        kept.expire((number + 1) * CHUNK - KEPT - 1)
        end = (number + 1) * CHUNK - 1
        spoilt = (CHUNK - 5000) - CHUNK  # the newest pane with such a value, counted from the end
        assert not math.isfinite(values[spoilt]) or abs(values[spoilt]) in (1e300, 1e-300)
        lengths = np.array([1, 10, 999, 1000, 1500, KEPT])
        found = kept.lookup(end - lengths, np.full(len(lengths), end))
        sums = settle(*component.typed(np.ascontiguousarray(found[:, :, 0])))
        for length, total in zip(lengths.tolist(), sums.tolist(), strict=True):
            exact = math.fsum(values[-length:])
            worst = max(worst, abs(total - exact) / max(abs(exact), 1e-300))
    assert worst < 1e-12


@pytest.mark.parametrize("name", ["basic_interval", "interval", "landmark"])
@pytest.mark.parametrize("huge", [1e300, math.inf, -math.inf, math.nan])
def test_what_is_huge_leaves_with_its_pane(name: str, huge: float) -> None:
    component = SumFloats()
    kept = synopsis(component, name, 1)
    kept.prepare([8, 16])
    values = np.full(100, 0.1)
    values[40] = huge
    words = np.zeros((2, 100, 1))
    words[0, :, 0] = values
    kept.update(np.arange(1, 101), words.view(np.int64))
    starts, ends = (part.ravel() for part in np.meshgrid(np.arange(101), np.arange(101)))
    starts, ends = starts[starts < ends], ends[starts < ends]
    found = kept.lookup(starts, ends)
    sums = settle(*component.typed(np.ascontiguousarray(found[:, :, 0])))
    for start, end, total in zip(starts.tolist(), ends.tolist(), sums.tolist(), strict=True):
        exact = huge if start <= 40 < end and not math.isfinite(huge) else math.fsum(values[start:end])
        assert total == exact or abs(total - exact) <= 1e-12 * abs(exact) or (exact != exact and total != total)  # noqa: PLR0124
