"""Calendar queue: rows whose end is known when they come, in any order (WK; thesis 3.5.2, Figure 3.6).

A circular array of partitions by exp, each a chain of slots. When time moves on, the partitions it passes are emptied;
rows of the last one that end later wait in a heap, so that many small steps within one partition do not look at the
same rows again. Rows without a known end are in no partition.

The number of partitions follows the number of rows (about ROWS_EACH in each), their width the time until the rows end,
both as powers of two. They are chosen when rows first come, anew at compactions, once many more rows have come, or when
too much was looked at in vain (rows of a later lap, empty partitions): each time after at least as much other work.

insert O(1); expire: partitions passed + rows in them, log(rows) for those of the last partition; amortised over all
calls O(1) to O(log rows) per row. Space: 4 bytes per slot and partition, 12 per row of the partition at hand.
"""

from __future__ import annotations

import numpy as np

from windrow.kernels.calendar import NONE, pass_days, schedule
from windrow.kernels.jit import Codes, Ints
from windrow.kernels.state import LIVE
from windrow.state.buffer import Buffer
from windrow.state.columns import FEW, grown
from windrow.state.rows import NEVER

ROWS_EACH = 16
"""Rows of a partition: few enough to be looked at in one go, and enough that passing empty partitions costs little."""
FEWEST = 16
"""Partitions of the smallest queue."""
SAMPLE = 4096
GROWTH = 4
"""So many times the rows of the last choice may come until partitions are chosen anew."""


class Calendar(Buffer):
    """Rows in partitions of time. `looked` and `passed` count the rows and partitions that `expire` looked at."""

    def _clear(self) -> None:
        super()._clear()
        self.looked = 0
        self.passed = 0
        self._upto: int | None = None  # the last instant given to `expire`
        self._later: Codes = np.empty(0, np.int32)
        self._unchosen()

    def _unchosen(self) -> None:
        self._firsts: Codes = np.empty(0, np.int32)
        self._shift = 0
        self._day = 0
        self._ends: Ints = np.empty(FEW, np.int64)  # the heap of the rows of the day
        self._slots: Codes = np.empty(FEW, np.int32)
        self._held = 0
        self._room = 0  # rows that may still come before the next choice
        self._patience = 0  # looks in vain that are left before the next choice

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return super().nbytes + sum(a.nbytes for a in (self._later, self._firsts, self._ends, self._slots))

    @property
    def partitions(self) -> int:
        """How many partitions there are; none before a row with a known end came."""
        return len(self._firsts)

    @property
    def width(self) -> int:
        """The ticks of a partition."""
        return 1 << self._shift

    def describe(self) -> str:
        """For EXPLAIN."""
        if not self.partitions:
            return "calendar queue"
        return f"calendar queue, {self.partitions} partitions of {self.width} tick{'s' if self._shift else ''}"

    def _rows_each(self) -> float:
        """How many of the rows that come one partition is made for."""
        return ROWS_EACH

    def _came(self, base: int, stop: int) -> None:
        self._later = grown(self._later, base, stop)
        self._room -= stop - base
        if self._room < 0 and self._choose():
            return
        self._schedule(base, stop)

    def _schedule(self, base: int, stop: int) -> None:
        if self.partitions:  # else no row has a known end
            self._ends, self._slots, self._held = schedule(
                base, stop, NEVER, self._shift, self._day, self.exp, self._state,
                self._firsts, self._later, self._ends, self._slots, self._held,
            )  # fmt: skip

    def _choose(self) -> bool:
        """Choose number and width of the partitions from the rows that are there, and put them in, if any."""
        self._unchosen()
        waiting = (self._state[self._floor : self._used] == LIVE) & (self.exp[self._floor : self._used] != NEVER)
        rows = self._floor + np.flatnonzero(waiting)
        if not len(rows):
            return False
        sample = rows[:: 1 + len(rows) // SAMPLE]
        now = int(self.ts[sample].min()) if self._upto is None else self._upto
        # Most rows end within one lap, the few that live longest wait for another; floats, as ends may be far away.
        spans = np.maximum(self.exp[sample].astype(np.float64) - now, 1.0)
        lap = 1.25 * float(np.quantile(spans, 0.9))
        partitions = max(FEWEST, 1 << int(len(rows) / self._rows_each()).bit_length())
        self._shift = max(0, int(np.ceil(np.log2(lap / partitions))))
        self._firsts = np.full(partitions, NONE, np.int32)
        self._day = now >> self._shift
        self._room = GROWTH * max(len(rows), FEW)
        self._patience = GROWTH * max(len(rows) + partitions, SAMPLE)
        self._schedule(int(rows[0]), self._used)
        return True

    def _due(self, upto: int) -> Ints:
        if self._upto is not None and upto <= self._upto:
            upto = self._upto
        self._upto = upto
        if not self.partitions:
            return np.empty(0, np.int64)
        ended, self._ends, self._slots, self._held, looked, passed = pass_days(
            upto, self._shift, self._day, self.exp, self._state,
            self._firsts, self._later, self._ends, self._slots, self._held,
        )  # fmt: skip
        self._day = max(self._day, upto >> self._shift)
        self.looked += looked
        self.passed += passed
        self._patience -= looked - len(ended) + passed
        if self._patience < 0:
            self._choose()
        return ended

    def _renumbered(self) -> None:
        self._later = np.empty(len(self.ts), np.int32)
        self._choose()
