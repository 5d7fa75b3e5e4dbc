"""Version 1 by bytes: what a client of that version sends, and what every keeper has to answer. Nothing of the codec or
the client of today is used here, so that they cannot drift together with the keeper."""

import json
import socket
import struct
import sys
from pathlib import Path
from typing import Any

import pytest

from synapsed.keepers.client import KeeperClient
from synapsed.keepers.launchers import ProcessLauncher
from tests.keeper.conftest import DEADLINE_S, Lab
from tests.keeper.frozen import KEEPERS

HELLO, SUBSCRIBE, WRITE, RESIZE, STOP, READ, PING, ACK_EXIT = 0x01, 0x02, 0x03, 0x04, 0x06, 0x07, 0x08, 0x09
WELCOME, REPLY, REFUSED, OUTPUT, EXITED = 0x80, 0x81, 0x82, 0x90, 0x92

WELCOME_FIELDS = {
    "version", "launch_id", "keeper_pid", "keeper_start", "pid", "pid_start", "transport", "cols", "rows",
    "spool_start", "spool_end", "launch_start", "channels", "input_pending", "alert", "started_at", "exit",
}  # fmt: skip
EXIT_FIELDS = {
    "format", "launch_id", "pid", "code", "signal", "stopped", "leftover", "output_lost", "final_offset",
    "final_offsets", "started_at", "exited_at",
}  # fmt: skip

ECHO = "import sys\nfor line in sys.stdin: print('got', line.strip(), flush=True)"


class Client:
    """A client of version 1: frames as the specification says them."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(DEADLINE_S)
        self._socket.connect(str(path))
        self._raw = b""
        self._number = 0
        self.output = b""
        self.exit: dict[str, Any] | None = None

    def send(self, kind: int, header: dict[str, Any], payload: bytes = b"") -> None:
        head = json.dumps(header).encode()
        self._socket.sendall(struct.pack(">BBHI", 0x4B, kind, len(head), len(payload)) + head + payload)

    def frame(self) -> tuple[int, dict[str, Any], bytes]:
        magic, kind, head, size = struct.unpack(">BBHI", self._take(8))
        assert magic == 0x4B
        header: dict[str, Any] = json.loads(self._take(head))
        return kind, header, self._take(size)

    def _take(self, size: int) -> bytes:
        while len(self._raw) < size:
            data = self._socket.recv(65536)
            assert data, "the keeper has closed the connection"
            self._raw += data
        taken, self._raw = self._raw[:size], self._raw[size:]
        return taken

    def push(self, kind: int, header: dict[str, Any], payload: bytes) -> None:
        if kind == OUTPUT:
            assert header["offset"] == len(self.output)
            self.output += payload
        elif kind == EXITED:
            self.exit = header["record"]

    def ask(
        self, kind: int, header: dict[str, Any] | None = None, payload: bytes = b""
    ) -> tuple[int, dict[str, Any], bytes]:
        self._number += 1
        self.send(kind, {"req": self._number, **(header or {})}, payload)
        while True:
            answer = self.frame()
            if answer[0] in (REPLY, REFUSED) and answer[1]["req"] == self._number:
                return answer
            self.push(*answer)

    def until_output(self, text: bytes) -> None:
        while text not in self.output:
            self.push(*self.frame())

    def until_exit(self) -> dict[str, Any]:
        while self.exit is None:
            self.push(*self.frame())
        return self.exit

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(params=KEEPERS)
async def client(request: pytest.FixtureRequest, lab: Lab) -> Any:
    keeper = await ProcessLauncher(keeper=KEEPERS[request.param]).launch(
        lab.spec(sys.executable, "-S", "-E", "-u", "-c", ECHO)
    )
    lab.launched.append(keeper)
    made = Client(keeper.socket_path)
    yield made
    made.close()


def welcome(client: Client, low: int = 1, high: int = 1) -> tuple[int, dict[str, Any]]:
    client.send(HELLO, {"min": low, "max": high})
    kind, header, _ = client.frame()
    return kind, header


@pytest.mark.parametrize("high", [1, 2])
def test_the_handshake(client: Client, high: int) -> None:
    kind, header = welcome(client, 1, high)
    assert kind == WELCOME
    assert header["version"] == 1
    assert header.keys() >= WELCOME_FIELDS
    assert header["transport"] == "pty"
    assert header["exit"] is None


def test_a_version_that_nobody_speaks(client: Client) -> None:
    kind, header = welcome(client, 98, 99)
    assert (kind, header["req"], header["code"]) == (REFUSED, None, "version")


def test_a_session(client: Client) -> None:
    welcome(client)
    kind, header, _ = client.ask(SUBSCRIBE, {"offset": 0})
    assert (kind, header["offset"], header["start"]) == (REPLY, 0, 0)
    kind, header, _ = client.ask(WRITE, {"id": "t.1.paste"}, b"once\n")
    assert (kind, header["status"], header["written"], header["length"]) == (REPLY, "written", 5, 5)
    assert header["at"] <= header["offset"]
    kind, again, _ = client.ask(WRITE, {"id": "t.1.paste"}, b"once\n")
    assert (kind, again["status"], again["at"], again["offset"]) == (REPLY, "duplicate", header["at"], header["offset"])
    kind, recalled, _ = client.ask(WRITE, {"id": "t.1.paste", "recall": True})
    assert (kind, recalled["status"], recalled["at"]) == (REPLY, "duplicate", header["at"])
    kind, unknown, _ = client.ask(WRITE, {"id": "t.1.submit", "recall": True})
    assert (kind, unknown["code"]) == (REFUSED, "unknown_id")
    client.until_output(b"got once")
    assert client.ask(RESIZE, {"cols": 100, "rows": 30})[1].items() >= {"cols": 100, "rows": 30}.items()
    _, header, data = client.ask(READ, {"start": 0, "limit": 4})
    assert (header["offset"], data) == (0, client.output[:4])
    assert client.ask(PING)[1].keys() >= WELCOME_FIELDS - {"version"}
    assert client.ask(ACK_EXIT, {"launch_id": "x"})[1]["code"] in ("running", "other_launch")
    _, header, _ = client.ask(STOP, {"grace_s": 5})
    assert (header["status"], header["leftover"]) == ("stopped", 0)
    record = client.until_exit()
    assert record.keys() >= EXIT_FIELDS
    assert (record["format"], record["stopped"], record["final_offset"]) == (1, True, len(client.output))
    assert client.output.count(b"got once") == 1
    assert client.ask(ACK_EXIT, {"launch_id": record["launch_id"]})[0] == REPLY


@pytest.mark.parametrize("keeper", KEEPERS)
async def test_a_keeper_of_any_version_answers_brief_pings(keeper: str, lab: Lab) -> None:
    launched = await ProcessLauncher(keeper=KEEPERS[keeper]).launch(
        lab.spec(sys.executable, "-S", "-E", "-u", "-c", ECHO)
    )
    lab.launched.append(launched)
    client = await KeeperClient.connect(launched.socket_path, timeout=DEADLINE_S)
    await client.ping_briefly(timeout=DEADLINE_S)
    assert (await client.ping(timeout=DEADLINE_S)).pid == launched.pid
    client.close()
