"""The rules for sharing state, SS1 to SS4, and the roll-up of groups (thesis 8.3)."""

from __future__ import annotations

from collections.abc import Sequence

from windrow.sharing.covers import Combine, find_cover
from windrow.sharing.rules.described import OVER_JOINS, Described, Kept
from windrow.sharing.rules.rule import StateRule, same_rows


class SS1(StateRule):
    """One synopsis for windows of several lengths."""

    name = "SS1"
    section = "8.3.1"
    effect = "queries that need the same data per interval use one synopsis, whatever their window lengths n·s, n <= b"
    saves = "the panes, and the updates of them, that each of them would have for itself"

    def allows(self, synopses: Sequence[Kept], query: Described) -> bool:
        """One synopsis with all the data, at least as long as the window, whose intervals divide it."""
        if len(synopses) != 1 or len(query.streams) != 1:
            return False
        (kept,) = synopses
        fits = kept.intervals(query.windows[0]) is not None
        return same_rows(kept, query) and kept.kind not in OVER_JOINS and fits and query.data <= kept.data


class SS2(StateRule):
    """AVG from the synopses of SUM and COUNT."""

    name = "SS2"
    section = "8.3.1"
    effect = "AVG uses the synopses of SUM and of COUNT, if both are updated at the same times"
    saves = "the synopsis of AVG"

    def allows(self, synopses: Sequence[Kept], query: Described) -> bool:
        """Aligned synopses of the same rows that have the sums and the counts between them."""
        if len(synopses) < 2 or len(query.streams) != 1 or {call.name for call in query.calls} != {"AVG"}:
            return False
        alike = all(same_rows(one, query) and one.kind == "running" for one in synopses)
        aligned = len({one.aligned for one in synopses}) == 1
        fits = all(one.intervals(query.windows[0]) is not None for one in synopses)
        return alike and aligned and fits and query.data <= frozenset().union(*(one.data for one in synopses))


class SS3(StateRule):
    """One synopsis over the results of a join for windows of several lengths."""

    name = "SS3"
    section = "8.3.2"
    effect = "queries over the same join use one generalized synopsis by expiration time, whatever their windows"
    saves = "the join results that each of them would keep"

    def allows(self, synopses: Sequence[Kept], query: Described) -> bool:
        """Windows of one length n·s; or of two, both between (b-g)·s and b·s."""
        if len(synopses) != 1 or len(query.streams) != 2:
            return False
        (kept,) = synopses
        if kept.kind not in OVER_JOINS or not same_rows(kept, query) or not query.data <= kept.data:
            return False
        counts = [kept.intervals(window) for window in query.windows]
        known = [n for n in counts if n is not None]
        if len(known) < len(counts):
            return False
        return len(set(known)) == 1 or all(n >= kept.b - kept.g for n in known)


class SS4(StateRule):
    """A query with another predicate, from synopses that cover it."""

    name = "SS4"
    section = "8.3.3"
    effect = "a query whose predicate is covered uses the synopses of the queries that cover it"
    saves = "the updates of its own panes tuple by tuple: partials of the others are added, united or subtracted"

    def allows(self, synopses: Sequence[Kept], query: Described) -> bool:
        """Aligned and long enough; a disjoint cover, or another where all aggregates bear it."""
        return self.how(synopses, query) is not None

    def how(self, synopses: Sequence[Kept], query: Described) -> Combine | None:
        """Which operation gives the answer out of all of these synopses; None when they do not."""
        alike = all(
            one.streams == query.streams and one.keys == query.keys and query.data <= one.data for one in synopses
        )
        fits = all(one.intervals(window) is not None for one in synopses for window in query.windows)
        if not synopses or not alike or not fits or len({one.aligned for one in synopses}) > 1:
            return None
        predicates = [one.predicate for one in synopses]
        found = find_cover(
            query.predicate, predicates, insensitive=query.insensitive, subtractable=query.subtractable
        )  # fmt: skip
        return found.how if found is not None and len(found.sources) == len(synopses) else None


class RollUp(StateRule):
    """A query with fewer GROUP BY keys, from the groups of one with more."""

    name = "GB"
    section = "8.6"
    effect = "a query whose GROUP BY keys are some of another's adds the groups of that one together"
    saves = "the updates of its own panes tuple by tuple: it takes one partial per group of the other"

    def allows(self, synopses: Sequence[Kept], query: Described) -> bool:
        """The same rows in finer groups, at least as long."""
        if len(synopses) != 1:
            return False
        (kept,) = synopses
        finer = query.keys < kept.keys and kept.streams == query.streams
        fits = all(kept.intervals(window) is not None for window in query.windows)
        return finer and fits and kept.predicate.same(query.predicate) and query.data <= kept.data
