"""Window clauses become specifications in ticks of the stream's time column."""

from __future__ import annotations

import pytest

from tests.language.corpus import declared
from windrow.language.binder import bind
from windrow.language.units import UNITS
from windrow.windows.spec import NowWindow, RangeWindow, RowsWindow, Window

SECOND = 1_000_000
MINUTE = 60 * SECOND
DAY = 24 * 60 * MINUTE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("packets", RangeWindow()),
        ("packets [RANGE UNBOUNDED]", RangeWindow()),
        ("packets [RANGE UNBOUNDED SLIDE 1 MIN]", RangeWindow(None, MINUTE)),
        ("packets [RANGE 10 MIN]", RangeWindow(10 * MINUTE)),
        ("packets [WINDOW 10 MIN]", RangeWindow(10 * MINUTE)),
        ("packets [range 1.5 minutes slide 250 ms]", RangeWindow(90 * SECOND, 250_000)),
        ("packets [RANGE 1 DAY OFFSET 2 DAYS]", RangeWindow(DAY, None, 2 * DAY)),
        ("packets [RANGE 1 DAY OFFSET 0 DAYS]", RangeWindow(DAY)),
        ("packets [RANGE 1 MIN OFFSET 5 S SLIDE 1 S INTERNAL]", RangeWindow(MINUTE, SECOND, 5 * SECOND, True)),
        ("packets [RANGE 1e3 MICROSECONDS]", RangeWindow(1000)),
        ("packets [RANGE 1_000 US]", RangeWindow(1000)),
        ("packets [ROWS 5]", RowsWindow(5)),
        ("packets [ROWS 5 SLIDE 2 OFFSET 1 INTERNAL]", RowsWindow(5, 2, 1, (), True)),
        ("packets [PARTITION BY SRC, \"dst\" ROWS 3]", RowsWindow(3, partition_by=("src", "dst"))),
        ("packets [NOW]", NowWindow()),
        ("packets [NOW SLIDE 1 S INTERNAL]", NowWindow(True, SECOND)),
        ("ticks [RANGE 100 SLIDE 10 OFFSET 5]", RangeWindow(100, 10, 5)),
        ("ticks [ROWS 7]", RowsWindow(7)),
        ("ticks [NOW SLIDE 3]", NowWindow(False, 3)),
    ],
)  # fmt: skip
def test_windows(text: str, expected: Window) -> None:
    column = "k" if text.startswith("ticks") else "src"
    (source,) = bind(f"SELECT {column} FROM {text}", declared()).sources
    assert source.window == expected


@pytest.mark.parametrize("unit", sorted(UNITS))
def test_every_time_unit(unit: str) -> None:
    for spelling in (unit, unit.lower(), unit.capitalize()):
        query = bind(f"SELECT src FROM packets [RANGE 3 {spelling}]", declared())
        assert query.sources[0].window == RangeWindow(3 * UNITS[unit])


def test_units_of_the_design_are_all_there() -> None:
    for unit, ticks in {"MICROSECOND": 1, "MILLISECOND": 1000, "SECOND": SECOND, "MINUTE": MINUTE, "HOUR": 60 * MINUTE,
                        "DAY": DAY}.items():  # fmt: skip
        assert UNITS[unit] == UNITS[f"{unit}S"] == ticks


def test_the_slide_makes_a_query_periodic() -> None:
    assert bind("SELECT src FROM packets [RANGE 1 MIN SLIDE 1 S]", declared()).slide == SECOND
    assert bind("SELECT src FROM packets [ROWS 5 SLIDE 2]", declared()).rows_slide == 2
    assert not bind("SELECT src FROM packets [RANGE 1 MIN]", declared()).periodic
    joined = "SELECT p.src FROM packets [RANGE 1 MIN SLIDE 1 S] AS p, packets [RANGE 1 MIN] AS q WHERE p.src = q.src"
    assert bind(joined, declared()).slide == SECOND
