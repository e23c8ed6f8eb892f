"""What Python callers hand over, held to its type before anything is done with it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from operator import index
from typing import Any

import numpy as np

from windrow.errors import InputError

_EPOCH = datetime(1970, 1, 1)


def expect_text(value: Any, what: str) -> str:
    """The value, if it is a str that can be stored.

    >>> expect_text(5, "the name of a query")
    Traceback (most recent call last):
    windrow.errors.InputError: the name of a query: expected a str, found int
    """
    if not isinstance(value, str):
        raise InputError(f"{what}: expected a str, found {type(value).__name__}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        found = f"half a character (a lone surrogate) at index {error.start}"
        raise InputError(f"{what}: expected a str that has a UTF-8 form, found {found}; decode it anew") from None
    return value


def expect_whole_number(value: Any, what: str, expected: str = "a whole number") -> int:
    """The value as an int, if it is an int or a NumPy integer; a bool is none."""
    try:
        if isinstance(value, (bool, np.bool_)):  # some NumPy versions take np.True_ for an index
            raise TypeError
        return index(value)
    except TypeError:
        raise InputError(f"{what}: expected {expected}, found {type(value).__name__}") from None


def expect_instant(value: Any, what: str) -> int:
    """The value in ticks, if it is a whole number of them, or a datetime: then in microseconds, UTC if it has no zone.

    >>> from datetime import datetime
    >>> expect_instant(datetime(1970, 1, 1, 0, 0, 2), "the time of advance")
    2000000
    """
    if not isinstance(value, datetime):
        return expect_whole_number(value, what, "a datetime or a whole number of ticks")
    epoch = _EPOCH if value.utcoffset() is None else _EPOCH.replace(tzinfo=timezone.utc)
    return (value - epoch) // timedelta(microseconds=1)
