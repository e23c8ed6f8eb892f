"""What the chooser goes by: the windows that are registered, and what their lookups have cost so far."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from math import inf

import numpy as np

from windrow.kernels.jit import Ints

SHORT = 4
"""Windows of so few panes are combined pane by pane as fast as in any other way."""


def landmark_steps(lengths: Iterable[int]) -> Ints:
    """The distance of landmarks in each partition: the power of two at or below the lengths of its windows.

    So W_max / W_min < 2 in a partition (c of 002, 3.1.2), a window with a few panes missing is mostly still in its
    partition, and one more window changes nothing if there is one of similar length.

    >>> landmark_steps([100, 3, 127, 128, 400, 255]).tolist()
    [64, 128, 256]
    """
    return np.array(sorted({1 << length.bit_length() - 1 for length in lengths if length > SHORT}), np.int64)


@dataclass(frozen=True)
class Expected:
    """The registered windows: (length in panes, lookups per pane) if no pane is missing; unbounded ones have inf."""

    windows: tuple[tuple[float, float], ...] = ()

    @cached_property
    def lengths(self) -> list[int]:
        """The different lengths, in whole panes."""
        return sorted({max(1, round(length)) for length, _ in self.windows if length < inf})

    @property
    def longest(self) -> float:
        """In panes."""
        return max((length for length, _ in self.windows), default=0.0)

    @property
    def lookups(self) -> float:
        """How many windows are looked up per pane."""
        return sum(rate for _, rate in self.windows)

    @property
    def instants(self) -> float:
        """At how many instants per pane something is due, if the slides are aligned."""
        return max((rate for _, rate in self.windows), default=0.0)

    @property
    def together(self) -> float:
        """How many windows are looked up at one instant, on average."""
        return self.lookups / self.instants if self.windows else 0.0

    def numbers(self) -> list[list[float]]:
        """For a snapshot; an unbounded length is -1, which JSON can write."""
        return [[-1.0 if length == inf else length, rate] for length, rate in self.windows]

    @classmethod
    def of(cls, numbers: Sequence[Sequence[float]]) -> Expected:
        """The inverse of `numbers`."""
        return cls(tuple((inf if length < 0 else length, rate) for length, rate in numbers))


@dataclass
class Seen:
    """What was asked of one component: panes, windows, and the row combines that each synopsis would have needed."""

    panes: int = 0
    windows: int = 0
    basic_interval: int = 0
    interval: int = 0
    landmark: int = 0

    def look(self, windows: int, scan: int, dyadic: int, marked: int) -> None:
        """Count a call: scans are open to every synopsis, covers to the one that has them."""
        self.windows += windows
        self.basic_interval += scan
        self.interval += min(scan, dyadic)
        self.landmark += min(scan, marked)

    def fade(self) -> None:
        """What is long past counts half."""
        for name, value in zip(self.__dataclass_fields__, self.numbers(), strict=True):
            setattr(self, name, value // 2)

    def numbers(self) -> list[int]:
        """For a snapshot."""
        return list(astuple(self))
