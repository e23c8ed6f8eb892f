"""Every error that Windrow raises on purpose: one base class, one line and one column where text is at fault."""

from __future__ import annotations


class Error(Exception):
    """Base of all Windrow errors: says what was expected, what was found, where, and what to do."""


class LanguageError(Error):
    """A CQL text is at fault; `line` and `column` (1-based) point at the place when it is known."""

    def __init__(self, message: str, *, line: int | None = None, column: int | None = None) -> None:
        self.reason = message
        self.line = line
        self.column = column
        super().__init__(message if line is None else f"line {line}, column {column}: {message}")


class SyntaxError(LanguageError):  # the word users know; always written windrow.SyntaxError
    """The text does not parse."""


class BindError(LanguageError):
    """The text parses, but a name, a type or a window in it makes no sense."""


class UnsupportedError(LanguageError):
    """The query is good CQL, but the engine cannot run this part of it yet."""


class CatalogError(Error):
    """A name is already taken, or nothing has that name."""


class InputError(Error):
    """Pushed data do not fit the stream's declaration; nothing of the batch was taken in."""


class QueryError(Error):
    """A query met data that it cannot answer exactly (an integer overflow, say) and was stopped; the others go on."""


class StateError(Error):
    """A call came at the wrong time, for instance a push after the end of the input."""


class CoverageError(Error):
    """A one-time query asks for what no registered query keeps; the message says what is kept."""


class SetupError(Error):
    """The machine lacks what a run needs: Java, a reachable master, a readable source path."""


class CheckpointError(Error):
    """A checkpoint is damaged, of another kind, or in use; it is left as it is."""


class SinkError(Error):
    """Answers could not be written; the checkpoint has them, and a restart writes them."""
