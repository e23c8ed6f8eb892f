"""What a multi-way window join costs per unit time, in tuples looked at (thesis 5.3.1, Tables 5.3-5.6).

New rows of an input probe the other inputs one after the other, in the global order without their own input (thesis
Table 5.2). Of λ·T rows in a window with v different keys, a bound key with v' different values meets λT / max(v, v');
the result has min(v, v') of them: values are contained in each other and equally frequent. Insertion and expiration
cost the same in every order, and are left out.

Several equalities: every input has a number of distinct values per *key* (a class of columns that must be equal); what
one probe finds is divided once for every key that is bound already. With a single key these are the formulas X1 … X4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum


class Method(Enum):
    """What a probe looks at."""

    NESTED_LOOPS = "nested loops"
    """Every row of the window."""
    HASH = "hash"
    """The rows of one of `buckets` buckets."""
    INDEX = "index"
    """The head of a chain, and the rows that match."""


class Evaluation(Enum):
    """When new rows meet the others, and when old ones leave (thesis Algorithms 2 to 5)."""

    EAGER = "eager"
    LAZY_EXPIRATION = "eager with lazy expiration"
    LAZY = "lazy"
    LAZY_RESTORE = "lazy with restore"


@dataclass(frozen=True)
class JoinInput:
    """One window: λ rows per unit time, T units long, v different values of each of its keys (thesis Table 5.1)."""

    rate: float
    length: float
    distinct: Mapping[str, float] = field(default_factory=dict)
    buckets: float = 1.0

    @classmethod
    def of(cls, rate: float, length: float, distinct: float, buckets: float = 1.0) -> JoinInput:
        """A window of a join on one common attribute."""
        return cls(rate, length, {"a": distinct}, buckets)

    @property
    def size(self) -> float:
        """Rows in the window."""
        return self.rate * self.length


def result_size(inputs: Sequence[JoinInput], members: Sequence[int]) -> float:
    """φ: the expected rows of the join of these windows (thesis Table 5.4)."""
    size, known = 1.0, dict[str, float]()
    for number in members:
        size *= matches(inputs[number], known)
        known = bound(inputs[number], known)
    return size


def matches(target: JoinInput, known: Mapping[str, float]) -> float:
    """Rows of the window that one combination meets, when these keys have so many different values in it."""
    found = target.size
    for key, count in target.distinct.items():
        if key in known:
            found /= max(count, known[key], 1.0)
    return found


def bound(target: JoinInput, known: Mapping[str, float]) -> dict[str, float]:
    """The keys that are bound once the window was probed, each with its number of different values."""
    own = {key: min(count, known.get(key, count)) for key, count in target.distinct.items()}
    return {**known, **own}


def order_cost(
    inputs: Sequence[JoinInput],
    order: Sequence[int],
    method: Method = Method.NESTED_LOOPS,
    evaluation: Evaluation = Evaluation.EAGER,
    every: float = 0.0,
) -> float:
    """Tuples looked at per unit time with this global order; `every` is Δ, the interval of what is lazy.

    >>> streams = [JoinInput.of(10, 100, 500), JoinInput.of(1, 100, 50), JoinInput.of(1, 200, 40)]
    >>> streams.append(JoinInput.of(3, 100, 5))
    >>> order_cost(streams, [0, 1, 2, 3])  # thesis Table 5.3
    16000.0
    """
    return sum(origin_cost(inputs, origin, order, method, evaluation, every) for origin in order)


def origin_cost(
    inputs: Sequence[JoinInput],
    origin: int,
    order: Sequence[int],
    method: Method = Method.NESTED_LOOPS,
    evaluation: Evaluation = Evaluation.EAGER,
    every: float = 0.0,
) -> float:
    """X: the part that the new rows of one input cost."""
    start = inputs[origin]
    known = dict(start.distinct)
    looked, found = 0.0, 1.0
    for number in order:
        if number == origin:
            continue
        target = inputs[number]
        meets = matches(target, known)
        looked += found * _probe(target, meets, method, evaluation, every)
        found *= meets
        known = bound(target, known)
    probes = _probes(start, evaluation, every)
    if evaluation is Evaluation.LAZY_RESTORE:
        # Each result is checked against the timestamp of every new row of its group (Algorithm 5, lines 11-13).
        return probes * looked + start.rate * found
    return probes * looked


def _probe(target: JoinInput, meets: float, method: Method, evaluation: Evaluation, every: float) -> float:
    scale = 1.0
    if target.length:
        # Rows that ended stay: half an interval on average, or, where they must be restored, a whole one.
        if evaluation is Evaluation.LAZY_EXPIRATION:
            scale += every / 2 / target.length
        elif evaluation is Evaluation.LAZY_RESTORE:
            scale += every / target.length
    if method is Method.INDEX:
        return 1 + meets * scale
    return target.size * scale / (target.buckets if method is Method.HASH else 1.0)


def _probes(start: JoinInput, evaluation: Evaluation, every: float) -> float:
    """How often the windows are probed: lazy evaluation does it once for all new rows with equal keys."""
    if evaluation in (Evaluation.EAGER, Evaluation.LAZY_EXPIRATION) or not every:
        return start.rate
    came = start.rate * every
    values = 1.0
    for count in start.distinct.values():
        values *= max(count, 1.0)
    groups = values * (1 - (1 - 1 / values) ** came) if values > 1 else min(1.0, came)
    return min(came, groups) / every
