"""Random tests are seeded: the same run every time; WINDROW_EXAMPLES asks for more cases.

Files that start Spark come first: test processes take files in turns, and the last ones should be short.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "windrow",
    derandomize=True,
    deadline=None,
    print_blob=True,
    max_examples=int(os.environ.get("WINDROW_EXAMPLES", "12")),
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("windrow")

_FIRST = ("tests/pipeline/test_crashes", "tests/serving/test_run", "tests/pipeline/", "tests/serving/")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first."""
    items.sort(key=lambda item: next((i for i, name in enumerate(_FIRST) if item.nodeid.startswith(name)), len(_FIRST)))
