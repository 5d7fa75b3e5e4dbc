"""Ports are owned by binding: exclusively, without listening, and again at once after a kill."""

import socket

import pytest

from synapsed.errors import PortsExhausted
from synapsed.supervisor.ports import LOOPBACK, Ports, announceable
from tests.support.ports import free_port


def connects(port: int) -> bool:
    with socket.socket() as client:
        client.settimeout(5)
        return client.connect_ex((LOOPBACK, port)) == 0


def test_claimed_is_bound_and_does_not_listen_until_it_is_announced() -> None:
    port = free_port()
    ports = Ports(listen=True)
    claimed, sock = ports.claim("a", [port], listed="x")
    assert claimed == port
    assert sock is not None
    assert not connects(port)
    for reuse in (0, 1):
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
            with pytest.raises(OSError, match="in use"):
                other.bind((LOOPBACK, port))
    taken = ports.take(port)
    assert taken is sock
    announceable(sock).listen()
    assert connects(port)
    sock.close()


def test_the_next_daemon_has_the_port_at_once() -> None:
    port = free_port()
    first = Ports(listen=True)
    _, sock = first.claim("a", [port], listed="x")
    assert sock is not None
    announceable(sock).listen()
    with socket.create_connection((LOOPBACK, port), timeout=5):
        accepted, _ = sock.accept()
        accepted.close()  # the server's end closes first: TIME_WAIT is on its side, as after a kill
    sock.close()
    second = Ports(listen=True)
    again = second.reclaim("a", port)
    assert again is not None
    announceable(again).listen()
    assert connects(port)
    again.close()


def test_exhausted_names_the_holders() -> None:
    mine, foreign = free_port(), free_port()
    ports = Ports(listen=True)
    ports.claim("a", [mine], listed="x")
    with socket.create_server((LOOPBACK, foreign)):
        with pytest.raises(PortsExhausted) as caught:
            ports.claim("b", [mine, foreign], listed="8190 to 8199 (profile dummy)")
        assert caught.value.details["holders"] == {str(mine): "a", str(foreign): "another program"}
        assert "8190 to 8199 (profile dummy)" in caught.value.message
        assert ports.reclaim("c", foreign) is None
        assert ports.owner(foreign) == "c"
    ports.release(mine)
    assert ports.claim("b", [mine], listed="x")[0] == mine
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
    assert ports.claim("a", [1, 2], listed="x") == (1, None)
    assert ports.claim("b", [1, 2], listed="x") == (2, None)
    with pytest.raises(PortsExhausted):
        ports.claim("c", [1, 2], listed="x")
    ports.release(1)
    assert ports.claim("c", [1, 2], listed="x") == (1, None)
