"""The desktop of this machine as a sink: freedesktop notifications over the session bus, on macOS its Notification
Center."""

import asyncio
import shutil
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from jeepney import DBusAddress, MessageType, new_method_call
from jeepney.auth import AuthenticationError
from jeepney.bus_messages import message_bus
from jeepney.io.asyncio import open_dbus_router
from jeepney.io.common import RouterClosed
from jeepney.wrappers import DBusErrorResponse

from synapsed.parts.attention.notification_policy import Notice
from synapsed.parts.attention.sinks.base import Buttons, Untold

PATIENCE_S: Final = 5.0
"""Seconds for one call on the bus, or one program."""

_NAME: Final = "org.freedesktop.Notifications"
_SERVICE: Final = DBusAddress("/org/freedesktop/Notifications", bus_name=_NAME, interface=_NAME)


_REFUSALS: Final = (AuthenticationError, DBusErrorResponse, RouterClosed, RuntimeError, ValueError, KeyError)
"""Exceptions of the library for a bus that refuses, and for an address without a bus."""


class FreedesktopPort:
    """Sink of the freedesktop notification service. Opens a connection for each call: the notification stays after the
    connection ends."""

    once = True
    """A repeated notice would be shown a second time."""
    withdraws = True
    """A notice can be taken back."""
    sure = False
    """A notice can be taken back only by the number that the service has returned."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    async def tell(self, notice: Notice, buttons: Buttons | None) -> str:
        urgency = 2 if notice.kind == "crash_loop" else 1
        hints = {"urgency": ("y", urgency)}  # no desktop-entry: GNOME takes such notes back with the connection
        body: tuple[Any, ...] = ("synapsed", 0, "", notice.title, _plain(notice.body), [], hints, 0)
        owner, (number,) = await self._call("Notify", "susssasa{sv}i", body)
        return f"{owner} {number}"

    async def withdraw(self, item_id: str, ref: str, outcome: Mapping[str, Any]) -> None:
        owner, _, number = ref.partition(" ")
        if number.isdecimal():
            await self._call("CloseNotification", "u", (int(number),), owner=owner)

    async def close(self) -> None:
        pass

    async def _call(
        self, method: str, signature: str, body: tuple[Any, ...], *, owner: str | None = None
    ) -> tuple[str, Sequence[Any]]:
        """Calls a method; returns the service that answered, and its answer. With `owner` only that service is called:
        another service has other notifications under the same numbers."""
        address = self._address()
        try:
            async with asyncio.timeout(PATIENCE_S), open_dbus_router(address) as router:
                if owner is not None:
                    found = await router.send_and_get_reply(message_bus.GetNameOwner(_NAME))
                    if found.header.message_type is MessageType.error or found.body[0] != owner:
                        return owner, ()
                reply = await router.send_and_get_reply(new_method_call(_SERVICE, method, signature, body))
        except TimeoutError:
            raise Untold(f"the session bus did not answer within {PATIENCE_S:g} s") from None
        except (OSError, EOFError) as error:
            raise Untold(f"the session bus cannot be reached: {error}") from None
        except _REFUSALS as error:
            raise Untold(f"the session bus refused ({type(error).__name__})") from None
        if reply.header.message_type is MessageType.error:
            raise Untold(_error_text(method, reply))
        sender: str = next(value for field, value in reply.header.fields.items() if field.name == "sender")
        return sender, reply.body

    def _address(self) -> str:
        """Returns the address of the bus. Raises Untold."""
        if address := self._environ.get("DBUS_SESSION_BUS_ADDRESS"):
            return address
        if (folder := self._environ.get("XDG_RUNTIME_DIR")) and (Path(folder) / "bus").exists():
            return f"unix:path={folder}/bus"
        raise Untold("there is no session bus: neither DBUS_SESSION_BUS_ADDRESS nor XDG_RUNTIME_DIR/bus is there")


class MacPort:
    """Sink of macOS: `terminal-notifier` if it is installed, whose notes can be taken back; else `osascript`."""

    once = True
    """A repeated notice would be shown a second time."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._notifier = shutil.which("terminal-notifier", path=environ.get("PATH"))
        self.withdraws = self._notifier is not None
        self.sure = False

    async def tell(self, notice: Notice, buttons: Buttons | None) -> str:
        body = notice.body or notice.title
        if self._notifier is not None:
            group = ["-group", f"synapsed-{notice.id}"]
            await self._run(self._notifier, "-title", notice.title, "-message", body, *group)
        else:
            script = "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run"
            await self._run("osascript", "-e", script, notice.title, body)
        return notice.id

    async def withdraw(self, item_id: str, ref: str, outcome: Mapping[str, Any]) -> None:
        if self._notifier is not None:
            await self._run(self._notifier, "-remove", f"synapsed-{ref}")

    async def close(self) -> None:
        pass

    async def _run(self, *command: str) -> None:
        try:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, env=dict(self._environ)
            )
        except OSError as error:
            raise Untold(f"{command[0]}: {error.strerror}") from None
        try:
            async with asyncio.timeout(PATIENCE_S):
                code = await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
            raise Untold(f"{Path(command[0]).name} did not end within {PATIENCE_S:g} s") from None
        if code:
            raise Untold(f"{Path(command[0]).name} ended with exit code {code}")


def desktop(environ: Mapping[str, str]) -> FreedesktopPort | MacPort:
    """Returns the sink of this system."""
    return MacPort(environ) if sys.platform == "darwin" else FreedesktopPort(environ)


def _plain(text: str) -> str:
    """Returns the text with markup escaped, which notification services may read."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _error_text(method: str, reply: Any) -> str:
    name = next((value for field, value in reply.header.fields.items() if field.name == "error_name"), "an error")
    words = reply.body[0] if reply.body and isinstance(reply.body[0], str) else ""
    return f"{method}: {name}: {words[:200]}" if words else f"{method}: {name}"
