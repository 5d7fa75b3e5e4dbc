"""Every place at which a person can be told, all before one daemon: what arrives there is noted with its time.

A terminal that is attached in tmux (title and bell), the desktop's notification service on a bus of its own, a receiver
of webhooks, an ntfy server's stand-in, a mail server, and the push service behind a paired browser.
"""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.daemon.test_notify import Desktop
from tests.daemon.test_webpush import Browser
from tests.support.daemon import Daemon
from tests.support.mailserver import MailServer
from tests.support.pane import Pane
from tests.support.pushservice import PushService
from tests.support.webhook import Webhook

__all__ = ["SECRET", "TAKES_BACK", "TELLS", "Sinks"]

SECRET = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="

TELLS = ("title", "bell", "desktop", "webhook", "ntfy", "mail", "browser")
TAKES_BACK = ("desktop", "webhook", "ntfy", "browser")
"""A bell has rung, and a mail is read or not: neither is taken back. A title says how many are left."""

LOOK_S = 0.02
"""Between two looks at a title: what one is late at most, besides tmux's own time."""

CONFIG = """
[a2a.push]
allow = ["loopback"]
[notify]
content = "full"
kinds = ["permission", "limit", "crash_loop"]
[notify.sinks.desk]
type = "desktop"
[notify.sinks.hook]
type = "webhook"
url = "{hook}"
secret_env = "HOOK_SECRET"
[notify.sinks.phone]
type = "ntfy"
url = "{ntfy}"
topic = "agents"
[notify.sinks.post]
type = "mail"
host = "127.0.0.1"
port = {mail}
security = "none"
sender = "me@here.example"
to = ["me@there.example"]
"""


class _Stamped(list[Any]):
    """A list that knows when each of its elements came (seconds since the epoch)."""

    def __init__(self) -> None:
        super().__init__()
        self.at: list[float] = []

    def append(self, element: Any) -> None:
        self.at.append(time.time())
        super().append(element)

    def timed(self) -> list[tuple[Any, float]]:
        return list(zip(self, self.at, strict=False))


class _Closing(dict[int, Any]):
    """The desktop's notices, and when each was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.closed: list[tuple[tuple[str, str], float]] = []

    def pop(self, number: int, default: Any = None) -> Any:
        if (notice := super().pop(number, default)) is not None:
            self.closed.append((notice, time.time()))
        return notice


@dataclass(slots=True)
class _Watched:
    """A terminal's title over time, and when its bell rang."""

    pane: Pane
    bells: Path
    titles: list[tuple[int, float]]
    """How many need a person, and since when it said so."""

    def watch(self, over: threading.Event) -> None:
        while not over.wait(LOOK_S):
            count = counted(self.pane.says("#{pane_title}"))
            if not self.titles or self.titles[-1][0] != count:
                self.titles.append((count, time.time()))

    def rung(self) -> list[float]:
        return [float(line) for line in self.bells.read_text().split()] if self.bells.exists() else []


def counted(title: str) -> int:
    """How many need a person, by a title such as `(3) claude`."""
    number = title.removeprefix("(").partition(") ")[0]
    return int(number) if title.startswith("(") and number.isdigit() else 0


class Sinks:
    """All of them, and the daemon that tells them. Life: `with`; `attach` once there is an agent to look at."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = contextlib.ExitStack()
        self._over = threading.Event()
        self.title: _Watched | None = None

    def __enter__(self) -> "Sinks":
        enter = self._stack.enter_context
        bus = self._folder / "bus"
        bus.mkdir()
        self.desktop = enter(Desktop(bus))
        self.hook, self.ntfy, self.mail = enter(Webhook()), enter(Webhook()), enter(MailServer())
        self.push = enter(PushService())
        self.desktop.service.all = _Stamped()
        self.desktop.service.shown = _Closing()
        self.hook.taken, self.ntfy.requests, self.mail.mails = _Stamped(), _Stamped(), _Stamped()
        ntfy = self.ntfy.url.removesuffix("/hook")
        config = CONFIG.format(hook=self.hook.url, ntfy=ntfy, mail=self.mail.port)
        environ = {**os.environ, "HOOK_SECRET": SECRET, "DBUS_SESSION_BUS_ADDRESS": self.desktop.address}
        listen = '[api]\nlisten = "127.0.0.1:0"\nagent_ports = false\n'
        self.daemon = Daemon(self._folder / "synapsed", config=listen + config, environ=environ).start()
        self._stack.callback(self.daemon.end)
        Browser(self.daemon, "look", "answer").turn_on(self.push)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._stack.close()

    def pane(self, name: str) -> Pane:
        """A window of tmux with a shell that reaches the daemon."""
        folder = self._folder / name
        folder.mkdir()
        path = f"{Path(sys.executable).parent}:{self.daemon.env['PATH']}"
        return self._stack.enter_context(Pane(folder, {**self.daemon.env, "PATH": path}, cols=100, rows=30))

    def attach(self, agent: str) -> None:
        """A terminal on an agent that asks nothing, whose title and bell are watched."""
        pane = self.pane("attached")
        bells = self._folder / "bells"
        pane.on_bell(f"date +%s.%N >> {bells}")
        pane.run("synapsectl", "attach", agent)
        pane.until(gone=["shell$"])
        self.title = _Watched(pane, bells, [])
        watching = threading.Thread(target=self.title.watch, args=(self._over,))
        watching.start()
        self._stack.callback(watching.join)
        self._stack.callback(self._over.set)

    def told(self, item: Mapping[str, Any], place: int) -> dict[str, float]:
        """When each was told of the item, which is the `place`th of those that are open (from 1)."""
        assert self.title is not None
        name, number = item["agent"], item["id"]
        rung = self.title.rung()
        browser = [(each["said"], each["at"] - time.monotonic() + time.time()) for each in self.push.taken]
        found = {
            "title": [at for count, at in self.title.titles if count >= place],
            "bell": rung[place - 1 :],
            "desktop": [at for (title, _), at in self.desktop.service.all.timed() if title.startswith(f"{name} ")],
            "webhook": self._hooked(number, "attention.opened"),
            "ntfy": [at for (_, _, body), at in self.ntfy.requests.timed() if body.get("sequence_id") == number],
            "mail": [at for mail, at in self.mail.mails.timed() if mail["Subject"].startswith(f"{name} ")],
            "browser": [at for said, at in browser if said["id"] == number and said["state"] == "opened"],
        }
        return {sink: times[0] for sink, times in found.items() if times}

    def taken_back(self, item: Mapping[str, Any]) -> dict[str, float]:
        """When each has taken it back."""
        name, number = item["agent"], item["id"]
        closed = self.desktop.service.shown.closed  # type: ignore[attr-defined]
        browser = [(each["said"], each["at"] - time.monotonic() + time.time()) for each in self.push.taken]
        found = {
            "desktop": [at for (title, _), at in closed if title.startswith(f"{name} ")],
            "webhook": self._hooked(number, "attention.closed"),
            "ntfy": [at for (path, _, _), at in self.ntfy.requests.timed() if path.endswith(f"/{number}")],
            "browser": [at for said, at in browser if said["id"] == number and said["state"] == "gone"],
        }
        return {sink: times[0] for sink, times in found.items() if times}

    def _hooked(self, number: str, kind: str) -> list[float]:
        taken = self.hook.taken.timed()  # type: ignore[attr-defined]
        return [at for body, at in taken if body["type"] == kind and body["data"]["id"] == number]
