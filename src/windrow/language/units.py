"""Durations: amounts of time in words, as ticks (microseconds for TIMESTAMP, plain numbers for BIGINT)."""

from __future__ import annotations

import re
from fractions import Fraction

from sqlglot import exp

from windrow.errors import BindError
from windrow.language import nodes
from windrow.language.literals import MICROSECONDS
from windrow.language.positions import position

_MICROSECONDS = {unit: MICROSECONDS[unit] for unit in ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY")}
_SHORT = {
    "US": "MICROSECOND", "USEC": "MICROSECOND", "MICROS": "MICROSECOND",
    "MS": "MILLISECOND", "MSEC": "MILLISECOND", "MILLIS": "MILLISECOND",
    "S": "SECOND", "SEC": "SECOND", "M": "MINUTE", "MIN": "MINUTE", "H": "HOUR", "HR": "HOUR", "D": "DAY",
}  # fmt: skip
UNITS: dict[str, int] = {
    **_MICROSECONDS,
    **{f"{unit}S": ticks for unit, ticks in _MICROSECONDS.items()},
    **{short: _MICROSECONDS[unit] for short, unit in _SHORT.items()},
    **{f"{short}S": _MICROSECONDS[_SHORT[short]] for short in ("USEC", "MSEC", "SEC", "MIN", "HR")},
}
MAX_DURATION = 1 << 61
"""Longer than 73,000 years in microseconds; keeps τ - T - d far inside 64 bits."""


def ticks(duration: nodes.Duration, *, timestamps: bool, what: str) -> int:
    """The duration in ticks of the time column; an error when its unit does not fit that column.

    >>> from sqlglot import exp
    >>> ticks(nodes.Duration(this=exp.Literal.number("1.5"), unit=exp.var("MIN")), timestamps=True, what="RANGE")
    90000000
    """
    line, column = position(duration)

    def fail(reason: str) -> BindError:
        return BindError(f"{what}: {reason}", line=line, column=column)

    text = duration.this.name
    unit = duration.args.get("unit")
    if timestamps and unit is None:
        raise fail(f"{text} has no time unit, but the time column is a TIMESTAMP; write for instance {text} SECONDS")
    if not timestamps and unit is not None:
        raise fail(f"{text} {unit.name} has a time unit, but the time column counts BIGINT ticks; write {text}")
    factor = 1
    if unit is not None:
        if unit.name.upper() not in UNITS:
            raise fail(f"unknown time unit {unit.name}; use MICROSECOND, MILLISECOND, SECOND, MINUTE, HOUR or DAY")
        factor = UNITS[unit.name.upper()]
    exponent = re.search(r"[eE]([-+]?\d+)$", text)
    if exponent is not None and abs(int(exponent[1])) > 30:  # 1e999999999 as an exact number would fill the memory
        raise fail(f"{text} is out of range; at most {MAX_DURATION} ticks")
    try:
        exact = Fraction(text.replace("_", "")) * factor
    except ValueError:
        raise fail(f"{text} is not a number") from None
    if exact.denominator != 1:
        raise fail(f"{text} is not a whole number of {'microseconds' if timestamps else 'ticks'}")
    if abs(exact.numerator) > MAX_DURATION:
        raise fail(f"{text} is too long; at most {MAX_DURATION} ticks")
    return exact.numerator


def duration_from_text(text: str, *, what: str) -> nodes.Duration:
    """A duration that is given from Python rather than in a query.

    >>> duration_from_text("2 seconds", what="lateness").sql("cql")
    '2 SECONDS'
    """
    match = re.fullmatch(r"\s*([-+]?\d[\w.]*?)\s*([a-zA-Zµ]*)\s*", text)
    if match is None:
        raise BindError(f"{what}: expected a duration such as '2 seconds', found {text!r}")
    number, unit = match.groups()
    # Not Literal.number(), which makes a Neg of a negative number.
    return nodes.Duration(this=exp.Literal(this=number, is_string=False), unit=exp.var(unit.upper()) if unit else None)


def duration_text(length: int, *, timestamps: bool) -> str:
    """Ticks as people write them.

    >>> duration_text(90_000_000, timestamps=True), duration_text(600_000_000, timestamps=True)
    ('90 s', '10 min')
    """
    if not timestamps:
        return f"{length}"
    for name, factor in (
        ("d", 86_400_000_000), ("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000), ("ms", 1_000),
    ):  # fmt: skip
        if length and length % factor == 0:
            return f"{length // factor} {name}"
    return f"{length} µs"
