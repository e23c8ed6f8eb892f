"""Relations that change while queries run: what each query sees, and what is refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

import windrow
from windrow.testing import Reference, RelationUpdate, assert_same

RIGHT = "SELECT x.a AS c0, n.b AS c1 FROM s [RANGE 5] AS x RIGHT JOIN names AS n ON x.a = n.a"
FIRST = pa.table({"a": pa.array([1, 2], pa.int32()), "b": pa.array([1, 2], pa.int64())})
TUPLES = pa.table({"t": [3, 4, 12], "a": pa.array([1, 3, 1], pa.int32())})


def database(more: str = "") -> windrow.Database:
    db = windrow.connect()
    db.execute(f"CREATE STREAM s (t BIGINT, a INT) TIME t; CREATE RELATION names (a INT, b BIGINT) {more}")
    return db


def row(a: int, b: int) -> list[dict[str, int]]:
    return [{"a": a, "b": b}]


@pytest.mark.parametrize("filled", ["before the query", "after the query"])
@pytest.mark.parametrize(
    "text",
    [
        RIGHT,
        f"ISTREAM_RESTORE({RIGHT.replace('5]', '5 SLIDE 2]')})",
        "SELECT a FROM names EXCEPT SELECT a FROM s [RANGE 5]",
        "SELECT COUNT(*) AS n FROM s [RANGE 5] AS x RIGHT JOIN names AS n ON x.a = n.a",
    ],
)
def test_the_first_rows_come_with_the_first_instant(text: str, filled: str) -> None:
    db = database()
    if filled == "before the query":
        db.update("names", FIRST)
    query = db.query(text)
    if filled == "after the query":
        db.update("names", pa.concat_tables([FIRST, FIRST.slice(0, 1)]))
        db.update("names", delete=row(1, 1))
    db.push("s", TUPLES)
    db.finish()
    assert_same(query.answers(), Reference(query.bound, {"s": TUPLES}, {"names": FIRST}).answers())


def test_a_query_that_comes_later_sees_a_future_update_at_its_time() -> None:
    db = database()
    db.push("s", TUPLES.slice(0, 1))
    db.update("names", row(1, 7), time=9)
    query = db.query("SELECT n.b FROM s [RANGE 9] AS x, names AS n WHERE x.a = n.a")
    db.push("s", pa.table({"t": [5, 10], "a": pa.array([1, 9], pa.int32())}))
    db.finish()
    assert query.answers().to_pylist() == [{"_time": 9, "_change": "+", "b": 7}]


def test_updates_are_given_in_the_order_of_time() -> None:
    db = database()
    db.query(RIGHT)
    db.update("names", row(1, 1), time=9)
    with pytest.raises(windrow.InputError, match="updated at 9, and an update at 8 would come before it"):
        db.update("names", delete=row(1, 1), time=8)
    assert db.update("names", delete=row(1, 1)) == 9
    assert db.relation("names").num_rows == 0


def test_a_row_that_comes_and_goes_at_one_instant_was_never_there() -> None:
    db = database()
    query = db.query("SELECT n.b FROM s [RANGE 9 SLIDE 5] AS x, names AS n WHERE x.a = n.a")
    db.push("s", TUPLES.slice(0, 1))
    for time, change in ((6, {"insert": row(1, 1)}), (7, {"delete": row(1, 1)}), (8, {"insert": row(1, 2)})):
        db.update("names", **change, time=time)
    db.push("s", TUPLES.slice(2, 1))
    db.finish()
    assert query.answers().to_pylist() == [{"_time": 10, "b": 2}, {"_time": 15, "b": 2}]


def test_non_retroactive_relations_look_at_the_arrival_of_tuples_not_at_their_window() -> None:
    db = database("NON RETROACTIVE")
    query = db.query("SELECT x.t, n.b FROM s [RANGE 5 OFFSET 4] AS x, names AS n WHERE x.a = n.a")
    updates = [RelationUpdate(3, "+", {"a": 1, "b": 5}), RelationUpdate(9, "-", {"a": 1, "b": 5})]
    db.update("names", row(1, 5), time=3)
    db.update("names", delete=row(1, 5), time=9)
    tuples = pa.table({"t": [3, 4, 9, 10, 30], "a": pa.array([1] * 5, pa.int32())})
    db.push("s", tuples)
    db.finish()
    assert [one["t"] for one in query.answers().to_pylist() if one["_change"] == "+"] == [4, 9]
    assert_same(query.answers(), Reference(query.bound, {"s": tuples}, {"names": updates}).answers())


def test_a_key_of_a_non_retroactive_relation_is_not_used_again() -> None:
    db = database("KEY (a) NON RETROACTIVE")
    query = db.query("SELECT x.t, n.b FROM s [RANGE 5] AS x, names AS n WHERE x.a = n.a")
    db.update("names", row(1, 5))
    db.update("names", delete=[{"a": 1}])
    with pytest.raises(windrow.InputError, match="key a = 1 of the non-retroactive relation names was used before"):
        db.update("names", row(1, 6))
    with pytest.raises(windrow.InputError, match="two rows with key a = 2"):
        db.update("names", [*row(2, 1), *row(2, 2)])
    assert db.relation("names").num_rows == 0 and query.status == "running"


def test_a_bad_update_changes_nothing() -> None:
    db = database()
    query = db.query(RIGHT)
    db.update("names", FIRST)
    for change, message in (
        ({"insert": row(3, 3), "delete": row(9, 9)}, "no row"),
        ({"insert": [{"a": 1}]}, "missing is b"),
        ({"insert": [{"a": "x", "b": 1}]}, "does not fit"),
        ({"delete": [{"c": 1}]}, "not declared is c|missing"),
    ):
        with pytest.raises(windrow.InputError, match=message):
            db.update("names", **change)
    db.push("s", TUPLES)
    with pytest.raises(windrow.InputError, match="comes too late"):
        db.update("names", row(3, 3), time=2)
    db.finish()
    assert_same(query.answers(), Reference(query.bound, {"s": TUPLES}, {"names": FIRST}).answers())


def test_deletions_beside_a_mixed_query_are_refused() -> None:
    db = database()
    db.query("SELECT x.t FROM s [RANGE 5 INTERNAL] AS x, s [RANGE 9] AS y, names AS n WHERE x.a = n.a AND x.a = y.a")
    db.update("names", FIRST)
    with pytest.raises(windrow.UnsupportedError, match="only some of its windows are INTERNAL"):
        db.update("names", delete=row(1, 1))
    assert db.relation("names").num_rows == 2


def test_a_relation_changes_the_answer_while_the_stream_has_no_tuple() -> None:
    db = database()
    query = db.query(RIGHT)
    db.update("names", row(1, 7), time=4)
    db.advance("s", 9)
    assert query.answers().to_pylist() == [{"_time": 4, "_change": "+", "c0": None, "c1": 7}]


def test_a_query_over_the_output_of_another_begins_with_its_first_row() -> None:
    db = database()
    query = db.query("SELECT COUNT(*) AS n FROM (ISTREAM(SELECT a FROM s [RANGE 1] WHERE a > 2)) [RANGE 5]")
    db.push("s", TUPLES)
    db.finish()
    assert query.answers().to_pylist()[0] == {"_time": 4, "_change": "+", "n": 1}


@pytest.mark.parametrize("more", ["", "NON RETROACTIVE"])
def test_an_update_before_a_query_begins_does_not_begin_it(more: str) -> None:
    db = windrow.connect()
    db.execute(f"CREATE STREAM s (t BIGINT, a INT) TIME t LATENESS 9; CREATE RELATION names (a INT, b BIGINT) {more}")
    db.push("s", TUPLES.slice(0, 2))
    query = db.query("SELECT COUNT(*) AS n FROM s [RANGE 5] AS x, names AS n WHERE x.a = n.a")
    assert db.update("names", row(1, 1), time=1) == 1  # the watermark is far behind, the query begins after 4
    db.advance("s", 10)
    assert query.answers().num_rows == 0
    db.push("s", TUPLES.slice(2))
    db.finish()
    assert query.answers().to_pylist() == [{"_time": 12, "_change": "+", "n": 1}]


def test_the_rest_of_a_slide_waits_for_the_end_although_a_relation_changes_before_it() -> None:
    db = database()
    query = db.query("SELECT n.b, x.t FROM s [ROWS 1 SLIDE 3] AS x, names AS n WHERE x.a <= n.a")
    tuples = pa.table({"t": [0, 0, 1, 1, 1], "a": pa.array([1] * 5, pa.int32())})
    db.push("s", tuples.slice(0, 2))
    db.update("names", row(1, 7), time=0)
    db.push("s", tuples.slice(2))
    db.finish()
    assert query.status == "running", query.error
    updates = [RelationUpdate(0, "+", {"a": 1, "b": 7})]
    assert query.answers().num_rows == 1
    assert_same(query.answers(), Reference(query.bound, {"s": tuples}, {"names": updates}).answers())


@pytest.mark.parametrize("window", ["RANGE 30", "RANGE UNBOUNDED", "ROWS 9", "ROWS 3 OFFSET 1", "RANGE 20 OFFSET 3"])
@pytest.mark.parametrize("strategy", ["upa", "nt", "direct"])
def test_an_update_brings_back_tuples_that_met_rows_that_are_gone_by_now(window: str, strategy: str) -> None:
    """A retroactive relation beside one that is not: what the tuple met when it arrived counts."""
    db = database()
    db.execute("CREATE RELATION prices (a INT, b BIGINT) NON RETROACTIVE")
    query = db.query(
        f"SELECT x.t, n.b, p.b AS c FROM s [{window}] AS x, names AS n, prices AS p WHERE x.a = n.a AND x.a = p.a",
        strategy=strategy,
    )
    tuples = pa.table({"t": [5, 9, 15, 22, 40], "a": pa.array([1, 1, 1, 1, 7], pa.int32())})
    db.update("prices", row(1, 1), time=0)
    db.update("prices", delete=row(1, 1), time=6)
    for place in range(4):
        db.push("s", tuples.slice(place, 1))
    db.update("names", row(1, 8), time=22)
    db.push("s", tuples.slice(4))
    db.finish()
    prices = [RelationUpdate(0, "+", {"a": 1, "b": 1}), RelationUpdate(6, "-", {"a": 1, "b": 1})]
    updates = {"prices": prices, "names": [RelationUpdate(22, "+", {"a": 1, "b": 8})]}
    assert query.answers().num_rows
    assert_same(query.answers(), Reference(query.bound, {"s": tuples}, updates).answers())


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("SELECT n.b FROM s [RANGE 5] AS x\n  LEFT JOIN names AS n ON x.a = n.a", "line 2, column 13"),
        ("SELECT n.b FROM s [RANGE 5] AS x LEFT JOIN s [NOW] AS y ON x.a = y.a,\n names AS n WHERE n.a = x.a",
         "line 2, column 2"),
        ("SELECT x.t FROM s [RANGE 5] AS x WHERE x.a IN (SELECT a FROM names)", "line 1, column 62"),
    ],
)  # fmt: skip
def test_where_a_non_retroactive_relation_cannot_stand(text: str, place: str) -> None:
    db = database("NON RETROACTIVE")
    with pytest.raises(windrow.UnsupportedError, match=f"{place}: names is non-retroactive: it can"):
        db.query(text)
