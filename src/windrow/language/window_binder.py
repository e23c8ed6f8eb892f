"""Window clauses to window specifications: durations in ticks, counts checked, nonsense refused."""

from __future__ import annotations

from windrow.language import nodes, units
from windrow.language.catalog import Column
from windrow.language.positions import error
from windrow.windows.spec import NowWindow, RangeWindow, RowsWindow, Window


def bind_window(node: nodes.WindowSpec, columns: tuple[Column, ...], *, timestamps: bool) -> Window:
    """The specification of a window over a source with these columns."""
    kind = node.args["kind"]
    internal = bool(node.args.get("internal"))

    def duration(clause: str, name: str, minimum: int) -> int | None:
        part = node.args.get(clause)
        if part is None:
            return None
        value = units.ticks(part, timestamps=timestamps, what=name)
        if value < minimum:
            raise error(part, f"{name} must be {'positive' if minimum else 'zero or more'}, found {part.sql('cql')}")
        return value

    def count(clause: str, name: str, minimum: int) -> int | None:
        part = node.args.get(clause)
        if part is None:
            return None
        text = part.name.replace("_", "")
        if not text.lstrip("-").isdigit() or not minimum <= int(text) <= units.MAX_DURATION:
            raise error(part, f"{name} must be a whole number of tuples of at least {minimum}, found {part.name}")
        return int(text)

    if kind == "NOW":
        if node.args.get("offset") is not None:
            raise error(node, "NOW has no OFFSET; use [RANGE 1 OFFSET d] for one past instant")
        return NowWindow(internal, duration("slide", "SLIDE", 1))
    if kind == "RANGE":
        length, slide = duration("length", "RANGE", 1), duration("slide", "SLIDE", 1)
        return RangeWindow(length, slide, duration("offset", "OFFSET", 0) or 0, internal)
    names = {column.name.lower(): column.name for column in columns}
    partition = []
    for part in node.args.get("partition_by") or ():
        if part.table:
            raise error(part, f"PARTITION BY takes the stream's own columns; write {part.name}")
        if part.name.lower() not in names:
            raise error(part, f"PARTITION BY: there is no column {part.name}; there are {', '.join(names.values())}")
        partition.append(names[part.name.lower()])
    rows = count("length", "ROWS", 1)
    assert rows is not None
    return RowsWindow(
        rows, count("slide", "SLIDE", 1), count("offset", "OFFSET", 0) or 0, tuple(partition), internal
    )  # fmt: skip
