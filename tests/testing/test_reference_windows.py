"""What each window holds, and when a query is due."""

from datetime import datetime

import pyarrow as pa
import pytest

from windrow.errors import InputError
from windrow.testing import Reference

# ts 1 2 3 … 10, a = ts
TEN = "ts | a\n" + "\n".join(f"{i} | {i}" for i in range(1, 11))


def held(reference, window, tau, s=TEN, **world):
    return reference(f"SELECT a FROM s [{window}]", s=s, **world).contents(0, tau)["a"].to_pylist()


@pytest.mark.parametrize(
    ("window", "tau", "expected"),
    [
        # left-open, right-closed:  (7 - 3, 7]
        ("RANGE 3", 7, [5, 6, 7]),
        ("RANGE 3", 2, [1, 2]),
        ("RANGE 3", 12, [10]),
        ("RANGE 3", 13, []),
        ("RANGE 3", 0, []),
        # (7 - 2 - 3, 7 - 2]
        ("RANGE 3 OFFSET 2", 7, [3, 4, 5]),
        ("RANGE 3 OFFSET 2", 2, []),
        ("RANGE UNBOUNDED", 4, [1, 2, 3, 4]),
        ("RANGE UNBOUNDED OFFSET 3", 4, [1]),
        ("NOW", 4, [4]),
        ("NOW", 11, []),
        ("ROWS 3", 7, [5, 6, 7]),
        ("ROWS 3", 100, [8, 9, 10]),
        ("ROWS 3", 2, [1, 2]),
        ("ROWS 3 OFFSET 2", 7, [3, 4, 5]),
        ("ROWS 3 OFFSET 2", 3, [1]),
        ("ROWS 3 OFFSET 2", 2, []),
        # of the first 4 * floor(7 / 4) tuples the last three
        ("ROWS 3 SLIDE 4", 7, [2, 3, 4]),
        ("ROWS 3 SLIDE 4", 8, [6, 7, 8]),
        ("ROWS 3 SLIDE 4", 3, []),
        ("ROWS 3 SLIDE 4 OFFSET 1", 8, [5, 6, 7]),
        # the input ends at 10: the rest counts too
        ("ROWS 3 SLIDE 4", 10, [8, 9, 10]),
    ],
)
def test_contents(reference, window, tau, expected):
    assert held(reference, window, tau) == expected


def test_contents_are_not_those_of_a_wrong_edge(reference):
    assert held(reference, "RANGE 3", 7) != [4, 5, 6, 7]


def test_without_the_end_of_input_the_rest_of_a_slide_waits(reference):
    assert held(reference, "ROWS 3 SLIDE 4", 10, until=10) == [6, 7, 8]


def test_partitions_keep_their_own_rows_and_null_is_one(reference):
    s = """
    ts | k    | a
    1  | x    | 1
    2  | y    | 2
    3  | NULL | 3
    4  | x    | 4
    5  | NULL | 5
    6  | x    | 6
    7  | NULL | 7
    """
    assert held(reference, "PARTITION BY k ROWS 2", 7, s) == [2, 4, 5, 6, 7]
    assert held(reference, "PARTITION BY k ROWS 1 OFFSET 1", 7, s) == [4, 5]
    numbers = "ts | k | a\n1 | 0 | 1\n2 | NULL | 2\n3 | 0 | 3"
    assert held(reference, "PARTITION BY k ROWS 1", 3, numbers) == [2, 3]
    # SLIDE cuts the whole stream: of the first 6 tuples the last of each partition
    assert held(reference, "PARTITION BY k ROWS 1 SLIDE 3", 7, s, until=7) == [2, 5, 6]


def test_ties_are_ordered_by_the_values_with_nulls_last(reference):
    s = """
    ts | a    | b
    1  | NULL | 0
    1  | 2    | 9
    1  | 2    | 3
    1  | 1    | 5
    """
    query = "SELECT a, b FROM s [ROWS {}]"
    order = [(row["a"], row["b"]) for row in reference(query.format(4), s=s).contents(0, 1).to_pylist()]
    assert order == [(1, 5), (2, 3), (2, 9), (None, 0)]
    assert reference(query.format(1), s=s).contents(0, 1)["b"].to_pylist() == [0]


