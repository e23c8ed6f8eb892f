"""Synopses over the results of a join of two windows: intervals by the time at which a result expires (thesis 8.3.2).

A result expires with the older of its tuples, so results do not leave in the order in which they came: new ones may
fall into every interval, and what windows of length n·s have is in the n youngest.

                t       t+s      t+2s            t+7s     t+8s
    at t        │ f(oldest)│       │      …        │ youngest │
    at t+s                 │ +new  │     +new      │   +new   │ new │     the oldest is dropped, all others are updated

With b intervals in the longest of w different windows, G groups, r new results and c cells (interval, group) with
results (c <= b G):

| synopsis | components | new results | one interval passes | all windows at a due time | space |
|---|---|---|---|---|---|
| BIJ | all | r | – | c: one scan, rule CS5 | c |
| IJ | all | r log b | 2 G | 2 w G log b: each window is probed once, rule CS4 | 2 b G |
| RJ | subtractable | 2 r | 2 w G | w G, rule CS4 | b G + w G |

RJ keeps, where the thesis has sums up to the border of each interval, the sums between the borders of the windows that
are there: a pane that a window loses goes over to the sums of the next longer one. So a result updates two cells and
not b of them, and the sums from the youngest on are those of each window.

Joins of windows of two lengths have an axis of their own (`joined/axis.py`), which takes the place of the flagged
values of Figure 8.4, and is exact for every pair of lengths. Due times of a whole batch are answered in one call
(`kernels/join_panes.py`). All changes of structure (more intervals, groups, words; another synopsis; snapshots) go by
way of `cells`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np

from windrow.kernels import join_panes as kernels
from windrow.kernels.combine import ADD
from windrow.kernels.jit import Ints

MOST_ROWS = 1 << 20
"""Rows of answers that are made at once."""
DENSE = 8
"""Cells are found through a table of all panes and groups if it has at most so many times their number."""
FEWEST_PENDING = 4096
"""So many results wait until somebody asks, or until they are as many as the cells."""


class Words(NamedTuple):
    """How each word is combined, and what it is without results; the first one counts results."""

    ops: Ints
    identity: Ints

    @property
    def subtractable(self) -> bool:
        """Whether all of them are sums."""
        return bool((self.ops == ADD).all())


class Cells(NamedTuple):
    """The partials [cells, words] of each pane and group that has results, by pane, then by group."""

    panes: Ints
    gids: Ints
    words: Ints

    @classmethod
    def none(cls, words: Words) -> Cells:
        """Nothing."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, len(words.ops)), np.int64))


class Work(NamedTuple):
    """New results in the order in which they came, and the windows that are asked between them."""

    panes: Ints
    gids: Ints
    words: Ints
    """[results, words]"""
    places: Ints
    """Per due time: how many results have come."""
    borders: Ints
    """Per due time, and different window, ascending: the oldest pane of it."""
    bounds: Ints
    """Windows bounds[k] … bounds[k+1]-1 are asked at due time k."""
    asked: Ints
    """Which of the borders, the youngest first."""

    def reach(self, first: int) -> int:
        """How many panes must be there at once, if `first` is the oldest one now."""
        if not len(self.panes):
            return 1
        newest = np.maximum.accumulate(self.panes)
        until = np.where(self.places > 0, newest[self.places - 1], first)
        oldest = np.maximum(np.append(first, self.borders[:-1, 0]), first)
        return max(1, int((until - oldest).max()) + 1)


class Found(NamedTuple):
    """Windows that were answered: rows offsets[i] … offsets[i+1]-1 are those of window first + i."""

    first: int
    offsets: Ints
    gids: Ints
    words: Ints
    """[words, rows]"""


class JoinSynopsis(ABC):
    """The partials of all results, by pane and group; no result comes into a pane before `low`."""

    name: ClassVar[str]

    def __init__(self, words: Words, cells: Cells, groups: int, slots: int, low: int = 0) -> None:
        self.words = words
        self._told: Ints = np.zeros(2, np.int64)

    @property
    def read(self) -> int:
        """Cells that lookups have read."""
        return int(self._told[0])

    @property
    def updated(self) -> int:
        """Cells that new results, and panes that pass, have changed."""
        return int(self._told[1])

    def run(self, work: Work, groups: int, *, always: bool = False) -> Iterator[Found]:
        """Take in results and answer windows; `always`: there is one group, which is in every answer."""
        work = self._prepared(work)
        most = int(np.diff(work.bounds).max(initial=0)) * groups
        room = max(most, min(MOST_ROWS, int(work.bounds[-1]) * groups))
        k = done = 0
        while k < len(work.places):
            present: Ints = np.empty(room + 1, np.int64)
            out: Ints = np.empty((len(self.words.ops), room), np.int64)
            offsets: Ints = np.zeros(len(work.asked) + 1, np.int64)
            first = int(work.bounds[k])
            k, done, rows = self._go(work, k, done, groups, always, offsets, present, out)
            last = int(work.bounds[k])
            if last > first:
                yield Found(first, np.append(0, offsets[first + 1 : last + 1]), present[:rows], out[:, :rows])

    def _prepared(self, work: Work) -> Work:
        return work

    @abstractmethod
    def _go(
        self, work: Work, k: int, done: int, groups: int, always: bool, offsets: Ints, present: Ints, out: Ints
    ) -> tuple[int, int, int]:
        """Due times from k on, as far as there is room."""

    @abstractmethod
    def fits(self, reach: int, groups: int) -> bool:
        """Whether there is room for so many panes and groups."""

    @abstractmethod
    def cells(self) -> Cells:
        """All that is kept."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes allocated."""


