"""The components that the queries of an axis need of each result, as words beside each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from windrow.aggregates import Component
from windrow.aggregates.columns import validity
from windrow.aggregates.count import Count, CountRows
from windrow.errors import QueryError
from windrow.expressions import Context, Program
from windrow.kernels.jit import Ints, frozen
from windrow.sharing.member import Term
from windrow.synopses.join_intervals import Words

Part: TypeAlias = tuple[Component, Program | None]
"""A component, and the value that it takes."""


def parts_of(term: Term) -> list[Part]:
    """What an aggregate is made of."""
    return [(one, None if isinstance(one, CountRows) else term.value) for one in term.aggregate.components]


@dataclass(frozen=True)
class Parts:
    """Components, each once; the first is how many results there are."""

    every: tuple[Part, ...]

    @classmethod
    def of(cls, queries: Iterable[Sequence[Term]]) -> Parts:
        """All that the aggregates of these queries need, in the order of first use."""
        used = [part for terms in queries for term in terms for part in parts_of(term)]
        return cls(tuple(dict.fromkeys([(CountRows(), None), *used])))

    @cached_property
    def columns(self) -> dict[Part, slice]:
        """The words of each."""
        found, begin = {}, 0
        for part in self.every:
            found[part] = slice(begin, begin + len(part[0].identity))
            begin = found[part].stop
        return found

    @cached_property
    def words(self) -> Words:
        """How words are combined."""
        ops = np.concatenate([np.full(len(one.identity), one.op, np.int64) for one, _ in self.every])
        return Words(ops, np.concatenate([one.identity for one, _ in self.every]))

    def lifted(self, context: Context, count: int) -> tuple[Ints, dict[Program | None, QueryError]]:
        """The words [results, words] of each result for itself, and the values that some result does not have."""
        words = np.repeat(self.words.identity[:, None], count, axis=1)
        failed: dict[Program | None, QueryError] = {}
        cells = np.arange(count, dtype=np.int32)
        for (component, program), columns in self.columns.items() if count else ():
            if program is None:
                words[columns] = 1
                continue
            try:
                value = context.value(program)
            except QueryError as error:
                failed[program] = error
                continue
            valid = validity(value)
            chosen = cells if valid is None else cells[valid]
            if isinstance(component, Count):
                words[columns, chosen] = 1
            else:
                lifted = component.lift(value)
                component.accumulate(list(words[columns]), chosen, frozen(lifted if valid is None else lifted[valid]))
        return np.ascontiguousarray(words.T), failed

    def taken(self, words: Ints, other: Parts) -> Ints:
        """The words [cells, words] that were kept for others; nothing of what these did not have."""
        found = np.repeat(self.words.identity[None, :], len(words), axis=0)
        for part, columns in self.columns.items():
            if part in other.columns:
                found[:, columns] = words[:, other.columns[part]]
        return found

    def typed(self, term: Term, words: Ints, rows: Ints) -> list[tuple[Any, ...]]:
        """What an aggregate is lowered from, for some rows of words [words, rows]."""
        return [part[0].typed(words[self.columns[part]][:, rows]) for part in parts_of(term)]
