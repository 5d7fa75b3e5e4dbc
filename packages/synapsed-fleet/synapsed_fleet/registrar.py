"""Answers hosts that join, renew their token, or need a class of work: run by `synapsed broker` on the host with the
fleet's keys. At each connection it also makes missing streams at the broker, so that a lost store is repaired without a
person.

| subject | asked by | answer |
|---|---|---|
| `syn.adm.join.<name>` | a host with the invitation of that name | the host's token and the fleet's |
| `syn.adm.renew.<name>` | a member | the same |
| `syn.adm.classes.<name>` | a member | the consumers of these classes are there |
| `syn.adm.broker.<name>` | a member that is to keep a broker | what its broker needs |

An answer goes to the asker's own inbox only, whatever reply subject the request has. `join` and `renew` do no I/O; the
key ring is changed under its lock, and an answer is saved before it is sent: a host that asks again after a lost answer
gets the same.
"""

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import nats.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg

from synapsed.errors import InvalidRequest, SynapsedError
from synapsed.shared.outside_json import NotJson, read_json
from synapsed.shared.regex import regex
from synapsed_fleet.admin import Admin, connected, revoke
from synapsed_fleet.broker import BrokerFolder
from synapsed_fleet.broker_cluster import broker_told
from synapsed_fleet.broker_permissions import HOST
from synapsed_fleet.fleet_config import CLASS_NAME, HOST_NAME
from synapsed_fleet.invitation import key_asked_for
from synapsed_fleet.keyring import Enrolled, Keyring, Members
from synapsed_fleet.streams import IN, mail_of
from synapsed_fleet.trust import CLOCK_S, lasting

VALID_S: Final = 365 * 86_400
"""Seconds for which a host's token is valid; it is renewed at half of them."""
LIFE_S: Final = 1800.0
"""Seconds of one connection: the admin's user is valid for an hour."""
PAUSE_S: Final = 2.0
REQUEST_MAX: Final = 16 * 1024
CLASSES_ASKED: Final = 128
HELD_MAX: Final = 64
"""Most requests that are being answered or wait; further ones get no answer, and their hosts ask again."""

log = structlog.get_logger(__name__)


