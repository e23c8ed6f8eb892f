"""What a component is: one accumulator of a few 64-bit words, from which aggregates are lowered.

All words are stored in int64 arrays; a float64 word is stored by its bits, so that one storage and one kernel serve
every component.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import Enum
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.kernels.combine import combine_rows
from windrow.kernels.jit import Codes, Ints


class Kind(Enum):
    """How partials of disjoint sets relate to the partial of their union (thesis 2.2.1)."""

    DISTRIBUTIVE = "distributive"
    ALGEBRAIC = "algebraic"
    HOLISTIC = "holistic"


class Component(ABC):
    """One accumulator: identity, accumulate (lift and combine of a batch), combine. Frozen and hashable."""

    name: ClassVar[str]
    op: ClassVar[int]
    """The combine operator of `kernels.combine`."""
    dtypes: ClassVar[tuple[Any, ...]] = (np.int64,)
    kind: ClassVar[Kind] = Kind.DISTRIBUTIVE
    duplicate_insensitive: ClassVar[bool] = False
    told: ClassVar[str] = "this aggregate"
    """What users call it, where it is refused."""

    @property
    def identity(self) -> Ints:
        """The bits of the partial of nothing, one word each."""
        return np.zeros(len(self.dtypes), np.int64)

    def lift(self, values: pa.Array) -> NDArray[Any]:
        """The NumPy values that `accumulate` takes; garbage where `values` is NULL."""
        raise NotImplementedError(self.name)

    @abstractmethod
    def accumulate(self, words: Sequence[Ints], cells: Codes, values: NDArray[Any]) -> None:
        """Scatter non-NULL lifted values into the flat accumulators words[w][cells[i]]."""

    def combine(self, into: Ints, other: Ints) -> None:
        """into = combine(into, other), in place, on contiguous [words, groups]."""
        combine_rows(self.op, into, other, into.shape[1])

    def typed(self, words: Ints) -> tuple[NDArray[Any], ...]:
        """The stored words [words, rows] in their own dtypes, without a copy."""
        return tuple(word.view(dtype) for word, dtype in zip(words, self.dtypes, strict=True))


class Subtractable(Component):
    """A component with f(X - Y) = f(X) - f(Y) for Y within X: what a running synopsis needs (thesis 2.3.4)."""

    def subtract(self, whole: Ints, part: Ints) -> Ints:
        """The partial of what is in `whole` and not in `part`."""
        return whole - part
