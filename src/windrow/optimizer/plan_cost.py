"""What a plan costs per unit time: rows and negative tuples processed, state maintained (thesis 3.5.3, [147]).

A *unit* is a second, or a tick where time is counted. Before data flow nothing is known of a stream, so every stream is
taken to be alike: RATE rows per unit, each value of a column COPIES times in its window, one of COMMON rows equal to a
constant, half the rows pass a negation. The figures compare plans of one query, no more. They are the same in every
process, so that a query that is restarted gets the plan it had.

Each operator tells what leaves it: rows that begin per unit (`rate`), rows that are there (`size`), negative tuples
per unit (`cuts`), different values of a column (`distinct`). Holding a row costs 1 in a FIFO queue, 2 in a calendar
queue, 3 in a hash of rows with negative tuples.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from math import exp as e_to

from sqlglot import exp

from windrow.optimizer.walking import SETS, every_node, parts, tables
from windrow.plan import nodes
from windrow.plan.build import conjuncts
from windrow.plan.patterns import Pattern, pattern
from windrow.windows.spec import NowWindow, RangeWindow, Window

RATE = 10.0
COMMON = 100.0
COPIES = 10.0
RELATION = 1000.0
ENDLESS = 1e6
"""Rows of a window that forgets nothing."""
PASSING = 0.5
"""The share of rows that pass a predicate of unknown kind, a negation or a semi-join."""
HOLDING = {Pattern.MON: 1.0, Pattern.WKS: 1.0, Pattern.WK: 2.0, Pattern.STR: 3.0}
SECOND = 1_000_000


@dataclass(frozen=True)
class Estimate:
    """What leaves a node, and what everything up to it costs, per unit time."""

    rate: float
    size: float
    cuts: float = 0.0
    cost: float = 0.0
    columns: float = 1.0
    """Of how many columns its rows are."""
    values: float = 1.0
    """Different values of one column, before rows were taken out."""

    @property
    def changes(self) -> float:
        """Rows and negative tuples."""
        return self.rate + self.cuts

    @property
    def distinct(self) -> float:
        """Different rows."""
        return max(1.0, min(self.size, float(self.values ** min(self.columns, 6.0))))


def plan_cost(plan: nodes.Node) -> float:
    """The estimated cost per unit time."""
    return Estimator(plan).estimate(plan).cost


class Estimator:
    """Estimates of the nodes of one plan."""

    def __init__(self, plan: nodes.Node) -> None:
        self._unit = SECOND if isinstance(plan, nodes.Output) and plan.timestamps else 1
        read = {
            (column.table.lower(), column.name.lower())
            for node in every_node(plan)
            for part in parts(node)
            for column in part.find_all(exp.Column)
        }
        self._columns = Counter(table for table, _ in read)

    def estimate(self, node: nodes.Node) -> Estimate:
        """What leaves this node."""
        match node:
            case nodes.StreamWindow(source=source) | nodes.SubqueryWindow(source=source):
                assert source.window is not None
                return self._window(source.window, source.alias)
            case nodes.RelationScan(source=source):
                return _leaf(0.01, RELATION, max(1, self._columns[source.alias.lower()]))
            case nodes.Selection():
                below = self.estimate(node.input)
                share = 1.0
                for one in conjuncts(node.predicate):
                    share *= _share(one)
                return replace(
                    below,
                    rate=below.rate * share,
                    size=below.size * share,
                    cuts=below.cuts * share,
                    cost=below.cost + below.changes,
                )
            case nodes.Union():
                return _sum(self.estimate(node.left), self.estimate(node.right))
            case nodes.Distinct():
                return self._distinct(node)
            case nodes.Join() | nodes.RelationJoin():
                return self._join(node)
            case nodes.SemiJoin() | nodes.Negation():
                return self._existence(node)
            case nodes.GroupBy():
                below = self.estimate(node.input)
                changes = 2 * below.changes  # what comes and what goes, each replaces the row of its group
                groups = min(below.size, below.values) if node.keys else 1.0
                cost = below.cost + changes + self._held(node.input, below)
                return Estimate(changes, groups, changes, cost, len(node.keys) + len(node.aggregates), groups)
            case nodes.Unary():
                below = self.estimate(node.input)
                held = self._held(node.input, below) if isinstance(node, (nodes.Output, nodes.TopRows)) else 0.0
                return replace(below, cost=below.cost + below.changes + held, columns=_columns(node, below))
        raise NotImplementedError(type(node).__name__)

    def _window(self, window: Window, alias: str) -> Estimate:
        columns = max(1, self._columns[alias.lower()])
        match window:
            case RangeWindow(length=None):
                return _leaf(RATE, ENDLESS, columns)
            case RangeWindow(length=length):
                assert length is not None
                return _leaf(RATE, max(1.0, RATE * length / self._unit), columns)
            case NowWindow():
                return _leaf(RATE, 1.0, columns)
        return _leaf(RATE, float(window.count), columns, RATE)

    def _held(self, node: nodes.Node, one: Estimate) -> float:
        """Putting rows into a buffer, and taking them out."""
        return one.rate * HOLDING[pattern(node)]

    def _distinct(self, node: nodes.Distinct) -> Estimate:
        below = self.estimate(node.input)
        share = below.distinct / max(below.size, 1.0)
        strict = pattern(node.input) is Pattern.STR
        # δ* keeps its output and the youngest copies; over negative tuples every row must be counted.
        held = self._held(node.input, below) if strict else 2 * below.rate * share
        cost = below.cost + below.changes + held
        share = min(1.0, share)
        return replace(below, rate=below.rate * share, size=below.distinct, cuts=below.cuts * share, cost=cost)

    def _join(self, node: nodes.Join | nodes.RelationJoin) -> Estimate:
        left, right = self.estimate(node.left), self.estimate(node.right)
        equal = [one for one in conjuncts(node.predicate) if isinstance(one, exp.EQ) and len(tables(one)) == 2]
        others = [one for one in conjuncts(node.predicate) if one not in equal]
        matching = 1.0
        for _ in equal:
            matching /= max(left.values, right.values)
        for one in others:
            matching *= _share(one)
        meets_right, meets_left = right.size * matching, left.size * matching
        rate = left.rate * meets_right + right.rate * meets_left
        cuts = left.cuts * meets_right + right.cuts * meets_left
        cost = left.cost + right.cost + left.changes + right.changes + rate + cuts
        cost += self._held(node.left, left) + self._held(node.right, right)
        if isinstance(node, nodes.Join) and node.kind != "INNER":  # rows without a match: a negation beside the join
            cost += left.changes + right.changes
            cuts += left.rate * PASSING
        values = min(left.values, right.values)
        return Estimate(rate, left.size * meets_right, cuts, cost, left.columns + right.columns, values)

    def _existence(self, node: nodes.SemiJoin | nodes.Negation) -> Estimate:
        left, right = self.estimate(node.left), self.estimate(node.right)
        # A value comes to R when it was not there yet, and goes again: both touch all rows of L with it.
        turning = right.changes * max(e_to(-right.size / right.values), 0.01)
        touched = turning * left.size / left.values
        rate = left.rate * PASSING + touched
        cuts = left.cuts * PASSING
        if isinstance(node, nodes.Negation) or node.kind in SETS:
            cuts += touched
        cost = left.cost + right.cost + left.changes + right.changes + rate + cuts
        cost += self._held(node.left, left) + self._held(node.right, right)
        if isinstance(node, nodes.Negation):  # which values of L have no match is kept beside L itself
            cost += 3 * left.changes
        return replace(left, rate=rate, size=left.size * PASSING, cuts=cuts, cost=cost)


def _leaf(rate: float, size: float, columns: int, cuts: float = 0.0) -> Estimate:
    return Estimate(rate, size, cuts, 0.0, columns, max(1.0, size / COPIES))


def _sum(left: Estimate, right: Estimate) -> Estimate:
    cost = left.cost + right.cost + left.changes + right.changes
    rate, size, cuts = left.rate + right.rate, left.size + right.size, left.cuts + right.cuts
    return Estimate(rate, size, cuts, cost, max(left.columns, right.columns), max(left.values, right.values))


def _columns(node: nodes.Unary, below: Estimate) -> float:
    return float(len(node.expressions)) if isinstance(node, nodes.Projection) else below.columns


def _share(predicate: exp.Expr) -> float:
    """The share of rows that satisfy a predicate."""
    match predicate:
        case exp.EQ():
            return 1 / COMMON
        case exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
            return 1 / 3
        case exp.NEQ():
            return 1 - 1 / COMMON
    return PASSING
