"""Windrow: many sliding-window queries over the same streams, exactly, for little more than reading them once."""

from windrow.database import Database, connect
from windrow.errors import (
    BindError,
    CatalogError,
    CheckpointError,
    Error,
    InputError,
    LanguageError,
    QueryError,
    SetupError,
    SinkError,
    StateError,
    SyntaxError,
    UnsupportedError,
)
from windrow.progress import Progress, Summary
from windrow.query import Query

__version__ = "0.1.0"
__all__ = [
    "BindError",
    "CatalogError",
    "CheckpointError",
    "Database",
    "Error",
    "InputError",
    "LanguageError",
    "Progress",
    "Query",
    "QueryError",
    "SetupError",
    "SinkError",
    "StateError",
    "Summary",
    "SyntaxError",
    "UnsupportedError",
    "connect",
]
