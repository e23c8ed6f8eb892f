"""Sharing, constants, failures and refusals of compiled expressions."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pytest
from sqlglot import exp

from tests.expressions.differential import COLUMNS, TABLE, typed, windrow
from windrow.errors import QueryError, UnsupportedError
from windrow.expressions import Compiler, Context, Program
from windrow.expressions import context as context_module
from windrow.language import types
from windrow.language.typing import infer


def test_equal_expressions_are_one_program() -> None:
    compiler = Compiler()
    assert compiler.compile(typed("i + j * 2 > 3")) is compiler.compile(typed("t.i + (j * 2) > 3"))
    assert compiler.compile(typed("i + 1")) is not compiler.compile(typed("i + 2"))
    assert compiler.compile(typed("i = 1")) is not compiler.compile(typed("x = 1"))
    assert compiler.compile(typed("s LIKE 'a%'")) is not compiler.compile(typed("s LIKE 'b%'"))


def test_the_type_of_a_column_is_part_of_its_identity() -> None:
    compiler = Compiler()
    narrow, wide = exp.column("v"), exp.column("v")
    narrow.type, wide.type = types.INTEGER, types.BIGINT
    assert compiler.compile(narrow) is not compiler.compile(wide)


def test_each_step_is_evaluated_once_per_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Program] = []
    plain = context_module.evaluate
    compiler = Compiler()
    programs = [compiler.compile(typed(f"i % 7 > {n} AND lower(s) = 'abc'")) for n in range(240)]
    monkeypatch.setattr(context_module, "evaluate", lambda program, args: seen.append(program) or plain(program, args))
    context = Context.of(TABLE)
    for program in programs * 2:
        context.value(program)
    assert len(seen) == len(set(seen)) == 2 + 1 + 240 + 240  # i % 7, lower(s), =, then > and AND of each query


def test_constants_are_folded() -> None:
    program = Compiler().compile(typed("1 + 2 * 3"))
    assert program.constant is not None
    assert program.constant.as_py() == 7
    assert Context({}, 3).value(program).to_pylist() == [7, 7, 7]
    assert Context({}, 0).value(program).to_pylist() == []


def test_of_columns_with_one_name_the_last_is_read() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    program = Compiler().column("a", pa.int64())
    assert Context.of(batch).value(program).to_pylist() == [2]
    with pytest.raises(QueryError, match="no column b; it has a, a"):
        Context.of(batch).value(Compiler().column("b", pa.int64()))


def test_program_knows_its_columns() -> None:
    assert Compiler().compile(typed("i + 1 > j AND s = 'a'")).columns() == {"i", "j", "s"}


@pytest.mark.parametrize(
    "sql",
    [
        "i + j",
        "i * i",
        "i // j",
        "i % j",
        "-i",
        "abs(i)",
        "cast(x as integer)",
        "i << 3",
        "cast(junk as integer)",
        "1 // 0",
        "9223372036854775807 + 1",
    ],
)
def test_a_failure_names_the_expression(sql: str) -> None:
    with pytest.raises(QueryError) as caught:
        windrow(sql)
    assert typed(sql).sql(dialect="duckdb") in str(caught.value)


def test_only_rows_that_are_used_can_fail() -> None:
    """AND, OR and CASE guard what stands behind them; DuckDB promises that only for CASE."""
    table = pa.table({"a": [6, 5], "b": [0, 2]})
    guarded = ["b <> 0 AND a // b > 1", "NOT (b = 0 OR a // b <= 1)", "CASE WHEN b = 0 THEN FALSE ELSE a // b > 1 END"]
    for sql in guarded:
        assert windrow(sql, table).to_pylist() == [False, True]
    assert windrow("coalesce(b, a // 0)", table).to_pylist() == [0, 2]
    program = Compiler().compile(typed("a // b", table))
    context = Context.of(table)
    assert context.value(program, np.array([False, True])).to_pylist() == [None, 2]
    with pytest.raises(QueryError, match="divides by zero"):
        context.value(program, np.array([True, False]))
    with pytest.raises(QueryError, match="divides by zero"):
        windrow("CASE WHEN a // b > 1 THEN 1 ELSE 2 END", table)


def test_text_that_only_duckdb_reads_is_refused_even_by_try_cast() -> None:
    for text, target in (("1e3", "integer"), ("0x10", "bigint"), ("2024-01-07 10:00:00+02", "timestamp")):
        with pytest.raises(QueryError, match="cannot be converted"):
            windrow(f"try_cast(v as {target})", pa.table({"v": [text]}))


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("ts - u", "epoch_us"),
        ("reverse(s)", "reverse"),
        ("substring(s, j)", "constant start"),
        ("s LIKE t", "constant pattern"),
        ("replace(s, t, 'x')", "constant"),
        ("regexp_matches(s, '(')", "pattern"),
        ("cast(x as varchar)", "DOUBLE to VARCHAR"),
        ("cast(x as decimal(5, 2))", "DOUBLE to DECIMAL"),
        ("time_bucket(INTERVAL 1 MONTH, ts)", "constant, positive"),
        ("ts + INTERVAL (n) DAY", "INTERVAL must be"),
        ("trunc(x, 1)", "trunc"),
        ("log(3, x)", "log"),
        ("regexp_replace(s, 'a', 'b')", "regexp_replace"),
        ("lpad(s, 5, 'ab')", "one character"),
        ("split_part(s, '', 1)", "separator"),
        ("round(i, -1)", "tens"),
        ("s LIKE 'a!' ESCAPE '!'", "escape"),
        ("regexp_matches(s, 'a', 's')", "option"),
    ],
)
def test_what_cannot_run_is_refused_when_compiled(sql: str, words: str) -> None:
    with pytest.raises(UnsupportedError, match=words) as caught:
        Compiler().compile(typed(sql))
    assert caught.value.line == 1


def test_columns_come_in_many_forms() -> None:
    """Chunks, dictionaries, views, unsigned numbers, other units and UTC all arrive as Windrow's own types."""
    table = pa.table(
        {
            "chunks": pa.chunked_array([[1, 2], [], [3]], pa.int64()),
            "none": pa.chunked_array([[], [1, 2, 3]], pa.uint32()),
            "word": pa.array(["a", None, "a"]).dictionary_encode(),
            "view": pa.array(["a", None, "b"], pa.string_view()),
            "nanos": pa.array([-1, 999, 1000], pa.int64()).cast(pa.timestamp("ns")),
            "seconds": pa.array([-1, 0, 1], pa.int64()).cast(pa.timestamp("s", "UTC")),
        }
    )
    assert windrow("chunks + none", table).to_pylist() == [2, 4, 6]
    assert windrow("word || view", table).to_pylist() == ["aa", None, "ab"]
    assert windrow("epoch_us(nanos)", table).to_pylist() == [-1, 0, 1]
    assert windrow("epoch_us(seconds)", table).to_pylist() == [-1_000_000, 0, 1_000_000]


