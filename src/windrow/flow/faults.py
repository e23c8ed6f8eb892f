"""A fault of ours stops the query that met it, as an error of the data does, and not the others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from windrow.errors import QueryError


@contextmanager
def own_faults() -> Iterator[None]:
    """Turn what operators should not have let happen into a QueryError that says so."""
    try:
        yield
    except (pa.ArrowException, NotImplementedError) as error:
        told = f"{type(error).__name__}: {error}; this is an error in Windrow, please report it"
        raise QueryError(told) from error
