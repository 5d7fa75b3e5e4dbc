"""The listener with TLS: strict clients, what is no TLS, slow and many handshakes, certificates that are renewed."""

import asyncio
import contextlib
import gc
import os
import socket
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiohttp import ClientSession, TCPConnector

from synapsed.api.connection_limits import ConnectionLimits
from synapsed.clock import SystemClock
from synapsed.parts.web.certificates import make_authority, make_server
from synapsed.parts.web.service import Web
from synapsed.parts.web.tls import TlsService, TlsSettings
from synapsed.parts.web.tls_connections import SecureListener
from tests.api.serving import TOKEN, Api, serving
from tests.fakes.clock import FakeClock, until
from tests.fakes.control import FakeControl
from tests.parts.web.test_doors import PAGE, visitors_of
from tests.support.gated import first_of
from tests.support.patience import PATIENCE_S
from tests.support.ports import free_port

NAMES = ["box.local", "10.9.8.7", "localhost", "127.0.0.1", "::1"]
LIMITS = ConnectionLimits(tcp=40, listener=24, head=30.0, idle=30.0, body=30.0, handshakes=8)


@dataclass
class Secure:
    """`trusting`: what a device has that trusts the certificate."""

    api: Api
    own: Web
    service: TlsService
    clock: FakeClock
    trusting: ssl.SSLContext | None = None

    @property
    def listener(self) -> SecureListener:
        assert self.service.listener is not None
        return self.service.listener

    @property
    def context(self) -> Any:
        return self.api.servers.context

    @property
    def url(self) -> str:
        return f"https://localhost:{self.listener.port}"

    def client(self, **more: Any) -> ClientSession:
        assert self.trusting is not None
        return ClientSession(self.url, connector=TCPConnector(ssl=self.trusting, limit=0), **more)

    async def connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.listener.port)

    async def says(self, *pieces: bytes) -> bytes:
        """All that comes back from what is no TLS, until the connection ends."""
        reader, writer = await self.connected()
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            async with asyncio.timeout(PATIENCE_S):
                return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()


def trusting(authority: str) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority)
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context


@asynccontextmanager
async def secured(
    control: FakeControl,
    home: Path,
    *,
    given: tuple[Path, Path] | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    **limits: Any,
) -> AsyncGenerator[Secure]:
    async with serving(control, home, door=replace(LIMITS, **limits)) as api:
        settings = TlsSettings(host=host, port=port, given=given, allowed=[], folder=home / "tls")
        clock = FakeClock(wall=datetime.now(UTC).timestamp())
        own = api.servers.context.parts.provided(Web)
        kernel = replace(own._kernel, clock=clock)
        service = TlsService(settings, kernel, api.servers, on_use=own.use, names=lambda _: NAMES)
        await service.look()
        pair = own.pair
        known = trusting(pair.authority) if pair is not None and pair.authority is not None else None
        yield Secure(api, own, service, clock, known)


@pytest.fixture
async def secure(control: FakeControl, tmp_path: Path) -> AsyncGenerator[Secure]:
    async with secured(control, tmp_path) as secure:
        yield secure


async def test_strict_clients(secure: Secure) -> None:
    async with secure.client() as session, session.get("/healthz") as answer:
        assert (answer.status, "Strict-Transport-Security" in answer.headers) == (200, False)
    async with httpx.AsyncClient(verify=secure.trusting, base_url=secure.url) as other:
        assert (await other.get("/healthz")).json()["status"] == "ok"
    program = ["openssl", "s_client", "-connect", f"127.0.0.1:{secure.listener.port}", "-verify_hostname", "localhost"]
    authority = secure.api.path.parent.parent / "tls" / "authority.pem"
    for version in ("-tls1_2", "-tls1_3"):
        argv = [
            *program,
            "-servername",
            "localhost",
            "-CAfile",
            str(authority),
            "-verify_return_error",
            "-brief",
            version,
        ]
        pipe = asyncio.subprocess.PIPE
        done = await asyncio.create_subprocess_exec(*argv, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe)
        _, said = await done.communicate()
        assert (done.returncode, b"Verification: OK" in said) == (0, True), said
    assert secure.own.addresses == [f"https://{name}:{secure.listener.port}/" for name in ("box.local", "10.9.8.7")]


