"""Runs of ties, short and long, are sorted in place and stay stable."""

from __future__ import annotations

import numpy as np
import pytest

from windrow.kernels.ties import SHORT, sort_runs


@pytest.mark.parametrize("longest", [1, 3, SHORT, SHORT + 1, 500])
def test_like_lexsort(longest: int) -> None:
    random = np.random.default_rng(longest)
    run = np.repeat(np.arange(40), random.integers(1, longest + 1, 40))
    codes, rows = random.integers(-3, 4, len(run)), np.arange(len(run))
    expected = np.lexsort((codes, run))
    before = codes.copy()
    sort_runs(run, codes, rows)
    assert rows.tolist() == expected.tolist()
    assert codes.tolist() == before[expected].tolist()
