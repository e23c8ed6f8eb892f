"""B-INT-QNT against sorting the interval, whatever the order of the values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from windrow.synopses.quantiles import Quantiles

FRACTIONS = (0.0, 0.01, 0.3, 0.5, 1.0)
STREAMS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "random": lambda rng, n: rng.random(n),
    "few values": lambda rng, n: rng.integers(0, 5, n).astype(float),
    "one value": lambda rng, n: np.full(n, 7.0),
    "ascending": lambda rng, n: np.arange(n, dtype=float),
    "descending": lambda rng, n: -np.arange(n, dtype=float),
    "skewed": lambda rng, n: rng.pareto(0.3, n),
    "extreme": lambda rng, n: rng.choice([-np.inf, np.inf, 0.0, 1e308, -1e-308], n),
}


@pytest.mark.parametrize("stream", STREAMS)
def test_every_quantile_of_any_interval(stream: str) -> None:
    rng = np.random.default_rng(17)
    values = STREAMS[stream](rng, 1500)
    kept, seen = Quantiles(most=300), 0
    while seen < len(values):
        more = int(rng.integers(1, 60))
        kept.update(values[seen : seen + more])
        seen = min(len(values), seen + more)
        first = rng.integers(max(0, seen - 300), seen, 10)
        last = np.minimum(seen, first + rng.integers(1, 301, 10))
        found = kept.lookup(first, last, FRACTIONS)
        for i, (start, stop) in enumerate(zip(first, last, strict=True)):
            whole = np.sort(values[start:stop])
            wanted = [whole[max(1, int(fraction * len(whole))) - 1] for fraction in FRACTIONS]
            assert found[:, i].tolist() == wanted


def test_what_has_left_cannot_be_asked_for() -> None:
    kept = Quantiles(most=10)
    kept.update(np.arange(25.0))
    with pytest.raises(ValueError, match=r"only 15 \.\. 24 are kept"):
        kept.lookup(np.array([14]), np.array([20]), (0.5,))


def test_space_is_bounded() -> None:
    kept, sizes = Quantiles(most=1000), []
    for _ in range(100):
        kept.update(np.arange(333.0))
        sizes.append(kept.nbytes)
    assert max(sizes[20:]) <= max(sizes[:20])
