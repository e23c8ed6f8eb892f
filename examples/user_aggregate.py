"""Aggregates of your own: one that subtracts, and one that does not.

python examples/user_aggregate.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import windrow

Words = tuple[NDArray[Any], ...]


class GeometricMean:
    """exp of the mean logarithm; sums and counts subtract, so that a window of any length costs two reads."""

    identity = (0.0, 0)

    def lift(self, values: NDArray[Any]) -> Words:
        """The logarithm of each value, and 1."""
        return np.log(values), np.ones(len(values), np.int64)

    def combine(self, a: Words, b: Words) -> Words:
        """Add."""
        return a[0] + b[0], a[1] + b[1]

    def subtract(self, whole: Words, part: Words) -> Words:
        """Undo it."""
        return whole[0] - part[0], whole[1] - part[1]

    def lower(self, words: Words) -> NDArray[Any]:
        """The answers."""
        return np.exp(words[0] / words[1])


class Spread:
    """The greatest minus the smallest value, which nobody can subtract."""

    identity = (np.inf, -np.inf)

    def lift(self, values: NDArray[Any]) -> Words:
        """A value is its own smallest and greatest."""
        numbers = values.astype(np.float64)
        return numbers, numbers

    def combine(self, a: Words, b: Words) -> Words:
        """The smaller and the greater one."""
        return np.minimum(a[0], b[0]), np.maximum(a[1], b[1])

    def lower(self, words: Words) -> NDArray[Any]:
        """The distance."""
        return words[1] - words[0]


def main() -> None:
    """Prices of three shares in a minute, with windows of ten seconds."""
    db = windrow.connect()
    db.execute("CREATE STREAM trades (second BIGINT, share STRING, price DOUBLE) TIME second")
    db.aggregate("GEOMEAN", GeometricMean)
    db.aggregate("SPREAD", Spread)
    query = db.query(
        """
        SELECT share, GEOMEAN(price) AS typical, SPREAD(price) AS spread, COUNT(*) AS trades
        FROM trades [RANGE 10 SLIDE 5] GROUP BY share HAVING SPREAD(price) > 3 ORDER BY spread DESC LIMIT 2
        """
    )
    rng = np.random.default_rng(1)
    seconds = np.sort(rng.integers(0, 60, 400))
    prices = 100 + np.cumsum(rng.normal(size=400))
    db.push("trades", pa.table({"second": seconds, "share": rng.choice(["A", "B", "C"], 400), "price": prices}))
    db.finish()
    print(query.explain())
    print()
    for row in query.answers().slice(0, 8).to_pylist():
        print(f"{row['_time']:3} {row['share']}  {row['typical']:8.3f} {row['spread']:7.3f} {row['trades']:4}")


if __name__ == "__main__":
    main()
