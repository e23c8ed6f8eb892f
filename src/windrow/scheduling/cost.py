"""What one joint execution costs: probing a synopsis, and post-processing each query (thesis 8.4.4, rules CS1 and CS2).

| synopsis | probing it for some windows together | |
|---|---|---|
| `basic_interval` | longest window − 1 combines | one scan answers all windows on its way |
| `running` | one subtraction per different window | |
| `interval` | log₂ b combines per different window | b: intervals of the synopsis |

All of them are *coverings*: an execution needs some parts (stretches of the scan, windows) and pays each needed part
once, and besides that something for each sub-group by itself. `hybrid` makes use of that. The units are arbitrary, or
seconds after `fitted`; keeping a synopsis up to date costs the same under every schedule and does not count here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil, log2
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from windrow.scheduling.task import SubGroup

Kind = Literal["basic_interval", "running", "interval"]
KINDS: tuple[Kind, ...] = ("basic_interval", "running", "interval")

JointCost = Callable[[Sequence[SubGroup]], float]
"""The cost of executing some sub-groups of one group together, once."""


@dataclass(frozen=True)
class Parts:
    """A covering: sub-group i needs the parts needs[i] (bool [sub-groups, parts]) and own[i] for itself."""

    prices: Any
    needs: Any
    own: Any
    nested: bool
    """Every sub-group needs the first so many parts: one number says which."""


@runtime_checkable
class Covering(Protocol):
    """A cost that can say which parts it consists of."""

    def __call__(self, members: Sequence[SubGroup]) -> float:
        """The cost of one joint execution."""

    def parts(self, members: Sequence[SubGroup]) -> Parts:
        """The same, for any of these members."""


@dataclass(frozen=True)
class ProbeCost:
    """The cost of probing one synopsis for all windows of an execution.

    >>> seven = [SubGroup(2, (5, 6, 10)), SubGroup(3, (12, 15)), SubGroup(5, (20, 30))]
    >>> [ProbeCost()([one]) for one in seven], ProbeCost()(seven)
    ([9.0, 14.0, 29.0], 29.0)
    >>> ProbeCost("running")(seven), ProbeCost("interval", intervals=32)(seven)
    (7.0, 35.0)
    >>> ProbeCost(post=2)(seven), ProbeCost(read=0.1)(seven)
    (43.0, 38.8)
    """

    synopsis: Kind = "basic_interval"
    combine: float = 1.0
    """Merging the partials of two intervals, or subtracting them."""
    post: float = 0.0
    """Post-processing per query, beside what the task itself says."""
    read: float = 0.0
    """Post-processing per query and interval of its window: the longer the window, the more groups it has."""
    start: float = 0.0
    """Per execution."""
    intervals: int | None = None
    """b of an interval synopsis; by default it is as long as the window."""

    def __post_init__(self) -> None:
        if self.synopsis not in KINDS:
            raise ValueError(f"the synopsis must be one of {', '.join(KINDS)}; found {self.synopsis!r}")

    def __call__(self, members: Sequence[SubGroup]) -> float:
        """The cost of one joint execution."""
        if not members:
            return 0.0
        own = sum(self._own(one) for one in members)
        if self.synopsis == "basic_interval":
            return self.start + own + self.combine * (max(one.longest for one in members) - 1)
        return self.start + own + sum(self._window(length) for length in {w for one in members for w in one.lengths})

    def parts(self, members: Sequence[SubGroup]) -> Parts:
        """The first part is the start; the others are windows, or stretches of the scan between two windows."""
        lengths = sorted({length for one in members for length in one.lengths})
        nested = self.synopsis == "basic_interval"
        if nested:
            prices = self.combine * np.diff(np.array([1, *lengths], np.float64))
            needs = [[length <= one.longest for length in lengths] for one in members]
        else:
            prices = np.array([self._window(length) for length in lengths])
            held = [frozenset(one.lengths) for one in members]
            needs = [[length in one for length in lengths] for one in held]
        first = np.ones((len(members), 1), bool)
        return Parts(
            np.concatenate([[self.start], prices]),
            np.hstack([first, np.array(needs, bool).reshape(len(members), len(lengths))]),
            np.array([self._own(one) for one in members]),
            nested,
        )

    def fitted(self, measured: Sequence[tuple[Sequence[SubGroup], float]]) -> ProbeCost:
        """The same model with the numbers that meet measured seconds best (least squares, none below 0).

        >>> truth = ProbeCost(combine=2e-6, post=3e-5, read=1e-7, start=1e-4)
        >>> runs = [[SubGroup(1, (w,) * q)] for w in (2, 50, 100) for q in (1, 5)]
        >>> found = ProbeCost().fitted([(run, truth(run)) for run in runs])
        >>> [round(number * 1e6, 3) for number in (found.combine, found.post, found.read, found.start)]
        [2.0, 30.0, 0.1, 100.0]
        """
        extra = np.array([self._priced()(run) for run, _ in measured])
        single = [self._priced(*one) for one in np.eye(4).tolist()]
        rows = np.array([[model(run) for model in single] for run, _ in measured]) - extra[:, None]
        seconds = np.array([spent for _, spent in measured]) - extra
        numbers = np.zeros(4)
        used = list(range(4))
        while used:
            found = np.linalg.lstsq(rows[:, used], seconds, rcond=None)[0]
            if (found >= 0).all():
                numbers[used] = found
                break
            used.pop(int(found.argmin()))
        return self._priced(*numbers.tolist())

    def _priced(self, start: float = 0.0, combine: float = 0.0, post: float = 0.0, read: float = 0.0) -> ProbeCost:
        return replace(self, start=start, combine=combine, post=post, read=read)

    def _own(self, one: SubGroup) -> float:
        return one.post + self.post * one.queries + self.read * one.intervals

    def _window(self, length: int) -> float:
        if self.synopsis == "running":
            return self.combine
        return self.combine * max(1, ceil(log2(self.intervals or length)))
