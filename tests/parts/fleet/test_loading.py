"""What a member loads."""

import subprocess
import sys


def test_a_member_loads_no_client_of_http_and_no_a2a_before_a_message() -> None:
    """It speaks to its broker: the client of agents elsewhere, and the types of messages, take megabytes each."""
    code = (
        "import sys, synapsed_fleet.service; "
        "print([name for name in ('httpx', 'a2a', 'google.protobuf', 'opentelemetry') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
