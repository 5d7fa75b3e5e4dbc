"""Ports are owned by binding: exclusively, without listening, and again at once after a kill."""

import errno
import socket

import pytest

from synapsed.errors import PortsExhausted
from synapsed.process.loopback import LOOPBACK, hold_other, tcp_socket
from synapsed.supervisor.ports import Ports, announceable
from tests.support.ports import free_port

SIX = "::1"


def connects(port: int, address: str = LOOPBACK) -> bool:
    with tcp_socket(address) as client:
        client.settimeout(5)
        return client.connect_ex((address, port)) == 0


def test_claimed_is_bound_and_does_not_listen_until_it_is_announced() -> None:
    port = free_port()
    ports = Ports(listen=True)
    assert ports.claim("a", [port], listed="x") == port
    assert not any(connects(port, address) for address in (LOOPBACK, SIX))
    for address in (LOOPBACK, SIX):
        for reuse in (0, 1):
            with tcp_socket(address) as other:
                other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
                with pytest.raises(OSError, match="in use"):
                    other.bind((address, port))
    taken = ports.take(port)
    assert [sock.getsockname()[0] for sock in taken] == [LOOPBACK, SIX]
    assert ports.host(port) == "localhost"
    for sock in taken:
        announceable(sock).listen()
    assert all(connects(port, address) for address in (LOOPBACK, SIX))
    for sock in taken:
        sock.close()


@pytest.mark.parametrize("address", [LOOPBACK, SIX])
def test_the_next_daemon_has_the_port_at_once(address: str) -> None:
    port = free_port()
    first = Ports(listen=True)
    first.claim("a", [port], listed="x")
    held = {sock.getsockname()[0]: announceable(sock) for sock in first.take(port)}
    for sock in held.values():
        sock.listen()
    with socket.create_connection((address, port), timeout=5):
        accepted, _ = held[address].accept()
        accepted.close()  # the server's end closes first: TIME_WAIT is on its side, as after a kill
    for sock in held.values():
        sock.close()
    second = Ports(listen=True)
    second.reclaim("a", port)
    assert second.host(port) == "localhost"
    for sock in (taken := second.take(port)):
        announceable(sock).listen()
    assert connects(port, address)
    for sock in taken:
        sock.close()


def listening_at_six() -> socket.socket:
    """Another program's, at ::1 only, at a port that is free at 127.0.0.1."""
    sock = socket.create_server((SIX, 0), family=socket.AF_INET6)
    with socket.create_server((LOOPBACK, sock.getsockname()[1])):
        return sock


def test_of_a_range_a_port_is_taken_that_is_free_at_both_addresses() -> None:
    ports = Ports(listen=True)
    with listening_at_six() as squatter, listening_at_six() as another:
        theirs = [sock.getsockname()[1] for sock in (squatter, another)]
        port = free_port()
        assert ports.claim("a", [*theirs, port], listed="x") == port
        assert ports.host(port) == "localhost"
        assert [ports.owner(one) for one in theirs] == [None, None]
        assert ports.take(theirs[0]) == ports.take(theirs[1]) == []
    ports.close()


def test_a_port_that_another_program_has_at_the_other_address_is_told_by_the_one_that_is_ours() -> None:
    ports = Ports(listen=True)
    with listening_at_six() as squatter, listening_at_six() as another:
        first, second = squatter.getsockname()[1], another.getsockname()[1]
        assert ports.claim("a", [first], listed="x") == first
        ports.reclaim("b", second)
        assert ports.host(first) == ports.host(second) == LOOPBACK
        (only,) = ports.take(first)
        assert only.getsockname()[0] == LOOPBACK
        only.close()
    ports.release(first)
    assert ports.host(first) is None
    ports.close()


@pytest.mark.parametrize("number", [errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT])
def test_without_ipv6_the_name_is_the_one_address(number: int) -> None:
    def no_such(address: str, port: int) -> socket.socket | None:
        raise OSError(number, f"{address} is not there")

    assert hold_other(LOOPBACK, 8100, no_such) == (None, "localhost")
    assert hold_other("127.0.0.2", 8100, no_such) == (None, "127.0.0.2")


def test_what_else_is_wrong_with_the_other_address_is_told() -> None:
    def full(address: str, port: int) -> socket.socket | None:
        raise OSError(errno.EMFILE, "too many")

    with pytest.raises(OSError, match="too many"):
        hold_other(LOOPBACK, 8100, full)


def test_exhausted_names_the_holders() -> None:
    mine, foreign = free_port(), free_port()
    ports = Ports(listen=True)
    ports.claim("a", [mine], listed="x")
    with socket.create_server((LOOPBACK, foreign)):
        with pytest.raises(PortsExhausted) as caught:
            ports.claim("b", [mine, foreign], listed="8190 to 8199 (profile dummy)")
        assert caught.value.details["holders"] == {str(mine): "a", str(foreign): "another program"}
        assert "8190 to 8199 (profile dummy)" in caught.value.message
        ports.reclaim("c", foreign)
        assert ports.owner(foreign) == "c"
        assert ports.host(foreign) is None
    ports.release(mine)
    assert ports.claim("b", [mine], listed="x") == mine
    ports.close()


def test_of_many_holders_the_words_name_some_and_the_details_all() -> None:
    ports = Ports(listen=False)
    for number in range(1, 13):
        ports.claim(f"a{number}", [number], listed="x")
    with pytest.raises(PortsExhausted, match="a10 has 10, and 2 more are taken; ") as caught:
        ports.claim("b", range(1, 13), listed="x")
    assert len(caught.value.details["holders"]) == 12


def test_without_listening_ports_are_numbers() -> None:
    ports = Ports(listen=False)
    assert ports.claim("a", [1, 2], listed="x") == 1
    assert ports.claim("b", [1, 2], listed="x") == 2
    with pytest.raises(PortsExhausted):
        ports.claim("c", [1, 2], listed="x")
    ports.release(1)
    assert ports.claim("c", [1, 2], listed="x") == 1
