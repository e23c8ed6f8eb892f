"""From answers at successive instants to the output of a query: complete answers, changes, restored answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from windrow.testing.multiset import difference, rows, surplus

State = tuple[int, pa.Table]
"""An instant and the answer at it."""


def complete(states: Iterable[State]) -> Iterator[State]:
    """RSTREAM of a periodic query: the whole answer at each due time."""
    yield from states


def complete_when_changed(states: Iterable[State], empty: pa.Table) -> Iterator[State]:
    """RSTREAM of a continuous query: the whole answer at each instant at which it is another one."""
    for tau, gone, came, now in steps(states, empty):
        if gone.num_rows or came.num_rows:
            yield tau, now


def insertions(states: Iterable[State], empty: pa.Table) -> Iterator[State]:
    """ISTREAM: the rows that the answer before did not have."""
    for tau, _, came, _ in steps(states, empty):
        yield tau, came


def deletions(states: Iterable[State], empty: pa.Table) -> Iterator[State]:
    """DSTREAM: the rows of the answer before that are gone."""
    for tau, gone, _, _ in steps(states, empty):
        yield tau, gone


def steps(states: Iterable[State], empty: pa.Table) -> Iterator[tuple[int, pa.Table, pa.Table, pa.Table]]:
    """At each instant what went, what came, and the answer; before the first one there is no row."""
    before = empty
    for tau, now in states:
        yield tau, difference(before, now), difference(now, before), now
        before = now


def restored_insertions(states: Iterable[State], due: Sequence[int], empty: pa.Table) -> Iterator[State]:
    """ISTREAM_RESTORE (thesis 3.3.4): at each due time all insertions since the one before, short-lived ones too.

    `states` are those of the continuous query.
    """
    pending = list(insertions(states, empty))
    for tau in due:
        yield tau, pa.concat_tables([empty, *(table for instant, table in pending if instant <= tau)])
        pending = [(instant, table) for instant, table in pending if instant > tau]


def restored_answers(
    states: Iterable[State], due_states: Iterable[State], empty: pa.Table
) -> Iterator[State]:  # fmt: skip
    """RSTREAM_RESTORE: the answer at each due time, and what came and went again since the one before."""
    pending = list(deletions(states, empty))
    before = empty
    for tau, now in due_states:
        gone = pa.concat_tables([empty, *(table for instant, table in pending if instant <= tau)])
        pending = [(instant, table) for instant, table in pending if instant > tau]
        # What the last answer had was reported then: only deletions beyond those copies are of short-lived rows.
        yield tau, pa.concat_tables([now, surplus(gone, Counter(rows(before)))])
        before = now
