"""Answers of ROWS queries: tuples get their numbers, panes fill by number, and windows are due when a slide is full.

The window of `[ROWS n SLIDE k]` moves when tuple k, 2k, 3k, … has come, and is answered at the timestamp of that tuple.
All tuples of one timestamp arrive at once, so of several slides that fill at one instant only the last is answered. At
the end of the input the rest that fills no slide moves the windows once more, from the tuples themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from windrow.answering import Due, answer_due
from windrow.contents import answered, contents_slice
from windrow.errors import QueryError
from windrow.expressions import Context
from windrow.numbering.numbering import Numbering, Released
from windrow.parallel import each
from windrow.running import RunningQuery, RunningStream
from windrow.sharing.slice import Slice
from windrow.slicer import PARALLEL_ROWS, shared_panes
from windrow.windows.grid import Grid
from windrow.windows.spec import BEGINNING, MAX_TICK


def answer_rows(running: RunningStream, watermark: int | None) -> dict[RunningQuery, QueryError]:
    """Number what the watermark has passed (None: the end of the input), and answer every window that has moved."""
    numbering = running.numbering
    assert numbering is not None
    released = numbering.release(watermark, running.row_plans)
    ended = watermark is None
    if not len(released) and not ended:
        return {}
    failed = _insert(running, numbering, released)
    parts = [(part, _alive(running.queries_of(part), failed)) for part in numbering.slices.values()]
    size = sum(part.group.groups * len(queries) for part, queries in parts if part.group is not None)
    outcomes = each(
        lambda item: _answer_slice(numbering, released, *item, ended=ended), parts, worthwhile=size >= PARALLEL_ROWS
    )
    for outcome in outcomes:
        failed |= outcome
    partitioned = [one for one in running.queries.values() if one.plan.rows is not None and one.plan.rows.partition_by]
    for query in partitioned:
        failed |= _caught(query, lambda one: _answer_partitions(numbering, released, one, ended=ended))
    if not ended:  # the last windows of an input stay for one-time queries
        numbering.settle(running.row_plans)
    return failed


def _insert(running: RunningStream, numbering: Numbering, released: Released) -> dict[RunningQuery, QueryError]:
    """One pass of the numbered tuples through all slices."""
    if not len(released):
        return {}
    context, numbers = Context.of(released.table), released.numbers
    parts = list(numbering.slices.values())
    panes = shared_panes(parts, numbers)
    stopped = each(lambda part: part.insert(context, numbers, panes), parts, worthwhile=len(numbers) >= PARALLEL_ROWS)
    return {
        query: reasons[query.member]
        for part, reasons in zip(parts, stopped, strict=True)
        if reasons
        for query in running.queries_of(part)
        if query.member in reasons
    }


def _answer_slice(
    numbering: Numbering, released: Released, part: Slice, queries: list[RunningQuery], *, ended: bool
) -> dict[RunningQuery, QueryError]:
    if not ended and part.earliest_due is not None and part.earliest_due > numbering.count:
        return {}
    part.close(numbering.count)
    due, rest = [], []
    for query in queries:
        taus, times = _full_slides(released, query)
        if ended and _has_rest(numbering, query):
            taus, times, last = _with_rest(numbering, query, taus, times)
            rest.append((query, last))
        if len(taus):
            due.append(Due(query, taus, times))
    failed = answer_due(part, due)
    for query, last in rest:
        if query not in failed:
            failed |= _caught(query, partial(_answer_rest, numbering, time=last))
    if not ended:
        part.forget()
    return failed


def _answer_partitions(numbering: Numbering, released: Released, query: RunningQuery, *, ended: bool) -> None:
    """Windows of the last rows per key are evaluated from their contents, many at once."""
    taus, times = _full_slides(released, query)
    if ended and _has_rest(numbering, query):
        taus, times, last = _with_rest(numbering, query, taus, times)
        taus, times = np.append(taus, numbering.count), np.append(times, last)
    window = query.member.window
    assert window.length is not None
    last_rows = numbering.partition(query.plan)
    found = last_rows.contents(taus, origin=query.member.origin, skip=window.offset, count=window.length)
    for one in found:
        # Window i of these is pane i+1 of a slice of its own.
        part, member = contents_slice(query.slice, query.member, one.rows, one.windows + 1)
        starts = np.arange(one.count, dtype=np.int64)
        instants = times[one.first : one.first + one.count]
        query.add(answered(part, member, query.rows, (starts, starts + 1), instants))


def _answer_rest(numbering: Numbering, query: RunningQuery, *, time: int) -> None:
    """The window that ends with the last tuple, in panes that begin where its slides do."""
    member, end = query.member, numbering.count - query.member.window.offset
    start = max(numbering.count - query.reach, member.origin)
    rows = numbering.log.rows(start, end, sorted(query.plan.columns_read))
    # Where its sub-windows begin, which FREQUENT keeps apart.
    grid = Grid.of([(member.slide, (member.origin - member.window.offset) % member.slide)])
    part, alone = contents_slice(query.slice, member, rows, np.arange(start + 1, max(start, end) + 1), grid)
    everything = np.array([BEGINNING]), np.array([MAX_TICK])
    query.add(answered(part, alone, query.rows, everything, np.array([time])))


# ---- which windows are due -----------------------------------------------------------------------------------------


def _full_slides(released: Released, query: RunningQuery) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The last tuples of the slides that are full now, by number, and the instants at which they came."""
    member = query.member
    assert member.next_due is not None
    count = released.first + len(released)
    taus = np.arange(member.next_due, count + 1, member.slide, dtype=np.int64)
    member.next_due += len(taus) * member.slide
    times = released.ts[taus - released.first - 1]
    if len(taus):
        at_once = np.append(times[1:] != times[:-1], True)
        taus, times = taus[at_once], times[at_once]
        query.newest_time = int(times[-1])
    query.due += len(taus)
    return taus, times


def _has_rest(numbering: Numbering, query: RunningQuery) -> bool:
    return (numbering.count - query.member.origin) % query.member.slide != 0


def _with_rest(
    numbering: Numbering, query: RunningQuery, taus: NDArray[np.int64], times: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """The windows before the rest of the input, and the instant of the window with the rest."""
    last = numbering.newest_ts
    assert last is not None
    if len(times) and int(times[-1]) == last:  # the same instant brings the rest too
        return taus[:-1], times[:-1], last
    if query.newest_time == last:  # a heartbeat was faster, and that instant is answered already
        last += 1
    query.newest_time = last
    query.due += 1
    return taus, times, last


def _caught(query: RunningQuery, answer: Callable[[RunningQuery], None]) -> dict[RunningQuery, QueryError]:
    """Answer a query alone, and take the time; gives why it cannot go on, if so."""
    began = perf_counter()
    try:
        answer(query)
    except QueryError as error:
        return {query: error}
    finally:
        query.seconds += perf_counter() - began
    return {}


def _alive(queries: list[RunningQuery], failed: Mapping[RunningQuery, QueryError]) -> list[RunningQuery]:
    return [query for query in queries if query not in failed]
