"""Independent pieces of one batch on all cores: kernels and Arrow run without the GIL, so threads are enough."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def threads() -> int:
    """How many threads work on a batch: WINDROW_THREADS, or one per core."""
    wanted = os.environ.get("WINDROW_THREADS", "")
    return max(1, int(wanted)) if wanted.isdigit() else (os.cpu_count() or 1)


def each(work: Callable[[Item], Result], items: Sequence[Item], *, worthwhile: bool) -> list[Result]:
    """The results in the order of the items; in threads when the pieces are large enough to pay for the hand-over."""
    if not worthwhile or len(items) < 2 or threads() == 1:
        return [work(item) for item in items]
    return list(_pool(threads()).map(work, items))


@cache
def _pool(size: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(size, thread_name_prefix="windrow")
