"""Stream operators, internal windows, windowed output and windowed subqueries."""

from collections import Counter

import pytest

from windrow.errors import UnsupportedError

S = "ts | a\n1 | 1\n2 | 2\n6 | 2\n11 | 3"


class TestOperators:
    @pytest.mark.parametrize(
        ("operator", "expected"),
        [
            ("Rstream", "5 | 1\n5 | 2\n10 | 2\n10 | 2\n15 | 2\n15 | 3"),
            ("Istream", "5 | 1\n5 | 2\n10 | 2\n15 | 3"),
            ("Dstream", "10 | 1\n15 | 2"),
        ],
    )
    def test_periodic_ones_compare_multisets(self, check, operator, expected):
        # (-4, 5] 1 2    (1, 10] 2 2    (6, 15] 2 3
        check(f"{operator}(SELECT a FROM s [RANGE 9 SLIDE 5])", "_time | a\n" + expected, s=S.replace("6 | 2", "7 | 2"))

    def test_continuous_ones(self, check):
        query = "(SELECT a FROM s [RANGE 4])"
        changes = "_time | _change | a\n1 | + | 1\n2 | + | 2\n5 | - | 1\n10 | - | 2\n11 | + | 3"
        # at 6 the second 2 comes when the first one goes: no net change
        check(query[1:-1], changes, s=S)
        check(f"Istream{query}", "_time | a\n1 | 1\n2 | 2\n11 | 3", s=S)
        check(f"Dstream{query}", "_time | a\n5 | 1\n10 | 2", s=S)
        check(f"Rstream{query}", "_time | a\n1 | 1\n2 | 1\n2 | 2\n5 | 2\n11 | 3", s=S)

    def test_within_an_instant_deletions_come_first(self, check):
        expected = "_time | _change | n\n1 | + | 1\n2 | - | 1\n2 | + | 2"
        check("SELECT COUNT(*) AS n FROM s", expected, s="ts | a\n1 | 1\n2 | 1", ordered=True)

    def test_expiries_after_the_last_tuple_need_a_heartbeat(self, check):
        s = "ts | a\n1 | 1"
        check("SELECT a FROM s [RANGE 4]", "_time | _change | a\n1 | + | 1", s=s)
        check("SELECT a FROM s [RANGE 4]", "_time | _change | a\n1 | + | 1", s=s, until=4)
        check("SELECT a FROM s [RANGE 4]", "_time | _change | a\n1 | + | 1\n5 | - | 1", s=s, until=5)

    def test_restore_after_a_later_start_begins_with_what_the_windows_held(self, check):
        query = "Istream_restore(SELECT a FROM s [RANGE 3 SLIDE 5])"
        s = "ts | a\n1 | 1\n5 | 5\n7 | 7"
        check(query, "_time | a\n5 | 1\n5 | 5\n10 | 7", s=s)
        # at 6 the window (3, 6] holds 5; the 1 came and went before
        check(query, "_time | a\n10 | 5\n10 | 7", s=s, start=6)

    def test_a_later_start_only_cuts_off(self, check):
        check("Istream(SELECT a FROM s [RANGE 4])", "_time | a\n11 | 3", s=S, start=5)
        # the first answer after the start has none before it
        check("Istream(SELECT a FROM s [RANGE 9 SLIDE 5])", "_time | a\n10 | 2\n10 | 2\n15 | 3", s=S, start=5)