class Registrar:
    """Answers for one key ring, over a connection of its own that it makes again and again."""

    def __init__(
        self, keyring: Keyring, urls: Sequence[str], broker: BrokerFolder, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._keyring = keyring
        self._broker = broker
        self._urls = urls
        self._clock = clock
        self._waiting: asyncio.Queue[Msg] = asyncio.Queue(HELD_MAX)
        self._told_token = ""
        """The fleet's token as brokers and members last got it."""
        self._puzzled = ""
        """The last error of an unexpected kind that ended a connection; the same one is logged once."""

    async def run(self) -> None:
        """Serves until it is cancelled. An error ends the connection, and another is made."""
        while True:
            try:
                self._told_token = ""
                async with connected(self._keyring, self._urls) as client:
                    await self._serve(client)
            except (SynapsedError, nats.errors.Error) as error:
                log.debug("registrar waits for its broker", reason=str(error))
            except Exception as error:  # hosts must be able to join and to renew their tokens: the next may work
                if (told := f"{type(error).__name__}: {error}") != self._puzzled:
                    self._puzzled = told
                    log.exception("registrar has lost its connection by an error")
            await asyncio.sleep(PAUSE_S)

    async def _serve(self, client: Client) -> None:
        admin = Admin(client)
        with self._keyring.changing() as members:
            pass  # completes a change that was interrupted between its two files
        plan = members.plan
        replicas = self._broker.replicas(plan.replicas)
        for done in await self._broker.unpack(admin, replicas=replicas, store=plan.store):
            log.info("fleet's broker: moved", done=done)
        for done in await admin.ensure(replicas=replicas, store=plan.store, hosts=sorted(members.hosts)):
            log.info("fleet's broker: mended", done=done)
        await self._tell_token(admin)
        await admin.publish_brokers(plan.urls)
        await client.subscribe("syn.adm.>", cb=self._take)
        await client.flush()
        loop = asyncio.get_running_loop()
        until = loop.time() + LIFE_S
        while client.is_connected and loop.time() < until:
            try:
                message = await asyncio.wait_for(self._waiting.get(), PAUSE_S)
            except TimeoutError:
                continue
            await self._answer(client, admin, message)

    async def _take(self, message: Msg) -> None:
        with contextlib.suppress(asyncio.QueueFull):
            self._waiting.put_nowait(message)

    async def _answer(self, client: Client, admin: Admin, message: Msg) -> None:
        what, name = _asked(message.subject)
        inbox = f"{'_JOIN' if what == 'join' else '_INBOX'}_{name}."
        if what is None or not message.reply.startswith(inbox) or len(message.data) > REQUEST_MAX:
            log.warning("registrar was asked for what it does not do", subject=message.subject[:200])
            return
        try:
            told = await self._done(admin, what, name, message.data)
        except SynapsedError as error:
            log.warning("registrar refuses", what=what, host=name, reason=error.message)
            told = {"error": {"code": error.code, "message": error.message}}
        except nats.errors.Error:
            raise  # the connection is lost
        except Exception:  # one who asks again and again must not keep the others from an answer
            log.exception("registrar cannot answer", what=what, host=name)
            told = {"error": {"code": SynapsedError.code, "message": "the registrar failed: its log says why"}}
        await client.publish(message.reply, json.dumps(told).encode())

    async def _done(self, admin: Admin, what: str, name: str, data: bytes) -> dict[str, Any]:
        try:
            document = read_json(data or b"{}")
        except NotJson:
            raise InvalidRequest("the request is no JSON") from None
        replicas = self._broker.replicas(self._keyring.members().plan.replicas)
        if what == "classes":
            await admin.ensure_work(_classes(document), replicas=replicas)
            return {"ok": True}
        if what == "broker":
            return await asyncio.to_thread(broker_told, self._keyring, name, document)
        change = self._join if what == "join" else self._renew
        fresh = name not in self._keyring.members().hosts
        answer = await asyncio.to_thread(change, name, document)
        if what == "join":
            if fresh:  # mail for a removed host of the same name is not for this one
                await admin.forget(name)
            await admin.ensure_consumer(IN, mail_of(name, replicas=replicas))
            await self._tell_token(admin)  # another key of that name may be revoked now
            log.info("host joined the fleet", host=name)
        return answer

    async def _tell_token(self, admin: Admin) -> None:
        token = self._keyring.account_token
        if token != self._told_token:
            await revoke(self._keyring, self._urls, token)
            await admin.publish_fleet(token)
            self._told_token = token

    def _join(self, name: str, document: object) -> dict[str, Any]:
        fleet = self._keyring.pair("account").public
        with self._keyring.changing() as members:
            enrolled = join(members, name, document, fleet=fleet, now=self._clock())
        return self._told(name, enrolled)

    def _renew(self, name: str, document: object) -> dict[str, Any]:
        with self._keyring.changing() as members:
            enrolled = renew(members, name, document, now=self._clock())
        return self._told(name, enrolled)

    def _told(self, name: str, enrolled: Enrolled) -> dict[str, Any]:
        token = self._keyring.host_token(name, enrolled.key, issued=enrolled.issued, expires=enrolled.expires)
        entry = self._keyring.entry_token(HOST, name, enrolled.key, issued=enrolled.issued, expires=enrolled.expires)
        urls = list(self._keyring.members().plan.urls)
        told = {"jwt": token, "account_jwt": self._keyring.account_token, "urls": urls}
        return told if entry is None else {**told, "entry": entry}


def join(members: Members, name: str, document: object, *, fleet: str, now: float) -> Enrolled:
    """Enrols the host for whose key `document` asks, by the invitation of that name. Raises InvalidRequest."""
    invited = members.invitations.get(name)
    if invited is None:
        raise InvalidRequest(f"there is no invitation for {name!r}: 'synapsectl fleet invite {name}' makes one")
    if invited.expires <= now:
        raise InvalidRequest(f"the invitation for {name!r} has expired: 'synapsectl fleet invite {name}' again")
    key = key_asked_for(document, fleet=fleet, name=name, invited=invited.key)
    if invited.used_by not in (None, key):
        raise InvalidRequest(f"the invitation for {name!r} was used already, by another key")
    if invited.used_by is not None and (there := members.hosts.get(name)) is not None:
        return there  # the answer was lost
    if wrong := _clock_of(name, document, now):  # it would refuse its token, and the invitation would be used up
        raise InvalidRequest(f"{wrong}; set it right and join with the same invitation, which is not used yet")
    enrolled = Enrolled(key, int(now), int(now) + VALID_S)
    if (before := members.hosts.get(name)) is not None and before.key != key:
        members.revoked[before.key] = int(now)
    members.hosts[name] = enrolled
    members.invitations[name] = type(invited)(invited.key, invited.expires, key)
    return enrolled


def _clock_of(name: str, document: object, now: float) -> str:
    """Returns a message about a wrong clock of the host that asks, empty if that host would accept a token of now. A
    host of an older version sends no time."""
    at = document.get("at") if isinstance(document, dict) else None
    if not isinstance(at, int) or now - CLOCK_S <= at < now + VALID_S:
        return ""
    return f"the clock of {name} is {lasting(abs(at - now))} {'behind' if at < now else 'ahead of'} the fleet's"


def renew(members: Members, name: str, document: object, *, now: float) -> Enrolled:
    """Renews the token of the key that the host has. Raises InvalidRequest."""
    there = members.hosts.get(name)
    key = document.get("key") if isinstance(document, dict) else None
    if there is None or there.key != key:
        raise InvalidRequest(f"{name!r} is no member of this fleet, or not with this key")
    enrolled = Enrolled(there.key, int(now), int(now) + VALID_S)
    members.hosts[name] = enrolled
    return enrolled


_SUBJECT: Final = regex(r"syn\.adm\.(join|renew|classes|broker)\.([^.]+)")


def _asked(subject: str) -> tuple[str | None, str]:
    match = _SUBJECT.fullmatch(subject)
    if match is None or HOST_NAME.fullmatch(match[2]) is None:
        return None, ""
    return match[1], match[2]


def _classes(document: object) -> list[str]:
    asked = document.get("classes") if isinstance(document, dict) else None
    if not isinstance(asked, list) or len(asked) > CLASSES_ASKED:
        raise InvalidRequest(f"classes must be a list of at most {CLASSES_ASKED} names")
    if wrong := [one for one in asked if not isinstance(one, str) or CLASS_NAME.fullmatch(one) is None]:
        raise InvalidRequest(f"{str(wrong[0])[:80]!r} is no name of a class of work")
    return list(dict.fromkeys(asked))
