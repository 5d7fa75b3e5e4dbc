"""In place of ssh: "connects" to daemons of this machine. `python ssh.py HOSTS [ssh's options] -- TARGET COMMAND`.

`HOSTS` is a directory; `HOSTS/<target's host>` is the SYNAPSED_HOME of the host, a link. While `HOSTS/<host>.asleep`
exists it cannot be reached, and connections to it end; while `HOSTS/<host>.mute` exists what is posted arrives and its
answer does not.
"""

import asyncio
import contextlib
import os
import shlex
import sys
from pathlib import Path

PIECE = 65536


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await reader.read(PIECE):
            writer.write(piece)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


async def forward(local: str, remote: str, asleep: Path) -> None:
    """Until stdin ends or the host falls asleep."""

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_unix_connection(remote)
        except OSError:
            writer.close()
            return
        try:
            first = await reader.read(PIECE)
            back.write(first)
            if first.startswith(b"POST") and asleep.with_suffix(".mute").exists():
                sending = asyncio.create_task(pump(reader, back))
                await there.read(1)
                sending.cancel()
                return
            sending = asyncio.create_task(pump(reader, back))
            await pump(there, writer)
            sending.cancel()
        finally:
            back.close()
            writer.close()

    Path(local).unlink(missing_ok=True)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(0, lambda: os.read(0, PIECE) or ended.set())
    await asyncio.start_unix_server(connect, local)
    while not (ended.is_set() or asleep.exists()):
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), 0.02)
    if asleep.exists():
        sys.stderr.write("Timeout, server not responding.\r\n")
        sys.stderr.flush()
    os._exit(255 if asleep.exists() else 0)  # whoever is still connected is cut off


def main() -> None:
    hosts, *arguments = sys.argv[1:]
    options, (target, command) = arguments[: arguments.index("--")], arguments[arguments.index("--") + 1 :]
    assert "BatchMode=yes" in options
    host = target.removeprefix("ssh://").rpartition("@")[2].partition(":")[0]
    asleep = Path(hosts) / f"{host}.asleep"
    if asleep.exists() or not (Path(hosts) / host).exists():
        sys.stderr.write(f"ssh: connect to host {host} port 22: No route to host\r\n")
        sys.exit(255)
    if "-L" not in options:
        print("Welcome to", host, flush=True)
        home = (Path(hosts) / host).readlink()
        environ = {**os.environ, "SYNAPSED_HOME": home, "SYNAPSED_A2A_HOME": f"{home}/a2a"}
        os.execvpe("/bin/sh", ["sh", "-c", command], environ)
    assert shlex.split(command) == ["cat"]
    local, _, remote = options[options.index("-L") + 1].partition(":")
    asyncio.run(forward(local, remote, asleep))


main()
