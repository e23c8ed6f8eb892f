"""Update patterns: in which order the rows of a plan edge expire (thesis 3.2.1), by the rules of thesis 3.5.1.

MON  nothing ever expires
WKS  rows expire in the order in which they came: a FIFO queue holds them
WK   every row's expiry is known when it comes, but the order differs: a calendar queue holds them
STR  what comes later decides what expires: negative tuples say so
"""

from __future__ import annotations

from enum import IntEnum

from windrow.plan import nodes
from windrow.windows.spec import NowWindow, RangeWindow, RowsWindow, Window


class Pattern(IntEnum):
    """Ordered from the simplest to the least predictable."""

    MON = 0
    WKS = 1
    WK = 2
    STR = 3


def pattern(node: nodes.Node) -> Pattern:
    """The update pattern of the edge that leaves `node`."""
    match node:
        case nodes.StreamWindow(source=source):
            assert source.window is not None
            return window_pattern(source.window)
        case nodes.RelationScan(source=source):
            retroactive = source.relation is not None and not source.relation.non_retroactive
            return Pattern.STR if retroactive else Pattern.MON
        case nodes.SubqueryWindow(source=source):
            assert source.window is not None
            return window_pattern(source.window)
        case nodes.Selection() | nodes.Projection() | nodes.Named():  # rule 1
            return pattern(node.input)
        case nodes.RelationJoin(retroactive=False):  # rule 1
            return pattern(node.left)
        case nodes.Union():  # rule 2
            return _union(node)
        case nodes.Join(kind="INNER") | nodes.SemiJoin():  # rule 3
            patterns = [pattern(edge) for edge in node.inputs]
            if max(patterns) is Pattern.MON:
                return Pattern.MON
            return Pattern.STR if Pattern.STR in patterns else Pattern.WK
        case nodes.Distinct():  # rule 3
            below = pattern(node.input)
            return below if below in (Pattern.MON, Pattern.STR) else Pattern.WK
        case nodes.GroupBy():  # rule 4; over INTERNAL windows every new value is appended (thesis Figure 3.2)
            return Pattern.MON if _internal(node) else Pattern.STR
        case nodes.TopRows(limit=None):
            return pattern(node.input)
        case nodes.Output(operator=None):
            return pattern(node.input)
        case nodes.Output(operator="WSTREAM", window=window):
            assert window is not None
            return window_pattern(window)
        case nodes.Output(operator="RSTREAM" | "RSTREAM_RESTORE"):
            return pattern(node.input)
        case nodes.Output():
            return Pattern.MON
        case _:  # rule 4: negation, ⋈R, outer joins, ORDER BY … LIMIT
            return Pattern.STR


def window_pattern(window: Window) -> Pattern:
    """The pattern of a base window: time-based ones are FIFO, count-based ones depend on what arrives."""
    if window.internal:
        return Pattern.MON
    match window:
        case RangeWindow(length=None):
            return Pattern.MON
        case RangeWindow() | NowWindow():
            return Pattern.WKS
        case RowsWindow():
            return Pattern.STR


def _union(node: nodes.Union) -> Pattern:
    worst = max(pattern(node.left), pattern(node.right))
    # The thesis' rule 2 takes equal lifetimes for granted: two windows of different length merge to an edge that is
    # no longer first-in-first-out, so it is labelled WK, which is always safe.
    if worst is Pattern.WKS and lifetime(node.left) != lifetime(node.right):
        return Pattern.WK
    return worst


def lifetime(node: nodes.Node) -> int | None:
    """The common lifetime of the rows of a WKS edge in ticks; None when there is none."""
    match node:
        case nodes.StreamWindow(source=source) | nodes.SubqueryWindow(source=source):
            match source.window:
                case RangeWindow(length=length, internal=False):
                    return length
                case NowWindow(internal=False):
                    return 1
            return None
        case nodes.Selection() | nodes.Projection() | nodes.Named():
            return lifetime(node.input)
        case nodes.RelationJoin(retroactive=False):
            return lifetime(node.left)
        case nodes.Union():
            return lifetime(node.left) if lifetime(node.left) == lifetime(node.right) else None
    return None


def _internal(node: nodes.Node) -> bool:
    leaves = [edge for edge in walk(node) if isinstance(edge, (nodes.StreamWindow, nodes.SubqueryWindow))]
    return bool(leaves) and all(leaf.source.window is not None and leaf.source.window.internal for leaf in leaves)


def walk(node: nodes.Node) -> list[nodes.Node]:
    """The node and everything below it, parents first; a windowed subquery is a leaf."""
    found = [node]
    if not isinstance(node, nodes.SubqueryWindow):
        for edge in node.inputs:
            found += walk(edge)
    return found
