"""Start and stop Spark: one call gives a session that is quiet, listens on loopback only, and is tuned for Windrow.

A process holds one Spark. `start_session` starts it or hands out the one it started before; a session that the user
made herself is never touched. `stop_session` ends the Java process too, so that nothing is left behind.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext, SparkFiles
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from windrow.errors import SetupError, StateError
from windrow.pipeline.java import java_home
from windrow.pipeline.master import Master, parse_master
from windrow.pipeline.spark_log import PythonLoggers, default_log, last_lines, log_failure, opened_log
from windrow.pipeline.spark_settings import checked_settings, configuration, worker_python

STOP_SECONDS = 20
"""How long the Java process may take to end by itself."""

START_ERRORS = (Py4JError, PySparkException, OSError, ValueError)


@dataclass
class _Running:
    """The session of this process, and what must be put back when it ends."""

    session: SparkSession
    master: str
    settings: dict[str, str]
    log: Path
    gateway: Any
    java: subprocess.Popen[bytes]
    loggers: PythonLoggers
    files: str
    """Where Spark keeps files for Python to import: PySpark puts it on our path too."""
    restore: Callable[[str | None], None]

    @property
    def alive(self) -> bool:
        """Whether the session can be used: neither stopped by its user nor dead."""
        return self.session.sparkContext._jsc is not None and self.java.poll() is None


class _Process:
    """A process has one Spark, or none."""

    lock = threading.RLock()
    running: _Running | None = None


def start_session(
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    log: Path | None = None,
    app: str = "windrow",
) -> SparkSession:
    """The Spark session of this process, started if need be; `settings` are Spark's own and win over the defaults."""
    given = checked_settings(settings or {})
    wanted = _chosen_master(master, given)
    with _Process.lock:
        running = _Process.running
        if running is not None and running.alive:
            _require_same(running, wanted.url if master or "spark.master" in given else None, given, log)
            return running.session
        _require_no_other_session()
        _end()
        return _start(wanted, given, Path(log).absolute() if log else default_log(), app)


def stop_session(spark: SparkSession) -> None:
    """Stop a session of `start_session` and its Java process; afterwards a new one can be started."""
    with _Process.lock:
        running = _Process.running
        if running is not None and spark.sparkContext is running.session.sparkContext:
            _end()
        elif spark.sparkContext._jsc is not None:
            raise StateError("this Spark session was not started by Windrow; end it with its own stop()")


def log_path(spark: SparkSession) -> Path | None:
    """The file with the messages of Spark, Java and the Python workers; None if Windrow did not start the session."""
    running = _Process.running
    return running.log if running is not None and spark.sparkContext is running.session.sparkContext else None


# ---- before the start: what is asked for, and whether it can be had ------------------------------------------------


def _chosen_master(master: str | None, settings: Mapping[str, str]) -> Master:
    setting = settings.get("spark.master")
    if master and setting and master != setting:
        raise SetupError(f"the master is given twice: {master}, and spark.master={setting}; give one of them")
    return parse_master(master or setting or "local[*]")


def _require_same(running: _Running, master: str | None, settings: Mapping[str, str], log: Path | None) -> None:
    """A running Spark cannot change what it was started with, so a different wish must not be ignored silently."""
    present = dict(running.session.sparkContext.getConf().getAll()) | running.settings
    differences = [
        f"{key} is {present.get(key) or 'not set'}, not {value}"
        for key, value in settings.items()
        if present.get(key) != value
    ]
    if master and master != running.master:
        differences.append(f"the master is {running.master}, not {master}")
    if log is not None and Path(log).absolute() != running.log:
        differences.append(f"the log is {running.log}, not {log}")
    if differences:
        raise SetupError(
            f"Spark runs in this process already, with other settings: {'; '.join(differences)}. "
            "Stop it first, or ask for the same"
        )


def _another_runs() -> bool:
    """Whether there is a Spark that we did not start, be it on a Java process that we did start."""
    active, running = SparkContext._active_spark_context, _Process.running
    return active is not None and (running is None or active is not running.session.sparkContext)


