"""What DuckDB is asked: types, aggregates that it lacks, NULLs, joins, subqueries, order and errors."""

import math

import pyarrow as pa
import pytest

from windrow.errors import QueryError, UnsupportedError

ONE = "[RANGE 100 SLIDE 100]"


def one(reference, select, rest="", s=None, **columns):
    """The single answer of an aggregate over all tuples."""
    if s is None:
        length = len(next(iter(columns.values())))
        s = pa.table({"ts": list(range(1, length + 1)), **columns})
    return reference(f"SELECT {select} AS x FROM s {ONE} {rest}", s=s).answer(100)["x"].to_pylist()


def test_the_types_are_those_of_the_binder(reference):
    s = pa.table(
        {
            "ts": [1, 2],
            "i": pa.array([2**31 - 1, 1], pa.int32()),
            "f": pa.array([0.1, 0.2], pa.float32()),
            "d": pa.array(["1.10", "2.20"]).cast(pa.decimal128(5, 2)),
        }
    )
    outputs = "i + i AS b, i / 2 AS c, MAX(f) AS f, SUM(f) AS g, SUM(d) AS d, COUNT(*) AS n, NULL AS z"
    answer = reference(f"SELECT SUM(i) AS a, {outputs} FROM s {ONE} GROUP BY i", s=s).answer(100)
    assert answer.schema == pa.schema(
        [
            ("a", pa.int64()), ("b", pa.int64()), ("c", pa.float64()), ("f", pa.float32()), ("g", pa.float64()),
            ("d", pa.decimal128(38, 2)), ("n", pa.int64()), ("z", pa.null()),
        ]
    )  # fmt: skip
    row = max(answer.to_pylist(), key=lambda row: row["a"])
    assert (row["b"], row["c"]) == (2**32 - 2, (2**31 - 1) / 2)


def test_float_sums_are_taken_in_double(reference):
    f = pa.array([0.1, 0.2, 0.3], pa.float32())
    exact = math.fsum(f.cast(pa.float64()).to_pylist())
    assert one(reference, "SUM(f)", f=f) == [pytest.approx(exact, rel=1e-15)]
    assert one(reference, "AVG(f)", f=f) == [pytest.approx(exact / 3, rel=1e-15)]


def test_an_integer_sum_is_exact_or_an_error(reference):
    big = 2**62
    assert one(reference, "SUM(a)", a=[big, big - 1, 0]) == [2**63 - 1]
    with pytest.raises(QueryError, match="range"):
        one(reference, "SUM(a)", a=[big, big, 0])


def test_errors_of_the_data_are_query_errors(reference):
    with pytest.raises(QueryError, match="Overflow"):
        one(reference, "MAX(a + a)", a=[2**62])
    with pytest.raises(QueryError, match="Could not convert"):
        one(reference, "MAX(CAST(v AS INT))", v=["x"])


def test_division_and_modulo_are_duckdbs(reference):
    s = pa.table({"ts": [1], "a": [-7]})
    answer = reference(f"SELECT a / 2 AS q, a // 2 AS i, a % 3 AS r FROM s {ONE}", s=s).answer(100)
    assert answer.to_pylist() == [{"q": -3.5, "i": -3, "r": -1}]
    with pytest.raises(QueryError, match="Division by zero"):
        reference(f"SELECT a // 0 AS z FROM s {ONE}", s=s).answers()


@pytest.mark.parametrize(
    ("phi", "n", "position"),
    [(0.5, 4, 2), (0.5, 5, 2), (0.0, 5, 1), (1.0, 5, 5), (0.1, 5, 1), (0.29, 100, 28), (0.9, 10, 9)],
)
def test_quantile_takes_the_element_at_floor_phi_n(reference, phi, n, position):
    a = list(range(1, n + 1))[::-1]
    assert one(reference, f"QUANTILE(a, {phi})", a=[*a, None]) == [position]
    assert one(reference, f"APPROX_QUANTILE(a, {phi})", a=a) == [position]


