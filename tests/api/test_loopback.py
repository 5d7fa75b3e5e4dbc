"""`localhost` is two addresses: the main listener and agents' ports hold both, or tell the one that is theirs."""

import socket
from collections.abc import Iterator

import pytest
from aiohttp import ClientSession

from synapsed.api.listeners import Listeners
from synapsed.config.config import Config
from synapsed.config.paths import Paths
from synapsed.process.loopback import LOOPBACK, tcp_socket
from tests.api.serving import Api
from tests.support.ports import free_port

SIX = "::1"


@pytest.fixture
def squatter() -> Iterator[socket.socket]:
    """Another program, at ::1 only."""
    with socket.create_server((SIX, free_port()), family=socket.AF_INET6) as sock:
        yield sock


def bound(address: str, port: int) -> socket.socket:
    """As the service manager hands it over."""
    sock = tcp_socket(address)
    sock.bind((address, port))
    return sock


def listeners(api: Api, listen: str) -> Listeners:
    config = Config.model_validate({"api": {"listen": listen}})
    paths = Paths.from_environ({"SYNAPSED_HOME": "/nowhere"})
    api.servers.context.listening.clear()
    return Listeners(api.servers, config, paths, late_port=False)


async def test_both_addresses_answer_and_know_whose_connection_it_is(api: Api):
    assert api.servers.context.listening == [f"{LOOPBACK}:{api.port}", f"[{SIX}]:{api.port}"]
    assert api.servers.context.place == f"localhost:{api.port}"
    for host in (LOOPBACK, f"[{SIX}]"):
        async with ClientSession(f"http://{host}:{api.port}") as client:
            status, rows = await api.json(client, "GET", "/agents")
            assert (status, len(rows)) == (200, len(api.control.views)), "a process of this user needs no token"


async def test_an_agents_port_is_served_at_both_and_closed_at_both(api: Api):
    port = free_port()
    for address in (LOOPBACK, SIX):
        assert await api.servers.open_agent_port(bound(address, port)) == port
    api.control.ports[port] = next(iter(api.control.views))
    for host in (LOOPBACK, f"[{SIX}]"):
        async with ClientSession(f"http://{host}:{port}") as client:
            assert (await api.json(client, "GET", "/status"))[0] == 200
    await api.servers.close_agent_port(port)
    for address in (LOOPBACK, SIX):
        bound(address, port).close()


async def test_where_the_other_address_is_taken_the_one_that_is_ours_is_told(api: Api, squatter: socket.socket):
    port = squatter.getsockname()[1]
    assert await listeners(api, f"localhost:{port}").main([]) == f"{LOOPBACK}:{port}"
    assert api.servers.context.listening == [f"{LOOPBACK}:{port}"]
    assert api.servers.context.place == f"{LOOPBACK}:{port}"


async def test_another_loopback_address_is_told_as_it_is(api: Api):
    port = free_port()
    await listeners(api, f"127.0.0.2:{port}").main([])
    assert api.servers.context.place == f"127.0.0.2:{port}"


@pytest.mark.parametrize("handed", [[LOOPBACK], [SIX], [LOOPBACK, SIX], [SIX, LOOPBACK]])
async def test_what_the_service_manager_lacks_is_bound(api: Api, handed: list[str]):
    port = free_port()
    assert await listeners(api, f"[{SIX}]:{port}").main([bound(one, port) for one in handed]) == f"[{SIX}]:{port}"
    assert api.servers.context.listening == [f"[{SIX}]:{port}", f"{LOOPBACK}:{port}"]
    for host in (LOOPBACK, f"[{SIX}]"):
        async with ClientSession(f"http://{host}:{port}") as client:
            assert (await api.json(client, "GET", "/healthz"))[0] == 200
