"""Holistic aggregates: no fixed number of words is enough, so all values are kept, with their frequencies."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from windrow.aggregates import columns
from windrow.aggregates.collected import Collected, Parameters, Question, Store

FREQUENCIES = "frequencies"


def frequency_question(name: str, kind: pa.DataType, parameters: Parameters) -> Collected:
    """What an exact holistic aggregate asks of the frequencies of its values, or a ValueError."""
    answer, numbers = _QUESTIONS[name]
    if numbers and not _is_number(kind):
        raise ValueError(f"{name} does not take a value of type {kind}; it takes numbers")
    if not (_is_number(kind) or columns.is_int_like(kind) or columns.is_text(kind)):
        raise ValueError(f"{name} does not take a value of type {kind}; it takes numbers, strings, dates and times")
    return Collected(Store(FREQUENCIES, kind), Question(name.lower(), answer(kind), tuple(parameters)))


def names() -> Sequence[str]:
    """The aggregates that are answered from frequencies."""
    return tuple(_QUESTIONS)


def _is_number(kind: pa.DataType) -> bool:
    integers = pa.types.is_integer(kind) and columns.is_int_like(kind)
    return bool(pa.types.is_floating(kind) or integers or columns.is_short_decimal(kind))


def ranked(kind: pa.DataType) -> pa.DataType:
    """A list of values and their counts."""
    return pa.list_(pa.struct([("value", kind), ("count", pa.int64())]))


def _sum_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_floating(kind):
        return pa.float64()
    return pa.decimal128(38, kind.scale) if pa.types.is_decimal(kind) else pa.int64()


_QUESTIONS: dict[str, tuple[Callable[[pa.DataType], pa.DataType], bool]] = {
    "COUNT_DISTINCT": (lambda _: pa.int64(), False),
    "SUM_DISTINCT": (_sum_type, True),
    "AVG_DISTINCT": (lambda _: pa.float64(), True),
    "QUANTILE": (lambda kind: kind, False),
    "PERCENTILE_DISC": (lambda kind: kind, False),
    "PERCENTILE_CONT": (lambda _: pa.float64(), True),
    "MODE": (lambda kind: kind, False),
    "TOP_K": (ranked, False),
}