def test_quantiles_of_nothing_and_of_words(reference):
    assert one(reference, "QUANTILE(a, 0.5)", a=pa.array([None, None], pa.int64())) == [None]
    assert one(reference, "QUANTILE(v, 0.5)", v=["c", "a", "b", None]) == ["a"]
    assert one(reference, "QUANTILE(a, 0.5) FILTER (WHERE a > 2)", a=[1, 2, 3, 4, 5, 6]) == [4]
    assert one(reference, "QUANTILE(f, 1)", f=[1.0, math.inf, math.nan]) == [pytest.approx(math.nan, nan_ok=True)]


def test_median_and_percentiles(reference):
    a = [1, 2, 4, 8, None]
    assert one(reference, "MEDIAN(a)", a=a) == [3.0]
    assert one(reference, "APPROX_MEDIAN(a)", a=a) == [3.0]
    assert one(reference, "PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY a)", a=a) == [1.75]
    assert one(reference, "PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY a DESC)", a=a) == [5.0]
    assert one(reference, "PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY a)", a=a) == [1]
    assert one(reference, "PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY a DESC)", a=a) == [8]


def test_top_k_orders_by_count_then_value(reference):
    v = ["b", "a", "c", "a", "b", None, None, None, "d"]
    expected = [{"value": "a", "count": 2}, {"value": "b", "count": 2}, {"value": "c", "count": 1}]
    assert one(reference, "TOP_K(v, 3)", v=v) == [expected]
    assert one(reference, "APPROX_TOP_K(v, 1)", v=v) == [expected[:1]]
    assert one(reference, "TOP_K(v, 9) FILTER (WHERE v > 'a')", v=v)[0][0] == {"value": "b", "count": 2}
    assert one(reference, "TOP_K(a, 2)", a=pa.array([None], pa.int64())) == [None]


def test_distinct_and_filter(reference):
    a = [1, 1, 2, None, 3]
    assert one(reference, "COUNT(DISTINCT a)", a=a) == [3]
    assert one(reference, "APPROX_COUNT_DISTINCT(a)", a=a) == [3]
    assert one(reference, "SUM(DISTINCT a)", a=a) == [6]
    assert one(reference, "COUNT(a) FILTER (WHERE a > 1)", a=a) == [2]
    assert one(reference, "COUNT(*)", a=a) == [5]
    assert one(reference, "SUM(a) + COUNT(*) * 2", a=a) == [17]
    assert one(reference, "VAR_SAMP(a)", a=[1, 2, 3, 4]) == [pytest.approx(5 / 3)]


