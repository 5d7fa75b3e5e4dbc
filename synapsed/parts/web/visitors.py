"""Authentication of devices and scripts: their cookies, tokens and codes, their failures, and the open requests of
each."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from aiohttp import hdrs, web

from synapsed.api import CONTEXT
from synapsed.clock import Clock
from synapsed.errors import Forbidden, LockedOut, Unauthorized
from synapsed.interfaces import Grant, Token, TokenKind
from synapsed.kernel import Bearers
from synapsed.parts.web.book import SESSION_S, AccessBook
from synapsed.parts.web.codes import CODE_LENGTH_MAX, Codes, PairingCode, digest
from synapsed.parts.web.lockout import Lockout, Source

PAGE_HEADER: Final = "Synapsed-Page"
"""Header that no page of another origin can send without a preflight request."""

SESSION_LENGTH_MAX = 128
"""Characters of a cookie that are read."""

HOSTS: Final = "__Host-synapsed"
"""Beginning of a cookie's name over TLS; before each port had its own, it was the whole name."""
BELOW_A_PREFIX: Final = "__Secure-synapsed"
"""Beginning of a cookie's name under a proxy's prefix; before each prefix had its own, it was the whole name."""
PREFIX_DIGITS: Final = 8
"""Hexadecimal digits of a prefix's hash in the name of its cookie."""

EXPIRY_LOOK_S = 10.0
"""Seconds between two readings of the wall clock while a request is open whose right expires."""


def is_for(names: Iterable[str], host: str) -> bool:
    """Returns True if a certificate for `names` is one for `host`; `*` stands for one label."""
    host = host.lower().rstrip(".")
    parent = host.partition(".")[2]
    return any(name == host or (name.startswith("*.") and parent == name[2:]) for name in names)


class Visitors(Bearers):
    """Authenticates visitors. `book` keeps their data on disk; codes, failures and open requests are kept here."""

    def __init__(self, book: AccessBook, clock: Clock) -> None:
        self.book = book
        self.codes = Codes()
        self.certified: Collection[str] = ()
        """Names for which our own listener with TLS has a certificate; `*.box.lan` among them stands for one label."""
        self._clock = clock
        self._lockout = Lockout()
        self._open: dict[str, set[tuple[asyncio.Task[object], asyncio.Transport | None]]] = {}
        book.on_removed = self._end

    @property
    def served(self) -> Collection[str]:
        return self.book.served

    def is_name(self, name: str, address: str | None) -> bool:
        """Returns True for a name of the certificate, or the very address of this end."""
        return is_for(self.certified, name) or name == address

    def authenticate(self, request: web.Request, token: str | None) -> Token:
        """Recognises a token for scripts, or the cookie of a paired device. Raises Forbidden for a cookie in a
        request that another page may have caused."""
        if token is not None:
            return _token(self.book.token_of(token))
        if not may_have_session(request):
            return Token()
        session = self.session_of(request)
        if session is None:
            return Token()
        check_page(request)
        device = self.book.device_of(session)
        return _token(None if device is None else device.grant())

    def session_of(self, request: web.Request) -> str | None:
        """Returns the session in the request's cookie; None if there is no cookie of this daemon's.

        Over TLS, a session under the name that its cookie had before is taken too, if it is one of this daemon's:
        another daemon of the same host, or at the same address, may have cookies of that name.
        """
        if (session := request.cookies.get(cookie_of(request))) is not None:
            return session[:SESSION_LENGTH_MAX]
        security = request.app[CONTEXT].security
        if security.scheme(request) != "https":
            return None
        former = BELOW_A_PREFIX if security.prefix(request) else HOSTS
        sessions = [value[:SESSION_LENGTH_MAX] for value in _cookies(request, former)]
        return next((one for one in sessions if self.book.device_of(one) is not None), None)

    def failed(self, request: web.Request) -> None:
        self._count(_source(request))

    def take_code(self, code: str, request: web.Request) -> PairingCode:
        """Takes a code. It is checked before the counts: it has 128 random bits, and its owner is not shut out by a
        guesser. Raises LockedOut, Unauthorized."""
        here = request.app[CONTEXT].security.is_here(request)
        invitation = self.codes.take(code[:CODE_LENGTH_MAX], now=self._clock.boot(), here=here)
        if invitation is None:
            self._count(_source(request))
            raise Unauthorized(
                "this code is not good (any more): it is good once and for two minutes; "
                "'synapsectl web' makes another one"
            )
        return invitation

    @contextmanager
    def at_work(self, grant: Grant, request: web.Request) -> Iterator[None]:
        """Context of a request of a device or token: it ends at once when that is removed, and when it expires."""
        task = asyncio.current_task()
        assert task is not None
        one = (task, request.transport)
        self._open.setdefault(grant.id, set()).add(one)
        expiry = None if grant.expires is None else _Expiry(self._clock, grant.expires, lambda: _cut(*one))
        try:
            yield
        finally:
            if expiry is not None:
                expiry.cancel()
            mine = self._open.get(grant.id, set())
            mine.discard(one)
            if not mine:
                self._open.pop(grant.id, None)

    def excuse(self, grant: Grant) -> None:
        """Exempts the present request from the end of the others: a device that removes itself gets its answer."""
        mine = self._open.get(grant.id, set())
        mine -= {one for one in mine if one[0] is asyncio.current_task()}

    def _end(self, grant_id: str) -> None:
        for task, transport in list(self._open.get(grant_id, ())):
            _cut(task, transport)

    def _count(self, source: Source) -> None:
        """Counts a failure. Raises LockedOut."""
        now = self._clock.boot()
        if wait := self._lockout.wait(source, now=now):
            raise LockedOut(
                "too many unknown codes, cookies or tokens came from this address; wait, or use synapsectl",
                retry_after=int(wait) + 1,
            )
        self._lockout.failed(source, now=now)


