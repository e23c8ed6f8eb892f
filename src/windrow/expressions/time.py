"""DATE and TIMESTAMP: parts, truncation, buckets, and arithmetic with intervals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.expressions.arrays import TIMESTAMP, Datum, Mask, Numbers, build, numbers, valid
from windrow.expressions.compiler import Compiler, Rule, Site
from windrow.expressions.program import Kernel, Program
from windrow.language import types
from windrow.language.literals import MICROSECONDS
from windrow.language.typing import part

INT64 = pa.int64()
DAY = MICROSECONDS["DAY"]
# DuckDB's buckets start at Monday, 3 January 2000.
BUCKET_ORIGIN = 946_857_600_000_000
# DuckDB's range: whole days at the start, and the last number is its infinity.
EARLIEST, LATEST = -9_223_372_022_400_000_000, 2**63 - 2
RANGE = "leaves the range of TIMESTAMP for some row"

Micros = Callable[[Numbers], Numbers]


def _of_micros(function: Micros, arrow: pa.DataType) -> Kernel:
    return lambda a: build(function(numbers(a)), valid(a), arrow)


def _floored(width: int, origin: int = 0) -> Micros:
    return lambda micros: micros - (micros - origin) % width


def _months(count: int) -> Micros:
    def run(micros: Numbers) -> Numbers:
        months = micros.astype("datetime64[us]").astype("datetime64[M]").astype(np.int64)
        return (months - months % count).astype("datetime64[M]").astype("datetime64[us]").astype(np.int64)

    return run


TRUNCATE: dict[str, Micros] = {
    # 1970 began on a Thursday: Monday was three days earlier.
    "week": _floored(7 * DAY, -3 * DAY),
    **{unit.lower(): _floored(width) for unit, width in MICROSECONDS.items() if unit != "WEEK"},
    "month": _months(1),
    "quarter": _months(3),
}


def _year_start(micros: Numbers) -> Numbers:
    return micros.astype("datetime64[us]").astype("datetime64[Y]").astype("datetime64[us]").astype(np.int64)


TRUNCATE["year"] = _year_start

PARTS: dict[str, Kernel] = {
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "week": pc.iso_week,
    "day": pc.day,
    "dow": lambda a: pc.day_of_week(a, week_start=7),
    "isodow": lambda a: pc.day_of_week(a, count_from_zero=False),
    "doy": pc.day_of_year,
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
    "millisecond": _of_micros(lambda micros: micros % MICROSECONDS["MINUTE"] // 1000, INT64),
    "microsecond": _of_micros(lambda micros: micros % MICROSECONDS["MINUTE"], INT64),
    "epoch": _of_micros(lambda micros: micros / 1e6, pa.float64()),
}


def _timestamp(compiler: Compiler, site: Site, program: Program) -> Program:
    return compiler.coerce(site, program, TIMESTAMP)


def _extract(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    name = part(site.view) if site.view.name == "extract" else "epoch"
    operand = _timestamp(compiler, site, arguments[0])
    return compiler.emit(site, "extract", [operand], types.to_arrow(site.type), PARTS[name], options=(name,))


def _truncate(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    name = part(site.view)
    kernel = _of_micros(TRUNCATE[name], TIMESTAMP)
    return compiler.emit(
        site, "date_trunc", [_timestamp(compiler, site, arguments[0])], TIMESTAMP, kernel, options=(name,)
    )


def _bucket(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    width = arguments[0].constant
    if width is None or not pa.types.is_duration(width.type) or width.value <= 0:
        raise site.unsupported("time_bucket needs a constant, positive width in units up to WEEK")
    kernel = _of_micros(_floored(width.value, BUCKET_ORIGIN), TIMESTAMP)
    operand = _timestamp(compiler, site, arguments[1])
    return compiler.emit(site, "time_bucket", [operand], TIMESTAMP, kernel, options=(width.value,))


def _epoch_us(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    operand = _timestamp(compiler, site, arguments[0])
    return compiler.emit(site, "epoch_us", [operand], INT64, lambda a: a.view(INT64))


def _epoch_ms(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    if not types.is_integer(site.type):
        operand = compiler.coerce(site, arguments[0], INT64)
        return compiler.emit(site, "from epoch_ms", [operand], TIMESTAMP, _from_millis, reason=RANGE)
    operand = _timestamp(compiler, site, arguments[0])
    return compiler.emit(site, "epoch_ms", [operand], INT64, _of_micros(_to_millis, INT64))


def _to_millis(micros: Numbers) -> Numbers:
    # DuckDB rounds half away from zero here, though extract(millisecond …) cuts off.
    millis: Numbers = np.sign(micros) * (np.abs(micros) // 1000 + (np.abs(micros) % 1000 >= 500))
    return millis


def _from_millis(a: Datum) -> tuple[Datum, Mask]:
    millis = numbers(a)
    failed = valid(a) & ((millis > 2**63 // 1000) | (millis < -(2**63 // 1000)))
    return build(np.where(failed, 0, millis) * 1000, valid(a) & ~failed, TIMESTAMP), failed


def _make_timestamp(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    operand = compiler.coerce(site, arguments[0], INT64)
    return compiler.emit(site, "make_timestamp", [operand], TIMESTAMP, _from_micros, reason=RANGE)


def _from_micros(a: Datum) -> tuple[Datum, Mask]:
    micros = numbers(a)
    failed = valid(a) & ((micros < EARLIEST) | (micros > LATEST))
    return build(micros, valid(a) & ~failed, TIMESTAMP), failed


def arithmetic(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    """Time ± INTERVAL, DATE ± days, DATE - DATE."""
    left, right = arguments
    kinds = [types.kind(sql) for sql in site.operand_types]
    if types.D.INTERVAL not in kinds:
        return _days(compiler, site, arguments)
    if types.kind(site.type) == types.D.INTERVAL or kinds == [types.D.INTERVAL] * 2:
        raise site.unsupported("an INTERVAL can only be added to or subtracted from a time")
    if kinds[0] == types.D.INTERVAL:
        left, right = right, left
    step = right.constant
    if step is None:
        raise site.unsupported("an INTERVAL must be a constant")
    sign = -1 if site.view.name == "-" else 1
    if pa.types.is_duration(step.type):
        kernel = _shifted(sign * step.value)
    else:
        kernel = _month_shifted(sign * step.as_py().months)
    key = (sign, repr(step.as_py()))
    operand = _timestamp(compiler, site, left)
    return compiler.emit(site, "shift", [operand], TIMESTAMP, kernel, options=key, reason=RANGE)


def _shifted(micros: int) -> Kernel:
    def run(a: Datum) -> tuple[Datum, Mask]:
        values, where = numbers(a), valid(a)
        failed = where & ((values > LATEST - micros) if micros >= 0 else (values < EARLIEST - micros))
        return build(np.where(failed, 0, values) + micros, where & ~failed, TIMESTAMP), failed

    return run


def _month_shifted(count: int) -> Kernel:
    """The same day of another month, or its last day when that month is shorter."""

    def run(a: Datum) -> Datum:
        micros = numbers(a)
        days = np.floor_divide(micros, DAY)
        month = days.astype("datetime64[D]").astype("datetime64[M]")
        day = days - month.astype("datetime64[D]").astype(np.int64)
        target = month + np.timedelta64(count, "M")
        first = target.astype("datetime64[D]").astype(np.int64)
        last = (target + np.timedelta64(1, "M")).astype("datetime64[D]").astype(np.int64) - first - 1
        return build((first + np.minimum(day, last)) * DAY + (micros - days * DAY), valid(a), TIMESTAMP)

    return run


def _days(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    sql = site.operand_types
    if all(types.is_temporal(one) for one in sql):
        if types.kind(site.type) == types.D.INTERVAL:
            raise site.unsupported("TIMESTAMP - TIMESTAMP is not supported; write epoch_us(a) - epoch_us(b)")
        return compiler.emit(site, "days", arguments, INT64, _days_between)
    left, right = arguments
    if types.is_integer(sql[0]):
        left, right = right, left
    if types.kind(site.type) != types.D.DATE:
        raise site.unsupported("only an INTERVAL can be added to a TIMESTAMP")
    kernel = _days_later(-1 if site.view.name == "-" else 1)
    operands = [left, compiler.coerce(site, right, INT64)]
    reason = "leaves the range of DATE for some row"
    return compiler.emit(site, "date" + site.view.name, operands, pa.date32(), kernel, reason=reason)


def _days_between(a: Datum, b: Datum) -> Datum:
    return build(numbers(a).astype(np.int64) - numbers(b), valid(a) & valid(b), INT64)


def _days_later(sign: int) -> Kernel:
    def run(a: Datum, b: Datum) -> tuple[Datum, Mask]:
        where = valid(a) & valid(b)
        step = numbers(b)
        total = numbers(a).astype(np.int64) + sign * np.clip(step, -(2**33), 2**33)
        failed = where & (np.abs(total) > 2**31 - 2)
        return build(np.where(failed, 0, total), where & ~failed, pa.date32()), failed

    return run


RULES: dict[str, Rule] = {
    "extract": _extract,
    "epoch": _extract,
    "epoch_us": _epoch_us,
    "epoch_ms": _epoch_ms,
    "make_timestamp": _make_timestamp,
    "date_trunc": _truncate,
    "time_bucket": _bucket,
}
