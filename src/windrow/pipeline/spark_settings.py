"""What Spark is told when it starts: defaults that suit Windrow, and the user's own settings over them."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from windrow.errors import SetupError
from windrow.pipeline.master import Master

PACKAGE = Path(__file__).parents[1]
DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "WARN",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.memory": "2g",
    # Partials of one batch may be large, and the engine needs all of them.
    "spark.driver.maxResultSize": "0",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.python.worker.reuse": "true",
    # Between Java and its Python workers: with TCP every job waits 40 ms for a delayed acknowledgement.
    "spark.python.unix.domain.socket.enabled": "true",
    # A run keeps its own counters; Spark's history of progress events would only hold memory.
    "spark.sql.streaming.numRecentProgressUpdates": "4",
    # It keeps the history of its jobs for a web page that is not served, too.
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "20",
}
LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
PRELOADING_DAEMON = {
    "spark.python.daemon.module": "windrow.pipeline.daemon",
    # The daemon forks, so its imports must start no thread: these two would.
    "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",
    "spark.executorEnv.JE_ARROW_MALLOC_CONF": "background_thread:false",
}


def checked_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """The user's settings, if all of them are Spark's."""
    for key in settings:
        if not key.startswith("spark."):
            raise SetupError(f'expected a Spark setting whose name starts with "spark.", found {key!r}')
    return {key: str(value) for key, value in settings.items()}


def configuration(master: Master, settings: Mapping[str, str], app: str) -> dict[str, str]:
    """Everything that Spark is told: our defaults for this master, then the user's settings over them."""
    chosen = {"spark.app.name": app, **DEFAULTS}
    # One of the two alone would contradict what the user says about the other.
    if master.on_this_machine and not LOOPBACK.keys() & settings.keys():
        chosen |= LOOPBACK
    if master.local:
        chosen |= PRELOADING_DAEMON
        chosen["spark.sql.shuffle.partitions"] = str(master.threads)
    chosen |= settings
    if master.local and (path := _package_path()):
        given = settings.get("spark.executorEnv.PYTHONPATH")
        chosen["spark.executorEnv.PYTHONPATH"] = f"{path}{os.pathsep}{given}" if given else path
    return chosen | {"spark.master": master.url}


def _package_path() -> str | None:
    """The directory that a worker needs on its path to import Windrow; None if every Python of this kind has it."""
    directory = str(PACKAGE.parent)
    standard = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), site.getusersitepackages()}
    return None if directory in standard else directory


def worker_python(master: Master, settings: Mapping[str, str]) -> str:
    """The Python of the executors: this one, unless the user names another for a cluster."""
    named = settings.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON")
    return named if named and not master.local else sys.executable