class BasicIntervalJoin(JoinSynopsis):
    """BIJ: the cells that have results; every window is found in one scan from the youngest interval on."""

    name = "bij"

    def __init__(self, words: Words, cells: Cells, groups: int, slots: int, low: int = 0) -> None:
        super().__init__(words, cells, groups, slots, low)
        self._cells = cells
        self._pending = Cells.none(words)
        self._low = low

    def fits(self, reach: int, groups: int) -> bool:
        """Always."""
        return True

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return sum(part.nbytes for cells in (self._cells, self._pending) for part in cells)

    def run(self, work: Work, groups: int, *, always: bool = False) -> Iterator[Found]:
        """As of every synopsis; results wait until somebody asks."""
        waiting = len(self._pending.panes) + len(work.panes)
        if not len(work.asked) and waiting <= max(FEWEST_PENDING, len(self._cells.panes)):
            self._pending = _joined(self._pending, work)
            return iter(())
        return super().run(work, groups, always=always)

    def _prepared(self, work: Work) -> Work:
        """All cells that are needed are there, in order; where each result goes."""
        before = len(self._pending.panes)
        if before:
            panes, gids, words = _joined(self._pending, work)
            work = work._replace(panes=panes, gids=gids, words=words, places=work.places + before)
            self._pending = Cells.none(self.words)
        live = int(np.searchsorted(self._cells.panes, self._low))
        kept = Cells(*(part[live:] for part in self._cells))
        self._cells, self._of_result = self._with(kept, work)
        every = self._cells.panes
        self._first = int(every[0]) if len(every) else 0
        span = int(every[-1]) - self._first + 1 if len(every) else 0
        self._ends: Ints = np.searchsorted(every, self._first + np.arange(span + 1))
        return work

    def _with(self, kept: Cells, work: Work) -> tuple[Cells, Ints]:
        """The cells, with new ones for results that have none yet; and the cell of each result."""
        panes, gids = (np.concatenate(pair) for pair in zip(kept[:2], work[:2], strict=True))
        if not len(panes):
            return kept, panes
        first, groups = int(panes.min()), int(gids.max()) + 1
        keys = (panes - first) * groups + gids
        span = (int(panes.max()) - first + 1) * groups
        if span <= DENSE * len(keys) + FEWEST_PENDING:
            there = np.zeros(span, np.bool_)
            there[keys] = True
            every = np.flatnonzero(there)
            place = np.empty(span, np.int64)
            place[every] = np.arange(len(every))
            place = place[keys]
        else:
            every, place = np.unique(keys, return_inverse=True)
        words = np.repeat(self.words.identity[None, :], len(every), axis=0)
        words[place[: len(kept.panes)]] = kept.words
        return Cells(first + every // groups, every % groups, words), place[len(kept.panes) :]

    def _go(
        self, work: Work, k: int, done: int, groups: int, always: bool, offsets: Ints, present: Ints, out: Ints
    ) -> tuple[int, int, int]:
        about = (
            work.words,
            work.places,
            work.borders,
            work.bounds,
            work.asked,
            k,
            done,
            self._first,
            groups,
            always,
        )
        stored = (self._ends, self._cells.gids, self._cells.words, self._of_result)
        arguments: tuple[Any, ...] = (*self.words, *stored, *about, offsets, present, out, self._told)
        found = kernels.scan_intervals(*arguments)
        if work.borders.shape[1]:
            self._low = max(self._low, int(work.borders[found[0] - 1, 0]))
        return found

    def cells(self) -> Cells:
        """All that is kept."""
        if len(self._pending.panes):
            for _ in super().run(_nothing(self.words), 1):
                pass
        there = (self._cells.panes >= self._low) & (self._cells.words[:, 0] > 0)
        return Cells(*(part[there] for part in self._cells))


class Ring(JoinSynopsis):
    """What RJ and IJ have in common: a place for every pane and group of the longest window, used again and again."""

    _running: tuple[Ints, Ints, Ints] | None = None
    """RJ: the zone of each pane, the sums of each zone, and its first pane."""

    def __init__(self, words: Words, cells: Cells, groups: int, slots: int, low: int, sizes: Ints) -> None:
        super().__init__(words, cells, groups, slots, low)
        self._slots, self._groups, self._sizes = slots, groups, sizes
        self._begins: Ints = np.cumsum(sizes) - sizes
        self._tree = self._blank(int(sizes.sum()))
        """The partials of single panes come first."""
        head = int(cells.panes[-1]) if len(cells.panes) else low - 1
        self._state: Ints = np.array([head, low], np.int64)
        """The youngest pane and the oldest one."""

    def fits(self, reach: int, groups: int) -> bool:
        """What there was room for when it was made."""
        return reach <= self._slots and groups <= self._groups

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self._tree.nbytes

    def _blank(self, places: int) -> Ints:
        store = np.empty((places, len(self.words.ops), self._groups), np.int64)
        store[:] = self.words.identity[:, None]
        return store

    def _go(
        self, work: Work, k: int, done: int, groups: int, always: bool, offsets: Ints, present: Ints, out: Ints
    ) -> tuple[int, int, int]:
        stored = (self._begins, self._sizes, self._tree, self._running, self._state)
        about = (*work, k, done, groups, always)
        arguments: tuple[Any, ...] = (*self.words, *stored, *about, offsets, present, out, self._told)
        return kernels.run_ring(*arguments)

    def cells(self) -> Cells:
        """All that is kept."""
        head, low = self._state.tolist()
        size = int(self._sizes[0])
        panes = np.arange(max(low, head - size + 1), head + 1)
        there = self._tree[panes % size]
        which, gids = np.nonzero(there[:, 0] > 0)
        return Cells(panes[which], gids, there[which, :, gids])


class RunningJoin(Ring):
    """RJ: sums between the borders of the windows; all that are shorter are passed on the way to a window."""

    name = "rj"

    def __init__(self, words: Words, cells: Cells, groups: int, slots: int, low: int = 0) -> None:
        if not words.subtractable:
            raise ValueError("a running synopsis over a join needs components that can be subtracted: no MIN or MAX")
        super().__init__(words, cells, groups, slots, low, np.array([slots]))
        self._tree[cells.panes % slots, :, cells.gids] = cells.words

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return super().nbytes + (0 if self._running is None else self._running[1].nbytes)

    def _prepared(self, work: Work) -> Work:
        """With other windows than before, all panes begin in the youngest sum and are moved on from there."""
        different = work.borders.shape[1]
        if self._running is None or different != len(self._running[2]):
            sums = self._blank(different)
            sums[-1] = sum_of(self.cells(), sums[-1])
            zone: Ints = np.full(self._slots, different - 1, np.int64)
            self._running = zone, sums, np.full(different, self._state[1], np.int64)
        return work


class IntervalJoin(Ring):
    """IJ: partials of 1, 2, 4, … panes, aligned, so that about 2 log b of them answer a window."""

    name = "ij"

    def __init__(self, words: Words, cells: Cells, groups: int, slots: int, low: int = 0) -> None:
        super().__init__(words, cells, groups, slots, low, (slots >> np.arange(slots.bit_length())) + 2)
        if len(cells.panes):
            self._state[0] = self._state[1] - 1
            work = Work(*cells, *_nothing(words)[3:])._replace(places=np.array([len(cells.panes)]))
            for _ in self.run(work, groups):
                pass
            self._told[:] = 0


def sum_of(cells: Cells, into: Ints) -> Ints:
    """into [words, groups] and all cells, added."""
    total = into.copy()
    for word, column in zip(total, cells.words.T, strict=True):
        np.add.at(word, cells.gids, column)
    return total


def _joined(pending: Cells, work: Work) -> Cells:
    return Cells(*(np.concatenate(pair) for pair in zip(pending, work[:3], strict=True)))


def _nothing(words: Words) -> Work:
    """No result and no window, at one due time."""
    none: Ints = np.empty(0, np.int64)
    lowest: Ints = np.full((1, 1), -(1 << 62))
    return Work(*Cells.none(words), np.zeros(1, np.int64), lowest, np.zeros(2, np.int64), none)


SYNOPSES: dict[str, type[JoinSynopsis]] = {one.name: one for one in (BasicIntervalJoin, RunningJoin, IntervalJoin)}
