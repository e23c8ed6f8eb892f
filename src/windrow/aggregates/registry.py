"""The aggregates by name: which components each needs for a type of value, and how it is lowered from them.

Two aggregates on the same value share equal components: SUM and AVG share the sum, all share the count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.aggregates import columns, holistic, items_format, sums
from windrow.aggregates.collected import Parameters
from windrow.aggregates.component import Component, Kind
from windrow.aggregates.count import Count, CountRows
from windrow.aggregates.extremes import Max, MaxText, Min, MinText, restored
from windrow.aggregates.moments import Moments
from windrow.aggregates.sketched import SKETCHED, sketched
from windrow.aggregates.user import UserComponent, user_lowering
from windrow.kernels.memory import pooled
from windrow.language import types
from windrow.language.user_functions import UserFunction

Words: TypeAlias = Sequence[Sequence[NDArray[Any]]]
"""The typed words of each component, all of the same length."""


@dataclass(frozen=True)
class Aggregate:
    """One aggregate on one type of value: SQL name, components, type of the answer, and `lower`."""

    name: str
    components: tuple[Component, ...]
    type: pa.DataType
    kind: Kind
    lowering: Callable[[Words], pa.Array]

    @property
    def duplicate_insensitive(self) -> bool:
        """Whether a value that comes twice changes nothing."""
        return any(component.duplicate_insensitive for component in self.components)

    def lower(self, words: Words) -> pa.Array:
        """The answers, one per row of the words, with SQL NULLs."""
        return self.lowering(words)


def aggregate(
    name: str,
    input_type: pa.DataType | None = None,
    parameters: Parameters = (),
    user: UserFunction | None = None,
) -> Aggregate:
    """The aggregate of this name on this type of value; None is `*`. Parameters are φ, k and the like.

    One of the user is told by its registration.

    >>> aggregate("SUM", pa.int32()).type
    DataType(int64)
    >>> aggregate("SUM", pa.string())
    Traceback (most recent call last):
    ValueError: SUM does not take a value of type string; it takes numbers
    """
    if user is not None:
        own = UserComponent(user)
        return Aggregate(user.name, (own, Count()), types.to_arrow(user.returns), own.kind, user_lowering(own))
    known = name.upper()
    if not any(known in names for names in (AGGREGATES, holistic.names(), SKETCHED)):
        every = (*AGGREGATES, *holistic.names(), *SKETCHED)
        raise ValueError(f"there is no aggregate {name}; the aggregates are {', '.join(every)}")
    if input_type is None:
        if known != "COUNT":
            raise ValueError(f"{known}(*) has no meaning; only COUNT takes *")
        return Aggregate(known, (CountRows(),), pa.int64(), Kind.DISTRIBUTIVE, _lower_count)
    if known in SKETCHED:
        component = sketched(known, input_type, parameters)
        if known == "ITEMS_SKETCH_AGG":
            return Aggregate(known, (component, Count()), pa.binary(), Kind.HOLISTIC, _lower_items)
        return Aggregate(known, (component,), component.question.type, Kind.HOLISTIC, _lower_collected)
    if known in holistic.names():
        component = holistic.frequency_question(known, input_type, parameters)
        return Aggregate(known, (component,), component.question.type, Kind.HOLISTIC, _lower_collected)
    return AGGREGATES[known](known, input_type)


def _lower_collected(words: Words) -> pa.Array:
    """The collection has answered already."""
    ((answers,),) = words
    return answers


def _lower_items(words: Words) -> pa.Array:
    (counters,), (count,) = words
    return items_format.sketches(counters, count)


def _count(name: str, kind: pa.DataType) -> Aggregate:
    return Aggregate(name, (Count(),), pa.int64(), Kind.DISTRIBUTIVE, _lower_count)


def _lower_count(words: Words) -> pa.Array:
    return pa.array(words[0][0])


def _sum(name: str, kind: pa.DataType) -> Aggregate:
    component = _sum_component(name, kind)
    lower: Callable[[Words], pa.Array]
    if pa.types.is_floating(kind):
        answer, lower = pa.float64(), _lower_float_sum
    elif pa.types.is_decimal(kind):
        answer = pa.decimal128(38, kind.scale)
        lower = _lower_decimal_sum(answer)
    elif isinstance(component, sums.SumInts):
        answer, lower = pa.int64(), _lower_int_sum
    else:
        answer, lower = pa.int64(), _lower_wide_sum
    return Aggregate(name, (component, Count()), answer, Kind.DISTRIBUTIVE, lower)


def _sum_component(name: str, kind: pa.DataType) -> Component:
    if pa.types.is_floating(kind):
        return sums.SumFloats()
    if columns.is_short_decimal(kind) or pa.types.is_int64(kind):
        return sums.SumWideInts()
    if pa.types.is_integer(kind) and columns.is_int_like(kind):
        return sums.SumInts()
    raise _refused(name, kind, "numbers")


def _lower_int_sum(words: Words) -> pa.Array:
    (total,), (count,) = words
    return pa.array(total, mask=_nothing(count))


def _lower_wide_sum(words: Words) -> pa.Array:
    (low, high), (count,) = words
    return pa.array(sums.narrow(low, high, count > 0), mask=_nothing(count))


def _lower_decimal_sum(answer: pa.DataType) -> Callable[[Words], pa.Array]:
    def lower(words: Words) -> pa.Array:
        (low, high), (count,) = words
        return columns.from_unscaled(*sums.widen(low, high), answer, _nothing(count))

    return lower


def _lower_float_sum(words: Words) -> pa.Array:
    (total, errors), (count,) = words
    return pa.array(sums.settle(total, errors), mask=_nothing(count))


def _avg(name: str, kind: pa.DataType) -> Aggregate:
    component = _sum_component(name, kind)
    scale = 10.0**kind.scale if pa.types.is_decimal(kind) else 1.0

    def lower(words: Words) -> pa.Array:
        total, (count,) = words
        if isinstance(component, sums.SumFloats):
            top = sums.settle(total[0], total[1])
        elif isinstance(component, sums.SumWideInts):
            top = sums.approximate(total[0], total[1])
        else:
            top = total[0]
        nothing = _nothing(count)
        answers = pooled(len(count), np.float64)
        np.true_divide(top, count if nothing is None else np.maximum(count, 1), out=answers)
        return pa.array(answers if scale == 1.0 else answers / scale, mask=nothing)

    return Aggregate(name, (component, Count()), pa.float64(), Kind.ALGEBRAIC, lower)


def _extreme(component: Component, text: Component) -> Callable[[str, pa.DataType], Aggregate]:
    def build(name: str, kind: pa.DataType) -> Aggregate:
        if columns.is_text(kind):
            return Aggregate(name, (text, Count()), kind, Kind.DISTRIBUTIVE, _lower_text)
        if not (pa.types.is_floating(kind) or columns.is_int_like(kind) or columns.is_short_decimal(kind)):
            raise _refused(name, kind, "numbers, strings, dates and times")

        def lower(words: Words) -> pa.Array:
            (codes,), (count,) = words
            return restored(codes, kind, _nothing(count))

        return Aggregate(name, (component, Count()), kind, Kind.DISTRIBUTIVE, lower)

    return build


def _lower_text(words: Words) -> pa.Array:
    """The share group has put the strings in place of their labels, NULL where there was no value."""
    (strings,), _ = words
    return strings


def _variance(*, sample: bool, root: bool) -> Callable[[str, pa.DataType], Aggregate]:
    def lower(words: Words) -> pa.Array:
        ((count, _, squares),) = words
        degrees = count - 1.0 if sample else count
        null = degrees <= 0.0
        with np.errstate(invalid="ignore", divide="ignore"):
            answers = squares / degrees
            if root:
                answers = np.sqrt(answers)
        return pa.array(answers, mask=null if null.any() else None)

    def build(name: str, kind: pa.DataType) -> Aggregate:
        _sum_component(name, kind)
        return Aggregate(name, (Moments(),), pa.float64(), Kind.ALGEBRAIC, lower)

    return build


def _nothing(count: NDArray[Any]) -> NDArray[np.bool_] | None:
    """Where there was no value; None when there was one everywhere."""
    null: NDArray[np.bool_] = count == 0
    return null if null.any() else None


def _refused(name: str, kind: pa.DataType, takes: str) -> ValueError:
    hint = ""
    if pa.types.is_decimal(kind):
        hint = f" and decimals of at most {columns.MAX_DECIMAL_DIGITS} digits"
    elif pa.types.is_uint64(kind):
        hint = "; cast an unsigned BIGINT to BIGINT or DOUBLE"
    return ValueError(f"{name} does not take a value of type {kind}; it takes {takes}{hint}")


AGGREGATES: dict[str, Callable[[str, pa.DataType], Aggregate]] = {
    "COUNT": _count,
    "SUM": _sum,
    "AVG": _avg,
    "MIN": _extreme(Min(), MinText()),
    "MAX": _extreme(Max(), MaxText()),
    "VAR_POP": _variance(sample=False, root=False),
    "VAR_SAMP": _variance(sample=True, root=False),
    "STDDEV_POP": _variance(sample=False, root=True),
    "STDDEV_SAMP": _variance(sample=True, root=True),
}
