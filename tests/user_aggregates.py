"""Aggregates that tests register, beside those of the example; in a module, so that workers find them too."""

from __future__ import annotations

from typing import Any

import numpy as np
from examples.user_aggregate import GeometricMean, Spread, Words
from numpy.typing import NDArray


class Walk:
    """A product of 2 x 2 matrices modulo a prime: combine does not commute; words are integers."""

    identity = (1, 0, 0, 1)
    prime = 10_007

    def lift(self, values: NDArray[Any]) -> Words:
        ones = np.ones(len(values), np.int64)
        return values % self.prime, ones, ones, (values * 3 + 1) % self.prime

    def combine(self, a: Words, b: Words) -> Words:
        a1, a2, a3, a4 = a
        b1, b2, b3, b4 = b
        p = self.prime
        return (a1 * b1 + a2 * b3) % p, (a1 * b2 + a2 * b4) % p, (a3 * b1 + a4 * b3) % p, (a3 * b2 + a4 * b4) % p

    def lower(self, words: Words) -> NDArray[Any]:
        return words[0] * 31 + words[1] * 17 + words[2] * 7 + words[3]


class Fussy(Spread):
    """Fails at the value 13."""

    def lift(self, values: NDArray[Any]) -> Words:
        if (values == 13).any():
            raise ValueError("13 is not allowed")
        return super().lift(values)


ALL = {"GEOMEAN": (GeometricMean, "DOUBLE"), "SPREAD": (Spread, "DOUBLE"), "WALK": (Walk, "BIGINT")}


def one_by_one(name: str, values: list[Any]) -> Any:
    """The answer of a window, recomputed value after value."""
    if not values:
        return None
    made = ALL[name][0]()
    words = tuple(np.array([one]) for one in made.identity)
    for value in values:
        words = made.combine(words, made.lift(np.array([value])))
    return made.lower(words)[0].item()