class TestInternal:
    def test_results_never_expire(self, check):
        check("SELECT a FROM s [RANGE 3 INTERNAL]", "_time | a\n1 | 1\n2 | 2\n6 | 2\n11 | 3", s=S)

    def test_join_of_internal_windows_is_the_join_of_external_ones_without_expiry(self, check):
        t = "ts | a\n3 | 1\n5 | 2\n7 | 2"
        join = "SELECT s.a, s.ts AS s, t.ts AS t FROM s [RANGE 3{0}], t [RANGE 3{0}] WHERE s.a = t.a"
        rows = ["3 | 1 | 1 | 3", "6 | 2 | 6 | 5", "7 | 2 | 6 | 7"]
        check(join.format(" INTERNAL"), "\n".join(["_time | a | s | t", *rows]), s=S, t=t)
        check("Istream(" + join.format("") + ")", "\n".join(["_time | a | s | t", *rows]), s=S, t=t)

    def test_each_re_evaluation_of_an_aggregate_is_a_new_result(self, check):
        s = "ts | a\n1 | 1\n6 | 1"
        check("SELECT SUM(a) AS n FROM s [RANGE 5 SLIDE 5 INTERNAL]", "_time | n\n5 | 1\n10 | 1", s=s)
        check("Istream(SELECT SUM(a) AS n FROM s [RANGE 5 SLIDE 5])", "_time | n\n5 | 1", s=s)

    def test_periodic_rows_are_appended_once(self, check):
        s = "ts | a\n1 | 1\n6 | 6"
        check("SELECT a FROM s [RANGE 10 SLIDE 5 INTERNAL]", "_time | a\n5 | 1\n10 | 6", s=s)

    def test_beside_an_external_window_only_that_one_takes_back(self, check):
        # s 1 at 1 (internal, 3 ticks), t 1 at 2 (external, 5 ticks): the result of 2 stays until 7, not only until 4;
        # s 1 is gone when the t of 5 comes: no result.
        query = "SELECT s.a, t.ts AS t FROM s [RANGE 3 INTERNAL], t [RANGE 5] WHERE s.a = t.a"
        expected = "_time | _change | a | t\n2 | + | 1 | 2\n7 | - | 1 | 2"
        check(query, expected, s="ts | a\n1 | 1", t="ts | a\n2 | 1\n5 | 1", until=20)
        plain = "_time | _change | a | t\n2 | + | 1 | 2\n4 | - | 1 | 2"
        check(query.replace(" INTERNAL", ""), plain, s="ts | a\n1 | 1", t="ts | a\n2 | 1\n5 | 1", until=20)

    def test_the_first_external_window_that_drops_a_constituent_takes_back(self, check):
        # t of 2 leaves at 2 + 1 + 6 (its window is one tick behind), u of 2 at 2 + 5
        query = "SELECT s.a FROM s [RANGE 3 INTERNAL], t [RANGE {} OFFSET 1], u [RANGE 5] WHERE s.a = t.a AND s.a = u.a"
        world = {"s": "ts | a\n1 | 1\n5 | 9", "t": "ts | a\n2 | 1", "u": "ts | a\n2 | 1", "until": 20}
        check(query.format(6), "_time | _change | a\n3 | + | 1\n7 | - | 1", **world)
        check(query.format(3), "_time | _change | a\n3 | + | 1\n6 | - | 1", **world)

    def test_beside_an_unbounded_stream_nothing_is_taken_back(self, check):
        query = "SELECT s.a FROM s [RANGE 3 INTERNAL], t WHERE s.a = t.a"
        check(query, "_time | _change | a\n2 | + | 1", s="ts | a\n1 | 1", t="ts | a\n2 | 1\n9 | 1", until=20)

    def test_mixed_and_periodic(self, check):
        query = "SELECT s.a FROM s [RANGE 5 SLIDE 5 INTERNAL], t [RANGE 10 SLIDE 5] WHERE s.a = t.a"
        # the result of 5 has its s until 6 and its t until 12
        expected = "_time | a\n5 | 1\n10 | 1"
        check(query, expected, s="ts | a\n1 | 1\n11 | 7", t="ts | a\n2 | 1")

    def test_rows_beside_internal_are_not_defined_here(self, reference):
        query = "SELECT s.a FROM s [RANGE 3 INTERNAL], t [ROWS 2] WHERE s.a = t.a"
        built = reference(query, s="ts | a\n1 | 1", t="ts | a\n2 | 1")
        with pytest.raises(UnsupportedError, match="ROWS window beside"):
            built.answers()


