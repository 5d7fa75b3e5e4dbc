"""Keeps the certificates that the other members publish, and verifies their messages with them."""

from collections.abc import Callable

from synapsed.clock import Clock
from synapsed.shared.outside_json import NotJson, read_object
from synapsed_fleet import streams
from synapsed_fleet.envelope import BadEnvelope, Envelope
from synapsed_fleet.fleet_table import FleetTable
from synapsed_fleet.names import record
from synapsed_fleet.ports import Broker
from synapsed_fleet.signing import check
from synapsed_fleet.trust import NotTrusted, OutOfTime, Revoked, Trust


class NotMet(Exception):
    """Signals that the sender's certificate is not here yet, or has expired: the message waits."""


class Peers:
    """The certificates of members; call `load` once. They come with the hosts' records, and are saved: a host that was
    met once is believed while the broker is not reached. Each is checked at each use, since a certificate expires, or
    is revoked."""

    def __init__(self, table: FleetTable, trust: Trust, clock: Clock) -> None:
        self.trust = trust
        """Newest known trust; replaced when there is a newer one."""
        self._table = table
        self._clock = clock
        self._jwts: dict[str, str] = {}
        self.gone: set[str] = set()
        """Hosts that were removed (`removed_hosts`): nothing is sent to them."""

    async def load(self) -> None:
        self._jwts = await self._table.peers()

    def names(self) -> list[str]:
        return sorted(self._jwts)

    def knows(self, host: str) -> bool:
        return host in self._jwts and host not in self.gone

    def has(self, host: str, jwt: str) -> bool:
        """Returns True if `jwt` is the host's known certificate."""
        return self._jwts.get(host) == jwt

    def revoking(self) -> Callable[[], dict[str, str]]:
        """Returns a function for a thread that returns the hosts with a revoked certificate, and the certificates."""
        trust, now, jwts = self.trust, self._clock.wall(), dict(self._jwts)

        def revoked(jwt: str) -> bool:
            try:
                trust.host(jwt, now=now)
            except OutOfTime:
                return False
            except NotTrusted:
                return True
            return False

        return lambda: {host: jwt for host, jwt in jwts.items() if revoked(jwt)}

    async def learn(self, host: str, jwt: str) -> bool:
        """Learns `jwt`; returns True if it is the fleet's certificate of that host."""
        if self._jwts.get(host) == jwt:
            return True
        try:
            member = self.trust.host(jwt, now=self._clock.wall())
        except NotTrusted:
            return False
        if member.host != host:
            return False
        self._jwts[host] = jwt
        self.gone.discard(host)
        await self._table.keep_peer(host, jwt)
        return True

    async def check(self, envelope: Envelope, src: str, broker: Broker) -> None:
        """Raises BadEnvelope unless the host `src` has signed exactly this message; NotMet or NoBroker if its
        certificate is not known yet."""
        if src in self._jwts:
            try:
                return check(envelope, self.trust.fleet, self._key(src))
            except (BadEnvelope, NotMet):
                if not await self._look(src, broker):  # it may have another key by now
                    if self._joined_again(envelope, src):
                        raise NotMet(f"{src}: the certificate of its new key is not here yet") from None
                    raise
        elif not await self._look(src, broker):
            raise NotMet(src)
        return check(envelope, self.trust.fleet, self._key(src))

    def _key(self, src: str) -> str:
        try:
            return self.trust.host(self._jwts[src], now=self._clock.wall()).key
        except OutOfTime as error:
            raise NotMet(f"{src}: {error}") from error
        except NotTrusted as error:
            raise BadEnvelope(f"{src}: {error}") from error

    def _joined_again(self, envelope: Envelope, src: str) -> bool:
        """Returns True if the known key of `src` is revoked, and has not signed this message: the host may have a new
        key."""
        try:
            self.trust.host(self._jwts[src], now=self._clock.wall())
        except Revoked as revoked:
            try:
                check(envelope, self.trust.fleet, revoked.key)
            except BadEnvelope:
                return True
        except NotTrusted:
            pass
        return False

    async def _look(self, src: str, broker: Broker) -> bool:
        """Reads the host's record; returns True if it has a certificate that is not known yet."""
        before = self._jwts.get(src)
        found = await broker.last(streams.HOSTS, record(src))
        if found is None:
            return False
        try:
            jwt = read_object(found.body).get("jwt")
        except NotJson:
            return False
        return isinstance(jwt, str) and jwt != before and await self.learn(src, jwt)
