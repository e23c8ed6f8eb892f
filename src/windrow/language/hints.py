"""Hints: what a query asks of the engine beside its meaning, as in `SELECT /*+ SYNOPSIS(interval) */ MAX(x) FROM …`.

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
_SYNOPSIS = re.compile(r"SYNOPSIS\s*\(\s*(\w+)\s*\)", re.IGNORECASE)


@dataclass(frozen=True)
class Hint:
    """The synopsis that a query asks for, and where its text says so."""

    synopsis: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return f"SYNOPSIS({self.synopsis})"


def take_hint(query: exp.Expr) -> Hint | None:
    """The hint of a query, which is taken out of it; a BindError for one that there is not, or at another place."""
    found = None
    for select in list(query.find_all(exp.Select)):
        hint = select.args.get("hint")
        if hint is None:
            continue
        if select is not query:
            raise error(hint, "a hint holds for a whole query: write it behind the first SELECT, not in a part of it")
        found = Hint(_synopsis(hint), *position(hint))
        select.set("hint", None)
    return found


def hinted(text: str, synopsis: str) -> exp.Expr:
    """The statement with the hint in it, which its text then has too."""
    statement = parse_one(text)
    query = statement.this if isinstance(statement, nodes.StreamOperator) else statement
    while isinstance(query, exp.Subquery):
        query = query.this
    if not isinstance(query, exp.Select):
        return statement  # the binder says what a query is, and the engine what it runs
    wanted = exp.Hint(expressions=[exp.Var(this=str(Hint(synopsis)))])
    given = query.args.get("hint")
    if given is not None and _synopsis(given) != _synopsis(wanted):
        raise error(given, f"the text has a hint, and the call has synopsis={synopsis!r}; leave one of them out")
    query.set("hint", wanted)
    return statement


def _synopsis(hint: exp.Expr) -> str:
    text = hint.expressions[0].name
    named = _SYNOPSIS.fullmatch(text)
    if named is not None and named[1].lower() in SYNOPSES:
        return named[1].lower()
    found = text if len(text) <= 40 else text[:37] + "..."
    possible = ", ".join(f"SYNOPSIS({name})" for name in SYNOPSES)
    raise error(hint, f"there is no hint {found!r}; the hints are {possible}")
