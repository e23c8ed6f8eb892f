"""Aggregates of the user: a class with lift, combine and lower, and subtract if it has one, all on NumPy arrays.

Its words (float64 or int64) are stored like those of any component; a batch is reduced in O(log rows) calls of
`combine`, each on arrays, never row by row. Whatever the user's code raises stops its queries only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.aggregates import columns
from windrow.aggregates.component import Component, Kind
from windrow.errors import CatalogError, QueryError
from windrow.kernels.jit import Codes, Ints
from windrow.language import types
from windrow.language.user_functions import UserFunction

Words: TypeAlias = "tuple[NDArray[Any], ...]"
"""One array per word, all of the same length: entry i of each belongs together."""


class UserAggregate(Protocol):
    """What a class must have to be registered with `db.aggregate`; it is made without arguments, once.

    combine must be associative with `identity` as its neutral element. Rows of a pane come in no certain order, so an
    answer is only defined if it is commutative too, or if the input is pushed in order. A class may also have
    `subtract(whole, part)`, which undoes `combine` exactly, or within the accuracy that is wanted: then a window of any
    length costs two reads.
    """

    identity: tuple[float | int, ...]
    """The words of no values: a float for a float64 word, an int for an int64 word."""

    def lift(self, values: NDArray[Any]) -> Words:
        """The words of each single value; integers come as int64, other numbers as float64. No NULLs."""

    def combine(self, a: Words, b: Words) -> Words:
        """The words of a[i] followed by b[i]."""

    def lower(self, words: Words) -> NDArray[Any]:
        """The answers; they are NULL where there were no values, whatever this gives."""


@dataclass(frozen=True)
class UserComponent(Component):
    """The words of a user's aggregate; `combine` and `accumulate` call the class."""

    function: UserFunction

    op: ClassVar[int] = -2
    kind: ClassVar[Kind] = Kind.ALGEBRAIC

    @property
    def name(self) -> str:  # type: ignore[override]
        """For snapshots and messages."""
        return f"user:{self.function.name}"

    @property
    def dtypes(self) -> tuple[Any, ...]:  # type: ignore[override]
        """A float in the identity makes a float64 word."""
        return tuple(np.float64 if isinstance(one, float) else np.int64 for one in self._instance.identity)

    @property
    def identity(self) -> Ints:
        """As bits."""
        words = [np.array([one], dtype) for one, dtype in zip(self._instance.identity, self.dtypes, strict=True)]
        return np.concatenate([word.view(np.int64) for word in words])

    @property
    def subtractable(self) -> bool:
        """Whether the class has `subtract`."""
        return hasattr(self._instance, "subtract")

    @property
    def _instance(self) -> Any:
        return _instance(self.function.implementation)

    # ---- calls of the user's code -----------------------------------------------------------------------------------

    def lift_values(self, values: NDArray[Any]) -> Words:
        """The words of each value."""
        return self._called("lift", len(values), values)

    def combined(self, a: Words, b: Words) -> Words:
        """combine, on arrays of any length."""
        return self._called("combine", len(a[0]), a, b)

    def subtracted(self, whole: Words, part: Words) -> Words:
        """subtract, on arrays of any length."""
        return self._called("subtract", len(whole[0]), whole, part)

    def lowered(self, words: Words) -> NDArray[Any]:
        """One answer per entry."""
        answers = np.asarray(self._raw("lower", words))
        if answers.shape != (len(words[0]),):
            raise self._error("lower", f"expected {len(words[0])} answers, found an array of shape {answers.shape}")
        return answers

    def _called(self, method: str, length: int, *arguments: Any) -> Words:
        result = self._raw(method, *arguments)
        many = len(self.dtypes)
        if not isinstance(result, tuple) or len(result) != many:
            found = f"{len(result)} arrays" if isinstance(result, tuple) else type(result).__name__
            raise self._error(method, f"expected a tuple of {many} arrays, like identity, found {found}")
        words = []
        for array, dtype in zip(result, self.dtypes, strict=True):
            word = np.asarray(array)
            if word.shape != (length,):
                raise self._error(method, f"expected arrays of {length} values, found one of shape {word.shape}")
            if not np.can_cast(word.dtype, dtype, "same_kind"):
                raise self._error(method, f"expected {np.dtype(dtype)}, like identity, found {word.dtype}")
            words.append(np.ascontiguousarray(word, dtype))
        return tuple(words)

    def _raw(self, method: str, *arguments: Any) -> Any:
        try:
            with np.errstate(all="ignore"):
                return getattr(self._instance, method)(*arguments)
        except Exception as error:
            raise self._error(method, f"{type(error).__name__}: {error}") from error

    def _error(self, method: str, what: str) -> QueryError:
        return QueryError(f"aggregate {self.function.name}, {method} of {self.function.place}: {what}")

    # ---- the contract of components ---------------------------------------------------------------------------------

    def lift(self, values: pa.Array) -> NDArray[Any]:
        """The numbers that the user's lift takes."""
        kind = values.type
        if pa.types.is_floating(kind):
            return columns.floats(values)
        if pa.types.is_decimal(kind):
            return np.asarray(columns.unscaled(values) / 10.0**kind.scale)
        numbers = columns.ints(values)
        return numbers.astype(np.bool_ if pa.types.is_boolean(kind) else np.int64)

    def accumulate(self, words: Sequence[Ints], cells: Codes, values: NDArray[Any]) -> None:
        """Lift all, reduce by cell, combine with what is there; nothing is changed if the user's code fails."""
        if not len(cells):
            return
        order = np.argsort(cells, kind="stable")
        ordered = cells[order]
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        reduced = self.reduced(self.lift_values(np.asarray(values)[order]), starts)
        at = ordered[starts]
        there = tuple(word.view(dtype)[at] for word, dtype in zip(words, self.dtypes, strict=True))
        for word, result in zip(words, self.combined(there, reduced), strict=True):
            word[at] = result.view(np.int64)

    def reduced(self, words: Words, starts: Ints) -> Words:
        """Each segment, which begins at starts[k], combined from left to right: neighbours first, in log rounds."""
        length = len(words[0])
        segment = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, length)))
        while length > len(starts):
            begins = np.searchsorted(segment, np.arange(len(starts)))
            even = (np.arange(length) - begins[segment]) % 2 == 0
            paired = even & (np.append(segment[1:], -1) == segment)
            first = np.flatnonzero(paired)
            both = self.combined(tuple(word[first] for word in words), tuple(word[first + 1] for word in words))
            # Into copies: the user's code may have given one array for several words.
            words = tuple(word[even] for word in words)
            for word, result in zip(words, both, strict=True):
                word[paired[even]] = result
            segment = segment[even]
            length = len(segment)
        return words

    def combine(self, into: Ints, other: Ints) -> None:
        """In place, on [words, groups]."""
        result = self.combined(self.typed(into), self.typed(np.ascontiguousarray(other)))
        for word, value in zip(into, result, strict=True):
            word[:] = value.view(np.int64)