class TestFrequent:
    """Algorithm 6 with k = 2 and sub-windows of five ticks.

    (0, 5]   a a a b c      keeps a 3, b 1 (b before c), δ = 1
    (5, 10]  b b a          keeps b 2, a 1,              δ = 1
    (10, 15] c              keeps c 1, fewer than two,   δ = 0
    """

    s = """
    ts | v
    1  | a
    2  | a
    3  | a
    4  | b
    5  | c
    6  | b
    7  | b
    8  | a
    11 | c
    """

    def test_time_windows(self, check):
        expected = """
        _time | f
        5     | [{'value': 'a', 'count': 3}]
        10    | [{'value': 'a', 'count': 4}, {'value': 'b', 'count': 3}]
        15    | [{'value': 'a', 'count': 4}, {'value': 'b', 'count': 3}]
        """
        # at 15: a 4, b 3, c 1 against δ = 2
        check("SELECT FREQUENT(v, 2) AS f FROM s [RANGE 15 SLIDE 5]", expected, s=self.s)
        check("SELECT APPROX_FREQUENT(v, 2) AS f FROM s [RANGE 15 SLIDE 5]", expected, s=self.s)

    def test_old_sub_windows_leave(self, check):
        expected = """
        _time | f
        5     | [{'value': 'a', 'count': 3}]
        10    | [{'value': 'b', 'count': 2}]
        15    | [{'value': 'c', 'count': 1}]
        """
        check("SELECT FREQUENT(v, 2) AS f FROM s [RANGE 5 SLIDE 5]", expected, s=self.s)

    def test_sub_windows_are_left_open(self, check, reference):
        # (0, 5] a a b: a 2, b 1, δ = 1;  (5, 10] b b c: b 2, c 1, δ = 1
        s = "ts | v\n1 | a\n2 | a\n5 | b\n6 | b\n7 | b\n8 | c"
        expected = "_time | f\n5 | [{'value': 'a', 'count': 2}]\n10 | [{'value': 'b', 'count': 3}]"
        query = "SELECT FREQUENT(v, 2) AS f FROM s [RANGE 10 SLIDE 5]"
        check(query, expected, s=s)
        # They count back from τ: at 9 (-1, 4] has a 2 and δ = 0, (4, 9] b 3, c 1 and δ = 1.
        built = reference(query, s=s)
        answers = [built.answer(tau)["f"].to_pylist()[0] for tau in (9, 10)]
        assert [[item["value"] for item in answer] for answer in answers] == [["b", "a"], ["b"]]

    def test_nothing_may_be_frequent(self, check):
        check("SELECT FREQUENT(v, 1) AS f FROM s [RANGE 5 SLIDE 5]", "_time | f\n5 | []", s="ts | v\n1 | a\n2 | b")

    def test_windows_of_tuples(self, check):
        # tuples 1-3: a 3 (δ 0: only one value);  4-6: b 2, c 1 (δ 1);  7-9: a 1, b 1 (δ 1; c is the third)
        expected = """
        _time | f
        3     | [{'value': 'a', 'count': 3}]
        6     | [{'value': 'a', 'count': 3}, {'value': 'b', 'count': 2}]
        11    | [{'value': 'b', 'count': 3}]
        """
        check("SELECT FREQUENT(v, 2) AS f FROM s [ROWS 6 SLIDE 3]", expected, s=self.s)

    def test_groups(self, check):
        expected = """
        _time | g | f
        5     | 0 | [{'value': 'a', 'count': 2}]
        5     | 1 | [{'value': 'b', 'count': 1}]
        5     | 2 | NULL
        """
        s = "ts | g | v\n1 | 0 | a\n2 | 0 | a\n3 | 1 | b\n4 | 2 | NULL"
        check("SELECT g, FREQUENT(v, 2) AS f FROM s [RANGE 5 SLIDE 5] GROUP BY g", expected, s=s)

    @pytest.mark.parametrize(
        "query",
        [
            "SELECT FREQUENT(v, 2) AS f FROM s [RANGE 15]",
            "SELECT FREQUENT(v, 2) AS f FROM s [RANGE 7 SLIDE 5]",
            "SELECT FREQUENT(v, 2) AS f FROM s [RANGE UNBOUNDED SLIDE 5]",
            "SELECT FREQUENT(s.v, 2) AS f FROM s [RANGE 5 SLIDE 5], s [RANGE 5 SLIDE 5] AS t",
            "SELECT COUNT(*) AS n FROM s [RANGE 5 SLIDE 5] HAVING FREQUENT(v, 2) IS NULL",
            "SELECT f FROM (SELECT FREQUENT(v, 2) AS f FROM s [RANGE 5 SLIDE 5]) x",
        ],
    )
    def test_elsewhere_it_is_not_defined(self, reference, query):
        with pytest.raises(UnsupportedError, match="FREQUENT"):
            reference(query, s=self.s)


def test_nulls_group_and_compare_as_in_sql(check):
    s = "ts | k    | a\n1 | NULL | 1\n2 | NULL | NULL\n3 | x | NULL"
    expected = "_time | k | n | m | total\n5 | NULL | 2 | 1 | 1\n5 | x | 1 | 0 | NULL"
    check("SELECT k, COUNT(*) AS n, COUNT(a) AS m, SUM(a) AS total FROM s [RANGE 5 SLIDE 5] GROUP BY k", expected, s=s)
    check("SELECT a FROM s [RANGE 5 SLIDE 5] WHERE a <> 7", "_time | a\n5 | 1", s=s)


