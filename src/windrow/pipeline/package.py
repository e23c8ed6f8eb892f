"""Bring Windrow to the executors of a cluster, and say what else they lack.

The package travels as an archive that Spark unpacks into a directory of each executor, which is on the Python path of
its workers before anything installed there: driver and executors always run the same Windrow. A directory rather than
a zip on the path, because Python writes its byte code and Numba its compiled kernels next to the source, and a worker
that starts later finds both. Third-party packages are compiled for a machine and cannot travel like this; `missing`
looks for them.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from windrow.pipeline.spark_log import private_directory
from windrow.pipeline.spark_settings import PACKAGE

NEEDED = ("pyarrow", "numpy", "pandas", "numba", "sqlglot")
"""What a worker imports besides Spark and Windrow; pandas because Spark's Arrow functions ask for it."""
PACKED = (
    "pack an environment (venv-pack -o environment.tar.gz) and set spark.archives=environment.tar.gz#environment "
    "and PYSPARK_PYTHON=./environment/bin/python"
)
_EARLIEST = (1980, 1, 1, 0, 0, 0)

Report = tuple[str, str, str, list[str]]
"""Of one worker: host, Python version, path of its Python, packages that it cannot import."""


def ship(spark: SparkSession) -> Path | None:
    """Make `import windrow` work on the executors; the archive sent, or None if tasks run in this process."""
    context = spark.sparkContext
    if context._jsc.isLocal():
        return None
    archive = packed()
    if not any(archive.name in sent for sent in context.listArchives):
        # Unpacked under the name of the package, in a directory that is on the path.
        context.addArchive(f"{archive.as_uri()}#{PACKAGE.name}")
    return archive


def missing(spark: SparkSession) -> str | None:
    """What the executors' Python lacks to run Windrow, and what to do; None if nothing."""
    context = spark.sparkContext
    if context._jsc.isLocal():
        return None
    # More tasks than slots, so that every executor that has registered gets one.
    tasks = 2 * max(2, context.defaultParallelism)
    try:
        reports = context.parallelize(range(tasks), tasks).mapPartitions(_probe(NEEDED)).collect()
    except (Py4JError, PySparkException) as error:
        return _reason(context, str(error))
    problems = sorted({_lack(report) for report in reports if report[3]})
    return f"{'; '.join(problems)}. Install them there, or {PACKED}" if problems else None


def packed() -> Path:
    """A zip of the package's source, always the same for the same source."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(PACKAGE.rglob("*")):
            if file.suffix == ".py" or file.name == "py.typed":
                entry = zipfile.ZipInfo(file.relative_to(PACKAGE).as_posix(), _EARLIEST)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, file.read_bytes())
    data = content.getvalue()
    target = private_directory() / f"windrow-{hashlib.sha256(data).hexdigest()[:12]}.zip"
    if not target.exists():
        # Complete or not there: executors of another run may read it at this moment.
        descriptor, draft = tempfile.mkstemp(dir=target.parent)
        with os.fdopen(descriptor, "wb") as output:
            output.write(data)
        os.replace(draft, target)
    return target


def _probe(packages: tuple[str, ...]) -> Callable[[Iterator[int]], Iterator[Report]]:
    """A function for the workers. An inner one, because those are sent whole: the worker need not import Windrow."""

    def look(_: Iterator[int]) -> Iterator[Report]:
        import importlib
        import socket
        import sys

        def fails(package: str) -> bool:
            try:
                importlib.import_module(package)
            except Exception:  # a package can be there and be broken in any way
                return True
            return False

        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        yield socket.gethostname(), version, sys.executable, [package for package in packages if fails(package)]

    return look


def _lack(report: Report) -> str:
    host, version, python, packages = report
    return f"the executor on {host} (Python {version}, {python}) cannot import {', '.join(packages)}"


def _reason(context: Any, error: str) -> str:
    """Why not even the probe could run, from Spark's message."""
    named = re.search(r"\(TID \d+\) \((\S+) executor", error)
    place = f"the executor on {named[1] if named else ' or '.join(_executor_hosts(context)) or 'an unknown host'}"
    own = context.pythonVer
    if found := re.search(r"different version:?\s*(\d+\.\d+)", error):
        return (
            f"{place} has Python {found[1]}, but the driver has Python {own}, and they must be the same. "
            f"Set PYSPARK_PYTHON to a Python {own} that every executor has, or {PACKED}"
        )
    if found := re.search(r'Cannot run program "([^"]+)"', error):
        return f"{place} has no Python at {found[1]}. Set PYSPARK_PYTHON to one that every executor has, or {PACKED}"
    if found := re.search(r"(?:ModuleNotFoundError|ImportError): (.+)", error):
        return f"{place} cannot start a Python worker: {found[1].strip()}. Install it there, or {PACKED}"
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    return f"{place} cannot run a Python task: {' '.join(lines[:3])}"


def _executor_hosts(context: Any) -> list[str]:
    executors = context._jsc.sc().statusStore().executorList(True)
    known = [executors.apply(number) for number in range(executors.size())]
    return sorted({executor.hostPort().rpartition(":")[0] for executor in known if executor.id() != "driver"})
