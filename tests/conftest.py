"""What holds for all tests."""

import os

from hypothesis import HealthCheck, settings

# A machine that is busy is slow, which says nothing about an example. In CI the examples are the same every time.
settings.register_profile(
    "suite",
    settings.get_profile("ci" if os.environ.get("CI") else "default"),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("suite")

# A Unix socket's path has some hundred bytes, and a machine's own folder for temporary files may take most of them.
os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/tmp")
