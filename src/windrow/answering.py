"""What is due, and its answers: one slice closes its panes, looks up all its due windows, and forgets what is behind.

Nothing here touches anything but the slice and its queries, so that slices can be answered in threads.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.aggregates.collected import Collected
from windrow.errors import QueryError
from windrow.kernels.memory import pooled
from windrow.kernels.prefix import repeat_ticks
from windrow.running import RunningQuery
from windrow.sharing.member import Member
from windrow.sharing.slice import Slice
from windrow.synopses.candidate_search import Limits
from windrow.synopses.lookup import Lookup
from windrow.windows.due import due_times, due_times_with_panes, first_due, last_due
from windrow.windows.spec import MAX_TICK
from windrow.windows.watermark import Watermark

LOOKUP_ROWS = 4_000_000
"""Windows times groups that are looked up at once."""
LOOKUP_BYTES = 1 << 28
"""Of the answers of one aggregate that are looked up at once, where they are great ones."""


Words: TypeAlias = "dict[int, tuple[Any, ...]]"
"""By place: the typed words of a component."""
Rows: TypeAlias = "dict[RunningQuery, list[pa.RecordBatch]]"


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


def answer_newest(
    mark: Watermark, part: Slice, queries: Sequence[RunningQuery], now: int
) -> dict[RunningQuery, QueryError]:
    """Answer these queries once each: at the newest of their due times up to `now`, or at `now` if that was answered.

    Due times before it that were not answered are left out; they count as skipped.
    """
    assert part.group is not None and mark.value is not None
    part.close(mark.value)
    due = []
    for query in queries:
        tau = _newest_due(mark, query, now)
        if tau is not None:
            due.append(Due(query, np.array([tau]), np.array([tau])))
    return answer_due(part, due)


def _newest_due(mark: Watermark, query: RunningQuery, now: int) -> int | None:
    member, slide = query.member, query.plan.slide
    if member.next_due is None:
        if mark.oldest is None or mark.oldest > now:
            return None
        member.next_due = query.first_due(mark.oldest)
    if member.next_due <= now:
        tau = last_due(now, slide)
        query.skipped += (tau - member.next_due) // slide
        member.next_due = tau + slide
    else:
        # It is executed more often than it asks for, to be executed with others (thesis 8.4.4).
        tau = now
        start, part = member.window.start(tau), query.slice
        assert start is not None
        if tau <= member.next_due - slide or not part.edges.has(start) or not part.edges.has(member.window.end(tau)):
            return None
        if start < part.known_since([place for term in member.positions for place in term]):
            return None
    if query.answered_at is not None and tau <= query.answered_at:
        return None
    query.due += 1
    query.answered_at = tau
    return tau


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
    """All windows that are due; a query that is another one with a longer period takes its answers (rule CS8)."""
    takers = same_output(due)
    if not takers:
        return _answer_alike(part, due, {})
    taking = {id(taker) for taken in takers.values() for taker in taken}
    rows: Rows = {query: [] for query in takers}
    failed = _answer_alike(part, [one for one in due if id(one) not in taking], rows)
    alone: list[Due] = []
    for query, taken in takers.items():
        if query in failed:  # in a window that the others need not have
            alone += taken
            continue
        for taker in taken:
            _take(taker, rows[query])
            taker.query.taken += len(taker.taus)
    return failed | _answer_alike(part, alone, {})


def _take(taker: Due, rows: Sequence[pa.RecordBatch]) -> None:
    """The rows of another query at the instants of this one."""
    began = perf_counter()
    for batch in rows:
        times = batch.column(0).view(pa.int64()).to_numpy()
        if not len(times) or (len(taker.times) == 1 and times[0] == times[-1] == taker.times[0]):
            taker.query.add(batch)
        else:
            taker.query.add(batch.filter(pa.array(np.isin(times, taker.times))))
    taker.query.seconds += perf_counter() - began


def _answer_alike(part: Slice, due: Sequence[Due], rows: Rows) -> dict[RunningQuery, QueryError]:
    """Queries of the same components are looked up together, whatever their windows: AVG with SUM (thesis 8.3.1)."""
    alike: dict[tuple[object, ...], list[Due]] = defaultdict(list)
    for one in due:
        member = one.query.member
        most = _most_windows(part, member)
        side = None if member.threshold is None else member.threshold.side
        for start in range(0, len(one.taus), most):
            alike[member.positions, member.limited, side].append(one.some(start, start + most))
    failed: dict[RunningQuery, QueryError] = {}
    for together in alike.values():
        most = _most_windows(part, together[0].query.member)
        together.sort(key=_names)  # those whose answers are made the same way are side by side
        waiting: list[Due] = []
        windows = 0
        for one in together:
            if waiting and windows + len(one.taus) > most:
                failed |= _look_up(part, waiting, rows)
                waiting, windows = [], 0
            if one.query not in failed:
                waiting.append(one)
                windows += len(one.taus)
        failed |= _look_up(part, waiting, rows)
    return failed


def same_output(due: Sequence[Due]) -> dict[RunningQuery, list[Due]]:
    """Per query whose answers others will take: these others, all of whose windows it is due to answer too."""
    alike: dict[tuple[object, ...], list[Due]] = defaultdict(list)
    for one in due:
        alike[one.query.output].append(one)
    takers: dict[RunningQuery, list[Due]] = {}
    for group in alike.values():
        if len(group) > 1:
            giver, *others = sorted(group, key=lambda one: (one.query.plan.slide, -len(one.taus)))
            taken = [one for one in others if _has_all(giver, one)]
            if taken:
                takers[giver.query] = taken
    return takers


def _has_all(giver: Due, taker: Due) -> bool:
    """Whether one query answers every window of another, from the same tuples."""
    if not len(taker.taus):
        return False
    since = (giver.query.member.since, taker.query.member.since)
    whole = since[0] == since[1] or int(taker.taus[0]) - taker.query.reach >= max(since)
    return whole and bool(np.isin(taker.taus, giver.taus).all())


def _most_windows(part: Slice, member: Member) -> int:
    """How many windows are looked up at once."""
    assert part.group is not None
    components = [component for term in member.terms for component in term.aggregate.components]
    size = max((one.question.size for one in components if isinstance(one, Collected)), default=8)
    return max(1, min(LOOKUP_ROWS, LOOKUP_BYTES // size) // max(1, part.group.groups))


def _names(due: Due) -> tuple[str, ...]:
    return tuple(term.aggregate.name for term in due.query.member.terms)


def _limits(part: Slice, due: Sequence[Due]) -> Limits | None:
    """What HAVING says of one component, per window; the queries are alike in having such a part, or not."""
    place = due[0].query.member.limited
    if place is None:
        return None
    bounds = [(one.query.member.threshold, len(one.taus)) for one in due]
    low = np.concatenate([np.full(count, one.low, np.int64) for one, count in bounds if one is not None])
    high = np.concatenate([np.full(count, one.high, np.int64) for one, count in bounds if one is not None])
    return Limits(place, low, high, part.asked.get(place, frozenset()))


def _look_up(part: Slice, due: Sequence[Due], rows: Rows) -> dict[RunningQuery, QueryError]:
    """One lookup for all these windows; then each query makes its answer rows of its part.

    Rows that others will take are noted in `rows`.
    """
    if not due:
        return {}
    began = perf_counter()
    ends = np.concatenate([one.taus - one.query.member.window.offset for one in due])
    starts = np.concatenate([np.maximum(one.taus - one.query.reach, one.query.member.since) for one in due])
    try:
        found, keys, words = _found(part, due[0].query.member, starts, ends, _limits(part, due))
        values = _values(due, found, words)
    except QueryError as error:
        if len(due) == 1:
            return {due[0].query: error}
        # Find out whose window it was, so that only that query stops.
        failed: dict[RunningQuery, QueryError] = {}
        for alone in due:
            if alone.query not in failed:
                failed |= _look_up(part, [alone], rows)
        return failed
    part.saved.lookups += len({id(one.query) for one in due}) - 1
    ticks = pooled(len(found), np.int64)
    repeat_ticks(np.concatenate([one.times for one in due]), found.offsets, ticks)
    time = pa.array(ticks).view(due[0].query.rows.schema.field(0).type)
    spent = perf_counter() - began
    failed = {}
    window = 0
    for one in due:
        query, taus = one.query, one.taus
        began = perf_counter()
        offsets = found.offsets[window : window + len(taus) + 1]
        window += len(taus)
        start, length = int(offsets[0]), int(offsets[-1] - offsets[0])
        first, lowered = values[_names(one)]
        columns = [array.slice(start, length) for array in keys]
        columns += [array.slice(start - first, length) for array in lowered]
        try:
            made = query.rows.rows(time.slice(start, length), offsets, columns)
            query.add(made)
            if query in rows:
                rows[query].append(made)
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
    found, keys, words = _found(part, member, starts, ends, limits)
    return found, [*keys, *_lowered(member, words, 0, len(found))]


def _found(
    part: Slice, member: Member, starts: NDArray[np.int64], ends: NDArray[np.int64], limits: Limits | None
) -> tuple[Lookup, list[pa.Array], Words]:
    """The groups of the windows, their keys, and the words of the member's components."""
    assert part.group is not None
    places = [place for term in member.positions for place in term]
    found = part.group.lookup(starts, ends, places, limits)
    return found, part.group.keys(found), dict(zip(places, found.words, strict=True))


def _lowered(member: Member, words: Words, start: int, stop: int) -> list[pa.Array]:
    """The member's aggregates of some rows of a lookup."""
    whole = start == 0 and all(len(one[0]) == stop for one in words.values())
    some = words if whole else {at: tuple(word[start:stop] for word in one) for at, one in words.items()}
    return [
        term.aggregate.lower([some[place] for place in places])
        for term, places in zip(member.terms, member.positions, strict=True)
    ]


def _values(due: Sequence[Due], found: Lookup, words: Words) -> dict[tuple[str, ...], tuple[int, list[pa.Array]]]:
    """Per list of aggregates: the first row of its queries, which are side by side, and their columns."""
    values: dict[tuple[str, ...], tuple[int, list[pa.Array]]] = {}
    window = 0
    for names, queries in groupby(due, _names):
        some = list(queries)
        last = window + sum(len(one.taus) for one in some)
        start, stop = int(found.offsets[window]), int(found.offsets[last])
        values[names] = start, _lowered(some[0].query.member, words, start, stop)
        window = last
    return values
