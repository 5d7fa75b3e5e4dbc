"""A daemon that ends, as by SIGKILL, at a step that a test has named.

    python -m tests.real.dying run …      # as `python -m synapsed run …`

The step's name stands in the file `dies-at` in SYNAPSED_HOME, which is removed as it happens: the next daemon does not
end there. What is wrapped are the steps between the message and its end, of all ways in which a message goes.
"""

import functools
import inspect
import os
import signal
import sys
from asyncio import selector_events
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp

from synapsed.cli import main
from synapsed.keepers.keeper_messages import KeeperConnection
from synapsed.model.facts import PermissionAsked
from synapsed.model.link import LinkTurnEnded
from synapsed.parts.app_server.channel import AppServerChannel
from synapsed.parts.session_server.delivery import SessionDelivery
from synapsed.pipes.acp_session import AcpSession
from synapsed.pty.channel_delivery import ChannelDelivery
from synapsed.pty.channel_way import ChannelWay
from synapsed.pty.keyboard import Keyboard
from synapsed.pty.turn_types import Say

BEFORE_WRITE = "before the write"
WRITTEN = "between write and reply"
ON_RECORD = "before its turn is on record"
ASKED = "at a question"
ANSWERED = "between an answer and its reply"
ENDED = "before the end is on record"
GIVEN_BACK = "before a message that was given back is removed"

STEPS = (BEFORE_WRITE, WRITTEN, ON_RECORD, ASKED, ANSWERED, ENDED)

FILE = "dies-at"


def die(step: str) -> None:
    """End here, if this is the step."""
    file = Path(os.environ["SYNAPSED_HOME"], FILE)
    try:
        if file.read_text() != step:
            return
    except OSError:
        return
    file.unlink()
    os.kill(os.getpid(), signal.SIGKILL)


def wrap(owner: Any, name: str, step: str, *, when: Callable[..., bool] = lambda *_: True, after: bool = False) -> None:
    """Die at `step` before the method is called, or `after` it, where `when` says so of its arguments."""
    method = getattr(owner, name)

    @functools.wraps(method)
    def plain(self: Any, *args: Any, **more: Any) -> Any:
        if when(*args) and not after:
            die(step)
        result = method(self, *args, **more)
        if when(*args) and after:
            die(step)
        return result

    @functools.wraps(method)
    async def waits(self: Any, *args: Any, **more: Any) -> Any:
        if when(*args) and not after:
            die(step)
        result = await method(self, *args, **more)
        if when(*args) and after:
            die(step)
        return result

    setattr(owner, name, waits if inspect.iscoroutinefunction(method) else plain)


def _has(mark: bytes) -> Callable[..., bool]:
    def given(*args: Any) -> bool:
        pieces = [piece for arg in args for piece in (arg if isinstance(arg, list | tuple) else [arg])]
        return any(isinstance(piece, bytes | bytearray | memoryview) and mark in bytes(piece) for piece in pieces)

    return given


def wrap_all() -> None:
    wrap(ChannelDelivery, "_submit", BEFORE_WRITE)
    wrap(aiohttp.ClientWebSocketResponse, "send_str", WRITTEN, when=lambda data: '"turn/start"' in data, after=True)
    for name in ("write", "writelines"):
        wrap(selector_events._SelectorSocketTransport, name, WRITTEN, when=_has(b'"messageID"'), after=True)  # type: ignore[attr-defined]
    wrap(ChannelDelivery, "_save", ON_RECORD)
    wrap(ChannelWay, "_take", ASKED, when=lambda fact: isinstance(fact, PermissionAsked))
    for channel in (AppServerChannel, SessionDelivery):
        wrap(channel, "answer", ANSWERED, after=True)
    wrap(
        ChannelDelivery,
        "perform",
        ENDED,
        when=lambda _turn, command: isinstance(command, Say) and isinstance(command.event, LinkTurnEnded),
    )
    wrap(Keyboard, "clear", GIVEN_BACK)
    wrap(KeeperConnection, "send", WRITTEN, when=_has(b'"session/prompt"'), after=True)
    wrap(AcpSession, "_asked", ASKED)
    wrap(KeeperConnection, "send", ANSWERED, when=_has(b'"outcome"'), after=True)


if __name__ == "__main__":
    wrap_all()
    sys.exit(main())
