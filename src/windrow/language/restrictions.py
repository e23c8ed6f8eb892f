"""What windows, stream operators and INTERNAL may be combined with (thesis 3.3, 3.4; design section 1)."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from windrow.language.aggregates import is_aggregate
from windrow.language.bound import SOURCE_ID, BoundQuery, Source
from windrow.language.positions import error
from windrow.windows.spec import RangeWindow, RowsWindow


def check_windows(sources: Sequence[Source], ast: exp.Expr) -> tuple[int | None, int | None]:
    """The query's SLIDE in ticks and in tuples; all windows that have one have the same."""
    slides: dict[tuple[str, int], Source] = {}
    for source in sources:
        if source.window is not None and source.window.slide is not None:
            unit = "rows" if isinstance(source.window, RowsWindow) else "time"
            slides.setdefault((unit, source.window.slide), source)
    if len(slides) > 1:
        names = " and ".join(source.alias for source in slides.values())
        second = list(slides.values())[1]
        raise error(
            _node_of(ast, second),
            f"all windows of one query slide alike, but those of {names} differ; give them the same SLIDE",
        )
    internal = [source for source in sources if source.window is not None and source.window.internal]
    if internal:
        _check_internal(sources, internal, ast)
    if not slides:
        return None, None
    ((unit, slide),) = slides
    return (slide, None) if unit == "time" else (None, slide)


def _check_internal(sources: Sequence[Source], internal: Sequence[Source], ast: exp.Expr) -> None:
    offender = negation(ast)
    if offender is not None:
        raise error(
            _node_of(ast, internal[0]),
            f"INTERNAL does not go with {offender}: its answers must be taken back to stay true (thesis 3.3.2)",
        )
    external = [source for source in sources if source.window is not None and not source.window.internal]
    if external and not is_plain(ast):
        raise error(
            _node_of(ast, external[0]),
            f"{internal[0].alias} is INTERNAL and {external[0].alias} is not; only a select-project-join mixes them",
        )


def negation(ast: exp.Expr) -> str | None:
    """The operator that makes INTERNAL or an output window meaningless, by name, or None."""
    for node in ast.walk():
        if isinstance(node, (exp.Except, exp.Intersect)) or (isinstance(node, exp.Union) and node.args.get("distinct")):
            return type(node).__name__.upper()
        if isinstance(node, exp.Select) and node.args.get("distinct") is not None:
            return "DISTINCT"
        if isinstance(node, exp.Not) and isinstance(node.this, exp.Exists):
            return "NOT EXISTS"
        if isinstance(node, exp.Not) and isinstance(node.this, exp.In) and node.this.args.get("query") is not None:
            return "NOT IN"
    return None


def has_aggregates(ast: exp.Expr) -> bool:
    """True when the query itself (not a subquery in FROM) groups or aggregates."""
    if not isinstance(ast, exp.Select):
        return False
    parts = [*ast.expressions, *([ast.args["having"].this] if ast.args.get("having") else [])]
    return ast.args.get("group") is not None or any(is_aggregate(n) for part in parts for n in part.walk())


def is_plain(ast: exp.Expr) -> bool:
    """Select-project-join of streams and relations: no grouping, no DISTINCT, no nested query, no LIMIT."""
    if not isinstance(ast, exp.Select) or has_aggregates(ast):
        return False
    nested = any(node is not ast for node in ast.find_all(exp.Query))
    sides = any(join.args.get("side") for join in ast.args.get("joins") or ())
    return not nested and not sides and not any(ast.args.get(clause) for clause in ("distinct", "limit", "offset"))


def is_append_only(query: BoundQuery) -> bool:
    """True when the output is a stream: rows are appended and never taken back (MON, or an explicit operator)."""
    if query.operator is not None:
        return query.operator != "WSTREAM"
    if query.internal:
        return True
    unbounded = all(
        source.window is None or (isinstance(source.window, RangeWindow) and source.window.length is None)
        for source in query.sources
    )
    retroactive = any(source.relation is not None and not source.relation.non_retroactive for source in query.sources)
    return unbounded and is_plain(query.ast) and not retroactive


def check_operator(query: BoundQuery, statement: exp.Expr) -> None:
    """Stream operators at the right place, with and without a window."""
    operator = query.operator
    if operator == "WSTREAM":
        if query.output_window is None:
            raise error(statement, "WSTREAM needs a window on its output: WSTREAM(SELECT …) [ROWS 10]")
        if query.output_window.slide is not None or query.output_window.internal:
            raise error(statement, "the window of WSTREAM has neither SLIDE nor INTERNAL")
        offender = negation(query.ast)
        if offender is not None:
            raise error(
                statement, f"WSTREAM does not go with {offender}: its window could hold answers that are no longer true"
            )
    elif query.output_window is not None:
        raise error(statement, f"{operator} has no window of its own; only WSTREAM has")
    if operator is not None and operator.endswith("_RESTORE") and query.slide is None:
        raise error(statement, f"{operator} needs a periodic query: give its windows a SLIDE (thesis 3.3.4)")


def _node_of(ast: exp.Expr, source: Source) -> exp.Expr:
    found = (node for node in ast.walk() if isinstance(node, exp.Expr) and node.meta.get(SOURCE_ID) == source.id)
    return next(found, ast)