class TestWstream:
    def test_the_last_results_of_a_join(self, check):
        # results at 3, 6 and 7 (see TestInternal); the window holds the last two
        t = "ts | a\n3 | 1\n5 | 2\n7 | 2"
        query = "SELECT Wstream(s.a, t.ts)[ROWS 2] FROM s [RANGE 3], t [RANGE 3] WHERE s.a = t.a"
        expected = """
        _time | _change | a | ts
        3     | +       | 1 | 3
        6     | +       | 2 | 5
        7     | -       | 1 | 3
        7     | +       | 2 | 7
        """
        check(query, expected, s=S, t=t)

    def test_all_input_windows_count_as_internal(self, check):
        query = "Wstream(SELECT t.ts AS t FROM s [RANGE 9 INTERNAL], t [ROWS 1] WHERE s.a = t.a) [ROWS 5]"
        # Under the external [ROWS 1] the result of 2 goes at 6, but it stays among the last five results.
        expected = "_time | _change | t\n2 | + | 2\n6 | + | 6"
        check(query, expected, s="ts | a\n1 | 1", t="ts | a\n2 | 1\n6 | 1")

    def test_a_time_window_on_the_output(self, check):
        query = "Wstream(SELECT a FROM s [RANGE 100]) [RANGE 3]"
        expected = "_time | _change | a\n1 | + | 1\n2 | + | 2\n4 | - | 1\n5 | - | 2\n6 | + | 2\n9 | - | 2\n11 | + | 3"
        check(query, expected, s=S)

    def test_a_window_on_the_output_of_weakest_operators_is_the_window_itself(self, reference):
        """Selection: results live for T, so [RANGE T] on the output equals [RANGE T] on the input (thesis 3.3.3)."""
        output = reference("Wstream(SELECT a FROM s [RANGE UNBOUNDED] WHERE a > 1) [RANGE 3]", s=S, until=20).answers()
        window = reference("SELECT a FROM s [RANGE 3] WHERE a > 1", s=S, until=20).answers()
        assert output.to_pylist() == window.to_pylist()

    def test_of_a_periodic_aggregate(self, check):
        s = "ts | a\n1 | 1\n6 | 1\n11 | 4"
        query = "Wstream(SELECT SUM(a) AS n FROM s [RANGE 5 SLIDE 5]) [ROWS 2]"
        check(query, "_time | n\n5 | 1\n10 | 1\n10 | 1\n15 | 1\n15 | 4", s=s)

    def test_distributive_aggregates_by_chunks(self, reference):
        """SUM(Wstream(SUM(a))[ROWS 10]) over chunks of 6 is SUM(a) over 60, every 6 (thesis 3.4)."""
        rows = [(ts, (ts * 37) % 101) for ts in range(2, 200, 3) if not 90 < ts < 110]
        s = "\n".join(["ts | a", *(f"{ts} | {a}" for ts, a in rows)])
        plain = reference("SELECT SUM(a) AS total FROM s [RANGE 60 SLIDE 6]", s=s)
        chunks = "SELECT SUM(Wstream(SUM(a))[ROWS 10]) FROM s [RANGE 6 SLIDE 6]"
        nested = "SELECT SUM(x) AS total FROM (SELECT SUM(a) AS x FROM s [RANGE 6 SLIDE 6 INTERNAL]) [ROWS 10]"
        wanted = dict(zip(plain.due_times(), plain.answers()["total"].to_pylist(), strict=True))
        assert len(wanted) == 33
        for query in (chunks, nested):
            state: Counter = Counter()
            latest = {}
            for row in reference(query, s=s).answers().to_pylist():
                time, change, total = row.values()
                state[total] += 1 if change == "+" else -1
                (latest[time],) = (+state).elements() if change == "+" else (None,)
            # Changes name only the instants at which the sum is another one.
            value = None
            for due, total in wanted.items():
                value = latest.get(due, value)
                assert value == total, due


class TestWindowedSubqueries:
    def test_of_changes(self, check):
        """The last two insertions."""
        query = "SELECT SUM(a) AS n FROM (SELECT Istream(a) FROM s [RANGE 100]) [ROWS 2]"
        expected = "_time | _change | n\n1 | + | 1\n2 | - | 1\n2 | + | 3\n6 | - | 3\n6 | + | 4\n11 | - | 4\n11 | + | 5"
        check(query, expected, s=S)

    def test_periodic_over_periodic_covers_the_last_inner_answer(self, check):
        # inner: due at 3, 6, 9 (the last tuple is of 7); outer: every 4, up to the first due time after 9
        s = "ts | a\n1 | 1\n5 | 5\n7 | 7"
        query = "SELECT SUM(x) AS n FROM (SELECT SUM(a) AS x FROM s [RANGE 3 SLIDE 3 INTERNAL]) [RANGE 4 SLIDE 4]"
        check(query, "_time | n\n4 | 1\n8 | 5\n12 | 7", s=s)

    def test_the_inner_query_keeps_its_own_time(self, check):
        query = "SELECT MAX(x) AS m FROM (SELECT COUNT(*) AS x FROM s [RANGE 5 SLIDE 5 INTERNAL]) [RANGE 10 SLIDE 5]"
        check(query, "_time | m\n5 | 2\n10 | 2\n15 | 1", s=S)

    def test_joined_with_a_stream(self, check):
        counts = "(SELECT COUNT(*) AS n FROM s [RANGE 5 SLIDE 5 INTERNAL]) [NOW] AS y"
        query = f"SELECT y.n, s.a FROM {counts}, s [RANGE 5 SLIDE 5]"
        check(query, "_time | n | a\n5 | 2 | 1\n5 | 2 | 2\n10 | 1 | 2\n15 | 1 | 3", s=S)
