"""How an error is told: the place, the reason, the line of the script with a caret below the column; or as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from windrow.errors import LanguageError

WIDEST = 140
"""Characters of a script's line that are shown around the fault."""


@dataclass(frozen=True)
class Fault:
    """One error of a script or of a run, with its place when it has one."""

    type: str
    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None

    @property
    def place(self) -> str:
        """`script.cql:3:14: `, as editors and terminals understand it, or nothing."""
        parts = [str(part) for part in (self.file, self.line, self.column) if part is not None]
        return ":".join(parts) + ": " if parts else ""

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {"type": self.type, "message": self.message, "line": self.line, "column": self.column}


def fault_of(error: BaseException) -> Fault:
    """Any error as a fault without a file."""
    if isinstance(error, LanguageError):
        return Fault(type(error).__name__, error.reason, None, error.line, error.column)
    return Fault(type(error).__name__, str(error) or type(error).__name__)


def file_fault(error: BaseException, file: str) -> Fault:
    """An error of a whole file; its message names the file already."""
    return Fault(type(error).__name__, str(error), None if file in str(error) else file)


def excerpt(text: str, line: int | None, column: int | None) -> list[str]:
    """The line of the script and a caret below the column; nothing when the place is not known.

    >>> print("\\n".join(excerpt("SHOW STREAMS;\\nSHOW WINDOWS", 2, 6)))
      2 | SHOW WINDOWS
        |      ^
    """
    lines = text.split("\n")
    if line is None or column is None or not 1 <= line <= len(lines):
        return []
    shown, before = lines[line - 1].rstrip("\r"), column - 1
    if len(shown) > WIDEST:
        cut = max(0, min(before - WIDEST // 2, len(shown) - WIDEST))
        lead, tail = "…" * (cut > 0), "…" * (cut + WIDEST < len(shown))
        shown, before = lead + shown[cut : cut + WIDEST] + tail, before - cut + len(lead)
    number = str(line)
    return [f"  {number} | {shown}", f"  {' ' * len(number)} | {_blank(shown[:before])}^"]


def _blank(text: str) -> str:
    """As wide as the text on a terminal: tabs stay, wide characters count twice."""
    from rich.cells import cell_len

    return "".join("\t" if char == "\t" else " " * cell_len(char) for char in text)
