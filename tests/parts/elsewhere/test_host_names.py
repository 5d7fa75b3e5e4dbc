"""Names that a host may have."""

import random
from pathlib import Path

import pytest

from synapsed.errors import InvalidRequest
from synapsed.parts.elsewhere.hosts.hosts import HostBook, Hosts
from synapsed.parts.elsewhere.hosts.tunnel import TunnelDeps
from tests.fakes.clock import FakeClock


@pytest.mark.parametrize("name", ["synapse-system", "Synapse-System", "Person", "unknown", "synapse-claude-8100"])
async def test_no_host_has_a_reserved_name(tmp_path: Path, name: str) -> None:
    means = TunnelDeps(ssh=["false"], environ={}, sockets=tmp_path, clock=FakeClock(), rng=random.Random(1).random)
    hosts = Hosts(book=HostBook(tmp_path / "hosts"), means=means, own_name="here")
    with pytest.raises(InvalidRequest, match="cannot name a host"):
        await hosts.add(name, "box", socket=None, synapsectl=None)
    assert not (tmp_path / "hosts").exists()
