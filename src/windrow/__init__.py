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
    "Query",
    "QueryError",
    "SetupError",
    "SinkError",
    "StateError",
    "SyntaxError",
    "UnsupportedError",
    "connect",
]