def test_nan_is_the_greatest_number(reference):
    f = [1.0, math.nan, math.inf]
    assert one(reference, "MAX(f)", f=f) == [pytest.approx(math.nan, nan_ok=True)]
    assert one(reference, "MIN(f)", f=f) == [1.0]


def test_nan_changes_nothing_when_it_stays(reference):
    s = pa.table({"ts": [1, 2, 3], "f": [math.nan, 1.0, math.nan]})
    changes = reference("SELECT MAX(f) AS m FROM s", s=s).answers()
    assert changes["_time"].to_pylist() == [1]


def test_having_group_by_positions_and_expressions(check):
    s = "ts | a\n1 | 1\n2 | 2\n3 | 3\n4 | 11"
    query = "SELECT a % 2 AS odd, SUM(a) AS total FROM s [RANGE 5 SLIDE 5] GROUP BY 1 HAVING {} > 2 ORDER BY total"
    check(query.format("SUM(a)"), "_time | odd | total\n5 | 1 | 15", s=s)
    check(query.format("total"), "_time | odd | total\n5 | 1 | 15", s=s)
    check("SELECT 7 AS c, COUNT(*) AS n FROM s [RANGE 5 SLIDE 5] GROUP BY 1", "_time | c | n\n5 | 7 | 4", s=s)


class TestOrder:
    s = "ts | a    | b\n1 | 1 | x\n2 | 2 | z\n3 | 2 | y\n4 | NULL | w"

    def check(self, check, clause, rows):
        lines = ["_time | a | b", *(f"5 | {a} | {b}" for a, b in rows)]
        check(f"SELECT a, b FROM s [RANGE 5 SLIDE 5] {clause}", "\n".join(lines), s=self.s, ordered=True)

    def test_nulls_are_last_and_ties_follow_the_other_columns(self, check):
        self.check(check, "ORDER BY a", [(1, "x"), (2, "y"), (2, "z"), ("NULL", "w")])
        self.check(check, "ORDER BY a DESC", [(2, "y"), (2, "z"), (1, "x"), ("NULL", "w")])
        self.check(check, "ORDER BY a DESC NULLS FIRST LIMIT 2", [("NULL", "w"), (2, "y")])

    def test_limit_alone_is_ordered_by_all_columns(self, check):
        self.check(check, "LIMIT 2", [(1, "x"), (2, "y")])
        self.check(check, "LIMIT 2 OFFSET 1", [(2, "y"), (2, "z")])

    def test_ordering_by_what_is_not_selected(self, check):
        check("SELECT a FROM s [RANGE 5 SLIDE 5] ORDER BY b DESC LIMIT 1", "_time | a\n5 | 2", s=self.s)

    def test_distinct_and_aggregates(self, check):
        query = "SELECT DISTINCT a FROM s [RANGE 5 SLIDE 5] ORDER BY a DESC LIMIT 2"
        check(query, "_time | a\n5 | 2\n5 | 1", s=self.s, ordered=True)
        query = "SELECT a, COUNT(*) AS n FROM s [RANGE 5 SLIDE 5] GROUP BY a ORDER BY COUNT(*) DESC, a LIMIT 2"
        check(query, "_time | a | n\n5 | 2 | 2\n5 | 1 | 1", s=self.s, ordered=True)

    def test_set_operations(self, check):
        query = "SELECT a, b FROM s ! UNION ALL SELECT a + 10, b FROM s ! ORDER BY b, 1 LIMIT 3"
        query = query.replace("!", "[RANGE 5 SLIDE 5]")
        check(query, "_time | a | b\n5 | NULL | w\n5 | NULL | w\n5 | 1 | x", s=self.s, ordered=True)