def test_ties_are_ordered_by_the_declared_sequence_first(reference):
    s = "ts | a | seq\n1 | 1 | 3\n1 | 2 | 2\n1 | 3 | 1"
    ddl = "CREATE STREAM s (ts BIGINT, a BIGINT, seq BIGINT) TIME ts SEQUENCE seq"
    assert held(reference, "ROWS 2", 1, s, ddl=ddl) == [2, 1]


def test_arrival_order_does_not_matter(reference):
    s = "ts | a\n5 | 5\n2 | 2\n9 | 9\n1 | 1"
    assert held(reference, "ROWS 2", 9, s) == [5, 9]


def due(reference, window, s, **world):
    return reference(f"SELECT SUM(a) AS a FROM s [{window}]", s=s, **world).due_times()


def test_due_times_cover_all_tuples(reference):
    s = "ts | a\n7 | 1\n23 | 1"
    assert due(reference, "RANGE 10 SLIDE 5", s) == [10, 15, 20, 25]
    assert due(reference, "RANGE 10 SLIDE 5", "ts | a\n10 | 1\n20 | 1") == [10, 15, 20]
    assert due(reference, "RANGE 10 SLIDE 5", s, until=21) == [10, 15, 20]
    assert due(reference, "RANGE 10 SLIDE 5", s, until=40) == [10, 15, 20, 25, 30, 35, 40]
    assert due(reference, "RANGE 10 SLIDE 5", s, start=15) == [20, 25]
    assert due(reference, "RANGE 10 SLIDE 5", s, since=12) == [15, 20, 25]
    assert due(reference, "RANGE 10 SLIDE 5", "ts | a") == []
    assert due(reference, "RANGE 10 SLIDE 5", "ts | a\n-7 | 1\n2 | 1") == [-5, 0, 5]


def test_due_instants_of_tuples(reference):
    # counts up to each instant:  1→1  2→3  4→4  6→7
    s = "ts | a\n1 | 1\n2 | 1\n2 | 1\n4 | 1\n6 | 1\n6 | 1\n6 | 1"
    assert due(reference, "ROWS 5 SLIDE 2", s, until=100) == [2, 4, 6]
    assert due(reference, "ROWS 5 SLIDE 2", s) == [2, 4, 6]
    assert due(reference, "ROWS 5 SLIDE 4", s, until=100) == [4]
    assert due(reference, "ROWS 5 SLIDE 4", s) == [4, 6]
    assert due(reference, "ROWS 5 SLIDE 7", s) == [6]
    assert due(reference, "ROWS 5 SLIDE 4", s, until=5) == [4]


def test_range_shorter_than_slide_leaves_gaps(check):
    expected = "_time | total\n5 | 9\n10 | 19"
    check("SELECT SUM(a) AS total FROM s [RANGE 2 SLIDE 5]", expected, s=TEN)


def test_range_that_is_no_multiple_of_slide(check):
    # (-2, 5] (3, 10] : 1+…+5, 4+…+10
    check("SELECT SUM(a) AS total FROM s [RANGE 7 SLIDE 5]", "_time | total\n5 | 15\n10 | 49", s=TEN)


def test_an_empty_window_has_one_global_answer_and_no_groups(check):
    s = "ts | a\n1 | 1\n17 | 2"
    check(
        "SELECT COUNT(*) AS n, SUM(a) AS total, MIN(a) AS least FROM s [RANGE 5 SLIDE 5]",
        "_time | n | total | least\n5 | 1 | 1 | 1\n10 | 0 | NULL | NULL\n15 | 0 | NULL | NULL\n20 | 1 | 2 | 2",
        s=s,
    )
    check("SELECT a, COUNT(*) AS n FROM s [RANGE 5 SLIDE 5] GROUP BY a", "_time | a | n\n5 | 1 | 1\n20 | 2 | 1", s=s)


def test_offset_window_beside_a_current_one(check):
    """This slide's sum and the one before it."""
    query = """
    SELECT x.total AS now, y.total AS before
    FROM (SELECT SUM(a) AS total FROM s [RANGE 5 SLIDE 5]) x,
         (SELECT SUM(a) AS total FROM s [RANGE 5 SLIDE 5 OFFSET 5]) y
    """
    check(query, "_time | now | before\n5 | 15 | NULL\n10 | 40 | 15", s=TEN)


