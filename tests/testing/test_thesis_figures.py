"""The figures of the thesis (chapters 1 to 3), rebuilt from what its text says of them."""

import pytest

# Figure 1.1: 75 is the largest value until it expires; 61 arrives before that and changes nothing; 73 is next.
#
#   ts    10   20   30   50   65   70
#   a     75   40   73   55   61
#         (─────────────────────────]  at t1 = 60 and t2 = 65: 75
#              (────────────────────────]  at t3 = 70: 73
FIGURE_1_1 = """
ts | a
10 | 75
20 | 40
30 | 73
50 | 55
65 | 61
"""


def test_figure_1_1_the_maximum_expires(reference, check):
    q2 = reference("SELECT MAX(a) AS a FROM s [RANGE 60]", s=FIGURE_1_1, until=75)
    assert [q2.answer(tau)["a"].to_pylist() for tau in (60, 65, 69, 70)] == [[75], [75], [75], [73]]
    changes = """
    _time | _change | a
    10    | +       | 75
    70    | -       | 75
    70    | +       | 73
    """
    check("SELECT MAX(a) AS a FROM s [RANGE 60]", changes, s=FIGURE_1_1, until=75)


def test_figure_1_1_over_the_unbounded_stream_nothing_expires(check):
    check("SELECT MAX(a) AS a FROM s", "_time | _change | a\n10 | + | 75", s=FIGURE_1_1, until=1000)


def values(text):
    """`values("a b - c")`: one tuple per instant, a dash for none."""
    rows = [f"{ts} | {v}" for ts, v in enumerate(text.split(), start=1) if v != "-"]
    return "\n".join(["ts | v", *rows])


class TestFigure21:
    """Operators over unbounded streams."""

    def test_a_selection(self, check):
        check(
            "SELECT v FROM s1 WHERE v <> 'b'",
            "_time | _change | v\n 1 | + | a\n 3 | + | c\n 4 | + | a",
            s1=values("a b c a"),
        )

    def test_b_join(self, check):
        # time  1  2  3  4  5
        # S1    a  -  b  -  a
        # S2    -  a  -  b  a
        expected = """
        _time | _change | v
        2     | +       | a
        4     | +       | b
        # the S1-tuple of 5 meets both S2-tuples, the S2-tuple of 5 meets the old S1-tuple
        5     | +       | a
        5     | +       | a
        5     | +       | a
        """
        check("SELECT s1.v FROM s1, s2 WHERE s1.v = s2.v", expected, s1=values("a - b - a"), s2=values("- a - b a"))

    def test_c_duplicate_elimination_drops_the_second_b(self, check):
        check(
            "SELECT DISTINCT v FROM s1",
            "_time | _change | v\n 1 | + | a\n 2 | + | b\n 4 | + | c",
            s1=values("a b b c"),
        )

    def test_d_aggregation_replaces_the_value_when_it_changes(self, check):
        expected = """
        _time | _change | n | largest
        1     | +       | 1 | b
        2     | -       | 1 | b
        2     | +       | 2 | b
        3     | -       | 2 | b
        3     | +       | 3 | c
        """
        check("SELECT COUNT(*) AS n, MAX(v) AS largest FROM s1", expected, s1=values("b a c"))
        check("SELECT MAX(v) AS m FROM s1", "_time | _change | m\n1 | + | b\n3 | - | b\n3 | + | c", s1=values("b a c"))

    def test_e_negation_takes_d_back(self, check):
        # time  1  2  3  4
        # S1    a  d  -  b
        # S2    a  -  -  -  d
        expected = """
        _time | _change | v
        2     | +       | d
        4     | +       | b
        5     | -       | d
        """
        s1, s2 = values("a d - b"), values("a - - - d")
        check("SELECT v FROM s1 EXCEPT ALL SELECT v FROM s2", expected, s1=s1, s2=s2)
        check("SELECT v FROM s1 WHERE NOT EXISTS (SELECT 1 FROM s2 WHERE s2.v = s1.v)", expected, s1=s1, s2=s2)
        check("SELECT v FROM s1 WHERE v NOT IN (SELECT v FROM s2)", expected, s1=s1, s2=s2)


