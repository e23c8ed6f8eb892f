"""WHERE predicates as sets of rows: disjunctions of conjunctions, with implication and disjointness (thesis 8.3.3).

A row is kept when the predicate is TRUE; a predicate stands for the set of those rows, so NULL needs no third value
here. `column op constant`, BETWEEN, IN, IS NULL, IS [NOT] DISTINCT FROM and what AND, OR, NOT make of them is
understood; every other expression is opaque: it is equal to itself, by text, and nothing else is known of it. All
answers are sound: `implies` and `disjoint` may say no for want of knowledge, never yes. A test costs O(terms² ·
columns) as a rule, and is given up after MOST_PIECES pieces.

Terms that differ in one column only are one term, so `a = 1 OR a = 2`, `a IN (2, 1)` and `a BETWEEN 1 AND 2` of whole
numbers are the same object, with the same `text`: queries that say the same in other words share their panes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from itertools import combinations, product
from math import floor, isfinite

from sqlglot import exp

from windrow.language import literals, types
from windrow.plan.values import EVERYTHING, NOT_NULL, NOTHING, ONLY_NULL, Constant, ValueSet, compared

MOST_TERMS = 64
"""A predicate of more terms is opaque as a whole."""
MOST_LISTED = 1000
"""An IN with more values is opaque."""
MOST_PIECES = 500
"""So many pieces of a term are looked at before the question whether it is covered is given up."""
EXACT = 1 << 53
"""Whole numbers up to here are the same as a DOUBLE."""


@dataclass(frozen=True)
class Conjunct:
    """The rows whose columns are all in their sets, and for which all opaque conditions hold."""

    columns: frozenset[tuple[str, ValueSet]] = frozenset()
    opaque: frozenset[str] = frozenset()

    @cached_property
    def values(self) -> Mapping[str, ValueSet]:
        """The set of each column that is restricted."""
        return dict(self.columns)

    @property
    def empty(self) -> bool:
        """Whether no row can be in it."""
        return any(allowed.empty for _, allowed in self.columns)

    @property
    def text(self) -> str:
        """The same for equal ones."""
        return " AND ".join(f"{name} {allowed}" for name, allowed in sorted(self.columns, key=_name)) or "TRUE"

    def __and__(self, other: Conjunct) -> Conjunct:
        """The rows in both."""
        mine, theirs = self.values, other.values
        names = {**mine, **theirs}
        both = {name: mine.get(name, EVERYTHING) & theirs.get(name, EVERYTHING) for name in names}
        return Conjunct(frozenset(both.items()), self.opaque | other.opaque)

    def disjoint(self, other: Conjunct) -> bool:
        """Whether certainly no row is in both."""
        if self.empty or other.empty:
            return True
        mine, theirs = self.values, other.values
        return any(not mine[name].overlaps(allowed) for name, allowed in theirs.items() if name in mine)

    def within(self, other: Conjunct) -> bool:
        """Whether every row is certainly in the other one too."""
        if not other.opaque <= self.opaque:
            return False
        mine = self.values
        return all(mine.get(name, EVERYTHING).within(allowed) for name, allowed in other.columns)

    def without(self, other: Conjunct) -> list[Conjunct] | None:
        """This one cut into pieces that are not in the other; None when nobody can say."""
        if not other.opaque <= self.opaque:
            return None
        left, pieces = self, []
        for name, allowed in sorted(other.columns, key=_name):
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
        """Without terms that are empty, or within another, or differ from another in one column only."""
        kept: list[Conjunct] = []
        for term in sorted(_merged(terms), key=lambda one: (len(one.columns) + len(one.opaque), repr(one))):
            if not term.empty and not _covered([term], kept):
                kept = [one for one in kept if not _covered([one], [term])] + [term]
        return cls(frozenset(kept))

    @property
    def transparent(self) -> bool:
        """Whether all of it is understood: then no row can make it fail either."""
        return not any(term.opaque for term in self.terms)

    @property
    def text(self) -> str:
        """The same for equal ones, if all is understood; no SQL begins like it."""
        return "{" + (" OR ".join(sorted(term.text for term in self.terms)) or "FALSE") + "}"

    @property
    def disjoint_terms(self) -> bool:
        """Whether certainly no row is in two of its terms."""
        return all(one.disjoint(other) for one, other in combinations(self.terms, 2))

    def implies(self, *others: Predicate) -> bool:
        """Whether every row here is certainly in one of the others."""
        if self.line is not None:
            # Most predicates are about one column, and are compared again and again, whenever a query comes.
            name, left = self.line
            lines = [one.line[1] for one in others if one.line is not None and one.line[0] == name]
            if len(lines) == len(others):
                return _used_up(left, lines)
        if len(others) == 1:
            return _implies(self, others[0])
        return _covered(self.terms, [term for other in others for term in other.terms])

    @cached_property
    def line(self) -> tuple[str, ValueSet] | None:
        """The column and its values, if it is about one column only, as many are."""
        if len(self.terms) != 1:
            return None
        (term,) = self.terms
        if len(term.columns) != 1 or term.opaque:
            return None
        (one,) = term.columns
        return one

    def same(self, other: Predicate) -> bool:
        """Whether both certainly have the same rows."""
        return self.implies(other) and other.implies(self)

    def disjoint(self, other: Predicate) -> bool:
        """Whether certainly no row is in both."""
        if self.line is not None and other.line is not None:
            return self.line[0] == other.line[0] and not self.line[1].overlaps(other.line[1])
        return _disjoint(self, other)


@lru_cache(maxsize=1 << 16)
def _implies(one: Predicate, other: Predicate) -> bool:
    """Asked again and again, whenever a query comes."""
    if len(other.terms) == 1:
        (whole,) = other.terms
        return all(term.within(whole) for term in one.terms)
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


def _used_up(left: ValueSet, others: Sequence[ValueSet]) -> bool:
    """Whether nothing is left without the others; `left` is not empty, and no other one is everything."""
    if len(others) == 1:
        return left.within(others[0])
    for other in others:
        if left.overlaps(other):
            left = left - other
            if left.empty:
                return True
    return left.empty


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


def _merged(terms: Iterable[Conjunct]) -> set[Conjunct]:
    """The same rows in fewer terms: those that differ in the values of one column only become one."""
    found = {_tight(term) for term in terms}
    before = len(found) + 1
    while len(found) < before:
        before = len(found)
        for name in sorted({name for term in found for name, _ in term.columns}):
            alike: dict[Conjunct, ValueSet] = {}
            for term in found:
                allowed = term.values.get(name, EVERYTHING)
                rest = _with(term, name, EVERYTHING)
                alike[rest] = alike[rest] | allowed if rest in alike else allowed
            found = {_with(rest, name, allowed) for rest, allowed in alike.items()}
    return found


def _tight(term: Conjunct) -> Conjunct:
    """Without columns that may have any value."""
    return Conjunct(frozenset(one for one in term.columns if one[1] != EVERYTHING), term.opaque)


def _name(one: tuple[str, ValueSet]) -> str:
    return one[0]


def _with(term: Conjunct, name: str, allowed: ValueSet) -> Conjunct:
    columns = {**term.values, name: allowed}
    if allowed == EVERYTHING:
        del columns[name]
    return Conjunct(frozenset(columns.items()), term.opaque)


# ---- from expressions -----------------------------------------------------------------------------------------------

_OPERATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="
}  # fmt: skip
_IN_FULL = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d:\d\d(\.\d{1,6})?)?", re.ASCII)
"""Texts that a literal and a CAST are sure to read alike."""
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
            if len(found) < len(values) or not found or len(found) > MOST_LISTED:
                return [_opaque_term(node, negated=negated)]
            return [reduce(Conjunct.__and__, found)] if negated else list(_merged(found))
        case exp.Is() if isinstance(node.this, exp.Column) and isinstance(node.expression, exp.Null):
            return [_column(node.this.name, NOT_NULL if negated else ONLY_NULL)]
        case exp.Is() if _kind(node.this) == "boolean" and isinstance(node.expression, exp.Boolean):
            return [_same_value(node.this, node.expression, negated=negated) or _opaque_term(node, negated=negated)]
        case exp.NullSafeEQ() | exp.NullSafeNEQ():
            other = negated == isinstance(node, exp.NullSafeEQ)
            known_one = _same_value(node.this, node.expression, negated=other)
            return [known_one or _opaque_term(node, negated=negated)]
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


def _same_value(left: exp.Expr, right: exp.Expr, *, negated: bool) -> Conjunct | None:
    """IS NOT DISTINCT FROM, which knows NULL from all other values."""
    equal = _compared("=", left, right, negated=False)
    if equal is None:
        return None
    [(name, allowed)] = equal.columns
    return _column(name, allowed.complement if negated else allowed)


def _compared(operator: str, left: exp.Expr, right: exp.Expr, *, negated: bool) -> Conjunct | None:
    left, right = left.unnest(), right.unnest()
    if isinstance(right, exp.Column) and not isinstance(left, exp.Column):
        left, right, operator = right, left, _MIRRORED[operator]
    if not isinstance(left, exp.Column):
        return None
    kind = _kind(left)
    operator = _NEGATED[operator] if negated else operator
    value = _constant(right, kind)
    if value is None and kind == "whole":
        return _between_whole_numbers(left.name, operator, right)
    if kind is None or value is None:
        return None
    return _column(left.name, compared(operator, value, whole=kind not in ("number", "text")))


def _between_whole_numbers(name: str, operator: str, right: exp.Expr) -> Conjunct | None:
    """Whole numbers compared with a constant that is none: a < 4.5."""
    number = _constant(right, "number")
    if not isinstance(number, float) or number.is_integer() or abs(number) >= EXACT:
        return None
    match operator:
        case "=":
            return _column(name, NOTHING)
        case "<>":
            return _column(name, NOT_NULL)
        case "<" | "<=":
            return _column(name, compared("<=", floor(number), whole=True))
    return _column(name, compared(">", floor(number), whole=True))


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
    if found.is_type("date"):
        return "date"
    if found.is_type("timestamp", "timestampntz"):
        return "timestamp"
    return "text" if found.is_type("text", "varchar") else None


def _constant(node: exp.Expr, kind: str | None) -> Constant | None:
    """A constant that means in the column's own type exactly what it says."""
    node = node.unnest()
    match node:
        case exp.Neg():
            value = _constant(node.this, kind)
            return 0 - value if isinstance(value, int | float) and kind in ("whole", "number") else None
        case exp.Add() | exp.Sub() | exp.Mul() if kind == "whole":
            return _folded(node)
        case exp.Boolean():
            return int(bool(node.this)) if kind == "boolean" else None
        case exp.Cast() if kind in ("date", "timestamp") and _kind(node) == kind:
            return _constant(node.this, kind)
        case exp.Literal() if node.is_string:
            return _instant(node.this, kind) if kind in ("date", "timestamp") else node.this if kind == "text" else None
        case exp.Literal() if node.is_int and kind == "whole":
            return int(node.this) if abs(int(node.this)) < 1 << 63 else None
        case exp.Literal() if kind == "number":
            number = float(node.this)
            exact = not node.is_int or abs(int(node.this)) < EXACT
            return number if isfinite(number) and exact else None
    return None


def _folded(node: exp.Binary) -> int | None:
    """A sum, difference or product of whole numbers that no type is too small for."""
    left, right = _constant(node.this, "whole"), _constant(node.expression, "whole")
    if not isinstance(left, int) or not isinstance(right, int):
        return None
    found = left + right if isinstance(node, exp.Add) else left - right if isinstance(node, exp.Sub) else left * right
    return found if max(abs(left), abs(right), abs(found)) < 1 << 31 else None


def _instant(text: str, kind: str | None) -> int | None:
    """Days, or microseconds, if the text is written in full."""
    at = literals.moment(text) if _IN_FULL.fullmatch(text) else None
    if at is None or kind == "timestamp":
        return at
    day, rest = divmod(at, literals.MICROSECONDS["DAY"])
    return None if rest else day
