"""Counts and exact integer sums by group: totals that rows add to when they begin and take from when they end.

O(1) per event: the changes of each cell are added up along the cells of its group. Space: a few words per group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from windrow.aggregates.count import Count
from windrow.kernels.changes import Flags, run_totals
from windrow.kernels.jit import Ints, frozen
from windrow.operators.group_events import Events, Kept, Part
from windrow.synopses.snapshot import numpy_of


class RunningTotals(Kept):
    """The words of subtractable components, [words, groups]."""

    kind = "running totals"

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = tuple(parts)
        widths = [len(component.dtypes) for component, _ in self.parts]
        self._places = np.concatenate([[0], np.cumsum(widths)])
        self._state: Ints = np.zeros((sum(widths), 0), np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self._state.nbytes

    def grow(self, groups: int, slots: int) -> None:
        """Zero for new groups."""
        if groups > self._state.shape[1]:
            state = np.zeros((len(self._state), groups), np.int64)
            state[:, : self._state.shape[1]] = self._state
            self._state = state

    def keep(self, live: Ints) -> None:
        """Gather."""
        self._state = np.ascontiguousarray(self._state[:, live])

    def step(self, events: Events) -> dict[Part, tuple[Any, ...]]:
        """What begins is added at its cell, what ends taken away; then totals along the cells."""
        words = np.zeros((len(self._state), events.count), np.int64)
        self._scatter(events, events.sign > 0, words)
        ended = events.sign < 0
        if ended.any():
            gone = np.zeros_like(words)
            self._scatter(events, ended, gone)
            words -= gone
        run_totals(events.groups, self._state, words)
        return {
            part: part[0].typed(words[low:high])
            for part, low, high in zip(self.parts, self._places[:-1], self._places[1:], strict=True)
        }

    def _scatter(self, events: Events, chosen: Flags, into: Ints) -> None:
        """Accumulate these events at their cells."""
        whole = bool(chosen.all())
        cells = events.cells if whole else events.cells[chosen]
        for (component, program), low, high in zip(self.parts, self._places[:-1], self._places[1:], strict=True):
            if program is None:
                component.accumulate(into[low:high], cells, cells)  # type: ignore[arg-type]
                continue
            array = events.values[program]
            rows, here = chosen, cells
            if array.null_count:
                rows = chosen & array.is_valid().to_numpy(zero_copy_only=False)
                here = events.cells[rows]
            if isinstance(component, Count):
                component.accumulate(into[low:high], here, here)  # type: ignore[arg-type]
            else:
                lifted = component.lift(array)
                lifted = lifted if whole and rows is chosen else lifted[rows]
                component.accumulate(into[low:high], here, frozen(lifted))  # type: ignore[arg-type]

    def snapshot(self, groups: int) -> dict[str, Any]:
        """The totals."""
        return {"state": self._state[:, :groups].reshape(-1)}

    def restore(self, arrays: Mapping[str, Any], *_: Any) -> None:
        """The totals."""
        self._state = numpy_of(arrays["state"]).reshape(len(self._state), -1)
