"""What the synopses for any component have in common: they keep every pane, and combine rows to answer a window.

A pane has one row of its own and, depending on the synopsis, more rows for intervals that end or begin near it; all of
them expire with the pane. Three ways lead to the answers of a call, and the cheapest is taken, counted in combines of
whole rows:

- *cover*: each window for itself, from the intervals that cover it; how many these are is what the synopses differ in.
  Where few groups are wanted of MIN or MAX, those that a HAVING has left, only they are combined;
- *slide*: two stacks (Tangwongsan et al. 2017) for windows that advance: at most three combines per pane that enters
  and one per answer, whatever the window's length; with few groups one group after the other. That takes 7 ns per
  answer where a monotone deque for MIN and MAX takes 13, and 3 where that takes 16 with a hundred groups, so there is
  no deque;
- *scan*: windows that end at the same instant are answered along the way of one scan, from the youngest pane to the
  oldest (thesis 8.3.1, rule CS2).

What each synopsis would have paid is counted, and is what the chooser goes by. Windows are combined from left to
right, so that the order may matter.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from windrow.aggregates import Component
from windrow.kernels.combine import (
    ADD,
    MAX,
    MIN,
    POINT,
    build_rows,
    combine_covers,
    scan_back,
    slide_panes,
    slide_single,
    weigh_slide,
)
from windrow.kernels.dyadic import weigh_dyadic
from windrow.kernels.jit import Codes, Ints
from windrow.kernels.landmarks import weigh_landmarks
from windrow.synopses.matrix import Matrix
from windrow.synopses.synopsis import Synopsis
from windrow.synopses.workload import Seen, landmark_steps

SAMPLE = 500
"""About so many windows of a call are weighed."""
CHUNK = 4096
"""Windows that are covered at once: their rows fit in the cache."""
FEW = 8
"""Up to so many groups are slid one after the other."""
SORTING = 50
"""Sorting a window costs as much as combining so many numbers."""


class Combining(Synopsis):
    """Row k holds the partials of pane k, and of the intervals that are kept with it."""

    def __init__(self, component: Component, groups: int = 0) -> None:
        self.first = 0
        """The number of the oldest pane; panes are numbered from the first that ever came."""
        self.steps: Ints = np.empty(0, np.int64)
        """The distances of landmarks that the windows ask for."""
        self.seen = Seen()
        super().__init__(component, groups)

    @property
    def rows_per_pane(self) -> int:
        """The pane's own, and those of intervals."""
        return 1

    def _identity(self) -> Ints:
        return np.tile(self.component.identity, self.rows_per_pane)

    @property
    def _store(self) -> Ints:
        """One row [words, stride] after the other: those of pane k begin at k · rows_per_pane."""
        data = self._matrix.data
        return data.reshape(-1, len(self.component.dtypes), data.shape[2])

    @property
    def _base(self) -> int:
        """The number that a pane in the first row of the store would have."""
        return self.first - self._matrix.start

    def _append(self, partials: Ints, order: Ints) -> None:
        matrix, words = self._matrix, len(self.component.dtypes)
        matrix.reserve(len(order))
        width = partials.shape[2]
        rows = matrix.data[matrix.stop : matrix.stop + len(order)]
        rows[:, :words, :width] = partials[:, order].swapaxes(0, 1)
        rows[:, :words, width:] = self.component.identity[None, :, None]
        rows[:, words:] = matrix.identity[None, words:, None]
        matrix.stop += len(order)
        self.seen.panes += len(order)
        self._build(len(order))

    def _build(self, panes: int) -> None:
        """Fill the intervals that the last panes complete."""
        if self.rows_per_pane > 1 and panes:
            end = self.first + len(self._matrix)
            targets, lefts, rights = self._plan(end - panes, end)
            build_rows(self.component.op, self._store, targets, lefts, rights, self._matrix.stride)

    def _plan(self, begin: int, end: int) -> tuple[Ints, Ints, Ints]:
        """Targets, lefts and rights for `build_rows`, when panes begin..end-1 have come."""
        raise NotImplementedError(self.name)

    def expire(self, edge: int) -> int:
        """Forget panes with upper edge <= edge; says how many."""
        gone = super().expire(edge)
        self.first += gone
        return gone

    def prepare(self, lengths: Any) -> None:
        """Where landmarks would be."""
        self.steps = landmark_steps(lengths)

    # ---- answers --------------------------------------------------------------------------------------------------

    def answer(self, first: Ints, last: Ints, groups: int, offsets: Ints, present: Codes, out: Ints) -> None:
        """In the cheapest of three ways."""
        slide, cover, order = self._weigh(first, last, groups, int(offsets[-1]))
        start, step, op = self._matrix.start, self.rows_per_pane, self.component.op
        identity = self.component.identity
        if cover < slide and order is None:
            self._cover(first, last, groups, offsets, present, out)
        elif order is None and self._plain and groups <= FEW and offsets[-1] == groups * len(first):
            for group in range(groups):
                where = (first + start, last + start, group)
                slide_single(op, self._store, step, *where, identity, offsets, out)
        elif order is None:
            where = (first + start, last + start, groups)
            slide_panes(op, self._store, step, *where, identity, offsets, present, out)
        else:
            where = (first + start, last + start, groups)
            scan_back(op, self._store, step, order, *where, identity, offsets, present, out)

    @property
    def _plain(self) -> bool:
        """Whether a partial is one word of ADD, MIN or MAX, for which there are faster kernels."""
        return len(self.component.dtypes) == 1 and self.component.op in (ADD, MIN, MAX)

    def _weigh(self, first: Ints, last: Ints, groups: int, rows: int) -> tuple[int, int, Ints | None]:
        """The combines of sliding and of covering; the order of windows if one scan per end is cheaper than both.

        A cover is the only way that gains when few groups are wanted: then it does not combine whole rows.
        """
        slide = weigh_slide(first, last)
        # What a cover costs does not depend on the windows before it, so some of them tell enough.
        every = len(first) // SAMPLE + 1
        some = np.ascontiguousarray(first[::every]), np.ascontiguousarray(last[::every])
        share = min(1.0, POINT * rows / max(1, groups * len(first))) if self._plain else 1.0
        scale = share * len(first) / max(1, len(some[0]))
        dyadic = int(scale * weigh_dyadic(*some, self.first))
        marked = int(scale * weigh_landmarks(*some, self.first, self.steps))
        panes = slide if share == 1.0 else int(share * (last - first).sum())
        cover = self._cover_cost(panes, dyadic, marked)
        order, scan = None, slide
        if len(first) > 1 and min(slide, cover) * groups > SORTING * len(first):
            order = np.lexsort((-first, last))
            # The longest of those that end together comes last.
            ends = np.append(np.flatnonzero(np.diff(last[order])), len(order) - 1)
            scan = int((last[order[ends]] - first[order[ends]]).sum()) + len(first)
            if scan >= min(slide, cover):
                order = None
        self.seen.look(len(first), min(slide, scan, panes), dyadic, marked)
        return slide, cover, order

    @abstractmethod
    def _cover_cost(self, panes: int, dyadic: int, marked: int) -> int:
        """Which of the costs is that of covering here."""

    def _cover(self, first: Ints, last: Ints, groups: int, offsets: Ints, present: Codes, out: Ints) -> None:
        """Each window from the rows that cover it."""
        op, store, identity = self.component.op, self._store, self.component.identity
        chunk = min(CHUNK, len(first))
        bounds = np.empty(chunk + 1, np.int64)
        cover = np.empty(self._room(first[:chunk], last[:chunk]), np.int64)
        done = 0
        while done < len(first):
            part = slice(done, done + chunk)
            room = self._room(first[part], last[part])
            if room > len(cover):
                cover = np.empty(room, np.int64)
            count = self._covers(first[part], last[part], bounds, cover)
            where = offsets[done : done + count + 1]
            combine_covers(op, store, bounds, cover, groups, identity, where, present, out)
            done += count

    def _room(self, first: Ints, last: Ints) -> int:
        """Rows that surely suffice for the cover of one of the windows, and mostly for all."""
        raise NotImplementedError(self.name)

    def _covers(self, first: Ints, last: Ints, bounds: Ints, cover: Ints) -> int:
        """Fill the bounds [windows + 1] and the rows of the store; says for how many windows, at least one."""
        raise NotImplementedError(self.name)

    # ---- panes out and in -----------------------------------------------------------------------------------------

    @property
    def _own(self) -> Ints:
        """The panes' own rows, [panes, words, stride]."""
        return self.words[:, : len(self.component.dtypes)]

    def leaves(self) -> Ints:
        """As they are stored."""
        return np.ascontiguousarray(self._own.swapaxes(0, 1))

    def partials(self, panes: Any, groups: Any) -> Ints:
        """As they are stored."""
        return np.asarray(self._own[panes, :, groups].T)

    def _refill(self, own: Ints) -> None:
        """Start anew from the panes' own rows, [panes, words, groups]."""
        panes, words, groups = own.shape
        matrix = Matrix(self._identity(), max(groups, self._matrix.stride))
        matrix.reserve(panes)
        matrix.stop = panes
        matrix.data[:panes] = matrix.identity[None, :, None]
        matrix.data[:panes, :words, :groups] = own
        self._matrix = matrix
        self._build(panes)

    def twin(self, component: Component) -> Synopsis:
        """The same numbers for another component of the same algebra."""
        other = super().twin(component)
        assert isinstance(other, Combining)
        other.first, other.steps = self.first, self.steps
        return other

    def snapshot(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Only the panes: the intervals follow from them, to the last bit, and from where the panes are numbered."""
        meta, arrays = super().snapshot()
        meta |= {"first": self.first, "steps": self.steps.tolist(), "seen": self.seen.numbers()}
        return meta, arrays | {"partials": self._own[:, :, : self.groups]}

    def restore(self, meta: dict[str, Any], arrays: dict[str, Any]) -> None:
        """Become what `snapshot` wrote."""
        self._check(meta)
        self.groups = meta["groups"]
        self._edges.load(arrays["edges"])
        self.first, self.seen = meta["first"], Seen(*meta["seen"])
        self.steps = np.array(meta["steps"], np.int64)
        shape = (len(self.edges), len(self.component.dtypes), self.groups)
        self._refill(np.asarray(arrays["partials"]).reshape(shape))
