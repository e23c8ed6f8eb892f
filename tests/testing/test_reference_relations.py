"""Relations: retroactive ones re-join the window, non-retroactive ones touch only what arrives later (thesis 3.3.1)."""

import pyarrow as pa
import pytest

from windrow.errors import InputError, UnsupportedError
from windrow.testing import RelationUpdate

# Quotes of three symbols; the company SUN goes at 5 and NEW comes at 5.
QUOTES = """
ts | symbol | price
1  | SUN    | 10
3  | NEW    | 20
5  | SUN    | 11
6  | SUN    | 12
7  | NEW    | 21
"""
UPDATES = {
    "company": [
        RelationUpdate(0, "+", {"symbol": "SUN", "name": "Sunny"}),
        RelationUpdate(5, "-", {"symbol": "SUN", "name": "Sunny"}),
        RelationUpdate(5, "+", {"symbol": "NEW", "name": "Newer"}),
    ]
}
COLUMNS = "company (symbol TEXT, name TEXT) KEY (symbol)"
RETROACTIVE = f"CREATE RELATION {COLUMNS}"
NON_RETROACTIVE = f"CREATE RELATION {COLUMNS} NON RETROACTIVE"
QUERY = "SELECT name, price FROM quotes [RANGE 100], company WHERE quotes.symbol = company.symbol"


def test_a_retroactive_update_rejoins_the_window(check):
    expected = """
    _time | _change | name  | price
    1     | +       | Sunny | 10
    # at 5 Sunny goes (its quote of 5 never joins), and Newer joins the old quote
    5     | -       | Sunny | 10
    5     | +       | Newer | 20
    7     | +       | Newer | 21
    """
    check(QUERY, expected, quotes=QUOTES, relations=UPDATES, ddl=RETROACTIVE)


def test_a_non_retroactive_update_touches_only_later_tuples(check):
    expected = """
    _time | _change | name  | price
    1     | +       | Sunny | 10
    # the quote of 5 is not later than the update of 5
    5     | +       | Sunny | 11
    7     | +       | Newer | 21
    """
    check(QUERY, expected, quotes=QUOTES, relations=UPDATES, ddl=NON_RETROACTIVE)


def test_non_retroactive_results_expire_with_their_tuple(check):
    expected = """
    _time | _change | name  | price
    1     | +       | Sunny | 10
    5     | -       | Sunny | 10
    5     | +       | Sunny | 11
    7     | +       | Newer | 21
    9     | -       | Sunny | 11
    11    | -       | Newer | 21
    """
    query = QUERY.replace("RANGE 100", "RANGE 4")
    check(query, expected, quotes=QUOTES, relations=UPDATES, ddl=NON_RETROACTIVE, until=20)


def test_non_retroactive_aggregates(check):
    query = "SELECT name, SUM(price) AS total FROM quotes [RANGE 10 SLIDE 5] JOIN company USING (symbol) GROUP BY name"
    expected = "_time | name | total\n5 | Sunny | 21\n10 | Newer | 21\n10 | Sunny | 21"
    check(query, expected, quotes=QUOTES, relations=UPDATES, ddl=NON_RETROACTIVE)


def test_a_join_of_two_streams_reflects_the_relation_when_the_later_tuple_came(check):
    ddl = "CREATE RELATION names (k BIGINT, name TEXT) NON RETROACTIVE"
    updates = {"names": [RelationUpdate(2, "+", {"k": 1, "name": "one"})]}
    query = "SELECT name, s.ts AS s, t.ts AS t FROM s, t, names WHERE s.k = t.k AND names.k = s.k"
    # (1, 2) came at 2, not after the update; (1, 3) at 3
    expected = "_time | _change | name | s | t\n3 | + | one | 1 | 3"
    check(query, expected, s="ts | k\n1 | 1", t="ts | k\n2 | 1\n3 | 1", relations=updates, ddl=ddl)


def test_a_table_is_there_from_the_beginning(check):
    company = pa.table({"symbol": ["SUN", "NEW"], "name": ["Sunny", "Newer"]})
    expected = "_time | n\n10 | 5"
    query = "SELECT COUNT(*) AS n FROM quotes [RANGE 10 SLIDE 10], company WHERE quotes.symbol = company.symbol"
    for ddl in (RETROACTIVE, NON_RETROACTIVE):
        check(query, expected, quotes=QUOTES, relations={"COMPANY": company}, ddl=ddl)


def test_a_relation_that_was_never_filled_is_empty(check):
    check(QUERY, "_time | _change | name | price", quotes=QUOTES, ddl=RETROACTIVE)


def test_periodic_queries_see_a_retroactive_relation_at_the_due_time(check):
    query = "SELECT name, SUM(price) AS total FROM quotes [RANGE 10 SLIDE 4] JOIN company USING (symbol) GROUP BY name"
    expected = "_time | name | total\n4 | Sunny | 10\n8 | Newer | 41"
    check(query, expected, quotes=QUOTES, relations=UPDATES, ddl=RETROACTIVE)


def test_updates_between_tuples_are_instants_too(check):
    updates = {"company": [RelationUpdate(2, "+", {"symbol": "SUN"}), RelationUpdate(4, "-", {"SYMBOL": "SUN"})]}
    expected = "_time | _change | name | price\n2 | + | NULL | 10\n4 | - | NULL | 10"
    check(QUERY, expected, quotes=QUOTES, relations=updates, ddl=RETROACTIVE)


def test_a_row_may_go_and_come_again(check):
    updates = [(2, "+"), (3, "-"), (4, "+"), (6, "-")]
    relations = {"company": [RelationUpdate(time, change, {"symbol": "SUN"}) for time, change in updates]}
    expected = "_time | _change | symbol\n2 | + | SUN\n3 | - | SUN\n4 | + | SUN\n6 | - | SUN"
    query = "SELECT company.symbol FROM quotes, company WHERE quotes.symbol = company.symbol"
    check(query, expected, quotes="ts | symbol\n1 | SUN\n7 | NEW", relations=relations, ddl=RETROACTIVE)


def test_contents_of_a_relation(reference):
    built = reference(QUERY, quotes=QUOTES, relations=UPDATES, ddl=RETROACTIVE)
    assert built.contents(1, 4)["symbol"].to_pylist() == ["SUN"]
    assert built.contents(1, 5)["symbol"].to_pylist() == ["NEW"]


def test_bad_updates_are_named(reference):
    def build(update):
        return reference(QUERY, quotes=QUOTES, relations={"company": [update]}, ddl=RETROACTIVE)

    with pytest.raises(InputError, match="no row"):
        build(RelationUpdate(1, "-", {"symbol": "SUN"}))
    with pytest.raises(InputError, match="no column nme"):
        build(RelationUpdate(1, "+", {"nme": "SUN"}))
    with pytest.raises(InputError, match="'\\+' or '-'"):
        build(RelationUpdate(1, "insert", {"symbol": "SUN"}))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT price FROM quotes LEFT JOIN company ON quotes.symbol = company.symbol",
        "SELECT price FROM quotes WHERE EXISTS (SELECT name FROM company WHERE quotes.symbol = company.symbol)",
        "SELECT price FROM (SELECT * FROM quotes) q, company WHERE q.symbol = company.symbol",
    ],
)
def test_non_retroactive_relations_need_an_inner_join_with_a_stream(reference, query):
    with pytest.raises(UnsupportedError, match="company is non-retroactive"):
        reference(query, quotes=QUOTES, ddl=NON_RETROACTIVE)