def test_a_column_may_arrive_narrower_than_declared() -> None:
    column = exp.column("v")
    column.type = types.BIGINT
    value = Context({"v": pa.array([1, None], pa.int16())}, 2).value(Compiler().compile(column))
    assert value.type == pa.int64()


def test_a_missing_column_is_named() -> None:
    with pytest.raises(QueryError, match="no column i"):
        Context({"k": pa.array([1])}, 1).value(Compiler().compile(typed("i + 1")))


def test_deep_expressions_run_without_recursion() -> None:
    deep: exp.Expr = exp.column("a")
    for _ in range(490):
        deep = (
            exp.Neg(this=exp.Paren(this=deep))
            if isinstance(deep, exp.Column)
            else exp.Add(this=deep, expression=exp.column("a"))
        )
    infer(deep, lambda column: types.BIGINT)
    program = Compiler().compile(deep)
    assert Context({"a": pa.array([2])}, 1).value(program).to_pylist() == [-2 + 2 * 489]
    with pytest.raises(QueryError, match="overflows"):
        Context({"a": pa.array([2**62])}, 1).value(program)


@pytest.mark.parametrize("rows", [0, 1])
def test_empty_and_single_rows_keep_their_types(rows: int) -> None:
    for sql in ("i + 1", "x / 2", "upper(s)", "ts + INTERVAL 1 DAY", "d = 1.5", "CASE WHEN b THEN 1 END", "s IN ('a')"):
        value = windrow(sql, TABLE.slice(0, rows))
        assert len(value) == rows
        assert value.type == types.to_arrow(typed(sql).type)


def test_programs_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Compiler().compile(typed("i")).op = "other"  # type: ignore[misc]
    assert set(Compiler().compile(typed("i")).columns()) <= set(COLUMNS)
