"""WHERE predicates as sets of rows: disjunctions of conjunctions, with implication and disjointness (thesis 8.3.3).

A row is kept when the predicate is TRUE; a predicate stands for the set of those rows, so NULL needs no third value
here. `column op constant`, BETWEEN, IN, IS NULL and what AND, OR, NOT make of them is understood; every other
expression is opaque: it is equal to itself, by text, and nothing else is known of it. All answers are sound: `implies`
and `disjoint` may say no for want of knowledge, never yes. A test costs O(terms² · columns) as a rule, and is given up
after MOST_PIECES pieces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import combinations, product
from math import isfinite

from sqlglot import exp

from windrow.language import types
from windrow.sharing.values import EVERYTHING, NOT_NULL, ONLY_NULL, Constant, ValueSet, compared

MOST_TERMS = 64
"""A predicate of more terms is opaque as a whole."""
MOST_PIECES = 500
"""So many pieces of a term are looked at before the question whether it is covered is given up."""
EXACT = 1 << 53
"""Whole numbers up to here are the same as a DOUBLE."""


@dataclass(frozen=True)
class Conjunct:
    """The rows whose columns are all in their sets, and for which all opaque conditions hold."""

    columns: frozenset[tuple[str, ValueSet]] = frozenset()
    opaque: frozenset[str] = frozenset()

    @property
    def values(self) -> Mapping[str, ValueSet]:
        """The set of each column that is restricted."""
        return dict(self.columns)

    @property
    def empty(self) -> bool:
        """Whether no row can be in it."""
        return any(allowed.empty for _, allowed in self.columns)

    def __and__(self, other: Conjunct) -> Conjunct:
        """The rows in both."""
        mine, theirs = self.values, other.values
        names = {**mine, **theirs}
        both = {name: mine.get(name, EVERYTHING) & theirs.get(name, EVERYTHING) for name in names}
        return Conjunct(frozenset(both.items()), self.opaque | other.opaque)

    def disjoint(self, other: Conjunct) -> bool:
        """Whether certainly no row is in both."""
        return (self & other).empty

    def without(self, other: Conjunct) -> list[Conjunct] | None:
        """This one cut into pieces that are not in the other; None when nobody can say."""
        if not other.opaque <= self.opaque:
            return None
        left, pieces = self, []
        for name, allowed in sorted(other.columns, key=lambda one: one[0]):
            mine = left.values.get(name, EVERYTHING)
            outside = mine - allowed
            if not outside.empty:
                pieces.append(_with(left, name, outside))
            left = _with(left, name, mine & allowed)
            if left.empty:
                break
        return [piece for piece in pieces if not piece.empty]


@dataclass(frozen=True)
class Predicate:
    """The rows in one of the terms."""

    terms: frozenset[Conjunct]

    @classmethod
    def of(cls, terms: Iterable[Conjunct]) -> Predicate:
        """Without terms that are empty, or within another."""
        kept: list[Conjunct] = []
        for term in sorted(set(terms), key=lambda one: (len(one.columns) + len(one.opaque), repr(one))):
            if not term.empty and not _covered([term], kept):
                kept = [one for one in kept if not _covered([one], [term])] + [term]
        return cls(frozenset(kept))

    @property
    def transparent(self) -> bool:
        """Whether all of it is understood: then no row can make it fail either."""
        return not any(term.opaque for term in self.terms)

    @property
    def disjoint_terms(self) -> bool:
        """Whether certainly no row is in two of its terms."""
        return all(one.disjoint(other) for one, other in combinations(self.terms, 2))

    def implies(self, *others: Predicate) -> bool:
        """Whether every row here is certainly in one of the others."""
        if len(others) == 1:
            return _implies(self, others[0])
        return _covered(self.terms, [term for other in others for term in other.terms])

    def same(self, other: Predicate) -> bool:
        """Whether both certainly have the same rows."""
        return self.implies(other) and other.implies(self)

    def disjoint(self, other: Predicate) -> bool:
        """Whether certainly no row is in both."""
        return _disjoint(self, other)


@lru_cache(maxsize=1 << 16)
def _implies(one: Predicate, other: Predicate) -> bool:
    """Asked again and again, whenever a query comes."""
    return _covered(one.terms, list(other.terms))


@lru_cache(maxsize=1 << 16)
def _disjoint(one: Predicate, other: Predicate) -> bool:
    return all(mine.disjoint(theirs) for mine, theirs in product(one.terms, other.terms))


TRUE = Predicate(frozenset({Conjunct()}))
FALSE = Predicate(frozenset())


def predicate(expression: exp.Expr | None) -> Predicate:
    """What a typed WHERE expression says, columns being told apart by name.

    >>> from sqlglot import parse_one
    >>> from windrow.language.typing import infer
    >>> def read(text):
    ...     expression = parse_one(text)
    ...     _ = infer(expression, lambda column: types.INTEGER)
    ...     return predicate(expression)
    >>> read("a IN (1, 2) AND b < 3").implies(read("a BETWEEN 0 AND 5"))
    True
    >>> read("a = 1").disjoint(read("a <> 1")), read("a = 1").disjoint(read("b = 2"))
    (True, False)
    """
    if expression is None:
        return TRUE
    terms = _terms(expression, negated=False)
    return _opaque(expression, negated=False) if terms is None else Predicate.of(terms)


def _covered(wanted: Iterable[Conjunct], others: list[Conjunct]) -> bool:
    """Whether each wanted set is within the union of the others; False also when that takes too long to tell."""
    left, looked = [(term, 0) for term in wanted], 0
    while left:
        piece, place = left.pop()
        looked += 1
        if place == len(others) or looked > MOST_PIECES:
            return False
        outside = piece.without(others[place])
        left += [(piece, place + 1)] if outside is None else [(one, place + 1) for one in outside]
    return True


def _with(term: Conjunct, name: str, allowed: ValueSet) -> Conjunct:
    return Conjunct(frozenset({**term.values, name: allowed}.items()), term.opaque)


# ---- from expressions -----------------------------------------------------------------------------------------------

_OPERATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="
}  # fmt: skip
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NEGATED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def _opaque(expression: exp.Expr, *, negated: bool) -> Predicate:
    return Predicate(frozenset({_opaque_term(expression, negated=negated)}))


def _opaque_term(expression: exp.Expr, *, negated: bool) -> Conjunct:
    text = expression.sql("cql")
    return Conjunct(opaque=frozenset({f"NOT ({text})" if negated else text}))


def _terms(node: exp.Expr, *, negated: bool) -> list[Conjunct] | None:
    """The terms for which the node is TRUE or, negated, FALSE; None when they are too many."""
    node = node.unnest()
    match node:
        case exp.Not():
            return _terms(node.this, negated=not negated)
        case exp.And() | exp.Or():
            parts = [_terms(part, negated=negated) for part in node.flatten()]
            known = [part for part in parts if part is not None]
            if len(known) < len(parts):
                return None
            if isinstance(node, exp.Or) != negated:  # De Morgan, which holds for TRUE, FALSE and NULL too
                return _few([term for part in known for term in part])
            product_of: list[Conjunct] | None = [Conjunct()]
            for part in known:
                product_of = _multiplied(product_of, part)
            return product_of
        case exp.Boolean():
            return [Conjunct()] if bool(node.this) != negated else []
        case exp.Between():
            low = _compared(">=", node.this, node.args["low"], negated=negated)
            high = _compared("<=", node.this, node.args["high"], negated=negated)
            if low is None or high is None:
                return [_opaque_term(node, negated=negated)]
            return [low, high] if negated else [low & high]
        case exp.In() if not node.args.get("query") and not node.args.get("unnest"):
            values = [_compared("=", node.this, value, negated=negated) for value in node.expressions]
            found = [one for one in values if one is not None]
            if len(found) < len(values) or not found:
                return [_opaque_term(node, negated=negated)]
            return [reduce(Conjunct.__and__, found)] if negated else _few(found)
        case exp.Is() if isinstance(node.this, exp.Column) and isinstance(node.expression, exp.Null):
            return [_column(node.this.name, NOT_NULL if negated else ONLY_NULL)]
        case exp.Column() if _kind(node) == "boolean":
            return [_column(node.name, compared("=", int(not negated), whole=True))]
    found_one = None
    if type(node) in _OPERATORS:
        found_one = _compared(_OPERATORS[type(node)], node.this, node.expression, negated=negated)
    return [found_one or _opaque_term(node, negated=negated)]


def _few(terms: list[Conjunct]) -> list[Conjunct] | None:
    return terms if len(terms) <= MOST_TERMS else None


def _multiplied(left: list[Conjunct] | None, right: list[Conjunct]) -> list[Conjunct] | None:
    return None if left is None else _few([one & other for one in left for other in right])


def _column(name: str, allowed: ValueSet) -> Conjunct:
    return Conjunct(frozenset({(name.lower(), allowed)}))


def _compared(operator: str, left: exp.Expr, right: exp.Expr, *, negated: bool) -> Conjunct | None:
    left, right = left.unnest(), right.unnest()
    if isinstance(right, exp.Column) and not isinstance(left, exp.Column):
        left, right, operator = right, left, _MIRRORED[operator]
    if not isinstance(left, exp.Column):
        return None
    kind = _kind(left)
    value = _constant(right, kind)
    if kind is None or value is None:
        return None
    whole = kind in ("whole", "boolean")
    return _column(left.name, compared(_NEGATED[operator] if negated else operator, value, whole=whole))


def _kind(column: exp.Expr) -> str | None:
    """What is known of the order of its values; None: nothing."""
    found = column.type
    if not isinstance(found, exp.DataType):
        return None
    if found.is_type("boolean"):
        return "boolean"
    if types.is_integer(found):
        return "whole"
    if found.is_type("double"):  # a FLOAT is compared as a DOUBLE or as a FLOAT: its constants may mean others
        return "number"
    return "text" if found.is_type("text", "varchar") else None


def _constant(node: exp.Expr, kind: str | None) -> Constant | None:
    """A constant that means in the column's own type exactly what it says."""
    if isinstance(node, exp.Neg):
        value = _constant(node.this.unnest(), kind)
        return -value if isinstance(value, int | float) and kind in ("whole", "number") else None
    if isinstance(node, exp.Boolean):
        return int(bool(node.this)) if kind == "boolean" else None
    if not isinstance(node, exp.Literal):
        return None
    if node.is_string:
        return node.this if kind == "text" else None
    if node.is_int and kind in ("whole", "number"):
        whole = int(node.this)
        return whole if abs(whole) < (1 << 63 if kind == "whole" else EXACT) else None
    if kind == "number":
        number = float(node.this)
        return number if isfinite(number) else None
    return None
