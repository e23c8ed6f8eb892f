"""Update patterns by the rules of thesis 3.5.1; both plans of Figure 3.5 carry the labels of that figure."""

from __future__ import annotations

import pytest

from windrow.language.binder import bind
from windrow.language.bound import BoundQuery
from windrow.language.catalog import Catalog, relation_from_node, stream_from_node
from windrow.language.parse import parse
from windrow.plan import nodes
from windrow.plan.build import build
from windrow.plan.patterns import Pattern, pattern, walk


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    result = Catalog()
    text = "".join(f"CREATE STREAM S{i} (t BIGINT, a INT, b INT) TIME t;" for i in (1, 2, 3))
    for statement in parse(text):
        result.add(stream_from_node(statement))
    for statement in parse("CREATE RELATION r (a INT, n STRING); CREATE RELATION m (a INT, n STRING) NON RETROACTIVE"):
        result.add(relation_from_node(statement))
    return result


FIGURE_3_5 = """
    SELECT Rstream(*) FROM S1 [RANGE 10], S2 [RANGE 10]
    WHERE S1.a = S2.a AND S1.b > 0 AND S2.b > 0
      AND NOT EXISTS (SELECT Rstream(*) FROM S3 [RANGE 10] WHERE S3.b > 0 AND S3.a = S1.a)"""


def labels(plan: nodes.Node) -> list[tuple[str, str]]:
    return [(type(node).__name__, pattern(node).name) for node in walk(plan)]


def bound(catalog: Catalog, text: str) -> BoundQuery:
    return bind(text, catalog)


def test_figure_3_5_left(catalog: Catalog) -> None:
    """The negation above the join: only the result needs negative tuples."""
    assert labels(build(bound(catalog, FIGURE_3_5)))[:7] == [
        ("Output", "STR"),
        ("Projection", "STR"),
        ("Negation", "STR"),
        ("Join", "WK"),
        ("Selection", "WKS"),
        ("StreamWindow", "WKS"),
        ("Selection", "WKS"),
    ]


def test_figure_3_5_right(catalog: Catalog) -> None:
    """The negation below the join: the join deals with negative tuples, too."""
    left = build(bound(catalog, FIGURE_3_5))
    negation = next(node for node in walk(left) if isinstance(node, nodes.Negation))
    join = negation.left
    assert isinstance(join, nodes.Join)
    pushed_down = nodes.Join(nodes.Negation(join.left, negation.right), join.right, join.predicate)
    assert labels(pushed_down)[:4] == [
        ("Join", "STR"),
        ("Negation", "STR"),
        ("Selection", "WKS"),
        ("StreamWindow", "WKS"),
    ]
    assert pattern(join.right) is Pattern.WKS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT a FROM S1", "MON"),
        ("SELECT a FROM S1 [RANGE 5] WHERE a > 1", "WKS"),
        ("SELECT a FROM S1 [NOW]", "WKS"),
        ("SELECT a FROM S1 [ROWS 5]", "STR"),
        ("SELECT a FROM S1 [PARTITION BY b ROWS 5]", "STR"),
        ("SELECT a FROM S1 [RANGE 5 INTERNAL]", "MON"),
        ("SELECT S1.a FROM S1 [RANGE 5], S2 [RANGE 9] WHERE S1.a = S2.a", "WK"),
        ("SELECT S1.a FROM S1, S2 WHERE S1.a = S2.a", "MON"),
        ("SELECT S1.a FROM S1 [RANGE 5 INTERNAL], S2 [RANGE 9 INTERNAL] WHERE S1.a = S2.a", "MON"),
        ("SELECT S1.a FROM S1 [RANGE 5], S2 [ROWS 9] WHERE S1.a = S2.a", "STR"),
        ("SELECT DISTINCT a FROM S1 [RANGE 5]", "WK"),
        ("SELECT DISTINCT a FROM S1", "MON"),
        ("SELECT DISTINCT a FROM S1 [ROWS 5]", "STR"),
        ("SELECT a FROM S1 [RANGE 5] UNION ALL SELECT a FROM S2 [RANGE 5]", "WKS"),
        ("SELECT a FROM S1 [RANGE 5] UNION ALL SELECT a FROM S2 [RANGE 6]", "WK"),
        ("SELECT a FROM S1 [RANGE 5] UNION ALL SELECT a FROM S2 [ROWS 6]", "STR"),
        ("SELECT a FROM S1 [RANGE 5] EXCEPT ALL SELECT a FROM S2 [RANGE 5]", "STR"),
        ("SELECT a FROM S1 [RANGE 5] INTERSECT SELECT a FROM S2 [RANGE 5]", "WK"),
        ("SELECT a FROM S1 [RANGE 5] WHERE a IN (SELECT a FROM S2 [RANGE 5])", "WK"),
        ("SELECT a FROM S1 [RANGE 5] WHERE a NOT IN (SELECT a FROM S2 [RANGE 5])", "STR"),
        ("SELECT a, COUNT(*) FROM S1 [RANGE 5] GROUP BY a", "STR"),
        ("SELECT SUM(a) FROM S1 [RANGE 5 INTERNAL]", "MON"),
        ("SELECT S1.a FROM S1 [RANGE 5], r WHERE S1.a = r.a", "STR"),
        ("SELECT S1.a FROM S1 [RANGE 5], m WHERE S1.a = m.a", "WKS"),
        ("SELECT S1.a FROM S1, m WHERE S1.a = m.a", "MON"),
        ("SELECT a FROM S1 [RANGE 5] ORDER BY a LIMIT 3", "STR"),
        ("SELECT S1.a FROM S1 [RANGE 5] LEFT JOIN S2 [RANGE 5] ON S1.a = S2.a", "STR"),
        ("ISTREAM(SELECT a, COUNT(*) FROM S1 [RANGE 5] GROUP BY a)", "MON"),
        ("WSTREAM(SELECT a FROM S1 [RANGE 5])[ROWS 3]", "STR"),
        ("WSTREAM(SELECT a FROM S1 [RANGE 5])[RANGE 3]", "WKS"),
        ("SELECT SUM(x) FROM (SELECT SUM(a) AS x FROM S1 [RANGE 6 SLIDE 6 INTERNAL]) [ROWS 10]", "STR"),
    ],
)
def test_rules(catalog: Catalog, text: str, expected: str) -> None:
    assert pattern(build(bound(catalog, text))).name == expected
