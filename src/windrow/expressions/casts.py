"""CAST among numbers, BOOLEAN and times; text forms are in text_casts. A value that does not fit fails its row."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.expressions import text_casts
from windrow.expressions.arrays import TIMESTAMP, Datum, Mask, build, numbers, valid, without
from windrow.expressions.compiler import Compiler, Rule, Site
from windrow.expressions.program import Kernel, Program
from windrow.language import types

DAY = 86_400_000_000
BOUNDS = {pa.int8(): 2**7, pa.int16(): 2**15, pa.int32(): 2**31, pa.int64(): 2**63}
# The widest power of ten and the digits that int64 can count with.
INT64_DIGITS = 18


def cast_kernel(source: pa.DataType, target: pa.DataType) -> Kernel | None:
    """The kernel that converts one Arrow type to another by DuckDB's rules; None when Windrow has none."""
    if pa.types.is_null(source):
        return lambda a: pa.nulls(len(a), target)
    for fits, make in _CASTS:
        if fits(source, target):
            kernel: Kernel | None = make(source, target)
            return kernel
    return None


def _plain(source: pa.DataType, target: pa.DataType) -> Kernel:
    """Conversions in which Arrow can neither fail nor choose."""
    return lambda a: pc.cast(a, target, safe=False)


def _integer_to_integer(source: pa.DataType, target: pa.DataType) -> Kernel:
    if source.bit_width <= target.bit_width:
        return _plain(source, target)

    def run(a: Datum) -> Datum:
        values, where = numbers(a), valid(a)
        limit = BOUNDS[target]
        return _kept(values, where, (values < -limit) | (values >= limit), target)

    return run


def _kept(values: Datum, where: Mask, wrong: Mask, target: pa.DataType) -> tuple[Datum, Mask]:
    failed = wrong & where
    values = np.where(failed | ~where, 0, values).astype(types.numpy_dtype(target))
    return build(values, where & ~failed, target), failed


def _floating_to_integer(source: pa.DataType, target: pa.DataType) -> Kernel:
    def run(a: Datum) -> Datum:
        values = np.rint(numbers(a).astype(np.float64))  # half to even, as C's nearbyint in DuckDB
        limit = float(BOUNDS[target])
        return _kept(values, valid(a), ~((values >= -limit) & (values < limit)), target)

    return run


def _double_to_float(source: pa.DataType, target: pa.DataType) -> Kernel:
    def run(a: Datum) -> Datum:
        values = numbers(a)
        with np.errstate(all="ignore"):
            narrow = values.astype(np.float32)
        failed = np.isinf(narrow) & ~np.isinf(values) & valid(a)
        return build(narrow, valid(a) & ~failed, target), failed

    return run


def _to_boolean(source: pa.DataType, target: pa.DataType) -> Kernel:
    return lambda a: build(numbers(a) != 0, valid(a), target)


def _from_boolean(source: pa.DataType, target: pa.DataType) -> Kernel:
    return lambda a: pc.cast(pc.cast(a, pa.int8()), target)


def _integer_to_decimal(source: pa.DataType, target: pa.DataType) -> Kernel:
    def run(a: Datum) -> Datum:
        values = numbers(pc.cast(a, pa.int64()))
        digits = target.precision - target.scale
        limit = 10**digits
        failed = np.zeros(1, dtype=np.bool_)
        if limit <= 2**63:
            failed = ((values >= limit) | (values <= -limit)) & valid(a)
        whole = pc.cast(without(pc.cast(a, pa.int64()), failed), pa.decimal128(19, 0))
        return pc.cast(whole, target), failed

    return run


def _decimal_to_decimal(source: pa.DataType, target: pa.DataType) -> Kernel | None:
    grows = target.scale >= source.scale
    if grows and target.precision - target.scale >= source.precision - source.scale:
        return _plain(source, target)
    if source.precision == 38 or (source.precision - source.scale + target.scale > 38):
        return None

    def run(a: Datum) -> Datum:
        # One digit more: 9.95 rounds to 10.0.
        roomy = pc.cast(a, pa.decimal128(source.precision + 1, source.scale))
        rounded = roomy if grows else pc.round(roomy, target.scale, "half_towards_infinity")
        limit = pa.scalar(Decimal(10) ** (target.precision - target.scale))
        failed = ~np.asarray(pc.fill_null(pc.less(pc.abs(rounded), limit), True))
        return pc.cast(without(rounded, failed), target), failed

    return run


