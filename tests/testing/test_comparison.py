"""The comparison of answers must fail when it should."""

import math

import pyarrow as pa
import pytest

from windrow.testing import assert_same


def rows(*values, times=None, type_=None):
    return pa.table({"_time": times or [5] * len(values), "a": pa.array(values, type_)})


def test_rows_of_one_instant_have_no_order():
    assert_same(rows(1, 2, 2), rows(2, 1, 2))
    with pytest.raises(AssertionError, match="in this order"):
        assert_same(rows(1, 2), rows(2, 1), ordered=True)
    assert_same(rows(1, 2), rows(1, 2), ordered=True)


def test_copies_count():
    with pytest.raises(AssertionError, match=r"missing: +\(2,\)\n +unexpected: \(1,\)"):
        assert_same(rows(1, 1, 2), rows(1, 2, 2))
    with pytest.raises(AssertionError, match="unexpected: nothing"):
        assert_same(rows(1), rows(1, 1))


def test_the_first_differing_instant_is_shown():
    with pytest.raises(AssertionError, match="differ at _time 6"):
        assert_same(rows(1, 2, 3, times=[5, 6, 7]), rows(1, 9, 9, times=[5, 6, 7]))
    with pytest.raises(AssertionError, match="differ at _time 6"):
        assert_same(rows(1, times=[5]), rows(1, 2, times=[5, 6]))


def test_floats_are_compared_closely():
    assert_same(rows(0.1 + 0.2, math.nan), rows(0.3, math.nan))
    assert_same(rows(0.1 + 0.2, math.inf, 1.0), rows(math.inf, 0.3, 1.0))
    with pytest.raises(AssertionError):
        assert_same(rows(1.0 + 1e-11), rows(1.0))
    with pytest.raises(AssertionError):
        assert_same(rows(1e-20), rows(0.0))
    assert_same(rows(1e-20), rows(0.0), absolute=1e-15)
    with pytest.raises(AssertionError):
        assert_same(rows(math.nan), rows(1.0))
    assert_same(rows([{"v": 0.1 + 0.2}]), rows([{"v": 0.3}]))


def test_columns_must_agree_in_name_type_and_order():
    with pytest.raises(AssertionError, match="columns differ"):
        assert_same(rows(1), rows(1, type_=pa.int32()))
    with pytest.raises(AssertionError, match="columns differ"):
        assert_same(rows(1).rename_columns(["_time", "b"]), rows(1))
    with pytest.raises(AssertionError, match="columns differ"):
        assert_same(rows(1).select(["a", "_time"]), rows(1))


def test_null_is_not_zero():
    with pytest.raises(AssertionError):
        assert_same(rows(None, type_=pa.int64()), rows(0))


def test_long_differences_are_cut():
    with pytest.raises(AssertionError, match="and 20 more"):
        assert_same(rows(*range(30)), rows(*range(100, 130)))


def test_tables_without_time_are_one_instant():
    assert_same(pa.table({"a": [1, 2]}), pa.table({"a": [2, 1]}))
    with pytest.raises(AssertionError, match="answers differ"):
        assert_same(pa.table({"a": [1]}), pa.table({"a": [2]}))
