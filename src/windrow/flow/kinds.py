"""What comes out of a query, by its stream operator and its windows (thesis 3.3.2-3.3.4); `emission.py` makes it."""

from __future__ import annotations

from windrow.language.bound import BoundQuery
from windrow.language.restrictions import has_aggregates, is_plain


def kind_of(query: BoundQuery) -> str:
    """The kind of output; of WSTREAM, what its window holds."""
    appended = query.operator == "WSTREAM" or (query.operator is None and query.internal)
    if appended:  # append-only: every new aggregate value is a new result (thesis 3.3.2)
        if query.periodic and has_aggregates(query.ast):
            return "complete"
        # A result of one tuple of each window is new whatever leaves at the same instant.
        return "appended" if is_plain(query.ast) else "insertions"
    if query.operator is None:
        return "complete" if query.periodic else "changes"
    return {
        "ISTREAM": "insertions",
        "DSTREAM": "deletions",
        "RSTREAM": "complete",
        "ISTREAM_RESTORE": "restored insertions",
        "RSTREAM_RESTORE": "restored answers",
    }[query.operator]
