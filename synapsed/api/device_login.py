"""Devices and scripts at the door: their cookies, tokens and codes, their failures, and what each has open now."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from aiohttp import web

from synapsed.access.book import SESSION_S, AccessBook
from synapsed.access.codes import CODE_LENGTH_MAX, Codes, PairingCode
from synapsed.access.grants import Grant
from synapsed.access.lockout import Lockout, Source
from synapsed.api.rights import Token, TokenKind
from synapsed.clock import Clock
from synapsed.errors import LockedOut, Unauthorized

SESSION_LENGTH_MAX = 128
"""Characters of a cookie that is looked at."""

EXPIRY_LOOK_S = 10.0
"""Seconds between two looks at the time of day while something is open that ends by it."""


class Visitors:
    """`book` has what is kept of them; this is what is known while the daemon runs."""

    def __init__(self, book: AccessBook, clock: Clock) -> None:
        self.book = book
        self.codes = Codes()
        self._clock = clock
        self._lockout = Lockout()
        self._open: dict[str, set[tuple[asyncio.Task[object], asyncio.Transport | None]]] = {}
        book.on_removed = self._end

    def of_session(self, session: str, source: Source) -> Token:
        """What a cookie is good for. Raises LockedOut."""
        device = self.book.device_of(session[:SESSION_LENGTH_MAX])
        return self._token(device.grant() if device is not None else None, source)

    def of_token(self, value: str) -> Token:
        """What a token for scripts is good for; UNKNOWN for none of them."""
        grant = self.book.token_of(value)
        return Token(TokenKind.UNKNOWN) if grant is None else Token(TokenKind.GRANTED, grant=grant)

    def unknown(self, source: Source) -> None:
        """A token or cookie that nobody has came from there. Raises LockedOut."""
        self._check(source)
        self._lockout.failed(source, now=self._clock.boot())

    def take_code(self, code: str, source: Source, *, here: bool) -> PairingCode:
        """The code is looked at before what was counted: it has 128 random bits, and whoever has it is not shut out by
        somebody that guesses. Raises LockedOut, Unauthorized."""
        now = self._clock.boot()
        invitation = self.codes.take(code[:CODE_LENGTH_MAX], now=now, here=here)
        if invitation is None:
            self._check(source)
            self._lockout.failed(source, now=now)
            raise Unauthorized(
                "this code is not good (any more): it is good once and for two minutes; "
                "'synapsectl web' makes another one"
            )
        return invitation

    @contextmanager
    def at_work(self, grant: Grant, request: web.Request) -> Iterator[None]:
        """What a device or token has open ends at once when it is removed, and when it expires."""
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
        """The request that is at work here is not ended: a device that forgets itself gets its answer."""
        mine = self._open.get(grant.id, set())
        mine -= {one for one in mine if one[0] is asyncio.current_task()}

    def _end(self, grant_id: str) -> None:
        for task, transport in list(self._open.get(grant_id, ())):
            _cut(task, transport)

    def _token(self, grant: Grant | None, source: Source) -> Token:
        if grant is None:
            self.unknown(source)
            return Token(TokenKind.UNKNOWN)
        return Token(TokenKind.GRANTED, grant=grant)

    def _check(self, source: Source) -> None:
        if wait := self._lockout.wait(source, now=self._clock.boot()):
            raise LockedOut(
                "too many codes, cookies or tokens that nobody has came from there; wait, or use synapsectl",
                retry_after=int(wait) + 1,
            )


class _Expiry:
    """Calls `act` when the time of day is `at`. That may be set, and goes on while the machine sleeps, which the loop's
    clock does not: it is looked at every now and then."""

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


def cookie_name(scheme: str, host: str) -> str:
    """Over TLS no other name of the domain, and no page without TLS, can set it; on loopback every port has its own."""
    return "__Host-synapsed" if scheme == "https" else f"synapsed-{host.rpartition(':')[2] or '80'}"


def cookie_header(scheme: str, host: str, session: str) -> str:
    """`Set-Cookie`; with an empty `session` the browser forgets it."""
    age = int(SESSION_S) if session else 0
    secure = "; Secure" if scheme == "https" else ""
    return f"{cookie_name(scheme, host)}={session}; Max-Age={age}; Path=/; HttpOnly; SameSite=Strict{secure}"