async def test_the_authority_can_be_downloaded(secure: Secure) -> None:
    async with secure.client() as session, session.get("/web/authority.crt") as answer:
        assert answer.content_type == "application/x-x509-ca-cert"
        assert await answer.text() == secure.own.pair.authority
        assert "PRIVATE" not in await answer.text()
    _, told = await secure.api.json(secure.api.unix, "POST", "/control/web/code", json={"rights": ["look"]})
    port = secure.listener.port
    assert told["certificate"]["fingerprint"] == secure.own.pair.told.fingerprint
    assert told["certificate"]["download"] == f"https://box.local:{port}/web/authority.crt"
    _, status = await secure.api.json(secure.api.unix, "GET", "/control/status")
    assert status["secure"] == secure.own.addresses


async def test_a_device_comes_in_and_its_websocket_too(secure: Secure) -> None:
    port = secure.listener.port
    own, page = f"https://box.local:{port}", {"Host": f"box.local:{port}", **PAGE}
    code = visitors_of(secure.api).codes.make(frozenset({"look"}), None, now=SystemClock().boot())
    async with secure.client() as session:
        foreign = page | {"Origin": f"http://box.local:{port}"}
        async with session.post("/web/session", json={"code": code}, headers=foreign) as answer:
            assert answer.status == 403, "the origin is another one without TLS"
        async with session.post("/web/session", json={"code": code}, headers=page | {"Origin": own}) as answer:
            assert answer.status == 200, await answer.text()
            cookie = answer.headers["Set-Cookie"]
        assert cookie.startswith(f"__Host-synapsed-{port}=")
        assert "; HttpOnly; SameSite=Strict; Secure" in cookie
        kept = {"Cookie": cookie.partition(";")[0], "Host": f"box.local:{port}"}
        async with session.get("/web/me", headers=kept | PAGE) as answer:
            assert (await answer.json())["rights"] == ["look"]
        async with session.ws_connect("/agents/claude/screen/live", headers=kept | {"Origin": own}) as live:
            assert (await live.receive(timeout=30)).data
        clear = {"Cookie": kept["Cookie"].replace(f"__Host-synapsed-{port}", f"synapsed-{secure.api.port}"), **PAGE}
        async with secure.api.http.get("/web/me", headers=clear) as answer:
            assert answer.status == 200, "on this machine a cookie may go without TLS"


@pytest.mark.parametrize("host", ["evil.example", "box.local.evil.example", "10.9.8.8", "", "[::2]"])
async def test_other_names_are_refused(secure: Secure, host: str) -> None:
    async with secure.client() as session:
        async with session.get("/healthz", headers={"Host": f"{host}:{secure.listener.port}"}) as answer:
            assert answer.status == 403, await answer.text()
        async with secure.api.http.get("/healthz", headers={"Host": "box.local"}) as answer:
            assert answer.status == 403, "the certificate's names are for TLS"


