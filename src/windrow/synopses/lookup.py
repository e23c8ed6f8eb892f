"""What a share group answers: the partials of several windows, flat."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from windrow.kernels.jit import Codes, Ints


@dataclass(frozen=True)
class Lookup:
    """Answers of several windows, flat, ordered by window and then by group."""

    offsets: Ints
    """Rows offsets[i]..offsets[i+1]-1 belong to window i."""
    present: Codes
    """The gid of each row; empty when every window has all groups."""
    groups: int
    words: tuple[tuple[Any, ...], ...]
    """The typed words of each component asked for: NumPy arrays, for strings an Arrow array."""

    @cached_property
    def group(self) -> Codes:
        """The gid of each row; valid until the next `expire`, which may renumber groups."""
        if len(self.present) == len(self):
            return self.present
        return np.tile(np.arange(self.groups, dtype=np.int32), len(self.offsets) - 1)

    @cached_property
    def window(self) -> Codes:
        """The index of the window of each row."""
        return np.repeat(np.arange(len(self.offsets) - 1, dtype=np.int32), np.diff(self.offsets))

    def __len__(self) -> int:
        return int(self.offsets[-1])
