"""What a literal means: signed numbers, dates and timestamps in quotes, intervals."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from sqlglot import exp

MICROSECONDS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 7 * 86_400_000_000,
}
MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
SHORT = {"US": "MICROSECOND", "MS": "MILLISECOND", "S": "SECOND", "SEC": "SECOND", "M": "MINUTE", "MIN": "MINUTE",
         "H": "HOUR", "D": "DAY", "W": "WEEK", "Y": "YEAR"}  # fmt: skip

EPOCH = datetime(1970, 1, 1)

# What DuckDB reads as a date or a timestamp, years 1 to 9999.
MOMENT = re.compile(
    r"\s*(\d{1,4})([-/])(\d{1,2})\2(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d+))?)?Z?)?\s*", re.ASCII
)


def number(node: exp.Expr) -> int | float | None:
    """The value of a number literal with its sign, so that -9223372036854775808 is one constant; else None."""
    sign = 1
    if isinstance(node, exp.Neg):
        sign, node = -1, node.this
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    text = node.name.replace("_", "")
    return sign * (int(text) if text.isdigit() else float(text))


def moment(text: str) -> int | None:
    """Microseconds since 1970 of a DATE or TIMESTAMP in text form; None when it is neither.

    >>> moment("1970-01-02 00:00:00.5")
    86400500000
    """
    match = MOMENT.fullmatch(text)
    if match is None:
        return None
    year, _, month, day, hour, minute, second, fraction = match.groups()
    try:
        start = datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0))
    except ValueError:
        return None
    return (start - EPOCH) // timedelta(microseconds=1) + int((fraction or "")[:6].ljust(6, "0"))


def day(text: str) -> int | None:
    """Days since 1970 of a DATE in text form; None when it is none."""
    at = moment(text)
    return None if at is None else at // MICROSECONDS["DAY"]


def interval(node: exp.Expr) -> tuple[int, int] | None:
    """Months and microseconds of an INTERVAL literal; None when it is no constant in one known unit."""
    unit = node.args.get("unit")
    if not isinstance(node, exp.Interval) or not isinstance(unit, exp.Var):
        return None
    amount = node.this
    while isinstance(amount, exp.Paren):
        amount = amount.this
    text = ""
    if isinstance(amount, exp.Literal):
        text = amount.name.strip()
    elif isinstance(amount, exp.Neg) and isinstance(amount.this, exp.Literal):
        text = "-" + amount.this.name.strip()
    if not re.fullmatch(r"[+-]?\d{1,18}", text):
        return None
    name = unit.name.upper()
    name = SHORT.get(name, name)
    name = name if name in MICROSECONDS or name in MONTHS else name.removesuffix("S")
    name = SHORT.get(name, name)
    if name in MICROSECONDS:
        micros = int(text) * MICROSECONDS[name]
        return (0, micros) if abs(micros) < 2**63 else None
    if name in MONTHS:
        months = int(text) * MONTHS[name]
        return (months, 0) if abs(months) < 2**31 else None
    return None
