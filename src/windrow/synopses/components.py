"""The components of a share group: which there are, where each is kept, and how values and partials get there.

A component is in the layout under a number, where 0 is the row count, which also is COUNT(x) before any NULL; or it is
in a collection. Several components on one column share its NULLs and its labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.aggregates import Component
from windrow.aggregates.collected import Collected, Store
from windrow.aggregates.columns import validity
from windrow.aggregates.count import Count, CountRows
from windrow.errors import QueryError
from windrow.kernels.jit import Codes, Ints, frozen
from windrow.synopses.chooser import Choice
from windrow.synopses.dense import Dense
from windrow.synopses.layout import Layout
from windrow.synopses.partials import Partials
from windrow.synopses.placed import Placed
from windrow.synopses.registry import chosen, may_choose, reason
from windrow.synopses.running import Running
from windrow.synopses.spec import ComponentSpec
from windrow.synopses.stores import Stores
from windrow.synopses.text_labels import TextLabels
from windrow.synopses.workload import Expected

COLLECTED = -1
"""In place of a component's number in the layout: it is in a collection."""


class Components:
    """By place: what was asked for, and its number in the layout."""

    def __init__(self, labels: TextLabels, stores: Stores) -> None:
        self.specs: list[ComponentSpec] = []
        self.numbers: list[int] = []
        self.failures: dict[int, QueryError] = {}
        """By place: why a component could not take in some rows, so that its words are wrong since."""
        self._labels = labels
        self._stores = stores

    # -- components come and go -----------------------------------------------------------------------------------

    def add(self, specs: Sequence[ComponentSpec], layout: Layout) -> list[int]:
        """The place of each component, which is added unless it is there."""
        for spec in specs:
            if spec not in self.specs:
                if isinstance(spec.component, Collected):
                    number = COLLECTED
                    self._stores.add(spec, len(layout.edges))
                else:
                    number = 0 if spec.is_row_count else layout.track(spec.component, spec.synopsis)
                self.specs.append(spec)
                self.numbers.append(number)
        return [self.specs.index(spec) for spec in specs]

    def take_back(self, count: int) -> None:
        """Forget the last so many, which were lent a place: their collection stays with the others."""
        if count:
            del self.specs[-count:], self.numbers[-count:]

    def keep(self, places: Sequence[int], layout: Layout) -> list[int]:
        """Free all but these: places[k] becomes k. Gives the columns that they use: columns[k] becomes k."""
        specs = [self.specs[place] for place in places]
        self.failures = {new: self.failures[old] for new, old in enumerate(places) if old in self.failures}
        used = [self.numbers[place] for place in places]
        columns = list(dict.fromkeys(spec.column for spec in specs if spec.column is not None))
        column_of = {old: new for new, old in enumerate(columns)}
        numbers = sorted({0, *used} - {COLLECTED})
        number_of = {old: new for new, old in enumerate(numbers)} | {COLLECTED: COLLECTED}
        layout.keep(numbers)
        self.numbers = [number_of[number] for number in used]
        self.specs = [spec if spec.column is None else replace(spec, column=column_of[spec.column]) for spec in specs]
        # A column may stay for its count while nobody asks for its smallest or greatest string any more.
        texts = {spec.column for spec in specs if spec.is_text}
        self._labels.keep({old: new for old, new in column_of.items() if old in texts})
        self._stores.keep(specs, column_of)
        return columns

    # -- how they are kept ----------------------------------------------------------------------------------------

    def expect(self, expected: Sequence[Expected], layout: Layout) -> None:
        """By place: the windows that will be looked up."""
        for number, windows in zip(self.numbers, expected, strict=True):
            if number > 0:
                layout.expect(number, windows)

    def force(self, synopses: Sequence[str | None], layout: Layout) -> None:
        """By place: the synopsis to keep a component in; None leaves that to its spec, or to the chooser."""
        for place, (spec, name) in enumerate(zip(self.specs, synopses, strict=True)):
            if not may_choose(spec.component):
                continue
            if self.numbers[place] == 0 and name not in (None, Running.name) and isinstance(layout, Dense):
                self.numbers[place] = layout.track_rows(spec.component)
            if self.numbers[place] > 0:
                layout.force(self.numbers[place], name or spec.synopsis)

    def explain(self, place: int, layout: Layout) -> Choice:
        """How the component at this place is kept, and why."""
        spec, number = self.specs[place], self.numbers[place]
        if number == COLLECTED:
            return Choice(chosen(spec.component), reason(spec.component))
        return layout.explain(number)

    def by_number(self) -> list[Component]:
        """The components that are in the layout, in the order of their numbers."""
        found: dict[int, Component] = {0: CountRows()}
        found |= {n: spec.component for n, spec in zip(self.numbers, self.specs, strict=True) if n > 0}
        return [found[number] for number in sorted(found)]

    # -- values and partials in, partials out ---------------------------------------------------------------------

    def accumulate(self, placed: Placed, values: Sequence[pa.Array | None], layout: Layout) -> None:
        """Scatter the value columns; NULLs are filtered once per column, and only when there are any."""
        cells = placed.cells
        self._stores.insert(placed, values)
        filtered: dict[int, tuple[NDArray[np.bool_] | None, Codes]] = {}
        labels: dict[int, Ints] = {}
        for i, spec in enumerate(self.specs):
            number, component = self.numbers[i], spec.component
            if number == COLLECTED:
                continue
            if isinstance(component, CountRows):
                if number:
                    component.accumulate(layout.words(number), cells, cells)
                continue
            column = None if spec.column is None else values[spec.column]
            if column is None or spec.column is None:
                continue  # its value failed: those who look it up are about to be stopped
            if spec.column not in filtered:
                valid = validity(column)
                filtered[spec.column] = (valid, cells if valid is None else cells[valid])
            valid, chosen = filtered[spec.column]
            if isinstance(component, Count):
                if number:
                    component.accumulate(layout.words(number), chosen, chosen)
                elif valid is not None:
                    # The first NULLs came: COUNT(x) is what the row count is, less these.
                    number = self.numbers[i] = layout.track_rows(component)
                    np.subtract.at(layout.words(number)[0], cells[~valid], 1)
                continue
            if spec.is_text:
                if spec.column not in labels:
                    strings = column if valid is None else column.drop_null()
                    labels[spec.column] = self._label(spec.column, strings, layout)
                component.accumulate(layout.words(number), chosen, frozen(labels[spec.column]))
                continue
            lifted = component.lift(column)
            lifted = frozen(lifted if valid is None else lifted[valid])
            try:
                component.accumulate(layout.words(number), chosen, lifted)
            except QueryError as error:  # of a user's class: those who look it up are about to be stopped
                self.failures[i] = error

    def absorb(self, part: Partials, placed: Placed, positions: Sequence[int], layout: Layout) -> None:
        """Add partials, each to its cell; their component i is the one at positions[i] here."""
        cells = np.array(placed.cells)
        layout.words(0)[0][cells] += part.rows - 1
        for i, words in zip(positions, part.words, strict=True):
            spec, number = self.specs[i], self.numbers[i]
            component = spec.component
            if number == COLLECTED:
                if words[0] is not part.rows:
                    self._stores.absorb(spec, placed, words[0])
            elif number == 0:
                if words[0] is not part.rows and not (words[0] == part.rows).all():
                    number = self.numbers[i] = layout.track_rows(component)
                    layout.words(number)[0][cells] += words[0] - part.rows
            elif spec.is_text and spec.column is not None:
                valid = validity(words[0])
                labels = self._label(spec.column, words[0] if valid is None else words[0].drop_null(), layout)
                _combine(layout.words(number), component, cells if valid is None else cells[valid], labels[None, :])
            else:
                try:
                    stacked = np.stack([word.view(np.int64) for word in words])
                    _combine(layout.words(number), component, cells, stacked)
                except QueryError as error:
                    self.failures[i] = error

    def partials(
        self, slots: Ints, gids: Ints, cells: Ints, layout: Layout
    ) -> tuple[Ints, tuple[tuple[Any, ...], ...]]:
        """The row count of these open cells, and the typed words of each component."""
        rows = layout.words(0)[0][cells]
        words: list[tuple[Any, ...]] = []
        told: set[tuple[int, Store]] = set()
        for spec, number in zip(self.specs, self.numbers, strict=True):
            if number == COLLECTED and spec.collection not in told:
                told.add(spec.collection)
                words.append((self._stores.of(spec).partials(slots, gids),))
            elif number in (0, COLLECTED):
                words.append((rows,))  # they need not be told again
            else:
                words.append(self.typed(spec, np.stack([word[cells] for word in layout.words(number)])))
        return rows, tuple(words)

    def typed(self, spec: ComponentSpec, words: Ints) -> tuple[Any, ...]:
        """The words in their own types; strings in place of labels."""
        if spec.is_text and spec.column is not None:
            return (self._labels.decode(spec.column, words[0]),)
        return spec.component.typed(words)

    # -- strings --------------------------------------------------------------------------------------------------

    def _label(self, column: int, strings: pa.Array, layout: Layout) -> Ints:
        return self._labels.encode(column, strings, lambda one: self._labelled(one, layout))

    def purge_labels(self, spare_dead: int, layout: Layout) -> None:
        """Forget strings that are in no pane, if they are more than `spare_dead`."""
        self._labels.purge(lambda column: self._labelled(column, layout), spare_dead)

    def _labelled(self, column: int, layout: Layout) -> list[Ints]:
        """The arrays that hold labels of this column."""
        pairs = zip(self.specs, self.numbers, strict=True)
        numbers = [number for spec, number in pairs if spec.column == column and spec.is_text]
        return [words for number in numbers for words in layout.stored(number)]


def _combine(stored: Sequence[Ints], component: Component, cells: Codes, words: Ints) -> None:
    """Each cell is there once, so plain indexing will do."""
    into = np.stack([word[cells] for word in stored])
    component.combine(into, np.ascontiguousarray(words))
    for word, result in zip(stored, into, strict=True):
        word[cells] = result
