"""Plain list: what has expired is found by looking at every row (the DIRECT strategy, thesis 3.3.3).

The measured baseline: expire costs O(rows held), whatever the order in which they end. No space beyond the rows.
"""

from __future__ import annotations

from windrow.kernels.jit import Ints
from windrow.kernels.state import due_anywhere
from windrow.state.buffer import Buffer


class Listed(Buffer):
    """Rows in the order in which they came."""

    def describe(self) -> str:
        """For EXPLAIN."""
        return "list, scanned for expired rows"

    def _came(self, base: int, stop: int) -> None:
        pass

    def _due(self, upto: int) -> Ints:
        return due_anywhere(self._floor, self._used, upto, self.exp, self._state)

    def _renumbered(self) -> None:
        pass
