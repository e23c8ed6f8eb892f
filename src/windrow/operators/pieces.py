"""A join of many rows, made in pieces: as many rows at once as meet no more others than fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import TypeVar

from windrow.errors import QueryError
from windrow.state.chain import TooMany

Piece = TypeVar("Piece", bound=Sized)


def in_pieces(count: int, make: Callable[[slice], Piece], what: str, *, made: int, most: int) -> list[Piece]:
    """`make` of all rows, eight times smaller pieces whenever one is too many; none of the pieces is empty.

    The join, which is called `what`, may make `most` rows in all, and has `made` some already.
    """
    pieces: list[Piece] = []
    size, begin = max(1, count), 0
    while begin < count:
        chunk = slice(begin, min(begin + size, count))
        try:
            piece = make(chunk)
        except TooMany as error:
            if size == 1:
                raise QueryError(
                    f"one row meets more than {error.limit:,} others in {what}; add a more selective condition or "
                    "shorten the windows"
                ) from None
            size = max(1, size // 8)
            continue
        made += len(piece)
        if made > most:
            raise QueryError(
                f"{what} makes more than {most:,} rows at once; add a more selective condition, shorten the windows, "
                "or push smaller batches"
            )
        if len(piece):
            pieces.append(piece)
        begin = chunk.stop
    return pieces
