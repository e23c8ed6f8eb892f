"""The connections over which Spark calls back into Python, and their end.

Py4J gives every Java thread that calls Python a socket, and a Python thread that waits there for calls. A streaming
query has such a Java thread. When the query ends the thread ends too, but socket and Python thread stay: a program
that starts and stops many runs would collect them.
"""

from __future__ import annotations

from contextlib import suppress
from socket import SHUT_RDWR
from typing import Any

from pyspark.sql import SparkSession


class Callbacks:
    """The connections of one run."""

    def __init__(self, spark: SparkSession) -> None:
        self._client: Any = spark.sparkContext._gateway._gateway_client
        self._connections: list[Any] = []

    def note(self) -> None:
        """Remember the connection that called the current thread."""
        # Without pinned threads (PYSPARK_PIN_THREAD=false) Py4J has other clients, which clean up by themselves.
        ask = getattr(self._client, "get_thread_connection", None)
        connection = None if ask is None else ask()
        if connection is not None and connection not in self._connections:
            self._connections.append(connection)

    def close(self) -> None:
        """End the threads that wait for calls, once no query is left that makes any."""
        while self._connections:
            connection = self._connections.pop()
            with suppress(OSError, AttributeError):  # it is closed already, and has no socket any more
                connection.socket.shutdown(SHUT_RDWR)