GET = b"GET /a?b=c HTTP/1.1\r\nHost: %s\r\n\r\n"
OLD_HELLO = bytes.fromhex("802e0100020015000000100100800200800300800400800500800600400700c0") + b"x" * 16


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        (GET % b"box.local:8443", b"HTTP/1.1 307 Temporary Redirect\r\nLocation: https://box.local:8443/a?b=c\r\n"),
        (GET % b"evil.example", b"HTTP/1.1 400 "),
        (GET % b"box.local\r\nAuthorization: Bearer x", b"HTTP/1.1 400 "),
        (b"POST / HTTP/1.1\r\nHost: box.local\r\nContent-Length: 1\r\n\r\n1", b"HTTP/1.1 400 "),
        (b"GET //evil.example/ HTTP/1.1\r\nHost: box.local@evil.example\r\n\r\n", b"HTTP/1.1 400 "),
        (b"GET /\x00 HTTP/1.1\r\nHost: box.local\r\n\r\n", b"HTTP/1.1 400 "),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"HTTP/1.1 400 "),
        (b"GET / HTTP/1.1\r\nHost: " + b"x" * 20_000, b""),  # more than is read
        (OLD_HELLO, b""),
        (b"\x00" * 3000, b""),
    ],
)  # fmt: skip
async def test_what_is_no_tls(secure: Secure, said: bytes, answer: bytes) -> None:
    got = await secure.says(said)
    assert got.startswith(answer), got
    assert b"evil" not in got
    await until(lambda: secure.listener.greeting == 0, "it is done with")
    async with secure.client() as session, session.get("/healthz") as fine:
        assert fine.status == 200


@pytest.mark.parametrize(
    "said", [b"", b"\x16", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"G", b"GET / HTTP/1.1\r\n"]
)
async def test_half_a_handshake_is_not_waited_for(control: FakeControl, tmp_path: Path, said: bytes) -> None:
    async with secured(control, tmp_path, head=0.2) as secure:
        got = await secure.says(said)
        assert got[:13] in (b"", b"HTTP/1.1 400 "), got
        await until(lambda: secure.listener.greeting == 0, "it is done with")
        assert counted(secure) == {}


def counted(secure: Secure) -> dict[str, int]:
    """Connections, but for those of the fixture's own clients."""
    return {name: count for name, count in secure.api.servers._door._open.items() if "TLS" in name and count}


async def test_old_versions_are_refused(secure: Secure) -> None:
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await asyncio.open_connection("127.0.0.1", secure.listener.port, ssl=old)
    assert await until_none(secure)


async def until_none(secure: Secure) -> bool:
    await until(lambda: counted(secure) == {}, "nobody is connected any more")
    return True


async def test_who_says_nothing_keeps_nobody_out(secure: Secure) -> None:
    """The handshakes are full; whoever comes then takes the place of the one that has waited longest."""
    silent = [await secure.connected() for _ in range(LIMITS.handshakes)]
    await until(lambda: secure.listener.greeting == LIMITS.handshakes, "all of them are waited for")
    async with secure.client() as session:
        for _ in range(2):
            async with session.get("/healthz") as answer:
                assert answer.status == 200
    async with asyncio.timeout(PATIENCE_S):
        assert await silent[0][0].read() == b"", "it was let go of"
    assert secure.listener.greeting == LIMITS.handshakes - 1
    for _, writer in silent:
        writer.close()
    assert await until_none(secure)


async def test_more_than_there_may_be_are_refused(secure: Secure) -> None:
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(LIMITS.listener):
            session = await stack.enter_async_context(secure.client())
            async with session.get("/healthz") as answer:
                assert answer.status == 200
        assert counted(secure) == {"listener with TLS": LIMITS.listener}
        async with secure.client() as one_more:
            with pytest.raises(OSError):
                await one_more.get("/healthz")
        assert (await secure.api.json(secure.api.http, "GET", "/healthz"))[0] == 200, "the others are left alone"
    assert await until_none(secure)


async def test_a_machine_gets_its_share(secure: Secure) -> None:
    door, own = secure.api.servers._door, ("192.0.2.1", 8443)
    let_in = [door.admit_tcp(("192.0.2.7", port), own, "x") for port in range(LIMITS.address + 1)]
    assert let_in.count(None) == LIMITS.address + 1 - LIMITS.listener, "the listener's share comes first"
    door.limits = replace(LIMITS, tcp=900, listener=800)
    assert door.admit_tcp(("192.0.2.8", 1), own, "y") is not None
    let_in = [door.admit_tcp(("192.0.2.9", port), own, "y") for port in range(LIMITS.address + 1)]
    assert let_in.count(None) == 1
    assert door.admit_tcp(("192.0.2.10", 1), own, "y") is not None, "another machine"
    for one in let_in:
        door.leave(one or ())


