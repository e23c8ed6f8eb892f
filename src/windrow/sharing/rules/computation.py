"""The rules for sharing computation, CS1 to CS8 (thesis 8.3, 8.4.3)."""

from __future__ import annotations

from collections.abc import Sequence

from windrow.sharing.rules.described import OVER_JOINS, SHARED_SCAN, Described, Kept
from windrow.sharing.rules.rule import ComputationRule, same_rows, same_windows
from windrow.sharing.rules.state import SS1, SS2, SS3, SS4


class CS1(ComputationRule):
    """The same window of a running or interval synopsis."""

    name = "CS1"
    section = "8.3.1"
    effect = "queries over the same window length probe a running or interval synopsis once, together"
    saves = "all probes but the first: two running intervals, or log b intervals, per query"

    def allows(self, synopses: Sequence[Kept], queries: Sequence[Described]) -> bool:
        """One synopsis that all use by SS1; the same window."""
        one = len(synopses) == 1 and synopses[0].kind not in SHARED_SCAN | OVER_JOINS
        return one and same_windows(queries) and all(SS1().allows(synopses, query) for query in queries)


class CS2(ComputationRule):
    """Any windows of a basic interval synopsis."""

    name = "CS2"
    section = "8.3.1"
    effect = (
        "all queries of a basic interval synopsis are answered in one scan from the youngest interval to the oldest"
    )
    saves = "all scans but that of the longest window"

    def allows(self, synopses: Sequence[Kept], queries: Sequence[Described]) -> bool:
        """One basic interval synopsis that all use by SS1."""
        one = len(synopses) == 1 and synopses[0].kind == "basic_interval"
        return one and all(SS1().allows(synopses, query) for query in queries)


class CS3(ComputationRule):
    """SUM, COUNT and AVG together."""

    name = "CS3"
    section = "8.3.1"
    effect = "AVG divides the answers that SUM and COUNT have just found for the same window"
    saves = "the probes of AVG"

    def allows(self, synopses: Sequence[Kept], queries: Sequence[Described]) -> bool:
        """The three of them over one window, AVG by SS2 (or all in one synopsis, by SS1)."""
        names = {call.name for query in queries for call in query.calls}
        if not {"SUM", "COUNT", "AVG"} <= names or not same_windows(queries):
            return False
        averages = [query for query in queries if any(call.name == "AVG" for call in query.calls)]
        return all(SS2().allows(synopses, one) or SS1().allows(synopses, one) for one in averages)


class CS4(ComputationRule):
    """The same windows of a generalized RJ or IJ synopsis."""

    name = "CS4"
    section = "8.3.2"
    effect = "queries over the same windows of a join probe a generalized RJ or IJ synopsis once, together"
    saves = "all probes but the first"

    def allows(self, synopses: Sequence[Kept], queries: Sequence[Described]) -> bool:
        """One such synopsis that all use by SS3; the same window lengths."""
        one = len(synopses) == 1 and synopses[0].kind in OVER_JOINS - SHARED_SCAN
        return one and same_windows(queries) and all(SS3().allows(synopses, query) for query in queries)


class CS5(ComputationRule):
    """Any windows of a generalized BIJ synopsis."""

    name = "CS5"
    section = "8.3.2"
    effect = "all queries of a generalized BIJ synopsis are answered in one scan"
    saves = "all scans but that of the longest window"

    def allows(self, synopses: Sequence[Kept], queries: Sequence[Described]) -> bool:
        """One such synopsis that all use by SS3."""
        one = len(synopses) == 1 and synopses[0].kind == "bij"
        return one and all(SS3().allows(synopses, query) for query in queries)


def _covered(synopses: Sequence[Kept], queries: Sequence[Described]) -> bool:
    """The last query is covered by the others: each synopsis is that of one of them."""
    *candidates, new = queries
    owned = all(any(same_rows(one, query) for query in candidates) for one in synopses)
    return len(queries) > 1 and owned and SS4().allows(synopses, new)


class CS6(ComputationRule):
    """A covered query after those that cover it, over the same window."""

    name = "CS6"
    section = "8.3.3"
    effect = "a covered query takes the answers that its candidates have just found for the same window"
    saves = "its probes: their answers are combined instead"

    def allows(self, synopses: Sequence[Kept], queries: Sequence[Described]) -> bool:
        """Candidates first, the covered query last; running, interval, RJ or IJ synopses; the same windows."""
        kinds = {one.kind for one in synopses}
        return not kinds & SHARED_SCAN and same_windows(queries) and _covered(synopses, queries)


class CS7(ComputationRule):
    """A covered query after those that cover it, over any window."""

    name = "CS7"
    section = "8.3.3"
    effect = "a covered query takes the answers for its window that are found while its candidates are scanned"
    saves = "its scans: their answers are combined instead"

    def allows(self, synopses: Sequence[Kept], queries: Sequence[Described]) -> bool:
        """Candidates first, the covered query last; basic interval or BIJ synopses."""
        return {one.kind for one in synopses} <= SHARED_SCAN and _covered(synopses, queries)


class CS8(ComputationRule):
    """The same query, less often."""

    name = "CS8"
    section = "8.4.3"
    effect = "a query that is another one with a longer period takes the answers of that one"
    saves = "all its lookups: where both are due, the answer is there already"

    def allows(self, synopses: Sequence[Kept], queries: Sequence[Described]) -> bool:
        """Two queries, equal but for the period; the second has the longer one, a multiple of that of the first."""
        if len(queries) != 2:
            return False
        often, seldom = queries
        return seldom.slide > often.slide and seldom.slide % often.slide == 0 and often.every(seldom.slide) == seldom
