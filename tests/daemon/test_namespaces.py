"""Two daemons as on two machines: each in a network namespace of its own, with a wire between them."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import eventually
from tests.support.namespaces import NETWORK, Housed, needs_namespaces, two_houses

pytestmark = [needs_namespaces, pytest.mark.system, pytest.mark.night]
PORT = 8090


@pytest.fixture
def houses() -> Iterator[tuple[int, int]]:
    with two_houses() as both:
        yield both


FORWARD = """
import asyncio, sys
listen, port, to, hidden = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
async def pump(reader, writer):
    try:
        while data := await reader.read(65536):
            for name in (f'"protocolVersion":"{hidden}"', f'"protocolVersion": "{hidden}"'):
                data = data.replace(name.encode(), name.replace(hidden, "9.9").encode())
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    writer.close()
async def serve(reader, writer):
    try:
        there = await asyncio.open_connection("127.0.0.1", to)
    except OSError:
        return writer.transport.abort()
    await asyncio.gather(pump(reader, there[1]), pump(there[0], writer))
async def main():
    server = await asyncio.start_server(serve, listen, port)
    print("listens", flush=True)
    await server.serve_forever()
asyncio.run(main())
"""
"""What stands in front of a daemon that is to be reached from elsewhere: it listens on loopback only. Its card has no
interface of the version `hidden` that anybody knows."""


@contextlib.contextmanager
def forwarding(house: int, address: str, to: int, hidden: str) -> Iterator[None]:
    inside = ["nsenter", f"--net=/proc/{house}/ns/net", sys.executable]
    command = [*inside, "-c", FORWARD, address, str(PORT), str(to), hidden]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as forward:
        try:
            assert forward.stdout is not None
            assert forward.stdout.readline() == "listens\n"
            yield
        finally:
            forward.kill()


def housed(home: Path, house: int, address: int) -> Housed:
    home.mkdir()
    host = f"{NETWORK}.{address}"
    config = f'[api]\nlisten = "127.0.0.1:{PORT + 1}"\nallowed_hosts = ["{host}"]\nagent_ports = false\n'
    return Housed(home, config=config, house=house)


@pytest.mark.parametrize(("version", "hidden"), [("1.0", "0.0"), ("0.3", "1.0")])
def test_a_message_to_another_machine_and_one_that_was_away(houses, tmp_path: Path, version: str, hidden: str):
    here = housed(tmp_path / "here", houses[0], 1).start()
    there = housed(tmp_path / "there", houses[1], 2).start()
    url = f"http://{NETWORK}.2:{PORT}/agents/dummy"
    try:
        there.start_agent()
        with forwarding(houses[1], f"{NETWORK}.2", PORT + 1, hidden):
            refused = here.ctl("external", "add", url, "--as", "far", "--token-env", "KEY", env={"KEY": "x"})
            assert (refused.code, "in the clear" in refused.err) == (2, True), refused
            added = here.ctl("external", "add", url, "--as", "far", "--json")
            assert added.code == 0, added.err
            assert added.json["protocol_version"] == version
            assert added.json["endpoint"].startswith(f"http://{NETWORK}.2:{PORT}/")
            assert here.ctl("send", "far", "--wait", "hello").code == 0
            # It goes away in the middle, and comes back.
            task = here.ctl("send", "far", "sleep 3").out.strip()
            eventually(lambda: here.task(task)["metadata"].get("external", {}).get("task_id"), "it is known there")
            there.kill9()
            refused = here.ctl("external", "add", url, "--as", "other")
            assert (refused.code, "cannot be reached" in refused.err) == (6, True), refused
            there.start()
            assert here.ended(task)["status"] == "completed", here.task(task)
            assert len(there.get("/control/tasks").json) == 2
    finally:
        assert here.end() == 0
        assert there.end() == 0
