"""What a periodic aggregate is made of: its terms and its slice, compiled, and what its HAVING decides."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from windrow.aggregates import aggregate
from windrow.aggregates.collected import Collected
from windrow.errors import BindError, UnsupportedError
from windrow.expressions import Compiler
from windrow.language.hints import Hint
from windrow.language.positions import position
from windrow.plan.periodic import Aggregation, PeriodicAggregate
from windrow.plan.threshold import Threshold, threshold_of
from windrow.running import RunningStream
from windrow.sharing.member import Member, Term
from windrow.sharing.slice import Slice
from windrow.synopses.registry import check


class Compiled:
    """Makes slices, members and terms for one engine; `synopsis` forces one type everywhere, None chooses."""

    def __init__(self, synopsis: str | None) -> None:
        check(None, synopsis)
        self.synopsis = synopsis
        self.compiler = Compiler()

    def term(self, one: Aggregation, hint: Hint | None = None) -> Term:
        """An aggregate, and the program of its value; UnsupportedError where the synopsis cannot keep it."""
        program = None if one.value is None else self.compiler.compile(one.value)
        try:
            made = aggregate(one.name, None if program is None else program.type, one.parameters, one.user)
            for component in made.components:
                check(component, self.synopsis if hint is None else hint.synopsis)
            return Term(made, program)
        except ValueError as error:
            line, column = position(one.value) if one.value is not None else (None, None)
            if hint is not None:
                line, column = hint.line, hint.column
            raise UnsupportedError(f"{one.text}: {error}", line=line, column=column) from None

    def terms(self, plan: PeriodicAggregate) -> tuple[Term, ...]:
        """All its aggregates."""
        return tuple(self.term(one, plan.hint) for one in plan.aggregations)

    def member(self, plan: PeriodicAggregate) -> Member:
        """Its share of a slice."""
        terms = self.terms(plan)
        return Member(plan.window, plan.slide, terms, threshold=threshold(plan, terms), hint=plan.hint)

    def slice(self, plan: PeriodicAggregate) -> Slice:
        """A slice with its predicate and grouping, without panes."""
        predicate = None if plan.predicate is None else self.compiler.compile(plan.predicate)
        keys = tuple(self.compiler.compile(one) for one in plan.keys)
        return Slice(predicate, keys, self.synopsis, selected=plan.rows_wanted)


def check_hint(running: RunningStream, plan: PeriodicAggregate, terms: Sequence[Term]) -> None:
    """Refuse a hint where nothing is summarised, or where another query has another one for the same state."""
    hint, part = plan.hint, running.slice_of(plan)
    if hint is None:
        return
    if plan.rows is not None and plan.rows.partition_by:
        reason = f"{hint}: a window with PARTITION BY keeps rows and no synopsis; leave the hint out"
        raise BindError(reason, line=hint.line, column=hint.column)
    for one, term in zip(plan.aggregations, terms, strict=True):
        other = None if part is None else part.hinting(term)
        if other is not None and other.hint is not None and other.hint.synopsis != hint.synopsis:
            name = running.name_of(other)
            reason = f"{hint}: query {name} shares the panes of {one.text} and has the hint {other.hint}"
            advice = f"; give both the same, or drop {name}"
            raise BindError(reason + advice, line=hint.line, column=hint.column)


def threshold(plan: PeriodicAggregate, terms: Sequence[Term]) -> Threshold | None:
    """What HAVING says of a count, or of a sum or extreme of integers, where other groups need no look at all."""
    found = threshold_of(plan)
    if found is None or plan.rows is not None:
        return None
    # A collection finds the groups of a window in its own entries: it cannot be asked for some of them only.
    if any(isinstance(part, Collected) for term in terms for part in term.aggregate.components):
        return None
    return found if pa.types.is_integer(terms[found.aggregation].aggregate.type) else None
