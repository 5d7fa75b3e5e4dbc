"""Administration of the broker: makes and verifies streams and consumers by the table, passes on revocations, and
empties the mail of removed hosts. It uses credentials that are valid for an hour and are saved nowhere."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import nats.errors
from nats.aio.client import Client

from synapsed.errors import RemoteRefused, Unreachable
from synapsed.shared.outside_json import NotJson, read_object
from synapsed_fleet.dial import connect, explained, options
from synapsed_fleet.keyring import Keyring
from synapsed_fleet.stream_snapshots import copy_in, copy_out
from synapsed_fleet.streams import (
    CLASSES_MAX,
    HOSTS,
    IN,
    STREAMS,
    WORK,
    Document,
    differences,
    mail_of,
    streams,
    unchangeable,
    work_of,
)

REQUEST_S: Final = 10.0
NOT_FOUND: Final = (10014, 10059)
"""JetStream's codes: the consumer does not exist, the stream does not exist."""
NOT_NOW: Final = (503, 504)
"""Codes of faults that may soon be over: there is no leader, or JetStream is not ready."""
FLEET_KEY: Final = "$KV.SYN_HOSTS._fleet"
"""Key under which members find the fleet's newest token; no host's name begins with an underscore."""
BROKERS_KEY: Final = "$KV.SYN_HOSTS._brokers"
"""Key under which members find all brokers' addresses."""
ADMIN_INBOX: Final = "_INBOX__admin"


