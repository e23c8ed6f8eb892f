"""Numbers and times ⇄ text.

DuckDB reads more forms (1e3 as an integer, zones behind a timestamp) than these kernels. Such rows are *undecided*:
they fail in TRY_CAST too, where everything else that cannot be read is NULL. A kernel gives the values, the rows
that failed, and those of them that are undecided.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.expressions.arrays import TIMESTAMP, Datum, Mask, Numbers, build, numbers, truth, valid, without
from windrow.expressions.program import Kernel
from windrow.language import types

DAY = 86_400_000_000
SPACE = " \t\n\v\f\r"

INTEGER = r"^(?P<sign>[+-]?)0*(?P<whole>\d*)(?:\.(?P<fraction>\d*))?$"
DOUBLE = r"^(?i)\+?-?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf|infinity|nan)$"
MOMENT = (
    r"^(?P<year>\d{1,4})(?P<first>[-/ ])(?P<month>\d{1,2})(?P<second>[-/ ])(?P<day>\d{1,2})"
    r"(?P<clock>[ T](?P<hour>\d{1,2}):(?P<minute>\d{1,2})(?::(?P<seconds>\d{1,2})(?:\.(?P<fraction>\d*))?)?Z?\s*)?$"
)
# DuckDB reads these too: exponents, digits in groups, other bases; zones, long years, words.
OTHER_NUMBER = r"^(?i)[+-]?(?:0[xb][0-9a-f_]+|[\d_]*\.?[\d_]*(?:e[+-]?\d+)?)$"
OTHER_MOMENT = (
    r"^(?i)(?:[+-]?inf(?:inity)?|epoch"
    r"|-?\d+[-/]\d+[-/]\d+(?:.*(?:\(bc\)|[+-]\d\d(?::?\d\d)*| ?utc| [a-z_/]+|  .*|z))?)$"
)


Read = tuple[Datum, Mask, Mask]


def _undecided(text: Datum, unread: Mask, pattern: str) -> Mask:
    if not unread.any():
        return unread
    # The patterns are loose, so ask for a digit or a known word as well.
    other = pc.and_(pc.match_substring_regex(text, pattern), pc.match_substring_regex(text, r"(?i)\d|inf|epoch"))
    return unread & truth(other)


def text_to_boolean(a: Datum) -> tuple[Datum, Mask]:
    """true, t, yes, y, 1 and their opposites, in any case."""
    lower = pc.utf8_lower(a)
    yes = truth(pc.is_in(lower, value_set=pa.array(["true", "t", "yes", "y", "1"])))
    no = truth(pc.is_in(lower, value_set=pa.array(["false", "f", "no", "n", "0"])))
    failed = valid(a) & ~yes & ~no
    return build(yes, yes | no, pa.bool_()), failed


def text_to_integer(limit: int, target: pa.DataType) -> Kernel:
    """Digits with a sign; a fraction is rounded half away from zero."""

    def run(a: Datum) -> Read:
        text = pc.utf8_trim(a, characters=SPACE)
        parts = pc.extract_regex(text, INTEGER)
        sign, whole, fraction = (pc.struct_field(parts, name) for name in ("sign", "whole", "fraction"))
        # A number has a digit somewhere; leading zeros were taken off, so more than 19 digits cannot fit.
        read = valid(parts) & truth(pc.match_substring_regex(text, r"\d"))
        undecided = _undecided(text, valid(a) & ~read, OTHER_NUMBER)
        short = read & truth(pc.less_equal(pc.utf8_length(whole), 19))
        digits = pc.if_else(pa.array(short), pc.if_else(pc.equal(whole, ""), "0", whole), "0")
        up = truth(pc.match_substring_regex(fraction, r"^[5-9]"))
        size = numbers(pc.cast(digits, pa.uint64())) + up.astype(np.uint64)
        negative = truth(pc.equal(sign, "-"))
        inside = short & (size <= np.where(negative, np.uint64(limit), np.uint64(limit - 1)))
        values = np.where(inside, size, np.uint64(0)).astype(np.int64)
        values = np.where(negative, -values, values)
        return build(values.astype(types.numpy_dtype(target)), inside, target), valid(a) & ~inside, undecided

    return run


def text_to_double(a: Datum) -> Read:
    """Decimal notation, inf and nan."""
    text = pc.utf8_trim(a, characters=SPACE)
    read = truth(pc.match_substring_regex(text, DOUBLE))
    undecided = _undecided(text, valid(a) & ~read, OTHER_NUMBER)
    text = pc.utf8_ltrim(without(text, ~read), characters="+")
    return pc.cast(text, pa.float64()), valid(a) & ~read, undecided


def _moment(text: Datum) -> tuple[Numbers, Numbers, Mask, Mask]:
    """Days, microseconds of the day, where they are valid, and where that is undecided."""
    parts = pc.extract_regex(text, MOMENT)
    fields = {field.name: pc.struct_field(parts, field.name) for field in parts.type}
    read = valid(parts) & truth(pc.equal(fields["first"], fields["second"]))
    undecided = _undecided(text, valid(text) & ~read, OTHER_MOMENT)

    def number(name: str, width: int = 0) -> Numbers:
        digits = fields[name]
        if width:
            digits = pc.utf8_rpad(pc.utf8_slice_codeunits(digits, 0, width), width, "0")
        digits = pc.if_else(pc.equal(pc.fill_null(digits, ""), ""), "0", digits)
        return numbers(pc.cast(digits, pa.int64()))

    year, month, day = number("year"), number("month"), number("day")
    hour, minute, second = number("hour"), number("minute"), number("seconds")
    fraction = number("fraction", 6)
    start = ((year - 1970) * 12 + np.clip(month, 1, 12) - 1).astype("datetime64[M]")
    first = start.astype("datetime64[D]").astype(np.int64)
    length = (start + np.timedelta64(1, "M")).astype("datetime64[D]").astype(np.int64) - first
    clock = ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction
    read = read & (month >= 1) & (month <= 12) & (day >= 1) & (day <= length) & (minute < 60) & (second < 60)
    read = read & ((hour < 24) | (clock == DAY))  # 24:00:00 is the next midnight
    return first + day - 1, clock, read, undecided


def text_to_timestamp(a: Datum) -> Read:
    """YYYY-MM-DD[ HH:MM[:SS[.ffffff]]]; further digits are cut off."""
    days, clock, read, undecided = _moment(pc.utf8_ltrim(a, characters=SPACE))
    return build(days * DAY + clock, read, TIMESTAMP), valid(a) & ~read, undecided


def text_to_date(a: Datum) -> Read:
    """YYYY-MM-DD; a time of day behind it is checked and dropped."""
    days, _, read, undecided = _moment(pc.utf8_trim(a, characters=SPACE))
    return build(days, read, pa.date32()), valid(a) & ~read, undecided


def _outside(days: Numbers) -> Mask:
    # DuckDB writes years before 1 as (BC); nobody needs them enough to repeat it here.
    return (days < -719_162) | (days > 2_932_896)


def date_to_text(a: Datum) -> Read:
    """YYYY-MM-DD, years 1 to 9999."""
    outside = _outside(numbers(a))
    return pc.cast(without(a, outside), pa.string()), outside, outside


def timestamp_to_text(a: Datum) -> Read:
    """YYYY-MM-DD HH:MM:SS[.ffffff] without zeros at the end, years 1 to 9999."""
    outside = _outside(np.floor_divide(numbers(a), DAY))
    full = pc.cast(without(a, outside), pa.string())
    seconds = pc.utf8_slice_codeunits(full, 0, 19)
    trimmed = pc.utf8_rtrim(full, characters="0")
    # Only zeros behind the point may go, and the point with them if nothing is left.
    return pc.if_else(pc.ends_with(trimmed, pattern="."), seconds, trimmed), outside, outside
