"""The sinks against real servers on loopback: a receiver of webhooks, one that speaks as ntfy does, SMTP, D-Bus."""

import asyncio
import base64
import os
import ssl
import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter
from standardwebhooks.webhooks import Webhook as Verifier
from structlog.testing import capture_logs

from synapsed.clock import SystemClock
from synapsed.errors import InvalidRequest
from synapsed.outgoing.poster import HttpPoster
from synapsed.outgoing.screening import AddressScreen
from synapsed.parts.attention.notification_policy import Notice
from synapsed.parts.attention.notify import Sink
from synapsed.parts.attention.sinks import mail
from synapsed.parts.attention.sinks.base import Buttons, SinkPort, Untold
from synapsed.parts.attention.sinks.desktop import FreedesktopPort
from synapsed.parts.attention.sinks.mail import MailPort
from synapsed.parts.attention.sinks.making import SinkMaker
from synapsed.parts.attention.sinks.posts import NTFY_MAX
from tests.fakes.clock import until
from tests.support.desktop import DBUS_DAEMON, NotificationService, SessionBus
from tests.support.kernels import posting_kernel
from tests.support.mailserver import MailServer
from tests.support.webhook import Webhook

SECRET = "whsec_" + base64.b64encode(bytes(32)).decode()
NOTICE = Notice(
    id="i1",
    kind="permission",
    title="api asks for a permission",
    body="Run <ls> & go? é",
    data={"id": "i1", "kind": "x"},
)
OUTCOME = {"state": "answered", "by": "person", "who": None, "where": "control"}
_SINK: TypeAdapter[Sink] = TypeAdapter(Sink)


class Maker:
    """Makes sinks, and closes them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environ = {"SECRET": SECRET, "TOKEN": "tk_token", "PASSWORD": "pass word"}
        self.made: list[SinkPort] = []
        self.allow: tuple[str, ...] = ("loopback",)

    async def __call__(self, **sink: Any) -> SinkPort:
        make = SinkMaker(
            posting_kernel(
                lambda: HttpPoster(AddressScreen(self.allow), timeout=30),
                clock=SystemClock(),
                environ=self.environ,
                folder=self.folder,
            )
        )
        self.made.append(port := await make(_SINK.validate_python(sink)))
        return port


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Maker]:
    maker = Maker(tmp_path)
    yield maker
    for port in maker.made:
        await port.close()


@pytest.fixture
def hook():
    with Webhook() as hook:
        yield hook


async def test_a_webhook_is_signed_when_it_opens_and_when_it_closes(make: Maker, hook: Webhook) -> None:
    port = await make(type="webhook", url=hook.url, secret_env="SECRET")
    ref = await port.tell(NOTICE, None)
    await port.tell(NOTICE, None)
    await port.withdraw("i1", ref, OUTCOME)
    assert [body["type"] for _, _, body in hook.requests] == [*["attention.opened"] * 2, "attention.closed"]
    assert [headers["webhook-id"] for _, headers, _ in hook.requests] == ["i1_opened", "i1_opened", "i1_closed"]
    assert hook.requests[2][2]["data"] == {"id": "i1", **OUTCOME}
    hook.answer = lambda number: 503
    with pytest.raises(Untold, match="it answered 503"):
        await port.tell(NOTICE, None)


async def test_what_is_signed_can_be_verified(make: Maker) -> None:
    seen: list[tuple[bytes, dict[str, str]]] = []

    class Poster(HttpPoster):
        async def send(self, method: str, url: str, body: Any, headers: Any) -> Any:
            seen.append((b"".join(body), dict(headers)))
            return await super().send(method, url, body, headers)

    with Webhook() as hook:
        port = await make(type="webhook", url=hook.url, secret_env="SECRET")
        port._calls._poster = Poster(AddressScreen(["loopback"]), timeout=30)  # type: ignore[attr-defined]
        await port.tell(NOTICE, None)
    ((body, headers),) = seen
    assert Verifier(SECRET).verify(body.decode(), headers)["data"] == {"id": "i1", "kind": "x"}


async def test_ntfy_with_buttons_and_taken_back(make: Maker, hook: Webhook) -> None:
    url = hook.url.removesuffix("/hook")
    port = await make(type="ntfy", url=url, topic="agents", token_env="TOKEN")
    ref = await port.tell(NOTICE, Buttons("https://me.example.com/answers/yes", "https://me.example.com/answers/no"))
    path, headers, told = hook.requests[0]
    assert (path, headers["Authorization"]) == ("/", "Bearer tk_token")
    assert (told["topic"], told["title"], told["message"]) == ("agents", NOTICE.title, NOTICE.body)
    assert told["sequence_id"] == "i1"
    approve, deny = told["actions"]
    assert approve == {
        "action": "http",
        "label": "Approve",
        "url": "https://me.example.com/answers/yes",
        "method": "POST",
        "headers": {"Content-Type": "application/json"},
        "body": "{}",
        "clear": True,
    }
    assert (deny["label"], deny["url"]) == ("Deny", "https://me.example.com/answers/no")
    await port.withdraw("i1", ref, OUTCOME)
    assert (hook.methods[1], hook.requests[1][0]) == ("DELETE", "/agents/i1")
    await port.tell(NOTICE, None)
    assert "actions" not in hook.requests[2][2]


async def test_what_is_too_long_for_ntfy_is_cut(make: Maker, hook: Webhook) -> None:
    port = await make(type="ntfy", url=hook.url.removesuffix("/hook"), topic="agents")
    long = Notice(id="i 1/é", kind="question", title="t", body="é" * 5000, data={})
    await port.tell(long, None)
    told = hook.requests[0][2]
    assert len(told["message"].encode()) < 4096
    assert told["sequence_id"] == "i-1--"


async def test_no_buttons_where_ntfy_would_not_show_all(make: Maker, hook: Webhook) -> None:
    port = await make(type="ntfy", url=hook.url.removesuffix("/hook"), topic="agents")
    buttons = Buttons("https://me.example.com/answers/yes", "https://me.example.com/answers/no")
    for length in (NTFY_MAX // 2, NTFY_MAX // 2 + 1):
        await port.tell(Notice(id="i", kind="permission", title="t", body="é" * length, data={}), buttons)
    assert ["actions" in told for _, _, told in hook.requests] == [True, False]


@pytest.mark.parametrize("sink", ["webhook", "ntfy"])
async def test_where_nobody_is_told_that_is_not_allowed(make: Maker, hook: Webhook, sink: str) -> None:
    make.allow = ()
    given = {"webhook": {"secret_env": "SECRET"}, "ntfy": {"topic": "t"}}[sink]
    with pytest.raises(InvalidRequest, match="notifications to its network are not allowed"):
        await make(type=sink, url=hook.url, **given)
    assert hook.requests == []


async def test_secrets_that_are_not_there(make: Maker) -> None:
    url = "https://192.0.2.1"
    for sink, words in (
        ({"type": "webhook", "url": url, "secret_env": "NONE"}, "the variable NONE is not set"),
        ({"type": "ntfy", "url": url, "topic_file": "topic"}, "No such file"),
        ({"type": "ntfy", "url": url, "topic": "t", "token_file": "open"}, "can be read by others"),
        ({"type": "webhook", "url": url, "secret_env": "TOKEN"}, "must be whsec_"),
    ):
        (make.folder / "open").write_text("secret-of-all")
        (make.folder / "open").chmod(0o644)
        with pytest.raises(InvalidRequest, match=words) as raised:
            await make(**sink)
        assert "tk_token" not in raised.value.message
        assert "secret-of-all" not in raised.value.message


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate for localhost, in one file."""
    folder = tmp_path_factory.mktemp("tls")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    files = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(folder / "key"), "-out", str(folder / "cert")]
    subprocess.run([*command.split(), *files], check=True, capture_output=True)
    both = folder / "both"
    both.write_text((folder / "key").read_text() + (folder / "cert").read_text())
    return both


