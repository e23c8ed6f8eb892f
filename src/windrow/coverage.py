"""What the registered queries keep, in words: why a one-time query cannot be answered, and what can be asked."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from windrow.errors import CoverageError
from windrow.language.catalog import Stream
from windrow.language.units import duration_text
from windrow.plan.explain import window_text
from windrow.plan.periodic import PeriodicAggregate
from windrow.running import RunningQuery, RunningStream
from windrow.sharing.slice import Slice
from windrow.windows.spec import BEGINNING

MOST_NAMED = 8


def nothing_complete(stream: Stream) -> CoverageError:
    """No tuple is behind the watermark."""
    return CoverageError(
        f"nothing of stream {stream.name} is complete yet; ask again when the watermark has passed some tuples, or "
        "move it on with db.advance"
    )


def no_slice(running: RunningStream, plan: PeriodicAggregate) -> CoverageError:
    """No query has the same predicate and grouping."""
    by_slice = [running.queries_of(part) for part in running.slices.values()]
    others = "; ".join(f"{_listed(queries)} ({_shape(queries[0].plan)})" for queries in by_slice[:MOST_NAMED])
    return CoverageError(
        f"no registered query on stream {running.stream.name} has the WHERE and GROUP BY of this question "
        f"({_shape(plan)}), and no combination of them has exactly its rows, with its aggregates and window. There are "
        f"panes of: {others or 'none'}. {_register(plan)}"
    )


def no_aggregate(running: RunningStream, part: Slice, missing: Sequence[str]) -> CoverageError:
    """The panes are there, but not with these aggregates."""
    queries = running.queries_of(part)
    kept = dict.fromkeys(one.text for query in queries for one in query.plan.aggregations)
    wanted, lacks = ", ".join(missing), "is" if len(missing) == 1 else "are"
    return CoverageError(
        f"{wanted} {lacks} not kept: the queries with this WHERE and GROUP BY ({_listed(queries)}) keep "
        f"{', '.join(kept) or 'the groups only'}. Register a query with {wanted} and the same WHERE and GROUP BY"
    )


def no_edge(running: RunningStream, part: Slice, plan: PeriodicAggregate) -> CoverageError:
    """The window begins or ends in the middle of a pane."""
    assert part.group is not None
    grid, since = part.group.grid, part.edges.regular_since
    step = grid.progressions[0][0]
    fits = grid.uniform and plan.window.length is not None and (plan.window.length % step, plan.window.offset % step)
    if since != BEGINNING and fits == (0, 0):
        told = _instant(running, since)
        return CoverageError(
            f"the window {_window(plan)} is no union of whole panes: those up to {told} are longer, because a query "
            f"with a finer SLIDE came then. Ask for a window that begins after {told}, or ask again later"
        )
    if grid.uniform:
        width = duration_text(grid.progressions[0][0], timestamps=running.stream.timestamps)
        rule = f"panes are {width} long, and RANGE and OFFSET must be multiples of that"
    else:
        rule = f"panes have the {grid.describe()}, and RANGE and OFFSET must lead from one to another"
    return CoverageError(
        f"the window {_window(plan)} is no union of whole panes: the {rule} (they are shared by "
        f"{_listed(running.queries_of(part))}). Change the window, or register a query with a SLIDE that divides it"
    )


def not_known(running: RunningStream, part: Slice, plan: PeriodicAggregate, known: tuple[int, int]) -> CoverageError:
    """The window reaches back behind what the panes know."""
    (since, tau), timestamps = known, running.stream.timestamps
    start = plan.window.start(tau)
    assert start is not None
    names = _listed(running.queries_of(part))
    if tau <= since:
        return CoverageError(
            f"the panes of {names} know every tuple only after {_instant(running, since)}, and the newest complete "
            f"pane ends at {_instant(running, tau)}; ask again later"
        )
    return CoverageError(
        f"the window {_window(plan)} begins at {_instant(running, start)}, but the panes of {names} cover only "
        f"{_instant(running, since)} to {_instant(running, tau)}. Ask for a RANGE and OFFSET of at most "
        f"{duration_text(tau - since, timestamps=timestamps)} together, or register a query with a longer RANGE"
    )


def no_rows(running: RunningStream, plan: PeriodicAggregate) -> CoverageError:
    """No query keeps the tuples that a ROWS window needs."""
    assert plan.rows is not None
    keys = plan.rows.partition_by
    what = f"the last rows of each ({', '.join(keys)})" if keys else "the last rows"
    return CoverageError(f"no registered query on stream {running.stream.name} keeps {what}. {_register(plan)}")


def rows_not_kept(
    running: RunningStream, plan: PeriodicAggregate, held: int, columns: Sequence[str], users: Sequence[RunningQuery]
) -> CoverageError:
    """Some tuples are kept, but too few, or without some column."""
    assert plan.rows is not None and running.numbering is not None
    keys, begin = plan.rows.partition_by, running.numbering.begin
    each = f" of each ({', '.join(keys)})" if keys else ""
    missing = sorted(plan.columns_read - set(columns))
    fault = f"the column {', '.join(missing)} is not kept" if missing else f"{_window(plan)} needs more than is kept"
    since = "" if begin == BEGINNING else f", of those after {_instant(running, begin)}"
    kept = f"the last {held} rows{each}{since}, with {', '.join(columns)}"
    return CoverageError(f"{fault}: {_listed(users)} keep{'s' * (len(users) == 1)} {kept}. {_register(plan)}")


def _window(plan: PeriodicAggregate) -> str:
    return window_text(plan.window if plan.rows is None else plan.rows, plan.stream.timestamps)


def _register(plan: PeriodicAggregate) -> str:
    shown = _window(plan)[:-1]
    return f"Register a query with FROM {plan.stream.name} {shown} SLIDE …], and ask again once it has seen enough"


def _shape(plan: PeriodicAggregate) -> str:
    """The predicate and grouping that queries must have in common."""
    where = "no WHERE" if plan.predicate is None else f"WHERE {plan.predicate.sql('cql')}"
    return f"{where}, " + (f"GROUP BY {', '.join(plan.key_names)}" if plan.key_names else "no GROUP BY")


def _listed(queries: Sequence[RunningQuery]) -> str:
    names = [query.name for query in queries]
    return ", ".join(names[:MOST_NAMED]) + (f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else "")


def _instant(running: RunningStream, tick: int) -> str:
    if not running.stream.timestamps:
        return str(tick)
    try:
        return str(datetime(1970, 1, 1) + timedelta(microseconds=tick))
    except OverflowError:
        return f"{tick} microseconds since 1970"
