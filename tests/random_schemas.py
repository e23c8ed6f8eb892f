"""Random schemas: any time type, any column types, and queries that fit them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

_KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "BOOLEAN": (pa.bool_(), st.booleans()),
    "TINYINT": (pa.int8(), st.integers(-128, 127)),
    "SMALLINT": (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "INTEGER": (pa.int32(), st.sampled_from([-(2**31), -1, 0, 1, 7, 2**31 - 1])),
    "BIGINT": (pa.int64(), st.sampled_from([-(2**63), -(2**40), -1, 0, 1, 2**40, 2**63 - 1])),
    "FLOAT": (pa.float32(), st.sampled_from([0.0, -0.0, 0.1, -2.5, 3e38, float("nan"), float("inf")])),
    "DOUBLE": (pa.float64(), st.sampled_from([0.0, 0.1, -2.5, 1e300, 1e-300, float("nan"), float("-inf")])),
    "DECIMAL(10, 2)": (
        pa.decimal128(10, 2),
        st.sampled_from([Decimal("0.00"), Decimal("-1.25"), Decimal("99999999.99")]),
    ),
    "VARCHAR": (pa.string(), st.sampled_from(["", "a", "B", "ß", "日本", "a b", "zzz"])),
    "BLOB": (pa.binary(), st.sampled_from([b"", b"\x00", b"\xff\x00", b"ab"])),
    "DATE": (pa.date32(), st.sampled_from([date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29)])),
    "TIMESTAMP": (pa.timestamp("us"), st.integers(-(10**15), 10**15)),
}
_SUMMED = {"TINYINT", "SMALLINT", "INTEGER", "FLOAT", "DOUBLE", "DECIMAL(10, 2)"}
_SPREAD = {"TINYINT", "SMALLINT"}
_ORDERED = [
    "MIN(c)",
    "MAX(c)",
    "COUNT(DISTINCT c)",
    "QUANTILE(c, 0.5)",
    "PERCENTILE_DISC(0.3) WITHIN GROUP (ORDER BY c)",
    "PERCENTILE_DISC(1) WITHIN GROUP (ORDER BY c DESC)",
    "MODE(c)",
    "TOP_K(c, 2)",
]
_NUMBERS = [
    "SUM(c)",
    "AVG(c)",
    "SUM(DISTINCT c)",
    "AVG(DISTINCT c)",
    "MEDIAN(c)",
    "PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY c DESC)",
    "PERCENTILE_CONT(0) WITHIN GROUP (ORDER BY c)",
]


@dataclass(frozen=True)
class Case:
    """A declaration, all rows in the order of time, and queries over them."""

    declaration: str
    table: pa.Table
    queries: tuple[str, ...]


@st.composite
def cases(draw: Callable[..., Any]) -> Case:
    """One stream `s` and up to three periodic queries over it."""
    ticks = draw(st.booleans())
    names = draw(st.lists(st.sampled_from(sorted(_KINDS)), min_size=1, max_size=4))
    length = draw(st.integers(0, 25))
    times = sorted(draw(st.lists(st.integers(-50, 50), min_size=length, max_size=length)))
    unit, factor = ("", 1) if ticks else (" SECONDS", 1_000_000)
    arrays = [pa.array([time * factor for time in times], pa.int64() if ticks else pa.timestamp("us"))]
    fields = [("t", arrays[0].type)]
    for index, name in enumerate(names):
        kind, values = _KINDS[name]
        cells = draw(st.lists(st.one_of(st.none(), values), min_size=length, max_size=length))
        arrays.append(pa.array(cells, kind))
        fields.append((f"c{index}", kind))
    columns = ", ".join(f"c{index} {name}" for index, name in enumerate(names))
    time = "BIGINT" if ticks else "TIMESTAMP"
    texts = tuple(draw(_query(names, unit)) for _ in range(draw(st.integers(1, 3))))
    return Case(f"CREATE STREAM s (t {time}, {columns}) TIME t", pa.table(arrays, schema=pa.schema(fields)), texts)


@st.composite
def _query(draw: Callable[..., Any], names: list[str], unit: str) -> str:
    keys = draw(st.lists(st.sampled_from(range(len(names))), max_size=3, unique=True))
    calls = []
    for _ in range(draw(st.integers(0 if keys else 1, 3))):
        column = draw(st.sampled_from(range(len(names))))
        name = names[column]
        choices = ["COUNT(*)", "COUNT(c)"]
        choices += _ORDERED if name != "BLOB" else []
        choices += _NUMBERS if name in _SUMMED else []
        choices += ["VAR_POP(c)", "STDDEV_SAMP(c)"] if name in _SPREAD else []
        calls.append(re.sub(r"\bc\b", f"c{column}", draw(st.sampled_from(choices))))
    parts = [f"c{key} AS k{key}" for key in keys] + [f"{call} AS v{i}" for i, call in enumerate(calls)]
    slide, reach = draw(st.integers(2, 20)), draw(st.integers(1, 40))
    text = f"SELECT {', '.join(parts)} FROM s [RANGE {reach}{unit} SLIDE {slide}{unit}]"
    if draw(st.booleans()):
        column = draw(st.sampled_from(range(len(names))))
        text += f" WHERE c{column} IS NOT NULL"
    return text + (f" GROUP BY {', '.join(f'c{key}' for key in keys)}" if keys else "")
