"""The contract of every synopsis: pane partials in, partials of windows out, vectorised over groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from windrow.aggregates import Component
from windrow.kernels.find import rank_ticks
from windrow.kernels.jit import Codes, Ints, frozen
from windrow.synopses.matrix import Matrix
from windrow.synopses.queue import Queue

_IN_ORDER = np.arange(1 << 12)
"""Made once: panes come in small batches, for which this would take as long as the rest of an update."""


class Synopsis(ABC):
    """Summarises one component over panes (lo, hi], named by hi and given in order, for groups 0..groups-1."""

    name: ClassVar[str]

    def __init__(self, component: Component, groups: int = 0) -> None:
        self.admit(component)
        self.component = component
        self.groups = groups
        self._edges = Queue(np.int64)
        self._matrix = Matrix(self._identity(), groups)

    @classmethod  # noqa: B027 - most admit every component
    def admit(cls, component: Component) -> None:
        """Raise ValueError if the synopsis cannot keep such a component."""

    def _identity(self) -> Ints:
        return self.component.identity

    @property
    def edges(self) -> Ints:
        """The upper edges of the panes; valid until the next update."""
        return self._edges.rows

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self._matrix.nbytes + self._edges.nbytes

    @property
    def words(self) -> Ints:
        """All that is stored of the panes, as [panes, words, groups], to be changed in place."""
        return self._matrix.rows

    def __len__(self) -> int:
        return len(self._edges)

    def update(self, panes: Ints, partials: Ints, order: Ints | None = None) -> None:
        """Append panes (upper edges, ascending); pane k is partials[:, order[k]] of [words, slots, groups]."""
        if order is None:
            order = _IN_ORDER[: len(panes)] if len(panes) <= len(_IN_ORDER) else np.arange(len(panes))
        if partials.shape[2] > self._matrix.stride:
            self.reserve(partials.shape[2])
        self.groups = max(self.groups, partials.shape[2])
        self._append(partials, order)
        self._edges.push(panes)

    def range_of(self, starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
        """The panes first..last-1 of each window (start, end]: those with start < edge <= end."""
        return ranges(self.edges, starts, ends)

    def lookup(self, starts: Ints, ends: Ints) -> Ints:
        """The partials [words, windows, groups] of each window (start, end], for every group."""
        first, last = self.range_of(starts, ends)
        offsets = np.arange(len(first) + 1) * self.groups
        out = np.empty((len(self.component.dtypes), int(offsets[-1])), np.int64)
        self.answer(first, last, self.groups, offsets, np.empty(0, np.int32), out)
        return out.reshape(len(out), len(first), self.groups)

    def expire(self, edge: int) -> int:
        """Forget panes with upper edge <= edge; says how many."""
        gone = int(self.edges.searchsorted(edge, "right"))
        if gone:
            self._matrix.drop(gone)
            self._edges.drop(gone)
        return gone

    def reserve(self, stride: int) -> None:
        """Room for more groups."""
        self._matrix.widen(stride)

    def select(self, groups: Any, stride: int) -> None:
        """Keep these groups only, renumbered in this order."""
        self._matrix.select(groups, stride)
        self.groups = len(groups)

    def twin(self, component: Component) -> Synopsis:
        """The same numbers for another component of the same algebra."""
        other = type(self)(component, 0)
        other.groups, other._edges, other._matrix = self.groups, self._edges.copied(), self._matrix.twin()
        return other

    def prepare(self, lengths: Sequence[int]) -> None:  # noqa: B027 - most need no hint
        """Windows of so many panes will be looked up: a hint, which may be given again at any time."""

    def snapshot(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """A JSON-able dict, and named arrays for `snapshot.pack`."""
        meta = {"synopsis": self.name, "component": self.component.name, "groups": self.groups}
        return meta, {"edges": self.edges, "partials": self._matrix.rows[:, :, : self.groups]}

    def restore(self, meta: dict[str, Any], arrays: dict[str, Any]) -> None:
        """Become what `snapshot` wrote."""
        self._check(meta)
        self.groups = meta["groups"]
        self._edges.load(arrays["edges"])
        if self.groups > self._matrix.stride:
            self._matrix = Matrix(self._identity(), self.groups)
        self._matrix.load_groups(arrays["partials"], len(self.edges) + self._extra_rows, self.groups)

    def _check(self, meta: dict[str, Any]) -> None:
        found = (meta["synopsis"], meta["component"])
        if found != (self.name, self.component.name):
            raise ValueError(f"the snapshot is of {found}, this synopsis is {(self.name, self.component.name)}")

    _extra_rows: ClassVar[int] = 0

    @abstractmethod
    def answer(self, first: Ints, last: Ints, groups: int, offsets: Ints, present: Codes, out: Ints) -> None:
        """The hot path: window i over panes first[i]..last[i]-1 writes out[:, offsets[i]:offsets[i+1]].

        Those are the partials of the groups present[offsets[i]:offsets[i+1]], or of all groups if they are that many.
        """

    @abstractmethod
    def leaves(self) -> Ints:
        """The partials [words, panes, stride] of all panes, for `update` of another synopsis."""

    @abstractmethod
    def partials(self, panes: Any, groups: Any) -> Ints:
        """The partials [words, cells] of single (pane, group) cells, given by position."""

    @abstractmethod
    def _append(self, partials: Ints, order: Ints) -> None:
        """Take the partials of the next panes."""


def ranges(edges: Ints, starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """The panes first..last-1 of each window (start, end], given the upper edges of all panes."""
    first, last = np.empty(len(starts), np.int64), np.empty(len(ends), np.int64)
    edges = frozen(edges)
    rank_ticks(edges, frozen(starts), first)
    rank_ticks(edges, frozen(ends), last)
    return first, np.maximum(first, last)