async def test_mail_without_encryption(make: Maker) -> None:
    with MailServer() as server:
        port = await make(
            type="mail", host="127.0.0.1", port=server.port, security="none", sender="me@here", to=["a@b", "c@d"]
        )
        await port.tell(NOTICE, None)
        await port.tell(NOTICE, None)
        first, second = server.mails
        assert (first["Subject"], first["From"], first["To"]) == (NOTICE.title, "me@here", "a@b, c@d")
        assert first.get_content().strip() == NOTICE.body  # type: ignore[attr-defined]
        assert first["Message-ID"] == second["Message-ID"]
        assert server.recipients[0] == ["a@b", "c@d"]
        assert not port.withdraws
        server.refuse = "451 later"
        with pytest.raises(Untold, match="the mail server answered 451"):
            await port.tell(NOTICE, None)
    with pytest.raises(Untold, match="cannot be reached"):
        await port.tell(NOTICE, None)


@pytest.mark.parametrize("bye", ["421 too busy", "250 ok", "nonsense", ""])
async def test_a_mail_that_was_taken_is_sent_whatever_comes_after(make: Maker, bye: str) -> None:
    with MailServer() as server:
        port = await make(
            type="mail", host="127.0.0.1", port=server.port, security="none", sender="me@here", to=["a@b", "c@d"]
        )
        server.bye = bye
        await port.tell(NOTICE, None)
        server.refused_recipients = {"a@b"}
        with capture_logs() as logged:
            await port.tell(NOTICE, None)
        assert server.recipients == [["a@b", "c@d"], ["c@d"]]
        assert [line["refused"] for line in logged if "refused" in line] == [1]
        server.refused_recipients = {"a@b", "c@d"}
        with pytest.raises(Untold, match="refused every recipient"):
            await port.tell(NOTICE, None)


