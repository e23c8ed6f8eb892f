"""Columns by slot give back what Arrow's own take gives, for every type, whatever the batches were."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import QueryError
from windrow.state import columns
from windrow.state.columns import Columns, Nested

VALUES: dict[pa.DataType, list[Any]] = {
    pa.int8(): [-1, 0, 127],
    pa.uint16(): [0, 65535],
    pa.int32(): [-5, 5],
    pa.int64(): [-(1 << 63), 0, (1 << 63) - 1],
    pa.float32(): [0.5, -0.0],
    pa.float64(): [1e300, -1.5],
    pa.bool_(): [True, False],
    pa.date32(): [dt.date(2024, 2, 29), dt.date(1, 1, 1)],
    pa.timestamp("us"): [dt.datetime(2024, 2, 29, 1, 2, 3)],
    pa.decimal128(38, 2): [Decimal("-1.25"), Decimal("99999999999999999999.99")],
    pa.string(): ["", "a", "ünï", "x" * 40],
    pa.large_string(): ["", "bc"],
    pa.binary(): [b"", b"\x00\xff"],
    pa.null(): [None],
    pa.month_day_nano_interval(): [pa.MonthDayNano([1, 2, 3])],
    pa.list_(pa.int64()): [[], [1, None]],
    pa.struct([("a", pa.int8()), ("b", pa.string())]): [{"a": 1, "b": "x"}, {"a": None, "b": None}],
    pa.dictionary(pa.int32(), pa.string()): ["p", "q"],
}


@pytest.mark.parametrize("kind", VALUES, ids=str)
@given(data=st.data())
def test_columns_agree_with_arrow(kind: pa.DataType, data: st.DataObject) -> None:
    schema = pa.schema([("c", kind)])
    held, expected = Columns(schema), pa.array([], kind)
    nulls = data.draw(st.booleans())
    value = st.sampled_from(VALUES[kind]) | (st.none() if nulls else st.nothing())
    for _ in range(data.draw(st.integers(1, 8))):
        batch = pa.array(data.draw(st.lists(value, max_size=20)), kind)
        batch = batch[data.draw(st.integers(0, 3)) :]  # slices have offsets
        held.append(pa.RecordBatch.from_arrays([batch], schema=schema))
        expected = pa.concat_arrays([expected, batch])
        if len(expected):
            places = np.array(data.draw(st.lists(st.integers(0, len(expected) - 1), max_size=20)), np.int64)
            taken = held.take(places)
            taken.validate(full=True)
            assert taken.schema == schema and taken.column(0).to_pylist() == expected.take(pa.array(places)).to_pylist()
            if data.draw(st.integers(0, 3)) == 0:
                kept = np.unique(places)
                held.keep(kept)
                expected = expected.take(pa.array(kept))


def test_nested_columns_stay_in_few_pieces() -> None:
    held = Nested(pa.list_(pa.int64()))
    for i in range(1000):
        held.append(pa.array([[i], [i]]))
        assert len(held._pieces) <= 12
    assert held.take(np.array([1999, 0, 500])).to_pylist() == [[999], [0], [250]]


def test_more_text_than_an_array_can_hold_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "LONGEST", 5)
    held = Columns(pa.schema([("c", pa.string())]))
    held.append(pa.record_batch({"c": ["abc", "def"]}))
    assert held.take(np.array([0])).column(0).to_pylist() == ["abc"]
    with pytest.raises(QueryError, match="at most 5 bytes of text in one batch of rows, found 6"):
        held.take(np.array([0, 1]))
