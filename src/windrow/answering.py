"""What is due, and its answers: one slice closes its panes, looks up all its due windows, and forgets what is behind.

Nothing here touches anything but the slice and its queries, so that slices can be answered in threads.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from time import perf_counter
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.errors import QueryError
from windrow.kernels.memory import pooled
from windrow.kernels.prefix import repeat_ticks
from windrow.running import RunningQuery
from windrow.sharing.slice import Slice
from windrow.windows.due import due_times, due_times_with_panes, first_due, last_due
from windrow.windows.spec import MAX_TICK
from windrow.windows.watermark import Watermark

LOOKUP_ROWS = 4_000_000
"""Windows times groups that are looked up at once."""

Due: TypeAlias = tuple[RunningQuery, NDArray[np.int64]]
"""A query and the instants at which it is to be answered."""


def answer_slice(
    mark: Watermark, part: Slice, queries: Sequence[RunningQuery], watermark: int | None
) -> dict[RunningQuery, QueryError]:
    """Close the slice's panes, answer its queries, forget what is behind them; touches nothing but the slice."""
    assert part.group is not None and mark.newest is not None and mark.value is not None
    part.close(watermark if watermark is not None else MAX_TICK)
    due = []
    for query in queries:
        taus = _due(mark, query, watermark)
        if len(taus):
            due.append((query, taus))
    failed = _answer_due(part, due)
    part.forget()
    return failed


def _due(mark: Watermark, query: RunningQuery, watermark: int | None) -> NDArray[np.int64]:
    """The due times that the watermark has reached since the last call."""
    member, slide = query.member, query.plan.slide
    until = watermark
    if until is None:
        assert mark.newest is not None and mark.value is not None
        until = max(first_due(mark.newest, slide), last_due(mark.value, slide))
    if member.next_due is None:
        if mark.oldest is None or mark.oldest > until:
            return np.empty(0, np.int64)  # an older tuple may still come, and with it an earlier due time
        member.next_due = query.first_due(mark.oldest)
    if member.next_due > until:
        return np.empty(0, np.int64)
    count = (until - member.next_due) // slide + 1
    assert query.slice.group is not None
    edges = query.slice.group.closed_edges
    if query.plan.keys and count > 2 * len(edges) + 16:
        taus = due_times_with_panes(member.next_due, until, slide, edges, query.reach, member.window.offset)
    else:
        taus = due_times(member.next_due, until, slide)
    query.due += count
    member.next_due = last_due(until, slide) + slide
    return taus


def _answer_due(part: Slice, due: Sequence[Due]) -> dict[RunningQuery, QueryError]:
    """Queries with the same aggregates are looked up together, whatever their windows (thesis 8.3.1)."""
    alike: dict[tuple[object, ...], list[Due]] = defaultdict(list)
    assert part.group is not None
    most = max(1, LOOKUP_ROWS // max(1, part.group.groups))
    for query, taus in due:
        names = tuple(term.aggregate.name for term in query.member.terms)
        for start in range(0, len(taus), most):
            alike[names, query.member.positions].append((query, taus[start : start + most]))
    failed: dict[RunningQuery, QueryError] = {}
    for together in alike.values():
        waiting: list[Due] = []
        for one in together:
            if waiting and sum(len(taus) for _, taus in waiting) + len(one[1]) > most:
                failed |= _look_up(part, waiting)
                waiting = []
            if one[0] not in failed:
                waiting.append(one)
        failed |= _look_up(part, waiting)
    return failed


def _look_up(part: Slice, due: Sequence[Due]) -> dict[RunningQuery, QueryError]:
    """One lookup for all these windows; then each query makes its answer rows of its part."""
    if not due:
        return {}
    began = perf_counter()
    assert part.group is not None
    ends = np.concatenate([taus - query.member.window.offset for query, taus in due])
    starts = np.concatenate([np.maximum(taus - query.reach, query.member.since) for query, taus in due])
    member = due[0][0].member
    places = [place for term in member.positions for place in term]
    found = part.group.lookup(starts, ends, places)
    words = dict(zip(places, found.words, strict=True))
    keys = part.group.keys(found)
    try:
        values = [
            term.aggregate.lower([words[place] for place in term_places])
            for term, term_places in zip(member.terms, member.positions, strict=True)
        ]
    except QueryError as error:
        if len(due) == 1:
            return {due[0][0]: error}
        # Find out whose window it was, so that only that query stops.
        failed: dict[RunningQuery, QueryError] = {}
        for alone in due:
            if alone[0] not in failed:
                failed |= _look_up(part, [alone])
        return failed
    ticks = pooled(len(found), np.int64)
    repeat_ticks(np.concatenate([taus for _, taus in due]), found.offsets, ticks)
    time = pa.array(ticks).view(due[0][0].rows.schema.field(0).type)
    spent = perf_counter() - began
    failed = {}
    window = 0
    for query, taus in due:
        began = perf_counter()
        offsets = found.offsets[window : window + len(taus) + 1]
        window += len(taus)
        start, length = int(offsets[0]), int(offsets[-1] - offsets[0])
        columns = [array.slice(start, length) for array in (*keys, *values)]
        try:
            query.add(query.rows.rows(time.slice(start, length), offsets, columns))
        except QueryError as error:
            failed[query] = error
        query.seconds += perf_counter() - began + spent * length / max(1, len(found))
    return failed