class Admin:
    """Administers the broker over one connection that has all rights in the fleet's account."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._limits: dict[str, Any] | None = None

    async def ensure(self, *, replicas: int, store: int, hosts: Iterable[str]) -> list[str]:
        """Makes what is missing and corrects what differs; returns, in sentences, what was done. Raises
        RemoteRefused."""
        done = []
        for document in streams(replicas=replicas, store=store, consumers=await self._consumers_allowed()):
            done += await self._ensure_stream(document)
        for host in hosts:
            done += await self.ensure_consumer(IN, mail_of(host, replicas=replicas))
        for name in await self.classes():
            done += await self.ensure_consumer(WORK, work_of(name, replicas=replicas))
        return done

    async def wrong(self, *, replicas: int, store: int, hosts: Iterable[str]) -> list[str]:
        """Returns the faults that `ensure` would mend, in sentences; changes nothing."""
        told = []
        for document in streams(replicas=replicas, store=store, consumers=await self._consumers_allowed()):
            there = await self._found(f"STREAM.INFO.{document['name']}")
            if there is None:
                told.append(f"the stream {document['name']} is not there")
            else:
                told += [f"the stream {document['name']}: {one}" for one in differences(document, there["config"])]
        consumers = [(f"the mail of {host}", IN, mail_of(host, replicas=replicas)) for host in hosts]
        consumers += [
            (f"the work of the class {name}", WORK, work_of(name, replicas=replicas)) for name in await self.classes()
        ]
        for what, stream, document in consumers:
            there = await self._found(f"CONSUMER.INFO.{stream}.{document['durable_name']}")
            if there is None:
                told.append(f"{what} has no consumer")
            else:
                wanted = await self._within(document)
                told += [f"{what}: {one}" for one in differences(wanted, there["config"])]
        return told

    async def state(self) -> list[dict[str, Any]]:
        """Returns each stream as the broker describes it: `name`, `messages`, `bytes`, `leader`, and `replicas` (the
        other brokers)."""
        told = []
        for kept in STREAMS:
            there = await self._found(f"STREAM.INFO.{kept.name}")
            if there is None:
                continue
            cluster = there.get("cluster") or {}
            told.append(
                {
                    "name": kept.name,
                    "messages": there["state"]["messages"],
                    "bytes": there["state"]["bytes"],
                    "bytes_max": there["config"]["max_bytes"],
                    "leader": cluster.get("leader"),
                    "replicas": [
                        {
                            "name": one.get("name"),
                            "current": bool(one.get("current")),
                            "offline": bool(one.get("offline")),
                        }
                        for one in cluster.get("replicas") or ()
                    ],
                }
            )
        return told

    async def classes(self) -> list[str]:
        """Returns the classes of work that have a consumer; none if their stream is not there."""
        told = await self._found(f"CONSUMER.NAMES.{WORK}", {"offset": 0}) or {}
        return [str(name) for name in told.get("consumers") or ()]

    async def ensure_work(self, classes: Sequence[str], *, replicas: int) -> None:
        """Makes consumers for the work of these classes. Raises RemoteRefused."""
        there = set(await self.classes())
        if len(there | set(classes)) > CLASSES_MAX:
            raise RemoteRefused(f"the fleet has {len(there)} classes of work already, at most {CLASSES_MAX} are kept")
        for name in classes:
            if name not in there:
                await self.ensure_consumer(WORK, work_of(name, replicas=replicas))

    async def ensure_consumer(self, stream: str, document: Document) -> list[str]:
        name, document = document["durable_name"], await self._within(document)
        there = await self._found(f"CONSUMER.INFO.{stream}.{name}")
        if there is not None and not differences(document, there["config"]):
            return []
        await self._api(
            f"CONSUMER.DURABLE.CREATE.{stream}.{name}", {"stream_name": stream, "config": document, "action": ""}
        )
        again = await self._api(f"CONSUMER.INFO.{stream}.{name}", None)
        self._hold(f"the consumer {stream}/{name}", document, again["config"])
        return [f"the consumer {stream}/{name} was {'corrected' if there else 'made'}"]

    async def publish_fleet(self, token: str) -> None:
        """Publishes the fleet's newest token, which all members read. Raises RemoteRefused."""
        await self._put(FLEET_KEY, token.encode("ascii"))

    async def has_stream(self, name: str) -> bool:
        return await self._found(f"STREAM.INFO.{name}") is not None

    async def change_stream(self, name: str, change: Document) -> None:
        """Updates a stream's configuration with `change`. Raises RemoteRefused."""
        there = await self._api(f"STREAM.INFO.{name}", None)
        await self._api(f"STREAM.UPDATE.{name}", {**there["config"], **change})

    async def copy_stream(self, name: str, path: Path, *, chunk: int) -> dict[str, Any]:
        """See `stream_snapshots.copy_out`."""
        return await copy_out(self._client, name, path, chunk=chunk)

    async def put_stream(self, wanted: Document, told: Mapping[str, Any], path: Path, *, chunk: int) -> None:
        """See `stream_snapshots.copy_in`."""
        await copy_in(self._client, wanted, told, path, chunk=chunk)

    async def remove_streams(self) -> None:
        """Deletes all streams of the fleet, with their messages. Raises RemoteRefused."""
        for kept in STREAMS:
            if await self._found(f"STREAM.INFO.{kept.name}") is not None:
                await self._api(f"STREAM.DELETE.{kept.name}", None)

    async def publish_brokers(self, urls: Sequence[str]) -> None:
        """Publishes the brokers' addresses, which all members read. Raises RemoteRefused."""
        await self._put(BROKERS_KEY, json.dumps({"urls": list(urls)}).encode())

    async def forget(self, host: str) -> None:
        """Removes a host's mail, its consumer and its record. Raises RemoteRefused."""
        with contextlib.suppress(RemoteRefused):  # it may never have joined
            await self._api(f"CONSUMER.DELETE.{IN}.{host}", None)
        await self._api(f"STREAM.PURGE.{IN}", {"filter": f"syn.to.{host}.>"})
        await self._api(f"STREAM.PURGE.{HOSTS}", {"filter": f"$KV.SYN_HOSTS.{host}"})

    async def _consumers_allowed(self) -> int:
        """Returns how many consumers one stream may have, by the account's limits; -1 if there is no limit. The broker
        refuses a stream that wants more."""
        return int((await self._account()).get("max_consumers", -1))

    async def _within(self, consumer: Document) -> Document:
        """Returns the consumer within the account's limits: the broker refuses one that allows more messages without an
        ack."""
        allowed = int((await self._account()).get("max_ack_pending", -1))
        pending = min(consumer["max_ack_pending"], allowed) if allowed > 0 else consumer["max_ack_pending"]
        return {**consumer, "max_ack_pending": pending}

    async def _account(self) -> dict[str, Any]:
        """Returns the account's limits, which are read once."""
        if self._limits is None:
            self._limits = (await self._api("INFO", None)).get("limits") or {}
        return self._limits

    async def _ensure_stream(self, document: Document) -> list[str]:
        name = document["name"]
        there = await self._found(f"STREAM.INFO.{name}")
        if there is None:
            await self._api(f"STREAM.CREATE.{name}", document)
        else:
            found = differences(document, there["config"])
            if not found:
                return []
            if fixed := unchangeable(found):
                raise RemoteRefused(
                    f"the stream {name}: {fixed[0]}, which no update changes. Remove it with NATS's own tool, then "
                    "'synapsectl fleet repair' makes it: what was under way is sent again"
                )
            await self._api(f"STREAM.UPDATE.{name}", document)
        again = await self._api(f"STREAM.INFO.{name}", None)
        self._hold(f"the stream {name}", document, again["config"])
        return [f"the stream {name} was {'corrected' if there else 'made'}"]

    def _hold(self, what: str, wanted: Document, found: Document) -> None:
        """Checks that the broker's description has all that was requested. Raises RemoteRefused."""
        if left := differences(wanted, found):
            raise RemoteRefused(f"the broker keeps {what} with other settings than requested: {left[0]}")

    async def _found(self, subject: str, body: Document | None = None) -> dict[str, Any] | None:
        try:
            return await self._api(subject, body)
        except RemoteRefused as error:
            if error.details.get("err_code") in NOT_FOUND:
                return None
            raise

    async def _api(self, subject: str, body: Document | None) -> dict[str, Any]:
        """Sends one request to JetStream and returns its answer. Raises RemoteRefused with the `err_code`, and
        Unreachable."""
        payload = b"" if body is None else json.dumps(body).encode()
        return self._granted(subject, await self._ask(f"$JS.API.{subject}", payload))

    async def _put(self, key: str, value: bytes) -> None:
        """Stores a value for all members. Raises RemoteRefused, also if the stream is full, and Unreachable."""
        self._granted(key, await self._ask(key, value))

    def _granted(self, subject: str, told: dict[str, Any]) -> dict[str, Any]:
        if failed := told.get("error"):
            if failed.get("code") in NOT_NOW:
                raise Unreachable(f"the broker cannot do {subject} now: {failed.get('description')}", sent=True)
            raise RemoteRefused(
                f"the broker refuses {subject}: {failed.get('description')}", err_code=failed.get("err_code")
            )
        return told

    async def _ask(self, subject: str, payload: bytes) -> dict[str, Any]:
        try:
            answer = await self._client.request(subject, payload, timeout=REQUEST_S)
            return read_object(answer.data)
        except (nats.errors.TimeoutError, nats.errors.NoRespondersError):
            raise Unreachable(f"the broker does not answer {subject}: its JetStream is not ready", sent=True) from None
        except nats.errors.Error as error:
            raise Unreachable(f"the broker was lost while it was asked {subject}: {error}", sent=True) from None
        except NotJson as error:
            raise RemoteRefused(f"the broker's answer to {subject} cannot be read: {error}") from None


