"""Answers on the terminal: a table per step, cut after a few rows."""

from __future__ import annotations

import sys

import pyarrow as pa
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from windrow.pipeline.sink import Sink, writing
from windrow.pipeline.sink_text import plain_column

DEFAULT_ROWS = 20


class ConsoleSink(Sink):
    """Prints every step to stdout: a drawn table on a terminal, aligned plain text elsewhere."""

    location = "console"
    exactly_once = False

    def __init__(self, query: str, rows: int) -> None:
        self._query = query
        self._rows = rows
        self._last: int | None = None

    def write(self, step: int, table: pa.Table) -> None:
        """Print the first rows of the answers, and how many more there are."""
        if not table.num_rows or (self._last is not None and step <= self._last):
            return
        names = [_printable(name) for name in table.column_names]
        shown = table.slice(0, self._rows)
        rows = list(zip(*(_cells(column) for column in shown.columns), strict=True))
        right = [_is_number(field.type) for field in table.schema]
        more = table.num_rows - shown.num_rows
        note = f"… and {more:,} more {'row' if more == 1 else 'rows'}" if more else None
        with writing(self._query, self.location):
            if sys.stdout.isatty():
                _draw(_printable(self._query), names, rows, right, note)
            else:
                _print(aligned(_printable(self._query), names, rows, right, note))
        self._last = step


def aligned(
    title: str, names: list[str], rows: list[tuple[str, ...]], right: list[bool], note: str | None = None
) -> str:
    """A table as plain text: a title, a header, a rule, the rows, a note.

    >>> print(aligned("busy", ["src", "n"], [("a", "1"), ("bb", "20")], [False, True]))
    busy
    src   n
    ---  --
    a     1
    bb   20
    """
    widths = [max(map(cell_len, column)) for column in zip(names, *rows, strict=True)]
    lines = [names, ["-" * width for width in widths], *rows]
    padded = (
        "  ".join(
            " " * (width - cell_len(cell)) + cell if at_right else cell + " " * (width - cell_len(cell))
            for cell, width, at_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    )
    return "\n".join([title, *padded, *([note] if note else [])])


def _draw(title: str, names: list[str], rows: list[tuple[str, ...]], right: list[bool], note: str | None) -> None:
    drawn = Table(title=Text(title), title_justify="left", caption=None if note is None else Text(note))
    for name, at_right in zip(names, right, strict=True):
        drawn.add_column(Text(name), justify="right" if at_right else "left")
    for row in rows:
        drawn.add_row(*map(Text, row))  # Text, because a value may look like markup
    Console(file=sys.stdout).print(drawn)


def _print(text: str) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)


def _cells(column: pa.ChunkedArray) -> list[str]:
    cells = [cell for chunk in column.chunks for cell in plain_column(chunk).to_pylist()]
    return ["NULL" if cell is None else _printable(cell) for cell in cells]


def _printable(text: str) -> str:
    # A value must not move the cursor or change the colours of the terminal.
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
