"""Room for recursion: sqlglot's parser needs some thirty Python frames for each level of nesting."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

FRAMES = 8_000
"""Enough for MAX_NESTING levels of the parser, small enough for the C stack of every supported Python."""


@contextmanager
def deep_stack() -> Iterator[None]:
    """Raise Python's recursion limit for a while; the caller still turns a RecursionError into its own error."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
