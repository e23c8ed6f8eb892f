"""What slicing elsewhere needs to know: the stream, and each slice's predicate, keys, terms and pane edges, as JSON.

The engine keeps the other half: where a worker's components stand in its share groups, and which queries use them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlglot import exp, serde

from windrow.errors import InputError, SetupError
from windrow.language.catalog import Stream
from windrow.language.user_functions import UserFunction, found
from windrow.plan.periodic import Aggregation, PeriodicAggregate
from windrow.running import RunningQuery, RunningStream
from windrow.sharing.feeding import Handout
from windrow.sharing.slice import Slice
from windrow.synopses.partials import Partials

READER_OPTIONS = ("ignoremissingfiles",)
"""What a worker that reads files must know; other options may hold secrets, and stay here."""
EVERY_TERM = -1
"""In place of a term's number: the predicate or a key failed, which all queries of the slice need."""

TermKey: TypeAlias = "tuple[str, tuple[float | int | bool, ...], str | None]"
"""The name, parameters and value of an aggregate: equal terms are sliced once."""


@dataclass(frozen=True)
class SliceJob:
    """One slice of a job, as the engine sees it."""

    part: Slice
    terms: tuple[TermKey, ...]
    """The distinct (aggregate, value) pairs of its queries."""
    positions: tuple[int, ...]
    """The places here of the worker's components."""
    handout: Handout | None = None
    """For whom else the worker slices, if other slices are derived from this one."""

    @property
    def parts(self) -> tuple[Slice, ...]:
        """All slices that the worker's partials are for."""
        return (self.part,) if self.handout is None else (self.part, *self.handout.dependants)

    def absorb(self, partials: list[Partials]) -> None:
        """Add what workers have put into the panes."""
        if self.handout is not None:
            self.handout.keep(partials)
            return
        assert self.part.group is not None
        for one in partials:
            self.part.group.absorb(one, self.positions)
            self.part.saved.share(int(one.rows.sum()), len(self.part.members))

    def users(self, queries: list[RunningQuery], term: int) -> list[RunningQuery]:
        """The queries that cannot go on without this term."""
        if term == EVERY_TERM:
            return queries
        return [one for one in queries if self.terms[term] in map(_term_key, one.plan.aggregations)]


@dataclass(frozen=True)
class Job:
    """`text` goes to the workers; `slices` stay here, in the order of their numbers."""

    text: str
    slices: tuple[SliceJob, ...]
    columns: tuple[str, ...]
    """What must be read of the source."""
    derived: tuple[Slice, ...] = ()
    """What is not sliced elsewhere, because the partials of others have it."""
    tuples: bool = False
    """Whether rows themselves must come: to be numbered all together (ROWS windows), or for continuous queries."""


def job_of(
    running: RunningStream,
    derived: Sequence[Slice] = (),
    more: frozenset[str] = frozenset(),
    wanted: Sequence[exp.Expr | None] = (None,),
) -> Job:
    """The job for the queries that are registered now; slices that are `derived` need no worker.

    The rows themselves come with the columns `more`, if there are any; only those that do not fail one of the
    predicates `wanted`, unless that one is None.
    """
    described, slices = [], []
    needed = {running.stream.time}
    handouts, without_worker = running.feeding.handouts(derived), set(derived)
    for part in running.slices.values():
        if part in without_worker:
            continue
        handout = handouts.get(part)
        queries = running.queries_of(part)
        plan = queries[0].plan
        if handout is not None:  # in the order of the twin, which has the components of the worker
            queries += [query for one in handout.dependants for query in running.queries_of(one)]
        for query in queries:
            require_importable(query.plan)
        terms: dict[TermKey, Aggregation] = {}
        places: dict[int, None] = {}
        for query in queries:
            for one, where in zip(query.plan.aggregations, query.member.positions, strict=True):
                if _term_key(one) not in terms:
                    terms[_term_key(one)] = one
                    places |= dict.fromkeys(where)
        slices.append(SliceJob(part, tuple(terms), tuple(places), handout))
        assert part.group is not None
        described.append(
            {
                "predicate": _dump(plan.predicate),
                "keys": [_dump(key) for key in plan.keys],
                "terms": [[one.name, _dump(one.value), one.parameters, _user(one)] for one in terms.values()],
                "grid": (part.group.grid if handout is None else handout.grid).progressions,
                "begin": part.begin,
                "synopsis": part.synopsis,
            }
        )
        needed |= _columns(plan, terms)
    numbered = running.numbering is not None
    tuples = numbered or bool(more)
    needed |= more
    # Rows with equal timestamps are ordered by all their values.
    columns = tuple(column.name for column in running.stream.columns if numbered or column.name in needed)
    text = json.dumps(
        {
            "stream": _stream(running.stream),
            "columns": columns,
            "slices": described,
            "tuples": [name for name in columns if numbered or name in more] if tuples else None,
            "wanted": None if numbered or None in wanted else [_dump(one) for one in wanted],
        }
    )
    return Job(text, tuple(slices), columns, tuple(derived), tuples)


def _term_key(one: Aggregation) -> TermKey:
    return one.name, one.parameters, None if one.value is None else one.value.sql("cql")


def _columns(plan: PeriodicAggregate, terms: dict[TermKey, Aggregation]) -> set[str]:
    parts = [plan.predicate, *plan.keys, *(one.value for one in terms.values())]
    names = {column.name for part in parts if part is not None for column in part.find_all(exp.Column)}
    return {plan.stream.column(name).name for name in names}


def _stream(stream: Stream) -> dict[str, Any]:
    return {
        "name": stream.name,
        "columns": [[column.name, serde.dump(column.type)] for column in stream.columns],
        "time": stream.time,
        "sequence": stream.sequence,
        "lateness": stream.lateness,
        "options": {name: value for name, value in stream.options.items() if name.lower() in READER_OPTIONS},
    }


def require_importable(plan: PeriodicAggregate) -> None:
    """Refuse a query whose aggregates workers elsewhere could not find."""
    for one in plan.aggregations:
        if one.user is not None and not one.user.importable:
            raise SetupError(
                f"{one.text}: the class of aggregate {one.user.name} is {one.user.place}, which workers cannot import "
                "by that name. Put it at the top level of a module that they have too, and register it from there"
            )


def _user(one: Aggregation) -> list[Any] | None:
    """Where workers find the class of a user's aggregate."""
    return None if one.user is None else [one.user.place, serde.dump(one.user.returns), one.user.takes]


def load_user(name: str, described: list[Any] | None) -> UserFunction | None:
    """The inverse, in a worker."""
    if described is None:
        return None
    place, returns, takes = described
    try:
        return UserFunction(name, found(place), load(returns), takes)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"aggregate {name}: {place} cannot be imported where the data are read ({error}); install its module "
            "there, or send it with spark.sparkContext.addPyFile"
        ) from error


def load(dump: Any) -> Any:
    """The expression or type that was dumped."""
    return serde.load(dump)


def _dump(expression: exp.Expr | None) -> Any:
    return None if expression is None else serde.dump(expression)
