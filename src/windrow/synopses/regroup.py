"""Partials for coarser groups and panes: entries of several partials that fall together become one, or are subtracted.

This is how one share group is fed from others (thesis 8.3.3): O(entries · log entries), whatever the number of rows
behind them. Sums of whole numbers, extremes and counters stay exact; floating sums are combined in pairs, pairs of
pairs and so on, with their rounding errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.aggregates import Component
from windrow.aggregates.collected import Collected
from windrow.aggregates.component import Subtractable
from windrow.aggregates.extremes import MaxText
from windrow.aggregates.holistic import FREQUENCIES
from windrow.aggregates.user import UserComponent
from windrow.kernels import combine
from windrow.kernels.jit import Ints
from windrow.synopses.cell_bytes import LOW, cell_keys
from windrow.synopses.groups import Groups
from windrow.synopses.open_panes import AssignedPanes
from windrow.synopses.partials import Partials
from windrow.synopses.spec import ComponentSpec
from windrow.windows.grid import Grid

_REDUCE: dict[int, Any] = {combine.ADD: np.add, combine.MIN: np.minimum, combine.MAX: np.maximum}


def regroupable(component: Component) -> bool:
    """Whether partials can be put together without any loss: not those of sketches, nor of a user's class."""
    if isinstance(component, Collected):
        return component.store.name == FREQUENCIES
    return not isinstance(component, UserComponent)


def regrouped(
    parts: Sequence[tuple[Partials, int]],
    key_types: Sequence[pa.DataType],
    specs: Sequence[ComponentSpec],
    grid: Grid,
) -> Partials:
    """One entry for each pane of this grid and group; a part with sign -1 is taken away from the others.

    The panes of the parts are at least as fine as the grid, and their words are those of the specs. With a negative
    part all components are subtractable, and what remains of no row is left out.
    """
    edges = np.concatenate([part.edges for part, _ in parts])
    signs = np.concatenate([np.full(len(part), sign, np.int64) for part, sign in parts])
    panes = AssignedPanes.of(grid, edges)
    columns = [pa.concat_arrays([part.keys[k] for part, _ in parts]) for k in range(len(key_types))]
    groups = Groups(key_types)
    gids = np.array(groups.encode(columns)) if columns else np.zeros(len(edges), np.int32)
    cells = cell_keys(panes.slots, gids)
    order = np.argsort(cells, kind="stable")
    ordered = cells[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if len(ordered) else np.empty(0, np.int64)
    rows = np.add.reduceat((np.concatenate([part.rows for part, _ in parts]) * signs)[order], starts)
    kept = np.flatnonzero(rows) if (signs < 0).any() else None
    if kept is not None:
        rows = rows[kept]
    words = []
    for i, spec in enumerate(specs):
        if all(part.words[i][0] is part.rows for part, _ in parts):
            words.append((rows,))
            continue
        given = [part.words[i] for part, _ in parts]
        made = _reduced(spec, given, signs, order, starts)
        words.append(made if kept is None else tuple(word[kept] for word in made))
    cell = ordered[starts] if kept is None else ordered[starts][kept]
    keys = groups.keys((cell & LOW).astype(np.int32)) if columns else []
    return Partials(panes.edges[cell >> 32], keys, rows, tuple(words))


def _reduced(
    spec: ComponentSpec, given: Sequence[tuple[Any, ...]], signs: Ints, order: Ints, starts: Ints
) -> tuple[Any, ...]:
    """The words of each segment of the ordered entries, which begins at starts[k]."""
    component = spec.component
    if isinstance(component, Collected):
        return (_lists(pa.concat_arrays([words[0] for words in given]), order, starts),)
    if spec.is_text:
        texts = pa.concat_arrays([words[0] for words in given])
        return (_texts(texts, order, starts, greatest=isinstance(component, MaxText)),)
    stacked = np.stack([np.concatenate([words[w].view(np.int64) for words in given]) for w in range(len(given[0]))])
    if (signs < 0).any():
        if not isinstance(component, Subtractable):
            raise ValueError(f"{component.name} cannot be subtracted")
        stacked *= signs
    stacked = stacked[:, order]
    if component.op in _REDUCE:
        stacked = _REDUCE[component.op].reduceat(stacked, starts, axis=1)
    else:
        stacked = _combined(component, stacked, starts)
    return component.typed(np.ascontiguousarray(stacked))


def _combined(component: Component, words: Ints, starts: Ints) -> Ints:
    """Each segment combined from left to right: neighbours first, in log rounds."""
    length = words.shape[1]
    segment = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, length)))
    while length > len(starts):
        begins = np.searchsorted(segment, np.arange(len(starts)))
        even = (np.arange(length) - begins[segment]) % 2 == 0
        first = np.flatnonzero(even & (np.append(segment[1:], -1) == segment))
        into = np.ascontiguousarray(words[:, first])
        component.combine(into, np.ascontiguousarray(words[:, first + 1]))
        words[:, first] = into
        words, segment = words[:, even], segment[even]
        length = len(segment)
    return words


def _lists(entries: pa.Array, order: Ints, starts: Ints) -> pa.Array:
    """The lists of each segment, one after the other."""
    ordered = entries.take(pa.array(order))
    lengths = ordered.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    offsets = np.append(ends[starts], ends[-1])
    return pa.LargeListArray.from_arrays(pa.array(offsets), ordered.flatten())


def _texts(strings: pa.Array, order: Ints, starts: Ints, *, greatest: bool) -> pa.Array:
    """The smallest or greatest string of each segment; NULL where there is none."""
    valid = np.flatnonzero(strings.is_valid().to_numpy(zero_copy_only=False))
    dense = pc.rank(strings.drop_null(), sort_keys="ascending", tiebreaker="dense").to_numpy()
    none = 0 if greatest else len(strings) + 1  # any string is better
    ranks = np.full(len(strings), none, np.int64)
    ranks[valid] = dense
    where = np.empty(len(strings) + 2, np.int64)
    where[ranks] = np.arange(len(ranks))
    best = (np.maximum if greatest else np.minimum).reduceat(ranks[order], starts)
    return strings.take(pa.array(where[best]))
