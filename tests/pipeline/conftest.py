"""One Spark for all tests of a worker that run databases on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from windrow.pipeline.session import start_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Shared; tests that need a Spark of their own start a process of their own."""
    log: Path = tmp_path_factory.mktemp("spark") / "spark.log"
    yield start_session("local[2]", {"spark.sql.files.openCostInBytes": "64"}, log)
