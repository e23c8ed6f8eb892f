"""The one way kernels are compiled: cached on disk, without the GIL, dividing like NumPy.

A kernel calls only helpers of its own file: Numba's disk cache is refreshed when that file changes, not when
another one does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

Function = TypeVar("Function", bound=Callable[..., Any])

Ints: TypeAlias = NDArray[np.int64]
Codes: TypeAlias = NDArray[np.int32]
Floats: TypeAlias = NDArray[np.float64]


def kernel(function: Function) -> Function:
    """Compile on first call for the dtypes of that call."""
    return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy")(function))


def inlined(function: Function) -> Function:
    """A helper that becomes part of each kernel that calls it, where a call would cost as much as its work."""
    return cast(Function, numba.njit(inline="always", nogil=True, error_model="numpy")(function))


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A contiguous read-only view: Arrow's buffers are read-only, and Numba compiles anew for writable input."""
    flags = array.flags
    if not flags.writeable and flags.c_contiguous:
        return array
    view: NDArray[Any] = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view
