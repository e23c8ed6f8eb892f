"""One-time queries: a window is answered once, now, from what the registered queries keep anyway.

`[RANGE T OFFSET d]` is looked up in the panes of the queries with the same stream, predicate and grouping, also when
no query has that window, or in those of several others that have its rows together (`sharing/probing`); τ is the newest
pane edge that is complete. `[ROWS n]` and `[PARTITION BY … ROWS n]` are
evaluated from the last tuples, whatever the predicate and grouping; τ is the timestamp of the newest tuple that has
its number. What is not covered is refused, and the message says what is.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
import pyarrow as pa

from windrow import coverage
from windrow.contents import answered, contents_slice
from windrow.errors import CoverageError
from windrow.operators.answer import AnswerRows
from windrow.plan.periodic import PeriodicAggregate
from windrow.question_report import note_probe, probe_text
from windrow.running import RunningQuery, RunningStream
from windrow.sharing.member import Member, Term
from windrow.sharing.probing import Probe, find_probe, question
from windrow.sharing.slice import Slice
from windrow.sharing_report import listed
from windrow.windows.spec import BEGINNING


def ask_panes(
    running: RunningStream, plan: PeriodicAggregate, rows: AnswerRows, blank: Slice, terms: Sequence[Term]
) -> pa.Table:
    """Answer a RANGE window from the panes of the queries that share its stream, predicate and grouping.

    If there are none, or they do not have it, from those of others together; `blank` has its predicate and grouping.
    """
    part, refusal = running.slices.get(plan.share_key), None
    if part is not None:
        try:
            return _ask_slice(running, part, plan, rows, terms)
        except CoverageError as error:
            refusal = error
    elif running.slices and running.watermark.value is None:
        raise coverage.nothing_complete(running.stream)
    probe = _probe(running, plan, blank, terms)
    if probe is None:
        raise refusal or coverage.no_slice(running, plan)
    saved = probe.fill()
    note_probe(running, plan, probe, saved)
    window = np.zeros(1, np.int64), np.ones(1, np.int64)
    return pa.Table.from_batches([answered(blank, blank.members[0], rows, window, np.array([probe.tau]))])


def _probe(running: RunningStream, plan: PeriodicAggregate, blank: Slice, terms: Sequence[Term]) -> Probe | None:
    """Which slices have the window of a question together."""
    question(blank, terms)
    newest_first = reversed(running.slices.values())
    return find_probe(blank, plan.window, newest_first, running.watermark, finished=running.finished)


def explain_question(
    running: RunningStream, plan: PeriodicAggregate, blank: Slice, terms: Sequence[Term]
) -> list[tuple[str, str]]:
    """For EXPLAIN of a query without SLIDE: what answers it if it is asked once, now; nothing if nothing does."""
    part = running.slices.get(plan.share_key)
    if part is not None:
        with suppress(CoverageError), part.asking(terms) as places:
            if None not in places:
                _window_of(running, part, plan, [place for one in places if one is not None for place in one], terms)
                owners = listed([query.name for query in running.queries_of(part)])
                return [("asked once", f"db.ask looks its window up in the panes of {owners} (rule SS1, thesis 8.3.1)")]
    probe = _probe(running, plan, blank, terms)
    return [] if probe is None else [("asked once", probe_text(running, plan, probe))]


def _ask_slice(
    running: RunningStream, part: Slice, plan: PeriodicAggregate, rows: AnswerRows, terms: Sequence[Term]
) -> pa.Table:
    with part.asking(terms) as places:
        missing = [one.text for one, place in zip(plan.aggregations, places, strict=True) if place is None]
        if missing:
            raise coverage.no_aggregate(running, part, missing)
        positions = tuple(place for place in places if place is not None)
        member = Member(plan.window, plan.slide, tuple(terms), positions)
        tau, start, end = _window_of(running, part, plan, [place for term in positions for place in term], terms)
        part.close(tau)
        window = np.array([start]), np.array([end])
        return pa.Table.from_batches([answered(part, member, rows, window, np.array([tau]))])


def _window_of(
    running: RunningStream, part: Slice, plan: PeriodicAggregate, places: Sequence[int], terms: Sequence[Term]
) -> tuple[int, int, int]:
    """τ, and the window at τ, if the panes cover it."""
    tau = _newest_edge(running, part)
    start, end = plan.window.start(tau), plan.window.end(tau)
    assert start is not None
    if not part.edges.has(start) or not part.edges.has(end):
        raise coverage.no_edge(running, part, plan)
    known = part.known_since(places, terms)
    if start < known:
        raise coverage.not_known(running, part, plan, (known, tau))
    return tau, start, end


def _newest_edge(running: RunningStream, part: Slice) -> int:
    """τ: the newest window update that the panes know."""
    mark = running.watermark
    if mark.value is None:
        raise coverage.nothing_complete(running.stream)
    assert part.group is not None
    edge = part.edges.floor(mark.value)
    if running.finished and mark.newest is not None:
        edge = max(edge, part.group.grid.ceil(mark.newest))
    return edge


def ask_rows(
    running: RunningStream, plan: PeriodicAggregate, rows: AnswerRows, like: Slice, terms: Sequence[Term]
) -> pa.Table:
    """Answer a ROWS window from the tuples that are kept; `like` has its predicate and grouping."""
    numbering = running.numbering
    assert plan.rows is not None
    if numbering is None:
        raise coverage.no_rows(running, plan)
    if numbering.newest_ts is None:
        raise coverage.nothing_complete(running.stream)
    contents = _last_rows_by_key(running, plan) if plan.rows.partition_by else _last_rows(running, plan)
    part, alone = contents_slice(
        like, Member(plan.window, plan.slide, tuple(terms)), contents, np.ones(contents.num_rows, np.int64)
    )
    window = np.zeros(1, np.int64), np.ones(1, np.int64)
    return pa.Table.from_batches([answered(part, alone, rows, window, np.array([numbering.newest_ts]))])


def _last_rows(running: RunningStream, plan: PeriodicAggregate) -> pa.Table:
    numbering = running.numbering
    assert numbering is not None and plan.window.reach is not None
    log, count = numbering.log, numbering.count
    start, end = max(0, count - plan.window.reach), max(0, count - plan.window.offset)
    columns = sorted(plan.columns_read)
    if (count >= plan.window.reach or numbering.begin == BEGINNING) and log.knows(columns, start + 1):
        return log.rows(start, end, columns)
    users = _users(running, ())
    if not users:
        raise coverage.no_rows(running, plan)
    raise coverage.rows_not_kept(running, plan, len(log), log.columns(), users)


def _last_rows_by_key(running: RunningStream, plan: PeriodicAggregate) -> pa.Table:
    numbering, window = running.numbering, plan.window
    assert numbering is not None and plan.rows is not None
    assert window.length is not None and window.reach is not None
    keys = plan.rows.partition_by
    kept = numbering.partitions.get(keys)
    if kept is None:
        raise coverage.no_rows(running, plan)
    users = _users(running, keys)
    reach = max(query.reach for query in users)
    # A key that is seldom may have its last rows before the first one that was kept.
    from_the_start = numbering.begin == BEGINNING and kept.begin == 0
    if not from_the_start or not plan.columns_read <= kept.columns or (kept.forgot and window.reach > reach):
        raise coverage.rows_not_kept(running, plan, reach, sorted(kept.columns), users)
    (found,) = kept.contents(np.array([numbering.count]), origin=0, skip=window.offset, count=window.length)
    return found.rows


def _users(running: RunningStream, keys: tuple[str, ...]) -> list[RunningQuery]:
    queries = running.queries.values()
    return [query for query in queries if query.plan.rows is not None and query.plan.rows.partition_by == keys]
