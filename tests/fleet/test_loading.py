"""What a member loads."""

import subprocess
import sys


def test_a_member_loads_no_client_of_http() -> None:
    """It speaks to its broker: the client of agents elsewhere, with all that it loads, takes megabytes."""
    code = (
        "import sys, synapsed.fleet.service; "
        "print([name for name in ('httpx', 'a2a.client', 'opentelemetry') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
