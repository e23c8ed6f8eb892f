"""The one Spark of a test process: whoever needs a session in process gets this one, and nobody stops it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from windrow.pipeline.session import start_session


def shared_spark() -> SparkSession:
    """Started by the first who asks; tests that need a Spark of their own start a process of their own."""
    log = Path(tempfile.gettempdir()) / f"windrow-tests-{os.getpid()}.log"
    return start_session("local[2]", {"spark.sql.files.openCostInBytes": "64"}, log)