class TestFigure31:
    """Operators over sliding windows; every window has six ticks here."""

    def test_a_selection_expires_in_the_order_of_arrival(self, check):
        expected = """
        _time | _change | v
        1     | +       | a
        2     | +       | c
        7     | -       | a
        7     | +       | d
        8     | -       | c
        """
        check("SELECT v FROM s1 [RANGE 6] WHERE v <> 'b'", expected, s1=values("a c b - - - d b"))

    def test_b_join_result_goes_with_its_older_constituent(self, check):
        # The old c of S2 came at 1; the S1-tuple that meets it at 5 is young, but the result ends at 1 + 6.
        # The result b of 6 ends at 4 + 6: later results may expire earlier.
        expected = """
        _time | _change | v
        5     | +       | c
        6     | +       | b
        7     | -       | c
        10    | -       | b
        """
        check(
            "SELECT s1.v FROM s1 [RANGE 6], s2 [RANGE 6] WHERE s1.v = s2.v",
            expected,
            s1=values("- - - b c - - - - x"),
            s2=values("c - - - - b"),
        )

    def test_c_duplicate_elimination_keeps_a_while_another_a_is_there(self, check):
        # a at 1 and 4, c at 3: when the a of 1 expires at 7 the one of 4 stands in, and a leaves at 4 + 6.
        expected = """
        _time | _change | v
        1     | +       | a
        3     | +       | c
        9     | -       | c
        10    | -       | a
        """
        check("SELECT DISTINCT v FROM s1 [RANGE 6]", expected, s1=values("a - c a"), until=12)

    def test_d_group_by_updates_with_arrivals_and_expirations(self, check):
        expected = """
        _time | _change | v | n
        1     | +       | a | 1
        2     | +       | b | 1
        4     | -       | a | 1
        4     | +       | a | 2
        7     | -       | a | 2
        7     | +       | a | 1
        8     | -       | b | 1
        10    | -       | a | 1
        """
        check("SELECT v, COUNT(*) AS n FROM s1 [RANGE 6] GROUP BY v", expected, s1=values("a b - a"), until=12)

    def test_negation_also_produces_when_the_right_side_expires(self, check):
        # v3 = max(0, v1 - v2): the second a of S1 is one more than S2 has; at 2 + 6 S2 loses its a, S1 keeps two.
        expected = """
        _time | _change | v
        1     | +       | a
        2     | -       | a
        4     | +       | a
        # at 7 the a of 1 expires from S1
        7     | -       | a
        8     | +       | a
        10    | -       | a
        """
        check(
            "SELECT v FROM s1 [RANGE 6] EXCEPT ALL SELECT v FROM s2 [RANGE 6]",
            expected,
            s1=values("a - - a"),
            s2=values("- a"),
            until=12,
        )


# Figure 3.2: SUM over the seven values 1 2 3 4 5 6 7, one per tick.
SEVEN = "ts | a\n" + "\n".join(f"{i} | {i}" for i in range(1, 8))
LAST_FIVE = [1, 3, 6, 10, 15, 20, 25]
ALL = [1, 3, 6, 10, 15, 21, 28]


@pytest.mark.parametrize(("window", "sums"), [("ROWS 5", LAST_FIVE), ("RANGE UNBOUNDED", ALL)])
def test_figure_3_2_external_windows_cross_out_the_old_sum(check, window, sums):
    lines = ["_time | _change | total", f"1 | + | {sums[0]}"]
    for ts in range(2, 8):
        lines += [f"{ts} | - | {sums[ts - 2]}", f"{ts} | + | {sums[ts - 1]}"]
    check(f"SELECT SUM(a) AS total FROM s [{window}]", "\n".join(lines), s=SEVEN)


@pytest.mark.parametrize(("window", "sums"), [("ROWS 5", LAST_FIVE), ("RANGE UNBOUNDED", ALL)])
def test_figure_3_2_internal_windows_only_append(check, window, sums):
    lines = ["_time | total", *(f"{ts} | {total}" for ts, total in enumerate(sums, start=1))]
    check(f"SELECT SUM(a) AS total FROM s [{window} INTERNAL]", "\n".join(lines), s=SEVEN)


@pytest.mark.parametrize("query", ["{}", "Istream({})"])
def test_figure_3_3_internal_windows_still_drop_tuples_from_the_state(check, query):
    # S1 ⋈ S2 gives a at 2, and the S1-tuple leaves at 7: the S3-tuple of 6 meets it, that of 8 must not.
    join = "SELECT s1.v FROM s1 [RANGE 6{0}], s2 [RANGE 6{0}], s3 [RANGE 6{0}] WHERE s1.v = s2.v AND s2.v = s3.v"
    world = {"s1": values("a"), "s2": values("- a"), "s3": values("- - - - - a - a")}
    check(query.format(join.format(" INTERNAL" if query == "{}" else "")), "_time | v\n6 | a", **world)


