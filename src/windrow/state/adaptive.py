"""Calendar queue or hash of rows, by how many rows end before their time (STR; thesis 3.5.2).

The thesis takes a calendar queue where premature expirations are rare, and where most rows end by negative tuples a
hash of rows, for which all expirations are signalled by negative tuples. Here a negative tuple never scans partitions:
it finds its row by the index of codes, in both forms. What is left to choose is how much a row pays for the calendar.
Rows without a known end never enter it: while there are no others, this is the hash of rows, with no structure by time.
Rows with a known end must be found when it comes, so they are always in a calendar, but it is made for those that will
still be there: if 15 of 16 rows are cut before their time, it has a sixteenth of the partitions.
"""

from __future__ import annotations

from windrow.kernels.jit import Codes, Ints
from windrow.state.calendar import Calendar
from windrow.state.rows import Rows

MEMORY = 1 << 16
"""Ends that are remembered: with more, older ones count half."""


class Adaptive(Calendar):
    """Rows that end at a known time or by negative tuples, whichever comes first."""

    def _clear(self) -> None:
        super()._clear()
        self._cuts = 0
        self._ends_seen = 0

    @property
    def premature(self) -> float:
        """The share of the ended rows that a negative tuple ended."""
        return self._cuts / self._ends_seen if self._ends_seen else 0.0

    def describe(self) -> str:
        """For EXPLAIN."""
        if not self.partitions:
            return "hash of rows, ended by negative tuples"
        if self.premature > 0.5:
            return f"hash of rows, {self.premature:.0%} ended by negative tuples; the others in a {super().describe()}"
        return super().describe()

    def cut(self, rows: Rows, index: int, codes: Codes) -> Ints:
        """Negative tuples end rows."""
        self._cuts += len(rows)
        return super().cut(rows, index, codes)

    def expire(self, upto: int) -> Ints:
        """The rows that end, cut or not."""
        ended = super().expire(upto)
        self._ends_seen += len(ended)
        if self._ends_seen > MEMORY:
            self._cuts //= 2
            self._ends_seen //= 2
        return ended

    def _rows_each(self) -> float:
        return super()._rows_each() / max(1 - self.premature, 1 / 64)
