"""What Spark tells in a hundred lines of Java, in one: the file at fault where there is one, the reason, what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from windrow.errors import Error, InputError, SetupError
from windrow.pipeline.scan import local_path, missing_file

FROM_SPARK = (PySparkException, Py4JError)
"""All that PySpark raises for a failure on the Java side."""
FROM_SPARK_OR_ITS_END = (*FROM_SPARK, OSError)
"""And what it raises when there is no Java side any more."""
JAVA_GONE = "its Java process has ended; it was killed, or its log says why"
LONGEST = 300
"""Characters of a reason that are shown."""
_WRAPPERS = ("Exception thrown in", "Job aborted", "Query [id")
"""So begin messages that only say that a job or a query of Spark's failed."""
_UNREADABLE = "FAILED_READ_FILE"
_BAD_RECORD = "MALFORMED_RECORD_IN_PARSING"
_JAVA_CLASS = re.compile(r"^(?:[a-z_]\w*\.)+[A-Z]\w*: ")


@contextmanager
def reading(owner: str) -> Iterator[None]:
    """Turn what Spark raises while it reads into an error of ours; `owner` is as in "stream s"."""
    try:
        yield
    except FROM_SPARK_OR_ITS_END as error:
        raise read_error(owner, error) from error


def read_error(owner: str, error: BaseException) -> Error:
    """The error of a source that Spark could not read on."""
    try:
        unreadable = file_error(owner, error)
        reason = JAVA_GONE if _is_lost_connection(error) else spark_reason(error)
    except FROM_SPARK_OR_ITS_END:  # Java ended before it could be asked for the cause
        unreadable, reason = None, JAVA_GONE
    if unreadable is None and "cannot be cast to" in reason:
        return InputError(
            f"{owner}: a row does not fit what Spark computes: {reason}; correct the row, or use TRY_CAST, which gives "
            "NULL, and start again"
        )
    return unreadable or SetupError(f"{owner}: Spark could not go on: {reason}; remove the cause and start again")


def _is_lost_connection(problem: BaseException) -> bool:
    # An error of a Java that lives has its class and its trace; Py4J's own has neither when the answer never came.
    unanswered = type(problem) is Py4JError and "Trace:" not in str(problem)
    return unanswered or isinstance(problem, (OSError, Py4JNetworkError))


def file_error(owner: str, error: BaseException) -> InputError | None:
    """The error of a file that Spark could not read; None when no file is at fault."""
    causes = list(_causes(error))
    conditions = [_condition(java) for java in causes]
    place = next((number for number, one in enumerate(conditions) if one.startswith(_UNREADABLE)), None)
    if place is None:
        return None
    path = str(causes[place].getMessageParameters().get("path"))
    if conditions[place].endswith("FILE_NOT_EXIST"):
        return missing_file(path, owner)
    file, innermost = f"{local_path(path) or path}, a file of {owner},", plain(_message(causes[-1]))
    if any(one.startswith(_BAD_RECORD) for one in conditions):
        return InputError(
            f"{file} has a record that does not parse: {innermost}; correct the file, or set OPTIONS (mode "
            "'DROPMALFORMED') to leave such records out, and start again"
        )
    reason = innermost
    if conditions[place].endswith("TYPE_MISMATCH"):  # only here Spark knows more than the code that it calls
        reason = plain(_message(causes[place]).replace(f" Encountered error while reading file {path}.", ""))
    return InputError(f"{file} cannot be read: {reason}; correct or replace it and start again")


def spark_reason(error: BaseException) -> str:
    """What Spark complains about, in one line: its first words and, where there is one, the cause of it all."""
    lines = [_first_line(_message(java)) for java in _causes(error)]
    if not lines:
        return _first_line(str(error)) or type(error).__name__
    lines = [line for line in lines if not line.startswith(_WRAPPERS)] or lines
    return lines[0] if lines[-1] in lines[0] else f"{lines[0]}: {lines[-1]}"


def _causes(error: BaseException) -> Iterator[Any]:
    """The Java exceptions behind an error, the outermost first."""
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    inside = getattr(error, "_cause", None)
    if java is None and isinstance(inside, BaseException):
        yield from _causes(inside)
    while java is not None:
        yield java
        java = java.getCause()


def _message(java: Any) -> str:
    return str(java.getMessage() or java.getClass().getSimpleName())


def _condition(java: Any) -> str:
    """Spark's own name for the error, such as FAILED_READ_FILE.NO_HINT; it stands in front of the message."""
    found = re.match(r"\[([A-Z_0-9.]+)\] ", _message(java))
    return found[1] if found else ""


def _first_line(text: str) -> str:
    """The line that says most: the first one, but the last one of a Python traceback."""
    lines = [line for line in text.strip().splitlines() if line.strip()] or [""]
    if any("Traceback (most recent call last)" in line for line in lines):
        told = [line for line in lines if not line.startswith((" ", "\t", "at "))]
        return plain(told[-1])
    return plain(lines[0])


def plain(text: str) -> str:
    """One line, without Java's class names and the codes around Spark's messages."""
    line = _JAVA_CLASS.sub("", " ".join(text.split()))
    line = re.sub(r"^\[[A-Z_0-9.]+\] ", "", line)
    return re.sub(r"\s*SQLSTATE: \w+$", "", line)[:LONGEST].rstrip(". ")