@pytest.mark.parametrize("said", first_of([b"\x16\x03", None, b"", b"GET /"]))
async def test_who_comes_as_it_ends(control: FakeControl, tmp_path: Path, said: bytes | None) -> None:
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    async with secured(control, tmp_path) as secure:
        reader, writer = await secure.connected()
        if said is not None:
            writer.write(said)
            await until(lambda: secure.listener.greeting == 1, "it is known")
        await secure.api.servers.close()
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()
    gc.collect()
    assert told == []


async def test_no_room_for_one_more(secure: Secure, monkeypatch: pytest.MonkeyPatch) -> None:
    """No descriptors: nothing is accepted for a moment, and it goes on then."""
    listener, real = secure.listener, secure.listener._sockets[0]

    class Full:
        refused = 0

        def fileno(self) -> int:
            return real.fileno()

        def accept(self) -> Any:
            if self.refused < 2:
                self.refused += 1
                raise OSError(24, "Too many open files")
            return real.accept()

    full = Full()
    monkeypatch.setattr("synapsed.parts.web.tls_connections.PAUSE_S", 0.05)
    asyncio.get_running_loop().remove_reader(real)
    asyncio.get_running_loop().add_reader(full, listener._accept, full)  # type: ignore[arg-type]
    async with secure.client() as session, session.get("/healthz") as answer:
        assert (answer.status, full.refused) == (200, 2)


def write_pair(folder: Path, names: list[str] = NAMES, *, days: int = 0) -> str:
    """A given pair in `folder` that was made so many days from now; its authority."""
    now = datetime.now(UTC) + timedelta(days=days)
    authority = make_authority("box", names, now=now)
    made = make_server(authority, names, now=now)
    (folder / "cert.pem").write_text(made.certificate)
    (folder / "key.pem").write_text(made.key)
    return authority.certificate