FIGURE_3_5 = {
    "negation above the join": """
        SELECT s1.v FROM s1 [RANGE 6], s3 [RANGE 6]
        WHERE s1.v = s3.v AND NOT EXISTS (SELECT * FROM s2 [RANGE 6] WHERE s2.v = s1.v)""",
    "negation below the join": """
        SELECT x.v FROM (SELECT v FROM s1 [RANGE 6] EXCEPT ALL SELECT v FROM s2 [RANGE 6]) AS x, s3 [RANGE 6]
        WHERE x.v = s3.v""",
}


@pytest.mark.parametrize("plan", FIGURE_3_5)
def test_figure_3_5_both_plans_of_a_join_with_negation(check, plan):
    # time  1  2  3  4
    # S1    a  -  b  -
    # S2    b  -  -  a     takes a back at 4; its own b leaves at 7, and the b of S1 may come
    # S3    -  a  b  -
    expected = "_time | _change | v\n2 | + | a\n4 | - | a\n7 | + | b\n9 | - | b"
    world = {"s1": values("a - b"), "s2": values("b - - a"), "s3": values("- a b")}
    check(FIGURE_3_5[plan], expected, **world, until=12)


class TestFigure34:
    """Periodic re-evaluation at τ1 = 10 and τ2 = 15 of a join of two windows of ten ticks.

    t1     [2 ────────── 11)             1: S1 at 1, S2 at 2
    short                [11, 12)        3: S1 at 2, S2 at 11
    t2                        [13 ──     2: S1 at 12, S2 at 13
                      τ1           τ2
    """

    s1 = "ts | k\n1 | 1\n2 | 3\n12 | 2"
    s2 = "ts | k\n2 | 1\n11 | 3\n13 | 2"
    join = "{}(SELECT s1.k FROM s1 [RANGE 10 SLIDE 5], s2 [RANGE 10 SLIDE 5] WHERE s1.k = s2.k)"

    @pytest.mark.parametrize(
        ("operator", "expected"),
        [
            ("", {5: [1], 10: [1], 15: [2]}),
            ("Rstream", {5: [1], 10: [1], 15: [2]}),
            ("Istream", {5: [1], 15: [2]}),
            ("Dstream", {15: [1]}),
            ("Istream_restore", {5: [1], 15: [2, 3]}),
            ("Rstream_restore", {5: [1], 10: [1], 15: [2, 3]}),
            ("Rstream-restore", {5: [1], 10: [1], 15: [2, 3]}),
        ],
    )
    def test_the_short_lived_result_is_reported_only_with_restore(self, check, operator, expected):
        lines = ["_time | k", *(f"{tau} | {k}" for tau, rows in expected.items() for k in rows)]
        check(self.join.format(operator), "\n".join(lines), s1=self.s1, s2=self.s2)

    def test_continuously_everything_is_seen(self, check):
        expected = """
        _time | _change | k
        2     | +       | 1
        11    | -       | 1
        11    | +       | 3
        12    | -       | 3
        13    | +       | 2
        """
        check("SELECT s1.k FROM s1 [RANGE 10], s2 [RANGE 10] WHERE s1.k = s2.k", expected, s1=self.s1, s2=self.s2)


def test_restore_counts_copies(check):
    """One copy was in the last answer; three go in between: two of them came and went unseen."""
    # a lives (1, 6] then twice more for one tick each: windows of five ticks, due at 5 and 10
    s1 = "ts | k\n1 | 1\n2 | 1"
    s2 = "ts | k\n5 | 1\n6 | 1"
    # at 5: the pairs (1,5) and (2,5); at 6: (1,*) expires, (2,5) and (2,6) are there; at 7 all are gone
    join = "SELECT {}(s1.k) FROM s1 [RANGE 5 SLIDE 5], s2 [RANGE 5 SLIDE 5] WHERE s1.k = s2.k"
    check(join.format("Rstream"), "_time | k\n5 | 1\n5 | 1", s1=s1, s2=s2)
    # net changes: +2 at 5, none at 6 (one pair goes, one comes), -2 at 7: d - p = 2 - 2, nothing was missed
    check(join.format("Rstream_restore"), "_time | k\n5 | 1\n5 | 1", s1=s1, s2=s2)
    # with a third S2-tuple at 6 one pair more comes at 6 and goes at 7: d - p = 3 - 2
    s2 += "\n6 | 1"
    check(join.format("Rstream_restore"), "_time | k\n5 | 1\n5 | 1\n10 | 1", s1=s1, s2=s2)
    check(join.format("Istream_restore"), "_time | k\n5 | 1\n5 | 1\n10 | 1", s1=s1, s2=s2)