class _Expiry:
    """Calls `act` when the time of day is `at`. The time of day may be set, and goes on while the machine sleeps,
    unlike the loop's clock: it is read at intervals."""

    def __init__(self, clock: Clock, at: float, act: Callable[[], None]) -> None:
        self._clock, self._at, self._act = clock, at, act
        self._timer: asyncio.TimerHandle | None = None
        self._look()

    def _look(self) -> None:
        left = self._at - self._clock.wall()
        if left <= 0:
            self._act()
        else:
            self._timer = asyncio.get_running_loop().call_later(min(left, EXPIRY_LOOK_S), self._look)

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _cut(task: asyncio.Task[object], transport: asyncio.Transport | None) -> None:
    task.cancel()
    if transport is not None:
        transport.abort()


def _token(grant: Grant | None) -> Token:
    return Token(TokenKind.UNKNOWN) if grant is None else Token(TokenKind.GRANTED, grant=grant)


def _source(request: web.Request) -> Source:
    return Source(*request.app[CONTEXT].security.source(request))


def may_have_session(request: web.Request) -> bool:
    """Returns True if a cookie may go that way: over TLS, or on this machine by TCP."""
    security = request.app[CONTEXT].security
    return security.scheme(request) == "https" or security.is_here(request)


def check_page(request: web.Request) -> None:
    """Checks that the page of this very address asks, and no other: by `Origin`, which every browser sends with
    requests that change something and with WebSockets; for reads, by `Sec-Fetch-Site` or the page's own header too.
    Raises Forbidden."""
    security = request.app[CONTEXT].security
    origin, own = request.headers.get(hdrs.ORIGIN), f"{security.scheme(request)}://{security.host(request)}".lower()
    ours = request.headers.get(PAGE_HEADER) == "1"
    if origin is not None and origin.lower() != own:
        raise Forbidden("requests of foreign web pages are refused", origin=origin[:200])
    reads = request.method in ("GET", "HEAD")
    if reads and hdrs.UPGRADE not in request.headers:
        if origin is None and not ours and request.headers.get("Sec-Fetch-Site") != "same-origin":
            raise Forbidden(
                "with a device's cookie only the page itself may ask, and nothing shows that this request is the page's"
            )
        return
    if origin is None:
        raise Forbidden("with a device's cookie only the page itself may do this, and this request has no Origin")
    if not reads and not ours:
        raise Forbidden(f"with a device's cookie only the page itself may do this: it sends '{PAGE_HEADER}: 1'")


def cookie_of(request: web.Request) -> str:
    """Returns the name of the cookie for a request."""
    security = request.app[CONTEXT].security
    return cookie_name(security.scheme(request), security.host(request), security.prefix(request))


def cookie_name(scheme: str, host: str, prefix: str = "") -> str:
    """Returns the name of the cookie. Every port has its own, which browsers do not distinguish; over TLS no other host
    of the domain, and no page without TLS, can set it. Under a proxy's `prefix` (there are sessions over TLS only) the
    cookie is sent to that path alone, which a `__Host-` cookie does not allow; and each prefix has its own name,
    because a browser sends the cookies of `/lab` to `/lab/b` too."""
    if scheme == "https":
        return f"{BELOW_A_PREFIX}-{digest(prefix)[:PREFIX_DIGITS]}" if prefix else f"{HOSTS}-{_port(host) or '443'}"
    return f"synapsed-{_port(host) or '80'}"


def _port(host: str) -> str:
    return host.rpartition("]")[2].partition(":")[2]


def _cookies(request: web.Request, name: str) -> list[str]:
    """Returns the values of all cookies with this name, of which `request.cookies` keeps one."""
    pairs = ";".join(request.headers.getall(hdrs.COOKIE, ())).split(";")
    return [value.strip() for key, _, value in (pair.partition("=") for pair in pairs) if key.strip() == name]


def cookie_header(request: web.Request, session: str) -> str:
    """Returns `Set-Cookie`; with an empty `session` the browser forgets it."""
    age = int(SESSION_S) if session else 0
    security = request.app[CONTEXT].security
    secure = "; Secure" if security.scheme(request) == "https" else ""
    path = security.prefix(request) or "/"
    return f"{cookie_of(request)}={session}; Max-Age={age}; Path={path}; HttpOnly; SameSite=Strict{secure}"
