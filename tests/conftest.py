"""Random tests are seeded: the same run every time; WINDROW_EXAMPLES asks for more cases."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "windrow",
    derandomize=True,
    deadline=None,
    print_blob=True,
    max_examples=int(os.environ.get("WINDROW_EXAMPLES", "30")),
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("windrow")
