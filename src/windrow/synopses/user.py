"""Panes of a user's aggregate: its `combine` and `subtract` are called on arrays of all groups, windows and panes.

    with subtract      running sums over panes, as in the running synopsis: one call per pane, one per lookup
    without            base intervals of doubling length, left to right, as in the interval synopsis: O(log W) calls

Running sums stop at a word that is not finite (a NaN would never leave them): while such a pane is there, windows are
combined. Space O(panes · groups), twice that with subtract.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.aggregates import Component
from windrow.aggregates.user import UserComponent, Words
from windrow.kernels.jit import Codes, Ints
from windrow.synopses.synopsis import Synopsis

MOST_CELLS = 4_000_000
"""Cells that are gathered at once by `scan`."""


class UserPanes(Synopsis):
    """Row k holds the partials of pane k; beside them, made when somebody looks, the sums up to each pane."""

    name = "user"

    def __init__(self, component: Component, groups: int = 0) -> None:
        super().__init__(component, groups)
        assert isinstance(component, UserComponent)
        self._user = component
        self._sums: list[Ints] = []
        """Entry k: the words [words, groups known then] of all panes before pane k, counted from some pane on."""
        self._dropped = 0
        self._bad = 0
        """So many panes, from the first, until none has a word that is not finite."""

    @classmethod
    def admit(cls, component: Component) -> None:
        """Only a user's aggregate has combine and subtract to be called."""
        if not isinstance(component, UserComponent):
            raise ValueError(f"a user synopsis needs a user-defined aggregate, and {component.name} is none")

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return super().nbytes + sum(int(one.nbytes) for one in self._sums)

    def _append(self, partials: Ints, order: Ints) -> None:
        matrix = self._matrix
        matrix.reserve(len(order))
        width = partials.shape[2]
        rows = matrix.data[matrix.stop : matrix.stop + len(order)]
        rows[:, :, :width] = partials[:, order].swapaxes(0, 1)
        rows[:, :, width:] = matrix.identity[None, :, None]
        matrix.stop += len(order)
        if self._user.subtractable:
            for place, dtype in enumerate(self._user.dtypes):
                if dtype is np.float64:
                    wild = ~np.isfinite(np.ascontiguousarray(rows[:, place]).view(np.float64)).all(axis=1)
                    if wild.any():
                        self._bad = max(self._bad, len(self) + int(np.flatnonzero(wild)[-1]) + 1)

    def expire(self, edge: int) -> int:
        """Forget panes, and their sums; these begin anew now and then, so that rounding does not add up."""
        gone = super().expire(edge)
        self._bad = max(0, self._bad - gone)
        del self._sums[:gone]
        self._dropped += gone
        if self._dropped > 4 * len(self) + 64:
            self._forget_sums()
        return gone

    def select(self, groups: Any, stride: int) -> None:
        """Keep these groups only."""
        super().select(groups, stride)
        self._forget_sums()

    def _forget_sums(self) -> None:
        self._sums, self._dropped = [], 0

    def answer(self, first: Ints, last: Ints, groups: int, offsets: Ints, present: Codes, out: Ints) -> None:
        """All groups of all windows, of which those that are present are given."""
        if not len(first) or not groups:
            return
        if self._user.subtractable and not self._bad:
            words = self._subtracted(first, last, groups)
        else:
            words = self._combined(first, last, groups)
        if len(present):
            window = np.repeat(np.arange(len(first)), np.diff(offsets))
            place = window * groups + present
            words = tuple(word[place] for word in words)
        for target, word in zip(out, words, strict=True):
            target[:] = word.view(np.int64)

    def _subtracted(self, first: Ints, last: Ints, groups: int) -> Words:
        rows = self._matrix.rows[:, :, :groups]
        identity = np.repeat(self._matrix.identity[:, None], groups, axis=1)
        if not self._sums:
            self._sums = [identity.copy()]
        while len(self._sums) <= len(self):
            # A group that is new since then has nothing before: the identity.
            total = identity.copy()
            total[:, : self._sums[-1].shape[1]] = self._sums[-1][:, :groups]
            self._user.combine(total, rows[len(self._sums) - 1])
            self._sums.append(total)
        used, place = np.unique(np.concatenate([last, first]), return_inverse=True)
        sums = np.repeat(identity[None], len(used), axis=0)
        for k, pane in enumerate(used):
            width = min(groups, self._sums[pane].shape[1])
            sums[k, :, :width] = self._sums[pane][:, :width]
        whole, part = (self._flat(sums[one]) for one in (place[: len(last)], place[len(last) :]))
        return self._user.subtracted(whole, part)

    def _combined(self, first: Ints, last: Ints, groups: int) -> Words:
        """Window by window the binary digits of its length: its first panes, then twice as many, and so on."""
        low, high = int(first.min()), int(last.max())
        level = self._matrix.rows[low:high, :, :groups]
        at, lengths = first - low, last - first
        words = np.repeat(np.repeat(self._matrix.identity[None, :, None], groups, axis=2), len(first), axis=0)
        size = 1
        while size <= int(lengths.max(initial=0)):
            now = np.flatnonzero(lengths & size)
            if len(now):
                words[now] = self._together(words[now], level[at[now]])
                at[now] += size
            size *= 2
            if size <= int(lengths.max(initial=0)):
                half = size // 2
                level = self._together(level[:-half], level[half:])
        return self._flat(words)

    def _flat(self, rows: Ints) -> Words:
        """[n, words, groups] as one flat array per word."""
        flat = (np.ascontiguousarray(rows[:, place]).reshape(-1) for place in range(rows.shape[1]))
        return tuple(word.view(dtype) for word, dtype in zip(flat, self._user.dtypes, strict=True))

    def _together(self, a: Ints, b: Ints) -> Ints:
        """combine, on [n, words, groups]."""
        words = self._user.combined(self._flat(a), self._flat(b))
        return np.stack([word.view(np.int64).reshape(len(a), -1) for word in words], axis=1)

    def leaves(self) -> Ints:
        """As they are stored."""
        return self._matrix.rows.swapaxes(0, 1)

    def partials(self, panes: Any, groups: Any) -> Ints:
        """As they are stored."""
        return np.asarray(self._matrix.rows[panes, :, groups].T)

    def snapshot(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The sums too: made anew from a later pane they would round otherwise."""
        meta, arrays = super().snapshot()
        meta |= {"dropped": self._dropped, "bad": self._bad, "widths": [one.shape[1] for one in self._sums]}
        sums = [np.empty(0, np.int64), *(one.reshape(-1) for one in self._sums)]
        return meta, arrays | {"sums": np.concatenate(sums)}

    def restore(self, meta: dict[str, Any], arrays: dict[str, Any]) -> None:
        """Become what `snapshot` wrote."""
        super().restore(meta, arrays)
        self._dropped, self._bad, self._sums = meta["dropped"], meta["bad"], []
        flat, words = np.array(arrays["sums"]), len(self._user.dtypes)
        for width in meta["widths"]:
            self._sums.append(flat[: words * width].reshape(words, width))
            flat = flat[words * width :]


def scan(
    component: UserComponent,
    bounds: Ints,
    gids: Ints,
    cells: Ints,
    first: Ints,
    last: Ints,
    groups: int,
    offsets: Ints,
    present: Codes,
    out: Ints,
) -> None:
    """The same from the cells [cells, words, 1] of the sparse layout: a pass over the cells of every window."""
    sizes = bounds[last] - bounds[first]
    start = 0
    while start < len(first):
        stop = start + max(1, int(np.searchsorted(np.cumsum(sizes[start:]), MOST_CELLS, "right")))
        lengths = sizes[start:stop]
        window = np.repeat(np.arange(stop - start), lengths)
        place = np.arange(len(window)) - np.repeat(np.cumsum(lengths) - lengths - bounds[first[start:stop]], lengths)
        keys = window * groups + gids[place]
        order = np.argsort(keys, kind="stable")
        keys, place = keys[order], place[order]
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))[: len(keys)]
        words = tuple(cells[place, k, 0].view(dtype) for k, dtype in enumerate(component.dtypes))
        reduced = component.reduced(words, starts)
        rows = slice(int(offsets[start]), int(offsets[stop]))
        here = np.repeat(np.arange(stop - start), np.diff(offsets[start : stop + 1]))
        groups_here = present[rows] if len(present) else np.tile(np.arange(groups), stop - start)
        at = np.searchsorted(keys[starts], here * groups + groups_here)
        for target, word in zip(out, reduced, strict=True):
            target[rows] = word[at].view(np.int64)
        start = stop
