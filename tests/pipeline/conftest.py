"""One Spark for all tests of a worker that run databases on it."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.pipeline.shared_spark import shared_spark


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """Shared with all other modules."""
    return shared_spark()
