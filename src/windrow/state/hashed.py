"""Hash of rows: negative tuples end them (STR under the negative tuple approach, thesis 3.5.2).

There is no structure by time: `expire` gives the rows that were cut, and those that came with a known end (an edge
under negative tuples has such rows only where they begin and end in one epoch). Cost: these rows. A row with a known
end in a later epoch is right but dear: every `expire` until then looks at it.
"""

from __future__ import annotations

import numpy as np

from windrow.kernels.jit import Ints
from windrow.state.buffer import Buffer
from windrow.state.rows import NEVER

NOTHING = np.empty(0, np.int64)


class Hashed(Buffer):
    """Rows whose end is unknown until a negative tuple comes."""

    def describe(self) -> str:
        """For EXPLAIN."""
        return "hash of rows, ended by negative tuples"

    def _came(self, base: int, stop: int) -> None:
        known = self.exp[base:stop] != NEVER
        if known.any():
            self._announce(base + np.flatnonzero(known))

    def _due(self, upto: int) -> Ints:
        return NOTHING  # all that is known to end has been announced

    def _renumbered(self) -> None:
        pass