def test_offset_shifts_a_continuous_query(check):
    expected = "_time | _change | a\n4 | + | 1\n6 | - | 1\n6 | + | 3\n8 | - | 3"
    check("SELECT a FROM s [RANGE 2 OFFSET 3]", expected, s="ts | a\n1 | 1\n3 | 3", until=20)


def test_rows_continuous_nets_the_ties_of_an_instant(check):
    s = "ts | a\n1 | 1\n2 | 2\n2 | 3\n2 | 4\n5 | 9"
    expected = """
    _time | _change | a
    1     | +       | 1
    2     | -       | 1
    2     | +       | 3
    2     | +       | 4
    5     | -       | 3
    5     | +       | 9
    """
    check("SELECT a FROM s [ROWS 2]", expected, s=s)


def test_now_lasts_one_tick(check):
    s = "ts | a\n1 | 1\n2 | 1\n5 | 5"
    expected = "_time | _change | a\n1 | + | 1\n3 | - | 1\n5 | + | 5"
    check("SELECT a FROM s [NOW]", expected, s=s)
    check("SELECT a FROM s [NOW]", expected + "\n6 | - | 5", s=s, until=6)


def test_rows_slide_answers(check):
    s = "ts | a\n1 | 1\n2 | 2\n2 | 3\n4 | 4\n6 | 5"
    expected = "_time | total\n2 | 3\n4 | 9\n6 | 12"
    check("SELECT SUM(a) AS total FROM s [ROWS 3 SLIDE 2]", expected, s=s)
    check("SELECT SUM(a) AS total FROM s [ROWS 3 SLIDE 2]", "_time | total\n2 | 3\n4 | 9", s=s, until=6)


def test_since_forgets_earlier_tuples_and_start_only_hides_answers(check):
    query = "SELECT SUM(a) AS total FROM s [RANGE 10 SLIDE 5]"
    check(query, "_time | total\n10 | 40", s=TEN, since=5)
    check(query, "_time | total\n10 | 55", s=TEN, start=5)
    changes = "_time | _change | a\n9 | - | 6\n9 | + | 9\n10 | - | 7\n10 | + | 10"
    check("SELECT a FROM s [RANGE 3]", changes, s=TEN, start=8)
    # The tuples of 6 … 8 were never seen: only the new ones come, and nothing goes.
    check("SELECT a FROM s [RANGE 3]", "_time | _change | a\n9 | + | 9\n10 | + | 10", s=TEN, start=8, since=8)


def test_timestamps_are_due_at_multiples_since_1970(reference):
    times = [datetime(2024, 1, 1, 12, 0, 30), datetime(2024, 1, 1, 12, 2, 30)]
    s = pa.table({"ts": pa.array(times, pa.timestamp("us")), "a": [1, 2]})
    answers = reference("SELECT SUM(a) AS total FROM s [RANGE 2 MIN SLIDE 1 MIN]", s=s).answers()
    assert answers.schema == pa.schema([("_time", pa.timestamp("us")), ("total", pa.int64())])
    minutes = [datetime(2024, 1, 1, 12, minute) for minute in (1, 2, 3)]
    assert answers.to_pylist() == [{"_time": m, "total": t} for m, t in zip(minutes, (1, 1, 2), strict=True)]


def test_no_tuples_no_answers(reference):
    for query in ("SELECT COUNT(*) AS n FROM s [RANGE 5 SLIDE 5]", "SELECT COUNT(*) AS n FROM s [RANGE 5]"):
        answers = reference(query, s="ts | a").answers()
        assert answers.num_rows == 0
        assert answers.schema.field("n").type == pa.int64()


def test_names_of_streams_and_columns_have_no_case(reference):
    built = reference("SELECT A FROM S [RANGE 5]", s="ts | a\n1 | 1")
    assert built.answer(1).to_pylist() == [{"A": 1}]


def test_a_missing_stream_is_named(reference):
    query = reference("SELECT a FROM s [RANGE 5]", s="ts | a\n1 | 1")._query
    with pytest.raises(InputError, match="stream s are missing"):
        Reference(query, {"t": pa.table({"ts": [1]})})