def shown(secure: Secure) -> str:
    """The fingerprint that somebody who connects now is shown."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", secure.listener.port)) as raw, context.wrap_socket(raw) as tls:
        import hashlib

        der = tls.getpeercert(binary_form=True)
        assert der is not None
        return ":".join(f"{byte:02X}" for byte in hashlib.sha256(der).digest())


async def test_a_renewed_pair_counts_and_drops_nobody(control: FakeControl, tmp_path: Path) -> None:
    authority = write_pair(tmp_path)
    async with secured(control, tmp_path, given=(tmp_path / "cert.pem", tmp_path / "key.pem")) as secure:
        secure.trusting = trusting(authority)
        before = await asyncio.to_thread(shown, secure)
        async with (
            secure.client() as session,
            session.get("/events", headers={"Accept": "text/event-stream"}) as stream,
        ):
            await secure.api.streams(1)
            # Half of it is there, as where it is looked at in the middle of a renewal.
            old_key = (tmp_path / "key.pem").read_text()
            write_pair(tmp_path)
            new_key = (tmp_path / "key.pem").read_text()
            (tmp_path / "key.pem").write_text(old_key)
            await secure.service.look()
            assert (await asyncio.to_thread(shown, secure), secure.context.alerts) == (before, [])
            await secure.service.look()
            assert "is not the key of the certificate" in secure.context.alerts[0], "it stays so"
            (tmp_path / "key.pem").write_text(new_key)
            await secure.service.look()
            assert secure.context.alerts == []
            after = await asyncio.to_thread(shown, secure)
            assert after != before
            assert after == secure.own.pair.told.fingerprint
            assert not stream.content.at_eof(), "who was connected stays so"
            await secure.service.look()
            assert secure.own.pair.told.fingerprint == after
        _, told = await secure.api.json(secure.api.unix, "POST", "/control/web/code", json={"rights": ["look"]})
        assert told["certificate"] is None, "it is not the daemon's own"
        assert (await secure.api.json(secure.api.unix, "GET", "/web/authority.crt"))[0] == 404


@pytest.mark.parametrize(("days", "words"), [(-388, "ends on"), (-400, "has ended on")])
async def test_a_pair_that_ends_is_told_of(control: FakeControl, tmp_path: Path, days: int, words: str) -> None:
    write_pair(tmp_path, days=days)
    async with secured(control, tmp_path, given=(tmp_path / "cert.pem", tmp_path / "key.pem")) as secure:
        assert words in secure.context.alerts[0], secure.context.alerts
        assert "cert.pem" in secure.context.alerts[0]
        write_pair(tmp_path)
        await secure.service.look()
        assert secure.context.alerts == []


async def test_a_pair_that_comes_later(control: FakeControl, tmp_path: Path) -> None:
    async with secured(control, tmp_path, given=(tmp_path / "cert.pem", tmp_path / "key.pem")) as secure:
        assert "cert.pem: cannot be read: No such file or directory" in secure.context.alerts[0]
        assert (secure.service.listener, secure.own.addresses) == (None, ())
        write_pair(tmp_path)
        await secure.service.look()
        assert secure.context.alerts == []
        assert await asyncio.to_thread(shown, secure) == secure.own.pair.told.fingerprint


async def test_its_own_is_made_again_in_time(secure: Secure) -> None:
    before = await asyncio.to_thread(shown, secure)
    for days, changes in ((100, False), (250, True)):
        secure.clock.jump(days * 86_400)
        await secure.service.look()
        assert (await asyncio.to_thread(shown, secure) != before) == changes
    assert secure.context.alerts == []


async def test_a_port_that_is_taken_is_waited_for(control: FakeControl, tmp_path: Path) -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port)) as other:
        async with secured(control, tmp_path, port=port) as secure:
            assert f"cannot listen on 127.0.0.1:{port} with TLS: Address already in use" in secure.context.alerts[0]
            other.close()
            await secure.service.look()
            assert secure.context.alerts == []
            assert secure.listener.port == port


@pytest.mark.skipif(not Path("/proc/net/if_inet6").exists(), reason="there is no IPv6 here")
async def test_both_kinds_of_addresses(control: FakeControl, tmp_path: Path) -> None:
    async with secured(control, tmp_path, host="::") as secure:
        for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            connector = TCPConnector(ssl=secure.trusting, family=family)
            url = f"https://{f'[{host}]' if ':' in host else host}:{secure.listener.port}"
            async with ClientSession(url, connector=connector) as session, session.get("/whoami") as answer:
                told = await answer.json()
                assert (answer.status, told["standing"]) == (200, "person"), told


def not_loopback() -> str | None:
    from synapsed.parts.web.reach import by_default_route

    return by_default_route()


@pytest.mark.skipif(not_loopback() is None, reason="this machine has no other address")
async def test_a_process_of_this_machine_by_another_address(control: FakeControl, tmp_path: Path) -> None:
    """Who comes to it by another address than loopback is known all the same: an agent's process, which has found the
    control token, stays the agent."""
    address = not_loopback()
    async with secured(control, tmp_path, host="0.0.0.0") as secure:
        loose = ssl.create_default_context()
        loose.check_hostname, loose.verify_mode = False, ssl.CERT_NONE

        async def whoami(**headers: str) -> tuple[int, Any]:
            async with (
                ClientSession(connector=TCPConnector(ssl=loose)) as session,
                session.get(f"https://{address}:{secure.listener.port}/whoami", headers=headers) as answer,
            ):
                return answer.status, await answer.json()

        assert (await whoami())[1]["standing"] == "person"
        control.pids[os.getpid()] = "synapse-claude-8100"
        for headers in ({}, {"Authorization": f"Bearer {TOKEN}"}):
            _, told = await whoami(**headers)
            assert (told["standing"], told["agent"]) == ("agent", "synapse-claude-8100"), told
