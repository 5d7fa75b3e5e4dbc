"""Devices and scripts at the door: their cookies, tokens and codes, their failures, and what each has open now."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import web

from synapsed.access.book import SESSION_S, AccessBook
from synapsed.access.codes import CODE_LENGTH_MAX, Codes, PairingCode
from synapsed.access.grants import Grant
from synapsed.access.lockout import Lockout
from synapsed.api.rights import Token, TokenKind
from synapsed.clock import Clock
from synapsed.errors import LockedOut, Unauthorized

SESSION_LENGTH_MAX = 128
"""Characters of a cookie that is looked at."""


class Visitors:
    """`book` has what is kept of them; this is what is known while the daemon runs."""

    def __init__(self, book: AccessBook, clock: Clock) -> None:
        self.book = book
        self.codes = Codes()
        self._clock = clock
        self._lockout = Lockout()
        self._open: dict[str, set[tuple[asyncio.Task[object], asyncio.Transport | None]]] = {}
        book.on_removed = self._end

    def of_session(self, session: str, address: str) -> Token:
        """What a cookie is good for. Raises LockedOut."""
        device = self.book.device_of(session[:SESSION_LENGTH_MAX])
        return self._token(device.grant() if device is not None else None, address)

    def of_token(self, value: str) -> Token:
        """What a token for scripts is good for; UNKNOWN for none of them."""
        grant = self.book.token_of(value)
        return Token(TokenKind.UNKNOWN) if grant is None else Token(TokenKind.GRANTED, grant=grant)

    def unknown(self, address: str) -> None:
        """A token or cookie that nobody has came from there. Raises LockedOut."""
        self._check(address)
        self._lockout.failed(address, now=self._clock.monotonic())

    def take_code(self, code: str, address: str) -> PairingCode:
        """The code is looked at before what was counted: it has 128 random bits, and whoever has it is not shut out by
        somebody that guesses. Raises LockedOut, Unauthorized."""
        now = self._clock.monotonic()
        invitation = self.codes.take(code[:CODE_LENGTH_MAX], now=now)
        if invitation is None:
            self._check(address)
            self._lockout.failed(address, now=now)
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
        due = None
        if grant.expires is not None:
            left = grant.expires - self._clock.wall()
            due = asyncio.get_running_loop().call_later(max(0.0, left), _cut, *one)
        try:
            yield
        finally:
            if due is not None:
                due.cancel()
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

    def _token(self, grant: Grant | None, address: str) -> Token:
        if grant is None:
            self.unknown(address)
            return Token(TokenKind.UNKNOWN)
        return Token(TokenKind.GRANTED, grant=grant)

    def _check(self, address: str) -> None:
        if wait := self._lockout.wait(address, now=self._clock.monotonic()):
            raise LockedOut(
                "too many codes, cookies or tokens that nobody has came from there; wait, or use synapsectl",
                retry_after=int(wait) + 1,
            )


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