@lru_cache(maxsize=256)
def _instance(implementation: type) -> Any:
    return implementation()


def checked(function: UserFunction) -> UserFunction:
    """Refuse a class that cannot be made, or lacks a method, when it is registered."""
    name, place = function.name, function.place
    try:
        made = _instance(function.implementation)
    except Exception as error:
        raise CatalogError(
            f"aggregate {name}: {place}() raised {type(error).__name__}: {error}; it must need no arguments"
        ) from error
    missing = [one for one in ("lift", "combine", "lower") if not callable(getattr(made, one, None))]
    if missing:
        raise CatalogError(f"aggregate {name}: {place} has no {', '.join(missing)}; see windrow.UserAggregate")
    words = getattr(made, "identity", None)
    if not isinstance(words, tuple) or not words or not all(type(one) in (int, float) for one in words):
        raise CatalogError(
            f"aggregate {name}: identity of {place} must be a tuple of floats and ints, one per word, found {words!r}"
        )
    return function


def user_lowering(component: UserComponent) -> Callable[[Sequence[Sequence[NDArray[Any]]]], pa.Array]:
    """From the words and the count of values to answers."""
    kind = types.to_arrow(component.function.returns)

    def lower(words: Sequence[Sequence[NDArray[Any]]]) -> pa.Array:
        own, (count,) = words
        answers = component.lowered(tuple(own))
        try:
            return pa.array(answers, mask=count == 0).cast(kind)
        except pa.ArrowException as error:
            name = component.function.name
            raise QueryError(f"aggregate {name}: its answers do not fit in {kind}: {error}") from error

    return lower
