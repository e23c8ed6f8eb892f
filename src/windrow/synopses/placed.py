"""Where the rows of a batch go in a share group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.jit import Codes


@dataclass(frozen=True)
class Placed:
    """The open cell of each row, and the pane and group that it stands for."""

    cells: Codes
    slots: Codes
    gids: Codes | None

    def of(self, valid: NDArray[np.bool_] | None) -> tuple[Codes, Codes]:
        """Slot and group of the rows that are valid."""
        gids = np.zeros(len(self.slots), np.int32) if self.gids is None else self.gids
        return (self.slots, gids) if valid is None else (self.slots[valid], gids[valid])
