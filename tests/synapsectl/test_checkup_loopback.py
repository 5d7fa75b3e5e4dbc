"""`doctor` on the other address of `localhost`: whose it is, where the daemon could not have it."""

import os
import socket
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from synapsectl.checkup.finding import NOTE, WRONG
from synapsectl.checkup.loopback import Holder, holder, look_at_agents, look_at_main, parse_listeners
from tests.support.ports import free_port

LITTLE = sys.byteorder == "little"
HEAD = "  sl  local_address  remote_address  st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


@pytest.fixture
def squatter() -> Iterator[int]:
    """The port of a program at ::1 only."""
    with socket.create_server(("::1", free_port()), family=socket.AF_INET6) as sock:
        yield sock.getsockname()[1]


def row(local: str, state: str, uid: int, inode: int) -> str:
    return f"   0: {local} {'0' * 32}:0000 {state} 00000000:00000000 00:00000000 00000000 {uid:5} 0 {inode} 1 0 100 0\n"


@pytest.mark.skipif(not LITTLE, reason="the table has the machine's byte order")
def test_who_listens_is_read_from_the_kernels_table() -> None:
    one, every = f"{'0' * 24}01000000:1FA4", f"{'0' * 32}:1FA4"
    connected, any_, exact = row(one, "01", 7, 70), row(every, "0A", 8, 80), row(one, "0A", 1001, 90)
    assert parse_listeners(HEAD + connected, "::1", 0x1FA4) is None
    assert parse_listeners(HEAD + connected + any_, "::1", 0x1FA4) == (8, 80)
    assert parse_listeners(HEAD + any_ + exact, "::1", 0x1FA4) == (1001, 90)
    assert parse_listeners(HEAD + exact, "::1", 0x1FA5) is None
    assert parse_listeners("", "::1", 1) is None


@pytest.mark.skipif(sys.platform != "linux", reason="/proc/net")
def test_its_process_is_named_where_it_may_be_seen(squatter: int) -> None:
    found = holder("::1", squatter)
    assert found is not None
    assert (found.uid, found.pid) == (os.getuid(), os.getpid())
    assert found.words.startswith(f"a program of you (uid {os.getuid()}), pid {os.getpid()} (")
    assert holder("::1", free_port()) is None


def test_without_such_a_table_it_is_tried(squatter: int, tmp_path) -> None:
    assert holder("::1", squatter, proc=tmp_path) == Holder(None)
    assert holder("::1", free_port(), proc=tmp_path) is None


def test_the_main_port(squatter: int) -> None:
    listen = f"127.0.0.1:{squatter}"
    (found,) = look_at_main(listen, [listen])
    assert found.what == "main port"
    assert f"at [::1]:{squatter} listens a program of" in found.detail
    assert f"told as http://{listen}/" in found.detail
    assert not list(look_at_main(listen, [listen, f"[::1]:{squatter}"])), "it is the daemon's own"
    assert not list(look_at_main(f"127.0.0.2:{squatter}", []))


def test_an_agents_port_of_another_user(monkeypatch, squatter: int) -> None:
    agents: list[dict[str, Any]] = [
        {"name": "a", "port": squatter, "endpoint": f"http://127.0.0.1:{squatter}"},
        {"name": "b", "port": 8101, "endpoint": "http://localhost:8101"},
        {"name": "c", "port": None, "endpoint": "http://127.0.0.1:8090/agents/c"},
    ]
    (found,) = look_at_agents(agents)
    assert (found.what, found.status) == ("agent a", NOTE if sys.platform == "linux" else WRONG)
    monkeypatch.setattr("os.getuid", lambda: 4711)
    (found,) = look_at_agents(agents)
    assert found.status == WRONG
    assert f"at [::1]:{squatter} listens a program of " in found.detail
    assert "restart the daemon; or give a another port" in found.mend
