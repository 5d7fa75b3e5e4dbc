"""A session bus of a test's own, with a notification service on it that keeps what it shows."""

import asyncio
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from jeepney import HeaderFields, MessageType, new_method_return
from jeepney.bus_messages import message_bus
from jeepney.io.asyncio import open_dbus_connection

__all__ = ["DBUS_DAEMON", "NotificationService", "SessionBus"]

DBUS_DAEMON = shutil.which("dbus-daemon")

CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:path={path}</listen>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/>
  </policy>
</busconfig>
"""


class SessionBus:
    """Life: `with`. Its end is that of the process that was started here."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.address = f"unix:path={folder / 'bus'}"
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> "SessionBus":
        config = self._folder / "bus.conf"
        config.write_text(CONFIG.format(path=self._folder / "bus"))
        command = [str(DBUS_DAEMON), f"--config-file={config}", "--nofork", "--print-address"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline(), "it listens"
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


class NotificationService:
    """`org.freedesktop.Notifications`: `shown` are the notes that stand, by number; `all` were ever shown. Life: `async
    with`."""

    def __init__(self, address: str) -> None:
        self._address = address
        self.shown: dict[int, tuple[str, str]] = {}
        self.all: list[tuple[str, str]] = []
        self._number = 0
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "NotificationService":
        self._connection = await open_dbus_connection(self._address)
        await self._connection.send(message_bus.RequestName("org.freedesktop.Notifications"))
        self._task = asyncio.get_running_loop().create_task(self._serve())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        await self._connection.close()

    async def _serve(self) -> None:
        while True:
            message = await self._connection.receive()
            if message.header.message_type is MessageType.method_call:
                signature, body = self._answer(message.header.fields[HeaderFields.member], message.body)
                await self._connection.send(new_method_return(message, signature, body))

    def _answer(self, method: str, body: tuple[Any, ...]) -> tuple[str | None, tuple[Any, ...]]:
        if method == "Notify":
            self._number += 1
            self.shown[self._number] = (body[3], body[4])
            self.all.append((body[3], body[4]))
            return "u", (self._number,)
        assert method == "CloseNotification"
        self.shown.pop(body[0], None)
        return None, ()
