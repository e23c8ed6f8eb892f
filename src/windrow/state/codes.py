"""Codes of rows and keys in buffers: a dictionary is made smaller when most of it is about rows that are gone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from windrow.state.buffer import Buffer
from windrow.synopses.groups import Groups

FEW = 65_536
"""So many codes that nobody holds are not worth forgetting."""


def forget_codes(groups: Groups, users: Sequence[tuple[Buffer, int]]) -> None:
    """Keep only codes that these buffers hold, in these indexes. Amortised O(1) per code."""
    if few_unused(groups, sum(len(buffer) for buffer, _ in users)):
        return
    live = np.unique(np.concatenate([buffer.codes(index) for buffer, index in users]))
    mapping = np.full(len(groups), -1, np.int32)
    mapping[live] = np.arange(len(live), dtype=np.int32)
    groups.compact(live)
    for buffer, index in users:
        buffer.recode(index, mapping)


def few_unused(groups: Groups, held: int) -> bool:
    """Whether a dictionary is not much larger than what `held` rows need."""
    return len(groups) <= 4 * held + FEW
