"""EXPLAIN of a query in panes: the panes, the synopses and why these, how HAVING is decided, and who shares them."""

from __future__ import annotations

from windrow.aggregates.sketched import error_of
from windrow.compiled import Compiled, threshold
from windrow.language.units import duration_text
from windrow.operators.answer import AnswerRows
from windrow.plan.periodic import PeriodicAggregate
from windrow.plan.threshold import Threshold
from windrow.running import RunningQuery, RunningStream
from windrow.sharing.derivation import find_derivation
from windrow.sharing.member import Member, Term, expected
from windrow.sharing.slice import Slice
from windrow.sharing_report import derivation_text, explained, giver_of
from windrow.synopses.chooser import Choice, forced
from windrow.synopses.registry import chosen, may_choose, reason
from windrow.synopses.sparse import Sparse
from windrow.windows.grid import Grid, edges_of
from windrow.windows.spec import BEGINNING

ORDER_NOTE = "a row gets its number when the watermark passes it: by time, SEQUENCE, values"
ROWS_NOTE = f"{ORDER_NOTE}; the last {{reach}} rows are kept for the end of the input and one-time queries"

Notes = list[tuple[str, str]]


def describe_panes(compiled: Compiled, running: RunningStream, plan: PeriodicAggregate, *, new: bool) -> Notes:
    """What a query keeps, or would keep if it is `new`, and with whom."""
    if plan.rows is not None and plan.rows.partition_by:
        return _partitions(plan)
    part = running.slice_of(plan)
    own = edges_of(plan.window.length, plan.slide, plan.window.offset)
    grid = part.group.grid if part is not None and part.group is not None else Grid.of(own)
    notes = [("panes", f"{_panes(plan, grid)}, one pass over each batch fills them for every query of the slice")]
    if plan.rows is not None:
        notes.append(("rows", ROWS_NOTE.format(reach=plan.window.reach)))
    terms = compiled.terms(plan)
    for one, term in zip(plan.aggregations, terms, strict=True):
        known = _choice(compiled, running, part, plan, term, grid)
        error = error_of(one.name, one.parameters)
        bound = "" if error is None else f"; error: {error}"
        notes.append((one.text, f"{known.name} synopsis; {known.reason}{bound}"))
    limit = threshold(plan, terms)
    if limit is not None:
        notes.append((f"HAVING {limit.text}", _search(running, part, limit)))
    if part is not None:
        notes.append(("shared", _with_whom(running, part, new=new)))
        notes += explained(running, part, plan)
        notes += _would_take(compiled, running, part, plan) if new else []
    elif plan.rows is None:
        notes += _would_be_derived(compiled, running, plan)
    if plan.priority is not None:
        notes.append(("priority", f"{plan.priority.value}: in live runs the greater goes first at equal deadlines"))
    return notes


def _with_whom(running: RunningStream, part: Slice, *, new: bool) -> str:
    names = [query.name for query in running.queries_of(part)]
    shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    if new:
        return f"these panes are there already: it would share them with {shown} (rule SS1)"
    if len(names) == 1:
        return f"only {shown} uses these panes"
    return f"{len(names)} queries use these panes (rule SS1): {shown}"


def _would_take(compiled: Compiled, running: RunningStream, part: Slice, plan: PeriodicAggregate) -> Notes:
    """Of a query that is not registered: whose answers it would take."""
    rows = AnswerRows.of(plan, compiled.compiler)
    often = giver_of(RunningQuery("", plan, rows, compiled.member(plan), part, BEGINNING), running.queries_of(part))
    if often is None:
        return []
    return [("output", f"where both are due, the answers of {often.name} would be taken (rule CS8, thesis 8.4.3)")]


def _panes(plan: PeriodicAggregate, grid: Grid) -> str:
    if not grid.uniform:
        return grid.describe()
    step = grid.progressions[0][0]
    if plan.rows is not None:
        return f"panes of {step} row{'s' if step > 1 else ''}"
    return f"panes of {duration_text(step, timestamps=plan.stream.timestamps)}"


def _partitions(plan: PeriodicAggregate) -> Notes:
    assert plan.rows is not None
    keys = ", ".join(plan.rows.partition_by)
    held = f"the last {plan.window.reach} rows of each ({keys}) are kept, and evaluated when {plan.slide} rows came"
    return [("panes", f"none: {held}"), ("rows", ORDER_NOTE)]


def _would_be_derived(compiled: Compiled, running: RunningStream, plan: PeriodicAggregate) -> Notes:
    """Of a query that is not registered: from which slices it would take partials."""
    part = compiled.slice(plan)
    part.add(Member(plan.window, plan.slide, tuple(compiled.term(one) for one in plan.aggregations)), None)
    found = find_derivation(part, list(reversed(running.slices.values())))
    if found is not None:
        return [("derived", derivation_text(running, part, found))]
    return [("shared", "no query has its rows and groups: it would have panes of its own")] if running.slices else []


def _choice(
    compiled: Compiled, running: RunningStream, part: Slice | None, plan: PeriodicAggregate, term: Term, grid: Grid
) -> Choice:
    """How an aggregate is kept, or would be, and why."""
    component = term.aggregate.components[0]
    known = None if part is None else part.explain(term)
    if known is None:
        windows = expected([Member(plan.window, plan.slide, (term,))], grid)
        known = Choice(chosen(component, compiled.synopsis, windows), reason(component, compiled.synopsis, windows))
    hint, whose = plan.hint, ""
    other = None if part is None else part.hinting(term)
    if hint is None and other is not None:
        hint, whose = other.hint, f" of query {running.name_of(other)}"
    if hint is None or not may_choose(component):
        return known
    if known.name == Sparse.name:
        return Choice(known.name, f"{known.reason}; the hint {hint}{whose} has nothing to choose there")
    return forced(hint.synopsis, f"the hint {hint}{whose}")


def _search(running: RunningStream, part: Slice | None, limit: Threshold) -> str:
    """How the groups of a HAVING are found."""
    told = "decided in the panes, before anything else of a group is looked up"
    if part is None or part.group is None:
        return told
    places = [query.member.limited for query in running.queries_of(part) if query.member.threshold == limit]
    search = part.group.search(places[0]) if places and places[0] is not None else None
    return told if search is None else f"{told}; {search.describe(part.group.groups)}"
