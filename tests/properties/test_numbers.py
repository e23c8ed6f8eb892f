"""Invariant 5: integer sums are exact or raise; NaN and infinities leave with their pane; floating sums stay close."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import windrow

BIG = 2**63 - 1


def run(values: list[Any], kind: pa.DataType, select: str, window: str = "[RANGE 2 SLIDE 1]") -> windrow.Query:
    db = windrow.connect()
    db.stream("s", pa.schema([("t", pa.int64()), ("v", kind)]), time="t")
    query = db.query(f"SELECT {select} AS r FROM s {window}")
    table = pa.table([pa.array(range(1, len(values) + 1), pa.int64()), pa.array(values, kind)], ["t", "v"])
    try:
        db.push("s", table)
        db.finish()
    except windrow.QueryError:
        assert query.status == "stopped"
        raise
    return query


def results(query: windrow.Query) -> list[Any]:
    return query.answers().column("r").to_pylist()


def test_intermediate_sums_may_exceed_64_bits() -> None:
    """A prefix sum, and the sum of a part of the window, do not fit in 64 bits; the windows' sums do."""
    values = [BIG, -BIG, BIG, -BIG, BIG, 0, 5, -BIG - 1, BIG]
    assert results(run(values, pa.int64(), "SUM(v)"))[1:] == [0, 0, 0, 0, BIG, 5, -BIG + 4, -1]
    assert results(run([BIG, BIG, -BIG], pa.int64(), "SUM(v)", "[RANGE 10 SLIDE 3]")) == [BIG]


@pytest.mark.parametrize("values", [[BIG, 1], [-BIG - 1, -1], [BIG, BIG]])
def test_a_sum_beyond_64_bits_is_an_error(values: list[int]) -> None:
    with pytest.raises(windrow.QueryError, match=r"query_1 was stopped: .*exceeds the 64-bit range"):
        run(values, pa.int64(), "SUM(v)")


def test_an_average_beyond_64_bits_is_not() -> None:
    assert results(run([BIG, BIG], pa.int64(), "AVG(v)"))[1] == pytest.approx(BIG, rel=1e-15)


def test_narrow_integers_never_overflow() -> None:
    assert results(run([2**31 - 1] * 3, pa.int32(), "SUM(v)")) == [2**31 - 1, 2**32 - 2, 2**32 - 2]
    assert results(run([127] * 3, pa.int8(), "SUM(v)")) == [127, 254, 254]


@pytest.mark.parametrize("poison", [math.nan, math.inf, -math.inf, 1e300])
@pytest.mark.parametrize("select", ["SUM(v)", "AVG(v)", "VAR_POP(v)", "MAX(v)", "MIN(v)", "STDDEV_SAMP(v)"])
def test_poison_leaves_with_its_pane(poison: float, select: str) -> None:
    clean = results(run([0.1, 0.2, 0.3, 0.4], pa.float64(), select, "[RANGE 2 SLIDE 1]"))
    mixed = results(run([poison, 0.2, 0.3, 0.4], pa.float64(), select, "[RANGE 2 SLIDE 1]"))
    assert mixed[2:] == clean[2:]


def test_infinities_of_both_signs() -> None:
    answers = results(run([math.inf, -math.inf, 1.0, 2.0], pa.float64(), "SUM(v)"))
    assert answers[0] == math.inf and math.isnan(answers[1]) and answers[2] == -math.inf and answers[3] == 3.0


def test_nan_is_the_greatest_number() -> None:
    values = [math.nan, math.inf, 1.0]
    assert math.isnan(results(run(values, pa.float64(), "MAX(v)"))[1])
    assert results(run(values, pa.float64(), "MIN(v)"))[1] == math.inf


def test_floating_sums_stay_close() -> None:
    """After ten million panes a window's sum is still within 1e-12 of the exact one."""
    panes = 10_000_000
    random = np.random.default_rng(7)
    db = windrow.connect()
    db.stream("s", pa.schema([("t", pa.int64()), ("v", pa.float64())]), time="t")
    query = db.query("SELECT SUM(v) AS r FROM s [RANGE 1000 SLIDE 1000 OFFSET 1]")
    spread = db.query("SELECT SUM(v) AS r FROM s [RANGE 64 SLIDE 1]")
    worst = 0.0
    step = 100_000
    kept = np.empty(0)
    for start in range(0, panes, step):
        values = random.lognormal(0, 8, step)
        db.push("s", pa.table({"t": np.arange(start + 1, start + step + 1), "v": values}))
        kept = np.concatenate([kept[-1000:], values])
        query.take()
        last = spread.take().slice(step - 2000, 1500)
        first_row = start + 1 - (len(kept) - step)
        for row in last.to_pylist()[::50]:
            end = row["_time"] - first_row + 1
            exact = math.fsum(kept[end - 64 : end])
            worst = max(worst, abs(row["r"] - exact) / abs(exact))
    assert worst < 1e-12
