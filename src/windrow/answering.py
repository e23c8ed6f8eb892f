"""What is due, and its answers: one slice closes its panes, looks up all its due windows, and forgets what is behind.

Nothing here touches anything but the slice and its queries, so that slices can be answered in threads.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from time import perf_counter
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.aggregates.collected import Collected
from windrow.errors import QueryError
from windrow.kernels.memory import pooled
from windrow.kernels.prefix import repeat_ticks
from windrow.running import RunningQuery
from windrow.sharing.slice import Member, Slice
from windrow.synopses.candidate_search import Limits
from windrow.synopses.lookup import Lookup
from windrow.windows.due import due_times, due_times_with_panes, first_due, last_due
from windrow.windows.spec import MAX_TICK
from windrow.windows.watermark import Watermark

LOOKUP_ROWS = 4_000_000
"""Windows times groups that are looked up at once."""
LOOKUP_BYTES = 1 << 28
"""Of the answers of one aggregate that are looked up at once, where they are great ones."""


class Due(NamedTuple):
    """A query and its windows that are to be answered."""

    query: RunningQuery
    taus: NDArray[np.int64]
    """Where they stand on the axis of the slice: instants, or numbers of tuples."""
    times: NDArray[np.int64]
    """The instants at which they are answered."""

    def some(self, start: int, stop: int) -> Due:
        """A part of its windows."""
        return Due(self.query, self.taus[start:stop], self.times[start:stop])


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
            due.append(Due(query, taus, taus))
    failed = answer_due(part, due)
    if watermark is not None:  # the last windows of an input stay for one-time queries
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


def answer_due(part: Slice, due: Sequence[Due]) -> dict[RunningQuery, QueryError]:
    """Queries with the same aggregates are looked up together, whatever their windows (thesis 8.3.1)."""
    alike: dict[tuple[object, ...], list[Due]] = defaultdict(list)
    for one in due:
        member = one.query.member
        most = _most_windows(part, member)
        names = tuple(term.aggregate.name for term in member.terms)
        side = None if member.threshold is None else member.threshold.side
        for start in range(0, len(one.taus), most):
            alike[names, member.positions, member.limited, side].append(one.some(start, start + most))
    failed: dict[RunningQuery, QueryError] = {}
    for together in alike.values():
        most = _most_windows(part, together[0].query.member)
        waiting: list[Due] = []
        windows = 0
        for one in together:
            if waiting and windows + len(one.taus) > most:
                failed |= _look_up(part, waiting)
                waiting, windows = [], 0
            if one.query not in failed:
                waiting.append(one)
                windows += len(one.taus)
        failed |= _look_up(part, waiting)
    return failed


def _most_windows(part: Slice, member: Member) -> int:
    """How many windows are looked up at once."""
    assert part.group is not None
    components = [component for term in member.terms for component in term.aggregate.components]
    size = max((one.question.size for one in components if isinstance(one, Collected)), default=8)
    return max(1, min(LOOKUP_ROWS, LOOKUP_BYTES // size) // max(1, part.group.groups))


def _limits(part: Slice, due: Sequence[Due]) -> Limits | None:
    """What HAVING says of one component, per window; the queries are alike in having such a part, or not."""
    place = due[0].query.member.limited
    if place is None:
        return None
    bounds = [(one.query.member.threshold, len(one.taus)) for one in due]
    low = np.concatenate([np.full(count, one.low, np.int64) for one, count in bounds if one is not None])
    high = np.concatenate([np.full(count, one.high, np.int64) for one, count in bounds if one is not None])
    return Limits(place, low, high, part.asked.get(place, frozenset()))


def _look_up(part: Slice, due: Sequence[Due]) -> dict[RunningQuery, QueryError]:
    """One lookup for all these windows; then each query makes its answer rows of its part."""
    if not due:
        return {}
    began = perf_counter()
    ends = np.concatenate([one.taus - one.query.member.window.offset for one in due])
    starts = np.concatenate([np.maximum(one.taus - one.query.reach, one.query.member.since) for one in due])
    try:
        found, every = looked_up(part, due[0].query.member, starts, ends, _limits(part, due))
    except QueryError as error:
        if len(due) == 1:
            return {due[0].query: error}
        # Find out whose window it was, so that only that query stops.
        failed: dict[RunningQuery, QueryError] = {}
        for alone in due:
            if alone.query not in failed:
                failed |= _look_up(part, [alone])
        return failed
    ticks = pooled(len(found), np.int64)
    repeat_ticks(np.concatenate([one.times for one in due]), found.offsets, ticks)
    time = pa.array(ticks).view(due[0].query.rows.schema.field(0).type)
    spent = perf_counter() - began
    failed = {}
    window = 0
    for query, taus, _ in due:
        began = perf_counter()
        offsets = found.offsets[window : window + len(taus) + 1]
        window += len(taus)
        start, length = int(offsets[0]), int(offsets[-1] - offsets[0])
        columns = [array.slice(start, length) for array in every]
        try:
            query.add(query.rows.rows(time.slice(start, length), offsets, columns))
        except QueryError as error:
            failed[query] = error
        query.seconds += perf_counter() - began + spent * length / max(1, len(found))
    return failed


def looked_up(
    part: Slice,
    member: Member,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    limits: Limits | None = None,
) -> tuple[Lookup, list[pa.Array]]:
    """The groups of the windows (start, end], and their columns: the keys, then the member's aggregates."""
    assert part.group is not None
    places = [place for term in member.positions for place in term]
    found = part.group.lookup(starts, ends, places, limits)
    words = dict(zip(places, found.words, strict=True))
    values = [
        term.aggregate.lower([words[place] for place in term_places])
        for term, term_places in zip(member.terms, member.positions, strict=True)
    ]
    return found, [*part.group.keys(found), *values]
