"""A real daemon tells a person what waits: at every sink, once, over `kill -9`, and takes it back."""

import asyncio
import json
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from synapsed.pty.viewers import PRESENT_S
from tests.fakes.served import served
from tests.support.daemon import ANY_PORTS, PATIENCE_S, Daemon, eventually
from tests.support.desktop import DBUS_DAEMON, NotificationService, SessionBus
from tests.support.mailserver import MailServer
from tests.support.webhook import Webhook
from tests.synapsectl.pty_tool import PtyTool

SECRET = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
CONFIG = """
[a2a.push]
allow = ["loopback"]
[notify.sinks.hook]
type = "webhook"
url = "HOOK"
secret_env = "HOOK_SECRET"
[notify.sinks.phone]
type = "ntfy"
url = "NTFY"
topic = "agents"
content = "full"
answers = "https://me.example.com"
[notify.sinks.post]
type = "mail"
host = "127.0.0.1"
port = MAIL
security = "none"
sender = "me@here.example"
to = ["me@there.example"]
"""
ASKS = "printf 'Allow this command?\\n1. Yes\\n2. No\\n'; read -rp 'Choose [1/2]: ' it; echo \"=$it=\""


@pytest.fixture
def sinks() -> Iterator[tuple[Webhook, Webhook, MailServer]]:
    with Webhook() as hook, Webhook() as ntfy, MailServer() as mail:
        yield hook, ntfy, mail


@pytest.fixture
def daemon(tmp_path: Path, sinks: tuple[Webhook, Webhook, MailServer]) -> Iterator[Daemon]:
    hook, ntfy, mail = sinks
    config = CONFIG.replace("HOOK", hook.url, 1).replace("NTFY", ntfy.url.removesuffix("/hook"))
    config = config.replace("port = MAIL", f"port = {mail.port}")
    daemon = Daemon(tmp_path, config=ANY_PORTS + config, environ={**os.environ, "HOOK_SECRET": SECRET}).start()
    daemon.start_agent(profile="generic", name="shell", args=["bash", "--norc"], env={"PS1": "$ "})
    yield daemon
    daemon.end()


def told(hook: Webhook) -> list[str]:
    return [body["type"] for body in hook.taken if body["data"].get("kind") != "finished"]


def published(ntfy: Webhook) -> list[dict[str, Any]]:
    requests = zip(ntfy.methods, ntfy.requests, strict=False)  # one may just come
    return [body for method, (_, _, body) in requests if method == "POST" and "finished" not in body["title"]]


def recorded(daemon: Daemon) -> set[str]:
    """Returns the sinks of which the daemon knows that they were told of a question, also after a kill."""
    lines = [line for line in daemon.log().splitlines() if "a person is told" in line and "question" in line]
    return {sink for sink in ("hook", "phone", "post") if any(sink in line for line in lines)}


@pytest.mark.night
def test_whoever_has_left_an_attached_terminal_is_told(
    daemon: Daemon, sinks: tuple[Webhook, Webhook, MailServer]
) -> None:
    """No key for as long as a person counts as present: the terminal stays attached, and nobody sits at it."""
    hook, _, _ = sinks
    tool = PtyTool("attach", "shell", env=daemon.env)
    try:
        tool.until(b"$ ")
        task = daemon.send(ASKS, "shell")
        tool.until(b"Choose")
        assert told(hook) == [], "the person sees it"
        eventually(lambda: told(hook), "the notice is sent", patience=PRESENT_S + PATIENCE_S)
        assert tool.process.poll() is None
        tool.type(b"1\r")
        assert daemon.ended(task)["status"] == "completed"
    finally:
        tool.close()


def test_told_at_every_sink_once_and_taken_back(daemon: Daemon, sinks: tuple[Webhook, Webhook, MailServer]) -> None:
    hook, ntfy, mail = sinks
    task = daemon.send(ASKS, "shell")
    eventually(lambda: told(hook) and published(ntfy) and mail.mails, "every sink is told")
    eventually(lambda: recorded(daemon) == {"hook", "phone", "post"}, "the daemon has it that they were")
    daemon.kill9()
    daemon.start()
    (item,) = daemon.request("GET", "/inbox").json
    assert (hook.taken[0]["data"]["id"], published(ntfy)[0]["sequence_id"]) == (item["id"], item["id"])
    assert set(hook.taken[0]["data"]) == {"id", "agent", "kind", "since"}, "agent and kind, and no more"
    assert mail.mails[0]["Subject"] == "shell asks a question"
    assert daemon.ctl("input", task, "1").code == 0
    eventually(lambda: "attention.closed" in told(hook), "the webhook is told that it is over")
    eventually(lambda: "DELETE" in ntfy.methods, "the phone's notice is taken back")
    assert told(hook) == ["attention.opened", "attention.closed"]
    closed = next(body["data"] for body in hook.taken if body["type"] == "attention.closed")
    assert closed["id"] == item["id"]
    assert (closed["state"], closed["by"], closed["where"]) == ("answered", "person", "control")
    assert len(published(ntfy)) == 1
    assert [mailed["Subject"] for mailed in mail.mails].count("shell asks a question") == 1
    assert SECRET.removeprefix("whsec_") not in daemon.log()


