"""Aggregates of the user: what a database knows of them, by name, and the marks of their calls in a query.

The binder marks a call with the function that it means; all that comes later looks at the mark, so that two databases
may give one name different meanings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from sqlglot import exp
from sqlglot.errors import ParseError

from windrow.errors import BindError, CatalogError, SyntaxError
from windrow.language import types
from windrow.language.arguments import expect_text
from windrow.language.functions import FUNCTIONS
from windrow.language.parse import parse_one

MARK = "windrow_user_aggregate"

TAKES: dict[str, Callable[[exp.DataType], bool]] = {
    "a number": types.is_numeric,
    "a date or time": types.is_temporal,
    "a boolean": lambda kind: types.kind(kind) == exp.DType.BOOLEAN,
}


@dataclass(frozen=True)
class UserFunction:
    """A registered aggregate: its name in SQL, the class that computes it, what it takes and what it returns."""

    name: str
    implementation: type
    returns: exp.DataType
    takes: str = "a number"

    @property
    def place(self) -> str:
        """Where the class can be imported: module:qualname."""
        return f"{self.implementation.__module__}:{self.implementation.__qualname__}"

    @property
    def importable(self) -> bool:
        """Whether another process that has the module finds the same class under that name."""
        if self.implementation.__module__ == "__main__":
            return False
        try:
            return found(self.place) is self.implementation
        except (ImportError, AttributeError):
            return False


def found(place: str) -> Any:
    """The class at module:qualname."""
    module, _, name = place.partition(":")
    value: Any = import_module(module)
    for part in name.split("."):
        value = getattr(value, part)
    return value


def user_function(name: str, implementation: type, returns: str, takes: str) -> UserFunction:
    """Check a registration."""
    expect_text(name, "the name of an aggregate")
    if not name.isidentifier():
        raise CatalogError(f"the name of an aggregate must be a word of letters, digits and _, found {name!r}")
    if not isinstance(implementation, type):
        raise CatalogError(f"aggregate {name}: expected a class, found {implementation!r}; give the class itself")
    try:
        known = name.lower() in FUNCTIONS or not isinstance(_parsed(name), exp.Anonymous)
    except SyntaxError:
        raise CatalogError(f"{name} is a word of the language and cannot name an aggregate; choose another") from None
    if known:
        raise CatalogError(f"the name {name} is taken by a function of the language; choose another")
    if takes not in TAKES:
        raise CatalogError(f"aggregate {name}: takes must be one of {', '.join(map(repr, TAKES))}, found {takes!r}")
    try:
        kind = types.canonical(exp.DataType.build(expect_text(returns, "returns"), dialect="cql"))
    except (BindError, ParseError):
        raise CatalogError(
            f"aggregate {name}: {returns!r} is not a type of the language; see docs/language.md"
        ) from None
    return UserFunction(name.upper(), implementation, kind, takes)


def _parsed(name: str) -> exp.Expr | None:
    """What the parser makes of a call: known functions have classes of their own."""
    from windrow.language.aggregates import aggregate_name

    select = parse_one(f"SELECT {name}(x) FROM s [NOW]").find(exp.Select)
    call = select.expressions[0] if select is not None else None
    return None if call is None or aggregate_name(call) is not None else call


def mark_calls(query: exp.Expr, functions: Mapping[str, UserFunction]) -> None:
    """Note at every call of a user's aggregate which one it means."""
    if functions:
        for node in query.find_all(exp.Anonymous):
            known = functions.get(node.name.upper())
            if known is not None:
                node.meta[MARK] = known


def marked(node: exp.Expr) -> UserFunction | None:
    """The user's aggregate that a node calls."""
    return node.meta.get(MARK) if isinstance(node, exp.Anonymous) else None
