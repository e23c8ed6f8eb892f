"""The process from which Spark forks its Python workers on this machine, with everything heavy already imported.

Spark's own daemon forks empty workers: each then spends a second on importing NumPy, Arrow, Numba and Windrow. Here the
daemon imports them once, and a forked worker finds them loaded. Forking is safe because no import starts a thread:
session.py turns off, in the daemon's environment, the two that would (OpenBLAS, and the clean-up thread of jemalloc).
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import sys

from pyspark.daemon import manager

PRELOADED = (
    "numpy",
    "pyarrow",
    "pyarrow.compute",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "pandas",
    "numba",
    "sqlglot",
    "windrow.pipeline.worker",
    "pyspark.sql.pandas.serializers",
    "pyspark.worker",
)


def preload() -> None:
    """Import what every worker needs, and take it out of the garbage collector's sight."""
    # Spark reads the daemon's port from stdout: nothing else may be written there.
    with contextlib.redirect_stdout(sys.stderr):
        for module in PRELOADED:
            importlib.import_module(module)
    # A worker collects garbage after every task. Frozen objects are not visited, which saves that time, and their
    # memory pages stay shared with the daemon.
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    preload()
    manager()
