"""Memory for answers from Arrow's pool, which re-uses what was freed: fresh memory costs a page fault every 4 KiB."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray


def pooled(shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """An array with anything in it, like numpy.empty."""
    size = int(np.prod(shape))
    buffer = pa.allocate_buffer(size * np.dtype(dtype).itemsize)
    return np.frombuffer(buffer, dtype, size).reshape(shape)
