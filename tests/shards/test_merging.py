"""The answers of shards, put together."""

from __future__ import annotations

import pyarrow as pa

from windrow.shards.merging import merge

CHANGES = pa.schema([("_time", pa.timestamp("us")), ("_change", pa.string()), ("a", pa.int64())])
ROWS = pa.schema([("_time", pa.int64()), ("a", pa.string())])


def changes(*rows: tuple[int, str, int | None]) -> pa.RecordBatch:
    times, words, values = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(times).view(pa.timestamp("us")), pa.array(words), pa.array(values, pa.int64())], schema=CHANGES
    )


def test_changes_are_in_order_and_cancel_across_shards() -> None:
    first = changes((1, "+", 7), (3, "-", 7), (3, "+", 8), (4, "+", None))
    second = changes((2, "+", 9), (3, "-", 9), (3, "+", 7), (4, "-", None), (5, "-", 7), (5, "-", 7))
    expected = changes((1, "+", 7), (2, "+", 9), (3, "-", 9), (3, "+", 8), (5, "-", 7), (5, "-", 7))
    assert merge([first, second], CHANGES, "changes").equals(expected)


def test_as_many_copies_cancel_as_there_are() -> None:
    merged = merge([changes((1, "-", 7), (1, "-", 7), (1, "-", 7)), changes((1, "+", 7))], CHANGES, "changes")
    assert merged.equals(changes((1, "-", 7), (1, "-", 7)))


def test_the_same_change_in_two_shards_happens_twice() -> None:
    assert merge([changes((1, "+", 7))] * 2, CHANGES, "changes").equals(changes((1, "+", 7), (1, "+", 7)))


def test_all_may_cancel() -> None:
    merged = merge([changes((1, "-", 7)), changes((1, "+", 7))], CHANGES, "changes")
    assert merged.num_rows == 0 and merged.schema == CHANGES


def test_rows_that_are_apart_are_only_put_in_order() -> None:
    merged = merge(
        [changes((2, "-", 1), (2, "+", 2)), changes((1, "+", 4), (2, "-", 4))], CHANGES, "changes", apart=True
    )
    assert merged.equals(changes((1, "+", 4), (2, "-", 1), (2, "-", 4), (2, "+", 2)))


def test_other_kinds_are_put_in_order_of_time() -> None:
    first = pa.record_batch([pa.array([1, 5]), pa.array(["x", "y"])], schema=ROWS)
    second = pa.record_batch([pa.array([2, 5]), pa.array(["x", "y"])], schema=ROWS)
    for kind in ("insertions", "deletions", "complete", "restored insertions", "restored answers"):
        assert merge([first, second], ROWS, kind).to_pydict() == {"_time": [1, 2, 5, 5], "a": ["x", "x", "y", "y"]}


def test_nothing_gives_nothing() -> None:
    assert merge([], CHANGES, "changes").num_rows == 0
    assert merge([changes((1, "+", 7)).slice(0, 0)], CHANGES, "changes").schema == CHANGES
