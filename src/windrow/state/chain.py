"""An index of a buffer: the slots with each code, newest first, as chains in flat arrays.

The owner gives every row a code (`synopses.groups.Groups`: equal keys, equal codes). Insert O(1) per row; probe O(1)
per code and row found, and each dead slot is walked over once. Space: 8 bytes per slot, 4 per code, 8 if
rows are cut.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.errors import QueryError
from windrow.kernels.jit import Codes, Ints, frozen
from windrow.kernels.state import (
    NONE,
    Flags,
    count_chains,
    cut_chains,
    link_slots,
    order_cuts,
    probe_chains,
    recode_slots,
)
from windrow.state.columns import FEW, grown


class TooMany(QueryError):
    """A probe would give more pairs than allowed: `count` of them, where `limit` was the most."""

    def __init__(self, count: int, limit: int) -> None:
        self.count = count
        self.limit = limit
        super().__init__(
            f"expected at most {limit} pairs of rows with equal keys in one step, found {count}; "
            "join on more columns, take shorter windows, or raise the limit"
        )


class Chain:
    """Slots by code."""

    def __init__(self) -> None:
        self._heads: Codes = np.empty(0, np.int32)
        self._after: Codes = np.empty(0, np.int32)
        self._codes: Codes = np.empty(0, np.int32)
        self._firsts: Codes = np.empty(0, np.int32)  # for `order_cuts`
        self._share = 1.0  # pairs per code of the last probe: how much room the next one gets

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self._heads.nbytes + self._after.nbytes + self._codes.nbytes + self._firsts.nbytes

    def link(self, codes: Codes, base: int) -> None:
        """Rows come: slots base, base + 1, … have these codes; a negative one is found by no probe."""
        stop = base + len(codes)
        self._codes = grown(self._codes, base, stop)
        self._after = grown(self._after, base, stop)
        self._codes[base:stop] = codes
        codes = self._codes[base:stop]
        done = 0
        while (done := link_slots(codes, done, base, self._heads, self._after)) < len(codes):
            known = len(self._heads)
            self._heads = grown(self._heads, known, int(codes.max()) + 1)
            self._heads[known:] = NONE

    def probe(self, codes: Codes, limit: int, state: Flags, floor: int, holes: bool) -> tuple[Ints, Ints]:
        """All pairs (which of the codes, slot)."""
        codes = coded(codes)
        which: list[Any] = []
        slots: list[Any] = []
        total, begin, slot = 0, 0, NONE
        room = int(len(codes) * self._share * 1.25) + FEW
        while begin < len(codes):
            room = min(room, limit - total)
            if room <= 0:
                rest = count_chains(codes, begin, slot, self._heads, self._after, state, floor)
                if rest:
                    raise TooMany(total + rest, limit)
                break
            some, found = np.empty(room, np.int64), np.empty(room, np.int64)
            begin, slot, given = probe_chains(
                codes, begin, slot, self._heads, self._after, state, floor, holes, some, found
            )
            which.append(some[:given])
            slots.append(found[:given])
            total += given
            room = max(2 * room, total)
        if len(codes):
            self._share = total / len(codes)
        if len(which) == 1:
            return which[0], slots[0]
        if not which:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        return np.concatenate(which), np.concatenate(slots)

    def cut(
        self, codes: Codes, times: Ints, ends: Ints, ts: Ints, exp: Ints, was: Ints, state: Flags, floor: int, mark: int
    ) -> Ints:
        """A slot for each negative tuple (see `cut_chains`), NONE where there is none."""
        codes, times, ends = coded(codes), frozen(times), frozen(ends)
        if len(self._firsts) < len(self._heads):
            self._firsts = np.full(len(self._heads), NONE, np.int32)
        order = order_cuts(codes, ends, self._firsts)
        found = np.empty(len(codes), np.int64)
        cut_chains(order, codes, times, ends, self._heads, self._after, ts, exp, was, state, floor, mark, found)
        return found

    def codes(self, slots: Ints) -> Codes:
        """The codes of these slots."""
        return self._codes[slots]

    def keep(self, slots: Ints) -> None:
        """Forget all slots but these; slots[k] becomes k."""
        codes = self._codes[slots]
        self._heads.fill(NONE)
        self._after, self._codes = np.empty(0, np.int32), np.empty(0, np.int32)
        self.link(codes, 0)

    def recode(self, mapping: Codes, used: int, state: Flags) -> None:
        """Code c of the living slots becomes mapping[c]."""
        codes = self._codes[:used]
        recode_slots(codes, coded(mapping), state)
        self._heads, self._firsts = np.empty(0, np.int32), np.empty(0, np.int32)
        self.link(codes, 0)


def coded(codes: Codes) -> Codes:
    """Codes in the form for which the kernels are compiled."""
    return frozen(np.asarray(codes, np.int32))