@pytest.mark.night
def test_the_verb_says_what_became_of_each_sink(daemon: Daemon, sinks: tuple[Webhook, Webhook, MailServer]) -> None:
    hook, _, mail = sinks
    answer = daemon.ctl("notify", "test", "--json")
    assert (answer.code, [(one["sink"], one["ok"]) for one in answer.json]) == (
        0,
        [("hook", True), ("phone", True), ("post", True)],
    )
    hook.stop()
    mail.refuse = "451 later"
    answer = daemon.ctl("notify", "test")
    assert answer.code == 1
    assert "the mail server answered 451" in answer.out
    assert daemon.ctl("notify", "test", "phone").code == 0
    unknown = daemon.ctl("notify", "test", "pager")
    assert (unknown.code, "there are hook, phone, post" in unknown.err) == (2, True)


@pytest.mark.night
def test_doctor_names_a_sink_that_fails(daemon: Daemon, sinks: tuple[Webhook, Webhook, MailServer]) -> None:
    hook, ntfy, _ = sinks
    hook.stop()
    daemon.send(ASKS, "shell")
    eventually(lambda: published(ntfy), "the others are told")

    def failing() -> list[str]:
        checks = daemon.ctl("doctor", "--json").json["checks"]
        return [check["detail"] for check in checks if check["check"] == "sink hook"]

    (detail,) = eventually(failing, "the sink fails")
    assert "it fails since 20" in detail
    hook.start()
    eventually(lambda: told(hook), "it is told once it is there")
    assert told(hook) == ["attention.opened"]


class Desktop:
    """A session bus with a notification service, served by a thread."""

    def __init__(self, folder: Path) -> None:
        self._bus = SessionBus(folder)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self) -> "Desktop":
        self._bus.__enter__()
        self.address = self._bus.address
        self._thread.start()
        self.service = NotificationService(self.address)
        asyncio.run_coroutine_threadsafe(self.service.__aenter__(), self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self.service.__aexit__(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._bus.__exit__(None, None, None)


@pytest.mark.night
@pytest.mark.skipif(DBUS_DAEMON is None, reason="there is no dbus-daemon")
def test_the_desktop_over_a_kill(tmp_path: Path) -> None:
    (tmp_path / "bus").mkdir()
    with Desktop(tmp_path / "bus") as desktop:
        environ = {**os.environ, "DBUS_SESSION_BUS_ADDRESS": desktop.address}
        config = ANY_PORTS + '[notify]\ncontent = "question"\n[notify.sinks.desk]\ntype = "desktop"\n'
        daemon = Daemon(tmp_path / "home", config=config, environ=environ).start()
        try:
            daemon.start_agent(profile="generic", name="shell", args=["bash", "--norc"], env={"PS1": "$ "})
            task = daemon.send(ASKS, "shell")
            eventually(lambda: desktop.service.all, "the desktop shows it")
            # Killed before it has noted the desktop's number for the notice, it could never take that back.
            eventually(lambda: "a person is told" in daemon.log(), "its number is noted")
            daemon.kill9()
            daemon.start()
            assert daemon.ctl("input", task, "1").code == 0
            eventually(lambda: not any("asks" in title for title, _ in desktop.service.shown.values()), "it is gone")
            asked = [body for title, body in desktop.service.all if title == "shell asks a question"]
            assert len(asked) == 1
            assert "Choose [1/2]:" in asked[0]
        finally:
            daemon.end()


@pytest.mark.night
def test_what_is_wrong_changes_nothing(daemon: Daemon) -> None:
    daemon.config_file.write_text(daemon.config + '[notify.sinks.bad]\ntype = "ntfy"\n')
    reloaded = daemon.ctl("reload")
    assert reloaded.code != 0
    assert "notify.sinks.bad" in reloaded.err
    assert json.dumps(daemon.ctl("notify", "test", "--json").json).count('"ok": true') == 3


@pytest.mark.night
def test_without_a_sink_it_says_what_to_write_and_that_works(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path).start()
    try:
        told = daemon.ctl("notify", "test")
        assert (told.code, str(daemon.config_file) in told.err) == (0, True), told
        lines = re.findall(r"'(\[notify[^']+|type[^']+)'", told.err)
        daemon.config_file.write_text("\n".join([daemon.config, *lines]))
        assert daemon.ctl("reload").code == 0
        assert [one["sink"] for one in daemon.ctl("notify", "test", "--json").json] == ["desktop"]
    finally:
        daemon.end()


def test_the_verb_without_a_sink(tmp_path: Path) -> None:
    with served(tmp_path) as daemon:
        told = daemon.ctl("notify", "test")
        assert (told.code, str(daemon.config_file) in told.err) == (0, True), told
        unknown = daemon.ctl("notify", "test", "pager")
        assert (unknown.code, "pager" in unknown.err) == (2, True), unknown
