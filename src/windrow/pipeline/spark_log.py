"""Where Spark's messages go: a file, never the user's terminal."""

from __future__ import annotations

import getpass
import logging
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from pyspark.logger import PySparkLogger

from windrow.errors import SetupError

TALKERS = ("py4j", "pyspark")
"""Loggers of PySpark in the driver's Python."""
STRUCTURED_TALKERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Those that must be of PySpark's own class, because it logs to them with fields of its own."""
TAIL_LINES = 15
TAIL_BYTES = 64 * 1024


def private_directory() -> Path:
    """A directory for this user's temporary files, which nobody else can have put there."""
    user = os.getuid() if hasattr(os, "getuid") else getpass.getuser()
    directory = Path(tempfile.gettempdir(), f"windrow-{user}")
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        state = directory.lstat()
    except OSError as error:
        raise SetupError(f"cannot write to the temporary directory: {error}; set TMPDIR to one that works") from error
    # Anybody may make a file of this name in a shared directory, and must not see or replace what we write.
    if not stat.S_ISDIR(state.st_mode) or (hasattr(os, "getuid") and state.st_uid != os.getuid()):
        return Path(tempfile.mkdtemp(prefix="windrow-"))
    return directory


def default_log() -> Path:
    """The log of the Spark that this process starts."""
    return private_directory() / f"spark-{os.getpid()}.log"


@contextmanager
def opened_log(log: Path) -> Iterator[BinaryIO]:
    """The file, open for appending: several processes write to it."""
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        output = log.open("ab", buffering=0)
    except OSError as error:
        raise SetupError(f"cannot write Spark's log {log}: {error}; choose another file") from error
    with output:
        yield output


def last_lines(log: Path) -> str:
    """The end of the log, for an error message."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return "(the log cannot be read)"
    lines = [line for line in text.splitlines() if line.strip()]
    return "\n".join(lines[-TAIL_LINES:]) or "(the log is empty)"


def log_failure(message: str) -> None:
    """Note the exception that is being handled, among Spark's own messages."""
    logging.getLogger("pyspark").warning(message, exc_info=True)


class PythonLoggers:
    """Sends what PySpark logs in this process to the file too, until `restore`."""

    def __init__(self, log: Path) -> None:
        self._handler = logging.FileHandler(log, delay=True, encoding="utf-8")
        self._handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        self._before = []
        for logger in [*map(logging.getLogger, TALKERS), *map(PySparkLogger.getLogger, STRUCTURED_TALKERS)]:
            self._before.append((logger, logger.handlers[:], logger.propagate, logger.level))
            logger.handlers = [self._handler]
            logger.propagate = False
            # Py4J tells every call at the levels below.
            logger.setLevel(logging.WARNING)

    def restore(self) -> None:
        """Let the loggers speak as before."""
        for logger, handlers, propagate, level in self._before:
            logger.handlers = handlers
            logger.propagate = propagate
            logger.setLevel(level)
        self._handler.close()