async def revoke(keyring: Keyring, urls: Sequence[str], token: str) -> None:
    """Sends the fleet's newest token to its own brokers: they end the connections of the hosts that it revokes at once.
    Does nothing at a broker that another owner keeps. Raises Unreachable, RemoteRefused."""
    if keyring.members().plan.account:
        return
    async with connected(keyring, urls, system=True) as client:
        try:
            answer = await client.request("$SYS.REQ.CLAIMS.UPDATE", token.encode("ascii"), timeout=REQUEST_S)
            told = read_object(answer.data)
        except (nats.errors.Error, NotJson) as error:
            raise Unreachable(f"the broker does not take the fleet's new token: {error}", sent=True) from None
    if told.get("error"):
        raise RemoteRefused(f"the broker refuses the fleet's new token: {told['error'].get('description')}")


async def remove_peer(keyring: Keyring, urls: Sequence[str], name: str) -> None:
    """Removes the broker `name` from the cluster for good: what it kept is copied to another one. Raises Unreachable,
    RemoteRefused."""
    async with connected(keyring, urls, system=True) as client:
        try:
            answer = await client.request(
                "$JS.API.SERVER.REMOVE", json.dumps({"peer": name}).encode(), timeout=REQUEST_S
            )
            told = read_object(answer.data)
        except (nats.errors.Error, NotJson) as error:
            raise Unreachable(f"the brokers do not answer, or have no leader: {error}", sent=True) from None
    if failed := told.get("error"):
        raise RemoteRefused(f"the brokers keep {name}: {failed.get('description')}")


@contextlib.asynccontextmanager
async def administering(keyring: Keyring, urls: Sequence[str]) -> AsyncIterator[Admin]:
    """Connects as the admin for as long as the block runs. Raises Unreachable, which names the addresses that were
    tried."""
    async with connected(keyring, urls) as client:
        yield Admin(client)


@contextlib.asynccontextmanager
async def connected(keyring: Keyring, urls: Sequence[str], *, system: bool = False) -> AsyncIterator[Client]:
    """Yields a connection of the admin's, open for as long as the block runs; `system`: in the brokers' system
    account."""
    token, pair = keyring.admin(system=system)
    asked = options(
        urls,
        token=token,
        pair=pair,
        ca=keyring.trusted(),
        inbox=ADMIN_INBOX,
        name="synapsed admin",
        given=bool(keyring.members().plan.account),
    )
    async with opened(urls, asked) as client:
        yield client


@contextlib.asynccontextmanager
async def opened(urls: Sequence[str], asked: dict[str, Any]) -> AsyncIterator[Client]:
    """Yields a connection that is not made again when it is lost. Raises Unreachable with the reason, which mentions
    the clock if certificates or tokens are refused."""
    heard: list[str] = []

    async def told(error: Exception) -> None:
        heard.append(str(error) or type(error).__name__)

    try:
        client = await asyncio.wait_for(
            connect(**asked, allow_reconnect=False, error_cb=told), asked["connect_timeout"] * 2 * len(urls)
        )
    except (OSError, TimeoutError, nats.errors.Error) as error:
        raise Unreachable(f"no broker at {', '.join(urls)}: {explained(error, heard)}", sent=False) from None
    try:
        yield client
    finally:
        with contextlib.suppress(nats.errors.Error, OSError, TimeoutError):
            await asyncio.wait_for(client.close(), REQUEST_S)
