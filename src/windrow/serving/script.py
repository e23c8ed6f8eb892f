"""A script of CQL, statement by statement: one broken statement does not hide the errors of the others.

A statement is registered on its own, from its own piece of the text; what is wrong with it is then told in lines and
columns of the whole script.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

from windrow.errors import CatalogError, Error, LanguageError
from windrow.language import nodes
from windrow.language.dialect import CQL
from windrow.language.parse import parse
from windrow.language.strict_parser import line_and_column
from windrow.serving.faults import Fault, file_fault

STDIN = "-"
_STATEMENT_LINE = re.compile(r"^(?=(?:CREATE|DROP|SHOW|EXPLAIN)\b)", re.IGNORECASE | re.MULTILINE)
_DECLARATION = re.compile(r"\s*CREATE\s+(STREAM|RELATION|QUERY)\s+(?:\"([^\"]+)\"|(\w+))", re.IGNORECASE)
_DROP = re.compile(r"\s*DROP\s+\w+\s+(?:IF\s+EXISTS\s+)?(?:\"([^\"]+)\"|(\w+))", re.IGNORECASE)


class UnreadableScript(Error):
    """The file with the script cannot be read."""


@dataclass(frozen=True)
class Piece:
    """One statement and the place, from 1, of its first character."""

    text: str
    line: int
    column: int

    def fault(self, error: Error, file: str) -> Fault:
        """The error in lines and columns of the script; one without a place is put at the statement's start."""
        if not isinstance(error, LanguageError):
            return Fault(type(error).__name__, str(error), file, self.line, self.column)
        line, column = error.line, error.column
        if line is None or column is None:
            line = column = 1
        if line == 1:
            column += self.column - 1
        return Fault(type(error).__name__, error.reason, file, self.line + line - 1, column)


@dataclass
class Loaded:
    """What a script registered, and what is wrong with it."""

    text: str
    file: str
    faults: list[Fault] = field(default_factory=list)
    unchecked: dict[str, list[str]] = field(default_factory=dict)
    """By the name of a declaration that failed: the statements that need it."""
    results: list[Any] = field(default_factory=list)
    """What EXPLAIN and SHOW in the script gave."""


def read_script(path: str) -> str:
    """The text of a script; `-` is the standard input."""
    try:
        if path == STDIN:
            return sys.stdin.read()
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableScript(f"{path} is not a text in UTF-8: {error.reason} at byte {error.start}") from None
    except FileNotFoundError:
        raise UnreadableScript(f"there is no script {path}; give the path of a .cql file, or - for stdin") from None
    except OSError as error:
        raise UnreadableScript(f"the script {path} cannot be read: {error.strerror or error}") from None


def shown_name(path: str) -> str:
    """What messages call the script."""
    return "<stdin>" if path == STDIN else path


def split(text: str) -> list[Piece]:
    """The statements of a script; semicolons in strings, comments and quoted names separate nothing.

    >>> split("SHOW STREAMS; -- a; b\\n  SHOW QUERIES")
    [Piece(text='SHOW STREAMS', line=1, column=1), Piece(text='SHOW QUERIES', line=2, column=3)]
    """
    return [
        Piece(text[start:end].rstrip(), *line_and_column(text, start))
        for chunk_start, chunk_end in _chunks(text)
        for start, end in _statements(text, chunk_start, chunk_end)
    ]


def _chunks(text: str) -> list[tuple[int, int]]:
    """The whole text; if a quote or comment is left open somewhere, the lines from one statement's start to the next.

    A quote that is left open ends at the next quote, far behind, and would make nonsense of all that is between.
    """
    try:
        CQL().tokenize(text)
    except TokenError:
        starts = sorted({0, *(match.start() for match in _STATEMENT_LINE.finditer(text))})
        return list(zip(starts, [*starts[1:], len(text)], strict=True))
    return [(0, len(text))]


def _statements(text: str, chunk_start: int, chunk_end: int) -> Iterator[tuple[int, int]]:
    """Start and end of each statement of a chunk; a chunk that has no tokens at all is one statement."""
    chunk = text[chunk_start:chunk_end]
    try:
        tokens = CQL().tokenize(chunk)
    except TokenError:
        yield chunk_start + len(chunk) - len(chunk.lstrip()), chunk_end
        return
    start: int | None = None
    end = 0
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            if start is not None:
                yield start, end
            start = None
            continue
        start = chunk_start + token.start if start is None else start
        end = chunk_start + token.end + 1
    if start is not None:
        yield start, end


def load(db: Any, text: str, file: str) -> Loaded:
    """Register every statement of a script that can be registered, and tell what is wrong with the others."""
    loaded = Loaded(text, file)
    failed: dict[str, str] = {}
    lines: dict[str, int] = {}
    for piece in split(text):
        name = _declared(piece)
        try:
            missing = _missing(piece, failed)
            if missing is not None:
                loaded.unchecked.setdefault(missing, []).append(name or piece.text.split("\n")[0])
                if name:
                    failed[name.lower()] = missing
                continue
            result = db.execute(piece.text)
        except Error as error:
            loaded.faults.append(piece.fault(error, file))
            if name.lower() in lines and not isinstance(error, CatalogError):
                # It has this error too: the user should not find it in a second round.
                again = CatalogError(f"{name} is declared already in line {lines[name.lower()]}; give it another name")
                loaded.faults.append(piece.fault(again, file))
            if name and not _known(db, name):
                failed[name.lower()] = name
            continue
        finally:
            if name:
                lines.setdefault(name.lower(), piece.line)
        failed.pop(name.lower(), None)
        dropped = _DROP.match(piece.text)
        if dropped:
            lines.pop((dropped[1] or dropped[2]).lower(), None)
        if isinstance(result, (str, pa.Table)):
            loaded.results.append(result)
    return loaded


def load_file(db: Any, path: str) -> Loaded:
    """Load a script from a file; one that cannot be read is a fault too."""
    try:
        text = read_script(path)
    except UnreadableScript as error:
        return Loaded("", shown_name(path), [file_fault(error, shown_name(path))])
    return load(db, text, shown_name(path))


def _missing(piece: Piece, failed: dict[str, str]) -> str | None:
    """The failed declaration that a statement needs, if there is one."""
    if not failed:
        return None
    for statement in parse(piece.text):
        names = [table.name for table in statement.find_all(exp.Table)]
        if isinstance(statement, nodes.DropObject | nodes.Explain) and isinstance(statement.this, exp.Identifier):
            names.append(statement.this.name)
        for name in names:
            if name.lower() in failed:
                return failed[name.lower()]
    return None


def _declared(piece: Piece) -> str:
    """What a statement declares, as far as its first words tell: one that does not parse has a name too."""
    found = _DECLARATION.match(piece.text)
    return (found[2] or found[3]) if found else ""


def _known(db: Any, name: str) -> bool:
    return db.catalog.get(name) is not None or any(query.name.lower() == name.lower() for query in db.queries())