async def test_a_mail_that_cannot_be_written_or_sent_from_here(make: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_thread(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    with MailServer() as server:
        where = {"type": "mail", "port": server.port, "security": "none", "sender": "me@here", "to": ["a@b"]}
        port = await make(host="127.0.0.1", **where)
        for odd in (replace(NOTICE, title="a \ud800"), replace(NOTICE, body="a \ud800")):
            with pytest.raises(Untold, match="character"):
                await port.tell(odd, None)
        with monkeypatch.context() as patched:
            patched.setattr(mail.threading.Thread, "start", no_thread)
            with pytest.raises(Untold, match="thread"):
                await port.tell(NOTICE, None)
        await port.tell(NOTICE, None)
        assert len(server.mails) == 1
        with pytest.raises(Untold, match="name"):
            await (await make(host="a" * 70 + ".example", **where)).tell(NOTICE, None)


async def test_a_mail_server_that_does_not_end_holds_one_thread(make: Maker) -> None:
    reached, over = asyncio.Event(), asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.set()
        await over.wait()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        mail_port = server.sockets[0].getsockname()[1]
        port = await make(
            type="mail", host="127.0.0.1", port=mail_port, security="none", sender="a@example.com", to=["b@example.com"]
        )
        assert isinstance(port, MailPort)
        first = asyncio.create_task(port.tell(NOTICE, None))
        await reached.wait()
        first.cancel()
        with pytest.raises(Untold, match="has not finished"):
            await port.tell(NOTICE, None)
        over.set()
        await until(lambda: not port._busy)
        with pytest.raises(Untold, match=r"mail server (cannot|answered)"):
            await port.tell(NOTICE, None)


@pytest.mark.parametrize(("password", "problem"), [("pass word", ""), ("wrong", "did not take user and password")])
async def test_mail_with_a_login(
    make: Maker, certificate: Path, monkeypatch: pytest.MonkeyPatch, password: str, problem: str
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    make.environ["PASSWORD"] = password
    with MailServer(trust=context, login=("ann", "pass word")) as server:
        port = await make(
            type="mail",
            host="localhost",
            port=server.port,
            user="ann",
            password_env="PASSWORD",
            sender="a@b",
            to=["a@b"],
        )
        with pytest.raises(Untold, match="certificate cannot be verified"):
            await port.tell(NOTICE, None)
        trusting = ssl.create_default_context(cafile=str(certificate))
        monkeypatch.setattr(mail.ssl, "create_default_context", lambda: trusting)
        if problem:
            with pytest.raises(Untold, match=problem) as raised:
                await port.tell(NOTICE, None)
            assert password not in raised.value.problem
        else:
            await port.tell(NOTICE, None)
        assert len(server.mails) == (0 if problem else 1)
    assert isinstance(port, MailPort)
    assert password not in repr(port._server)


@pytest.mark.skipif(DBUS_DAEMON is None, reason="there is no dbus-daemon")
class TestDesktop:
    @pytest.fixture
    def bus(self, tmp_path: Path):
        with SessionBus(tmp_path) as bus:
            yield bus

    async def test_shown_and_taken_back(self, bus: SessionBus) -> None:
        port = FreedesktopPort({"DBUS_SESSION_BUS_ADDRESS": bus.address})
        async with NotificationService(bus.address) as service:
            ref = await port.tell(NOTICE, None)
            other = await port.tell(NOTICE, None)
            assert service.shown[1] == (NOTICE.title, "Run &lt;ls&gt; &amp; go? é")
            await port.withdraw("i1", ref, OUTCOME)
            assert list(service.shown) == [2]
        async with NotificationService(bus.address) as another:
            await port.tell(NOTICE, None)
            await port.tell(NOTICE, None)
            await port.withdraw("i1", other, OUTCOME)
            assert list(another.shown) == [1, 2], "numbers of another service are other notes"

    async def test_a_bus_without_a_desktop(self, bus: SessionBus) -> None:
        port = FreedesktopPort({"DBUS_SESSION_BUS_ADDRESS": bus.address})
        with pytest.raises(Untold, match="Notify: "):
            await port.tell(NOTICE, None)
        await port.withdraw("i1", ":1.1 1", OUTCOME)

    @pytest.mark.parametrize(
        ("environ", "words"),
        [
            ({}, "there is no session bus"),
            ({"DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere/bus"}, "cannot be reached"),
            ({"DBUS_SESSION_BUS_ADDRESS": "nonsense"}, "refused"),
            ({"XDG_RUNTIME_DIR": os.devnull}, "there is no session bus"),
        ],
    )
    async def test_no_bus(self, environ: dict[str, str], words: str) -> None:
        with pytest.raises(Untold, match=words):
            await FreedesktopPort(environ).tell(NOTICE, None)