def _require_no_other_session() -> None:
    if _another_runs():
        raise SetupError(
            "this process has a Spark session already, and Windrow does not change it: "
            "use windrow.connect(spark=...) with that session, or stop it first"
        )
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        raise SetupError(
            "this process was started by spark-submit, which has set Spark up: "
            "make the session with SparkSession.builder.getOrCreate() and use windrow.connect(spark=...)"
        )


# ---- start and stop ------------------------------------------------------------------------------------------------


def _start(master: Master, settings: dict[str, str], log: Path, app: str) -> SparkSession:
    environment = {
        "JAVA_HOME": str(java_home()),
        "PYSPARK_PYTHON": worker_python(master, settings),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    master.require_reachable()
    gateway = None
    loggers = PythonLoggers(log)
    logging.getLogger().addFilter(_not_of_py4j)
    restore = _remembered()
    try:
        # A Java process that a stopped session left behind has other settings and other outputs: it is put aside.
        SparkContext._gateway = SparkContext._jvm = None
        conf = SparkConf()
        for key, value in configuration(master, settings, app).items():
            conf.set(key, value)
        with _environment(environment), opened_log(log) as output:
            # Java warns before its logging is set up, and the Python workers write to Java's stderr.
            gateway = launch_gateway(conf, {"stdout": output, "stderr": output})
            context = SparkContext(conf=conf, gateway=gateway)
            session = SparkSession(context)
        # PySpark's server for accumulators prints when Java dies; everybody else who notices raises an error.
        context._accumulatorServer.handle_error = lambda *_: log_failure("the connection to Java broke")
    except BaseException as error:
        # Java must still run when it is asked what its error says.
        text = _failure(master, log, error) if isinstance(error, START_ERRORS) else None
        if gateway is not None:
            _end_java(gateway)
        restore(None)
        logging.getLogger().removeFilter(_not_of_py4j)
        loggers.restore()
        if text is None:
            raise
        raise SetupError(text) from None
    _Process.running = _Running(
        session, master.url, settings, log, gateway, gateway.proc, loggers, SparkFiles.getRootDirectory(), restore
    )
    return session


def _not_of_py4j(record: logging.LogRecord) -> bool:
    """When Java dies, Py4J tells it to the root logger, which prints it: that goes where Py4J's other messages go."""
    if Path(record.pathname).parent.name != "py4j":
        return True
    logging.getLogger("py4j").handle(record)
    return False


def _failure(master: Master, log: Path, error: BaseException) -> str:
    reason = error.java_exception.toString() if isinstance(error, Py4JJavaError) else str(error)
    cause = reason.strip().splitlines()[:1] or [type(error).__name__]
    return f"Spark does not start on {master.url}: {cause[0]}\nThe last lines of its log {log}:\n{last_lines(log)}"


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Variables for the Java process, which inherits ours; only as long as it starts."""
    before = {key: os.environ.get(key) for key in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value


def _remembered() -> Callable[[str | None], None]:
    """What PySpark changes in this process, so that the function given back undoes it."""
    gateway, jvm = SparkContext._gateway, SparkContext._jvm
    interrupt = signal.getsignal(signal.SIGINT)

    def restore(files: str | None) -> None:
        SparkContext._gateway, SparkContext._jvm = gateway, jvm
        if files:
            sys.path[:] = [entry for entry in sys.path if not entry.startswith(files)]
        theirs = getattr(signal.getsignal(signal.SIGINT), "__module__", None) == SparkContext.__module__
        if theirs and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, interrupt)

    return restore


def _end() -> None:
    """End the session of this process, whatever state it is in."""
    taken = _another_runs()
    running, _Process.running = _Process.running, None
    if running is None or taken:
        return
    with warnings.catch_warnings(), suppress(Py4JError, OSError):
        # A Java process that died cannot be stopped cleanly, and need not be.
        warnings.simplefilter("ignore")
        running.session.stop()
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    _end_java(running.gateway)
    running.restore(running.files)
    logging.getLogger().removeFilter(_not_of_py4j)
    running.loggers.restore()


def _end_java(gateway: Any) -> None:
    with suppress(Py4JError, OSError):
        gateway.shutdown()
    java = gateway.proc
    # The Java process ends when nobody holds its stdin.
    with suppress(OSError):
        java.stdin.close()
    try:
        java.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        java.kill()
        java.wait()