class TestQueries:
    s = "ts | k | a\n1 | x | 1\n2 | y | 2\n3 | x | 3"
    t = "ts | k | b\n1 | x | 10\n2 | z | 20"

    def check(self, check, query, expected, **how):
        check(query.replace("!", "[RANGE 5 SLIDE 5]"), expected, s=self.s, t=self.t, **how)

    def test_joins(self, check):
        rows = "_time | a | b\n5 | 1 | 10\n5 | 3 | 10"
        self.check(check, "SELECT a, b FROM s !, t ! WHERE s.k = t.k", rows)
        self.check(check, "SELECT a, b FROM s ! JOIN t ! ON s.k = t.k", rows)
        self.check(check, "SELECT a, b FROM s ! JOIN t ! USING (k)", rows)
        self.check(check, "SELECT a, b FROM s ! LEFT JOIN t ! ON s.k = t.k", rows + "\n5 | 2 | NULL")
        self.check(check, "SELECT a, b FROM s ! FULL JOIN t ! ON s.k = t.k", rows + "\n5 | 2 | NULL\n5 | NULL | 20")
        self.check(check, "SELECT COUNT(*) AS n FROM s ! CROSS JOIN t !", "_time | n\n5 | 6")

    def test_a_stream_with_itself(self, check):
        query = "SELECT x.a AS u, y.a AS v FROM s ! x, s ! y WHERE x.k = y.k AND x.a < y.a"
        self.check(check, query, "_time | u | v\n5 | 1 | 3")

    def test_subqueries(self, check):
        self.check(check, "SELECT a FROM s ! WHERE k IN (SELECT k FROM t !)", "_time | a\n5 | 1\n5 | 3")
        exists = "EXISTS (SELECT b FROM t ! WHERE t.k = s.k)"
        self.check(check, f"SELECT a FROM s ! WHERE {exists}", "_time | a\n5 | 1\n5 | 3")
        self.check(check, f"SELECT a FROM s ! WHERE NOT {exists}", "_time | a\n5 | 2")
        self.check(check, "SELECT a FROM s ! WHERE a = (SELECT MAX(a) FROM s !)", "_time | a\n5 | 3", engine="not here")
        self.check(check, "SELECT a FROM s ! WHERE a / 2 IN (SELECT a FROM s !)", "_time | a\n5 | 2")
        self.check(check, "SELECT MAX(n) AS m FROM (SELECT k, COUNT(*) AS n FROM s ! GROUP BY k) x", "_time | m\n5 | 2")

    def test_set_operations(self, check):
        union = "SELECT k FROM s ! UNION{} SELECT k FROM t !"
        self.check(check, union.format(""), "_time | k\n5 | x\n5 | y\n5 | z")
        self.check(check, union.format(" ALL"), "_time | k\n5 | x\n5 | x\n5 | x\n5 | y\n5 | z")
        self.check(check, "SELECT k FROM s ! INTERSECT SELECT k FROM t !", "_time | k\n5 | x")
        self.check(check, "SELECT k FROM s ! EXCEPT SELECT k FROM t !", "_time | k\n5 | y")
        self.check(check, "SELECT k FROM s ! EXCEPT ALL SELECT k FROM t !", "_time | k\n5 | x\n5 | y")
        self.check(check, "SELECT a FROM s ! EXCEPT SELECT b / 10 FROM t !", "_time | a\n5 | 3.0")

    def test_a_scalar_subquery_of_two_rows_is_an_error(self, reference):
        query = "SELECT a FROM s [RANGE 5 SLIDE 5] WHERE a = (SELECT a FROM s [RANGE 5 SLIDE 5])"
        with pytest.raises(QueryError, match="More than one row"):
            reference(query, s=self.s).answers()

    def test_quoted_names(self, check):
        query = 'SELECT a AS "order", k AS "a ""b""" FROM s [RANGE 5 SLIDE 5] WHERE a = 1'
        check(query, '_time | order | a "b"\n5 | 1 | x', s=self.s)
