"""Where in the text a node stands: sqlglot notes it on identifiers, literals and function names only."""

from __future__ import annotations

from sqlglot import exp

from windrow.errors import BindError

Position = tuple[int, int]


def position(node: exp.Expr | None) -> Position | tuple[None, None]:
    """Line and column (1-based) of the nearest noted place: the node itself, else inside it, else around it.

    >>> from sqlglot import parse_one
    >>> position(parse_one("SELECT a\\n  + b AS c").selects[0].this)
    (1, 8)
    """
    if node is None:
        return None, None
    around: exp.Expr | None = node
    while around is not None:
        own = _noted(around)
        if own is not None:
            return own
        inside = [place for place in map(_noted, around.walk()) if place is not None]
        if inside:
            # The leftmost one: an operator has no place of its own, its expression starts at its first operand.
            return min(inside)
        around = around.parent
    return None, None


def _noted(node: exp.Expr) -> Position | None:
    meta = node.meta
    line, end, start, stop = (meta.get(key) for key in ("line", "col", "start", "end"))
    if line is None or end is None:
        return None
    # sqlglot's col is the column of the token's last character; users look for the first one.
    width = stop - start if start is not None and stop is not None else 0
    return line, max(1, end - width)


def error(node: exp.Expr, message: str) -> BindError:
    """A BindError at the node's place in the text."""
    line, column = position(node)
    return BindError(message, line=line, column=column)
