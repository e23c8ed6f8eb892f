"""Hints: what a query asks beside its meaning, as in `SELECT /*+ SYNOPSIS(interval) PRIORITY(2) */ MAX(x) FROM …`.

Right behind SELECT a comment that begins with + is a hint; anywhere else it is a comment like others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp

from windrow.language import nodes
from windrow.language.parse import parse_one
from windrow.language.positions import error, position

SYNOPSES = ("running", "basic_interval", "interval", "landmark")
"""By the names that the registry of synopses has."""
HIGHEST_PRIORITY = 1_000_000
_ONE = re.compile(r"(\w+)\s*\(\s*([-+]?\w+)\s*\)\s*,?\s*")


@dataclass(frozen=True)
class Hint:
    """The synopsis that a query asks for, and where its text says so."""

    synopsis: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return f"SYNOPSIS({self.synopsis})"


@dataclass(frozen=True)
class Priority:
    """Among queries with equal deadlines the greater goes first, in live runs (thesis 8.4.2)."""

    value: int
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return f"PRIORITY({self.value})"


@dataclass(frozen=True)
class Hints:
    """All that a query asks for."""

    synopsis: Hint | None = None
    priority: Priority | None = None

    def __str__(self) -> str:
        return " ".join(str(one) for one in (self.synopsis, self.priority) if one is not None)


def take_hints(query: exp.Expr) -> Hints:
    """The hints of a query, which are taken out of it; a BindError for one that there is not, or at another place."""
    found = Hints()
    for select in list(query.find_all(exp.Select)):
        hint = select.args.get("hint")
        if hint is None:
            continue
        if select is not query:
            raise error(hint, "a hint holds for a whole query: write it behind the first SELECT, not in a part of it")
        found = _hints(hint)
        select.set("hint", None)
    return found


def hinted(text: str, synopsis: str | None = None, priority: int | None = None) -> exp.Expr:
    """The statement with these hints in it, which its text then has too."""
    statement = parse_one(text)
    query = statement.this if isinstance(statement, nodes.StreamOperator) else statement
    while isinstance(query, exp.Subquery):
        query = query.this
    if not isinstance(query, exp.Select):
        return statement  # the binder says what a query is, and the engine what it runs
    given = query.args.get("hint")
    known = Hints() if given is None else _hints(given)
    asked_for = Hints(
        None if synopsis is None else Hint(synopsis),
        None if priority is None else Priority(priority),
    )  # fmt: skip
    wanted = _hints(_hint(asked_for))
    for asked, other, called in (
        (wanted.synopsis, known.synopsis, f"synopsis={synopsis!r}"),
        (wanted.priority, known.priority, f"priority={priority!r}"),
    ):
        if asked is not None and other is not None and str(asked) != str(other):
            raise error(given or query, f"the text has a hint, and the call has {called}; leave one of them out")
    query.set("hint", _hint(Hints(wanted.synopsis or known.synopsis, wanted.priority or known.priority)))
    return statement


def _hint(hints: Hints) -> exp.Hint:
    return exp.Hint(expressions=[exp.Var(this=str(hints))])


def _hints(hint: exp.Expr) -> Hints:
    """The hints that are written in a comment, each once."""
    text = hint.expressions[0].name
    place = position(hint)
    synopsis: Hint | None = None
    priority: Priority | None = None
    end = 0
    for one in _ONE.finditer(text):
        name, value = one[1].upper(), one[2].lower()
        if one.start() != end:
            break
        if name == "SYNOPSIS" and value in SYNOPSES and synopsis is None:
            synopsis = Hint(value, *place)
        elif name == "PRIORITY" and _whole(value) and priority is None:
            priority = Priority(int(value), *place)
        else:
            break
        end = one.end()
    if end == len(text) and end:
        return Hints(synopsis, priority)
    found = text if len(text) <= 40 else text[:37] + "..."
    possible = ", ".join(f"SYNOPSIS({name})" for name in SYNOPSES)
    highest = f"{HIGHEST_PRIORITY:,}"
    raise error(
        hint,
        f"there is no hint {found!r}; the hints are {possible}, and PRIORITY(n) with a whole number from -{highest} to "
        f"{highest}, each at most once",
    )


def _whole(text: str) -> bool:
    return re.fullmatch(r"[-+]?\d{1,7}", text) is not None and abs(int(text)) <= HIGHEST_PRIORITY