def _decimal_to_integer(source: pa.DataType, target: pa.DataType) -> Kernel | None:
    if source.precision > 37:
        return None

    def run(a: Datum) -> Datum:
        roomy = pc.cast(a, pa.decimal128(source.precision + 1, source.scale))
        rounded = pc.round(roomy, 0, "half_towards_infinity")
        limit = BOUNDS[target]
        low, high = (pa.scalar(Decimal(bound), pa.decimal128(19, 0)) for bound in (-limit, limit - 1))
        inside = pc.and_(pc.greater_equal(rounded, low), pc.less_equal(rounded, high))
        failed = ~np.asarray(pc.fill_null(inside, True))
        return pc.cast(without(rounded, failed), target), failed

    return run


def _decimal_to_floating(source: pa.DataType, target: pa.DataType) -> Kernel:
    if source.precision > INT64_DIGITS:
        return lambda a: pc.cast(pc.cast(a, pa.float64()), target, safe=False)

    def run(a: Datum) -> Datum:
        # Up to 18 digits the low word is the whole number, without its point.
        words = np.frombuffer(a.buffers()[1], dtype=np.int64) if len(a) else np.empty(0, dtype=np.int64)
        units = np.where(valid(a), words[2 * a.offset : 2 * (a.offset + len(a)) : 2], 0)
        power = 10**source.scale
        # Beyond 2^53 units are not exact as DOUBLE: DuckDB then converts both sides of the point apart.
        exact = np.abs(units) <= 2**53
        whole = np.sign(units) * (np.abs(units) // power)
        apart = whole.astype(np.float64) + (units - whole * power) / float(power)
        return pc.cast(build(np.where(exact, units / float(power), apart), valid(a), pa.float64()), target, safe=False)

    return run


def _date_to_timestamp(source: pa.DataType, target: pa.DataType) -> Kernel:
    def run(a: Datum) -> Datum:
        days = numbers(a).astype(np.int64)
        failed = (np.abs(days) > 2**63 // DAY) & valid(a)
        return build(np.where(failed, 0, days) * DAY, valid(a) & ~failed, TIMESTAMP), failed

    return run


def _timestamp_to_date(source: pa.DataType, target: pa.DataType) -> Kernel:
    return lambda a: build(np.floor_divide(numbers(a), DAY), valid(a), target)


def _is(source_test: str, target_test: str) -> Kernel:
    first, second = getattr(pa.types, source_test), getattr(pa.types, target_test)
    return lambda source, target: first(source) and second(target)


_CASTS: tuple[tuple[Kernel, Kernel], ...] = (
    (_is("is_integer", "is_integer"), _integer_to_integer),
    (_is("is_integer", "is_floating"), _plain),
    (_is("is_integer", "is_decimal"), _integer_to_decimal),
    (_is("is_integer", "is_boolean"), _to_boolean),
    (_is("is_floating", "is_integer"), _floating_to_integer),
    (_is("is_floating", "is_float64"), _plain),
    (_is("is_floating", "is_float32"), _double_to_float),
    (_is("is_floating", "is_boolean"), _to_boolean),
    (_is("is_decimal", "is_decimal"), _decimal_to_decimal),
    (_is("is_decimal", "is_integer"), _decimal_to_integer),
    (_is("is_decimal", "is_floating"), _decimal_to_floating),
    (_is("is_boolean", "is_integer"), _from_boolean),
    (_is("is_boolean", "is_floating"), _from_boolean),
    (_is("is_date32", "is_timestamp"), _date_to_timestamp),
    (_is("is_timestamp", "is_date32"), _timestamp_to_date),
    (_is("is_integer", "is_string"), _plain),
    (_is("is_date32", "is_string"), lambda source, target: text_casts.date_to_text),
    (_is("is_timestamp", "is_string"), lambda source, target: text_casts.timestamp_to_text),
    (_is("is_boolean", "is_string"), _plain),
    (_is("is_string", "is_boolean"), lambda source, target: text_casts.text_to_boolean),
    (_is("is_string", "is_integer"), lambda source, target: text_casts.text_to_integer(BOUNDS[target], target)),
    (_is("is_string", "is_float64"), lambda source, target: text_casts.text_to_double),
    (_is("is_string", "is_timestamp"), lambda source, target: text_casts.text_to_timestamp),
    (_is("is_string", "is_date32"), lambda source, target: text_casts.text_to_date),
)


def _cast(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    attempt = site.view.name == "try_cast"
    return compiler.cast(site, arguments[0], types.to_arrow(site.type), attempt=attempt)


RULES: dict[str, Rule] = {"cast": _cast, "try_cast": _cast}
