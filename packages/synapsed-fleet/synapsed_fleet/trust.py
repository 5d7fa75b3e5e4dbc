"""Trust of a member: it believes keys whose token the fleet has signed, and never the broker's word for them.

A member knows the operator's public key and the fleet's (its account's) from its invitation. The account's token,
signed by the operator, names the keys that sign hosts, and the revoked keys; a newer token replaces it. So a broker can
withhold a new token, but not forge one.

Pure: time is an argument, in Unix seconds.
"""

from typing import Final, NamedTuple, Self

from synapsed_fleet.broker_permissions import HOST, JOIN
from synapsed_fleet.fleet_config import HOST_NAME
from synapsed_fleet.jwt import BadToken, SignedToken, read

CLOCK_S: Final = 300
"""Most seconds by which two hosts' clocks may differ if a token has just been issued."""


class NotTrusted(ValueError):
    """Error for a token that is not of this fleet, is not valid now, or is of another role; the text says which."""


class Revoked(NotTrusted):
    """Error for a token of this fleet whose `key` is revoked: its host was removed, or has another key."""

    def __init__(self, host: str, key: str) -> None:
        super().__init__(f"its token is revoked: {host} was removed, or has a newer one")
        self.key = key


class OutOfTime(NotTrusted):
    """Error for a token of this fleet that has expired, or is not valid yet, by this host's clock: its host may have
    another soon."""


class Member(NamedTuple):
    """A host as its token names it."""

    host: str
    key: str
    expires: int | None


class Trust:
    """Trusted keys of one fleet."""

    def __init__(self, *, fleet: str, operator: str, account_token: str) -> None:
        """`fleet` and `operator` are public keys. Raises NotTrusted unless the operator has signed the token for this
        fleet."""
        self.fleet = fleet
        self.operator = operator
        self.account_token = account_token
        self._account = _account(account_token, fleet, operator)
        self._keys = {
            str(scope.get("key")): str(scope.get("role"))
            for scope in self._account.nats.get("signing_keys") or ()
            if isinstance(scope, dict)
        }
        revoked = self._account.nats.get("revocations") or {}
        self._revoked = {str(key): int(until) for key, until in revoked.items() if type(until) is int}

    @property
    def issued(self) -> int:
        return self._account.issued

    def host(self, token: str, *, now: float) -> Member:
        """Returns the host that `token` names. Raises NotTrusted."""
        return self._member(token, HOST, now)

    def invited(self, token: str, *, now: float) -> Member:
        """Returns the host that the token of an invitation names. Raises NotTrusted."""
        return self._member(token, JOIN, now)

    def is_revoked(self, key: str, issued: int) -> bool:
        return issued <= max(self._revoked.get(key, 0), self._revoked.get("*", 0))

    def renewed(self, account_token: str) -> Self:
        """Returns the trust after that account's token was seen; self if the token is the same or an older one. Raises
        NotTrusted."""
        newer = _account(account_token, self.fleet, self.operator)
        if (newer.issued, account_token) <= (self.issued, self.account_token):
            return self
        return type(self)(fleet=self.fleet, operator=self.operator, account_token=account_token)

    def _member(self, text: str, role: str, now: float) -> Member:
        try:
            token = read(text)
        except BadToken as error:
            raise NotTrusted(f"it is no token: {error}") from None
        if token.type != "user" or token.nats.get("issuer_account") != self.fleet:
            raise NotTrusted("its token is not of this fleet")
        if self._keys.get(token.issuer) != role:
            raise NotTrusted(f"its token is not signed by a key of this fleet for the role {role!r}")
        if HOST_NAME.fullmatch(token.name) is None:
            raise NotTrusted("its token has no name of a host")
        if self.is_revoked(token.subject, token.issued):
            raise Revoked(token.name, token.subject)
        if token.expires is not None and token.expires <= now:
            raise OutOfTime(f"its token expired {lasting(now - token.expires)} ago by the clock of this host")
        if token.issued > now + CLOCK_S:
            raise OutOfTime(f"its token was issued {lasting(token.issued - now)} ahead of the clock of this host")
        return Member(token.name, token.subject, token.expires)


def _account(text: str, fleet: str, operator: str) -> SignedToken:
    try:
        token = read(text)
    except BadToken as error:
        raise NotTrusted(f"the fleet's own token cannot be read: {error}") from None
    if (token.type, token.subject, token.issuer) != ("account", fleet, operator):
        raise NotTrusted("the fleet's own token is not for this fleet, or not signed by its operator")
    return token


def lasting(seconds: float) -> str:
    """Returns a duration for people, in the largest unit that fits."""
    unit, name = next(
        ((u, n) for u, n in ((86_400, "days"), (3600, "hours"), (60, "minutes")) if seconds >= u), (1, "s")
    )
    count = f"{seconds / unit:.0f}"
    return f"{count} {name.removesuffix('s') if count == '1' and unit > 1 else name}"
