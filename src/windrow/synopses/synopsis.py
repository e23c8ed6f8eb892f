"""The contract of every synopsis: pane partials in, partials of windows out, vectorised over groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from windrow.aggregates import Component
from windrow.kernels.jit import Codes, Ints
from windrow.synopses.matrix import Matrix


class Synopsis(ABC):
    """Summarises one component over panes (lo, hi], named by hi and given in order, for groups 0..groups-1."""

    name: ClassVar[str]

    def __init__(self, component: Component, groups: int = 0) -> None:
        self.component = component
        self.groups = groups
        self.edges: Ints = np.empty(0, np.int64)
        self._matrix = Matrix(self._identity(), groups)

    def _identity(self) -> Ints:
        return self.component.identity

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self._matrix.nbytes + int(self.edges.nbytes)

    @property
    def words(self) -> Ints:
        """What is stored of the panes, as [panes, words, groups]."""
        return self._matrix.rows(self._matrix.stride)

    def __len__(self) -> int:
        return len(self.edges)

    def update(self, panes: Ints, partials: Ints, order: Ints | None = None) -> None:
        """Append panes (upper edges, ascending); pane k is partials[:, order[k]] of [words, slots, groups]."""
        if order is None:
            order = np.arange(len(panes))
        if partials.shape[2] > self._matrix.stride:
            self.reserve(partials.shape[2])
        self.groups = max(self.groups, partials.shape[2])
        self._append(partials, order)
        self.edges = np.concatenate([self.edges, panes])

    def range_of(self, starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
        """The panes first..last-1 of each window (start, end]: those with start < edge <= end."""
        first = np.searchsorted(self.edges, starts, side="right")
        return first, np.maximum(first, np.searchsorted(self.edges, ends, side="right"))

    def lookup(self, starts: Ints, ends: Ints) -> Ints:
        """The partials [words, windows, groups] of each window (start, end], for every group."""
        first, last = self.range_of(starts, ends)
        offsets = np.arange(len(first) + 1) * self.groups
        out = np.empty((len(self.component.dtypes), int(offsets[-1])), np.int64)
        self.answer(first, last, self.groups, offsets, np.empty(0, np.int32), out)
        return out.reshape(len(out), len(first), self.groups)

    def expire(self, edge: int) -> int:
        """Forget panes with upper edge <= edge; says how many."""
        gone = int(np.searchsorted(self.edges, edge, side="right"))
        if gone:
            self._matrix.drop(gone)
            self.edges = self.edges[gone:].copy()
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
        other.groups, other.edges, other._matrix = self.groups, self.edges.copy(), self._matrix.copy()
        return other

    def snapshot(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """A JSON-able dict, and named arrays for `snapshot.pack`."""
        meta = {"synopsis": self.name, "component": self.component.name, "groups": self.groups}
        return meta, {"edges": self.edges, "partials": self._matrix.rows(self.groups)}

    def restore(self, meta: dict[str, Any], arrays: dict[str, Any]) -> None:
        """Become what `snapshot` wrote."""
        found = (meta["synopsis"], meta["component"])
        if found != (self.name, self.component.name):
            raise ValueError(f"the snapshot is of {found}, this synopsis is {(self.name, self.component.name)}")
        self.groups = meta["groups"]
        self.edges = np.array(arrays["edges"])
        if self.groups > self._matrix.stride:
            self._matrix = Matrix(self._identity(), self.groups)
        self._matrix.load(arrays["partials"], len(self.edges) + self._extra_rows, self.groups)

    _extra_rows: ClassVar[int] = 0

    @abstractmethod
    def answer(self, first: Ints, last: Ints, groups: int, offsets: Ints, present: Codes, out: Ints) -> None:
        """The hot path: window i over panes first[i]..last[i]-1 writes out[:, offsets[i]:offsets[i+1]].

        Those are the partials of the groups present[offsets[i]:offsets[i+1]], or of all groups if they are that many.
        """

    @abstractmethod
    def partials(self, panes: Any, groups: Any) -> Ints:
        """The partials [words, cells] of single (pane, group) cells, given by position."""

    @abstractmethod
    def _append(self, partials: Ints, order: Ints) -> None:
        """Take the partials of the next panes."""
