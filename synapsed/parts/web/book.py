"""Devices, tokens and served names, as they are kept: one file, 0600, written whole before anything is answered."""

import asyncio
import hmac
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import structlog
from pydantic import ValidationError

from synapsed.clock import Clock
from synapsed.errors import ConfigError, InvalidRequest, QueueFull, StoreError, UnknownDevice, UnknownToken
from synapsed.interfaces import Grant, PushPlace, Right, Subscriber
from synapsed.parts.web.codes import digest
from synapsed.parts.web.records import DEVICES_MAX, SERVED_MAX, TOKENS_MAX, AccessKept, Device, ScopedToken
from synapsed.shared.files import read_private, write_private
from synapsed.shared.regex import regex

SESSION_S: Final = 30 * 86_400.0
"""Seconds without a visit after which a device has to be paired again."""

SEEN_EVERY_S: Final = 3600.0
"""Seconds between two notes of a device's visits."""

SECRET_BYTES: Final = 32
FILE_MAX: Final = 1024 * 1024
PREFIX: Final = "syn_"

_SERVED: Final = regex(r"(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+")

log = structlog.stdlib.get_logger("synapsed.access")


async def _no_key() -> str | None:
    return None


class AccessBook:
    """Paired devices, tokens and served names, kept in one file. Call `load` before any other method. `on_removed` is
    called with the id of a removed device or token. `interfaces.Subscriptions` is the part for browsers'
    subscriptions."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._kept = AccessKept()
        self._writing = asyncio.Lock()
        self.on_removed: Callable[[str], None] = lambda _: None
        self.on_subscribed: Callable[[], None] = lambda: None
        self.key: Callable[[], Awaitable[str | None]] = _no_key

    async def load(self) -> None:
        """Reads the file. Raises ConfigError for a file that is not ours."""
        self._kept = await asyncio.to_thread(self._read)

    def _read(self) -> AccessKept:
        try:
            raw = read_private(self._path, limit=FILE_MAX + 1)
        except FileNotFoundError:
            return AccessKept()
        try:
            return AccessKept.model_validate_json(raw)
        except ValidationError:
            raise ConfigError(
                f"{self._path}: holds no devices and tokens; remove the file, and pair your devices again",
                file=str(self._path),
            ) from None

    # --- who is that ---

    def device_of(self, session: str) -> Device | None:
        """Returns the device whose session it is; None for an unknown one, or one that was not seen for too long."""
        device_id, _, secret = session.partition(".")
        found = self._find(self._kept.devices, device_id)
        now = self._clock.wall()
        if found is None or not hmac.compare_digest(found.digest, digest(secret)):
            return None
        return found if now - found.seen < SESSION_S else None

    def token_of(self, token: str) -> Grant | None:
        if not token.startswith(PREFIX):
            return None
        token_id, _, secret = token.removeprefix(PREFIX).partition("_")
        found = self._find(self._kept.tokens, token_id)
        if found is None or not hmac.compare_digest(found.digest, digest(secret)):
            return None
        return found.grant() if found.expires is None or self._clock.wall() < found.expires else None

    # --- devices ---

    @property
    def devices(self) -> list[Device]:
        """Returns the devices that may come in."""
        return [one for one in self._kept.devices if self._clock.wall() - one.seen < SESSION_S]

    def device(self, device_id: str) -> Device | None:
        return self._find(self._kept.devices, device_id)

    async def pair(self, name: str, rights: frozenset[Right]) -> tuple[Device, str]:
        """Returns a new device, and its session. Raises QueueFull, StoreError."""
        now, secret = self._clock.wall(), secrets.token_urlsafe(SECRET_BYTES)
        made = Device(
            id=secrets.token_hex(4), name=name, rights=sorted(rights), digest=digest(secret), paired=now, seen=now
        )
        async with self._writing:
            if len(self.devices) >= DEVICES_MAX:
                raise QueueFull(
                    f"{DEVICES_MAX} devices are paired; 'synapsectl devices remove' makes room", limit=DEVICES_MAX
                )
            # Those that were not seen for too long stay while there is room: the clock may be wrong.
            kept = self.devices if len(self._kept.devices) >= DEVICES_MAX else self._kept.devices
            await self._write(self._kept.model_copy(update={"devices": [*kept, made]}))
        log.info("device paired", device=made.id, name=made.name, rights=made.rights)
        return made, f"{made.id}.{secret}"

    async def remove_device(self, wanted: str) -> Device:
        """Removes a device by its id, or by a name that one device has. Raises UnknownDevice, StoreError."""
        async with self._writing:
            found = self._one(self._kept.devices, wanted)
            if found is None:
                raise UnknownDevice(
                    f"there is no device {wanted[:64]!r}, or several: 'synapsectl devices list' has their ids"
                )
            rest = [one for one in self._kept.devices if one.id != found.id]
            await self._write(self._kept.model_copy(update={"devices": rest}))
        log.info("device removed", device=found.id, name=found.name)
        self.on_removed(found.id)
        self.on_subscribed()
        return found

    async def seen(self, device_id: str) -> None:
        """Extends the device's session. If the file cannot be written now, a later visit writes it."""
        device, now = self.device(device_id), self._clock.wall()
        if device is not None and now - device.seen >= SEEN_EVERY_S:
            try:
                await self._change(device_id, seen=now)
            except UnknownDevice:
                return  # it was removed meanwhile
            except StoreError as error:
                log.warning("a device's visit cannot be noted", device=device_id, why=error.message)

    async def subscribe(self, grant_id: str, push: PushPlace | None) -> None:
        """Sends the device's notices to `push` from now on, None: nowhere. Raises UnknownDevice, StoreError."""
        await self._change(grant_id, push=push)
        self.on_subscribed()

    async def unsubscribe(self, grant_id: str, dead: PushPlace) -> None:
        """Ends the device's notices to the address `dead`, unless its browser has given a newer one."""
        device = self.device(grant_id)
        if device is not None and device.push == dead:
            await self.subscribe(grant_id, None)

    def subscribed(self) -> list[Subscriber]:
        """Returns the subscribed devices whose browsers get notices, since they may look."""
        return [
            Subscriber(one.id, one.name, one.push, answers="answer" in one.rights)
            for one in self.devices
            if one.push is not None and "look" in one.rights
        ]

    async def _change(self, device_id: str, **fields: object) -> None:
        async with self._writing:
            if self.device(device_id) is None:
                raise UnknownDevice("this device was removed: pair it again")
            devices = [one.model_copy(update=fields) if one.id == device_id else one for one in self._kept.devices]
            await self._write(self._kept.model_copy(update={"devices": devices}))

    # --- tokens ---

    @property
    def tokens(self) -> list[ScopedToken]:
        now = self._clock.wall()
        return [one for one in self._kept.tokens if one.expires is None or now < one.expires]

    async def make_token(
        self, name: str, rights: frozenset[Right], *, agents: list[str] | None, days: float | None
    ) -> tuple[ScopedToken, str]:
        """Returns the token's record, and its text, which is shown only once. Raises QueueFull, StoreError."""
        now, secret = self._clock.wall(), secrets.token_urlsafe(SECRET_BYTES)
        made = ScopedToken(
            id=secrets.token_hex(4),
            name=name,
            rights=sorted(rights),
            agents=agents,
            digest=digest(secret),
            made=now,
            expires=None if days is None else now + days * 86_400,
        )
        async with self._writing:
            if len(self.tokens) >= TOKENS_MAX:
                raise QueueFull(f"there are {TOKENS_MAX} tokens; 'synapsectl token revoke' makes room")
            kept = self.tokens if len(self._kept.tokens) >= TOKENS_MAX else self._kept.tokens
            await self._write(self._kept.model_copy(update={"tokens": [*kept, made]}))
        log.info("token made", token=made.id, name=made.name, rights=made.rights, agents=made.agents)
        return made, f"{PREFIX}{made.id}_{secret}"

    async def revoke(self, wanted: str) -> ScopedToken:
        """Revokes a token by its id, or by a name that one token has. Raises UnknownToken, StoreError."""
        async with self._writing:
            found = self._one(self._kept.tokens, wanted)
            if found is None:
                raise UnknownToken(
                    f"there is no token {wanted[:64]!r}, or several: 'synapsectl token list' has their ids"
                )
            rest = [one for one in self._kept.tokens if one.id != found.id]
            await self._write(self._kept.model_copy(update={"tokens": rest}))
        log.info("token revoked", token=found.id, name=found.name)
        self.on_removed(found.id)
        return found

    # --- names ---

    @property
    def served(self) -> list[str]:
        return self._kept.served

    async def serve(self, name: str, *, on: bool) -> None:
        """Allows a proxy on this machine to bring requests for that name, or ends that. Raises InvalidRequest,
        QueueFull, StoreError."""
        name = name.lower().rstrip(".")
        if not _SERVED.fullmatch(name):
            raise InvalidRequest("name: must be a host's whole name, like box.tailnet.ts.net", field="name")
        async with self._writing:
            names = [one for one in self._kept.served if one != name] + ([name] if on else [])
            if len(names) > SERVED_MAX:
                raise QueueFull(f"{SERVED_MAX} names are served already", limit=SERVED_MAX)
            await self._write(self._kept.model_copy(update={"served": names}))

    async def _write(self, kept: AccessKept) -> None:
        """Writes the file with the lock held. A change that could not be written does not count."""
        await write_and(
            lambda: write_private(self._path, kept.model_dump_json(indent=1).encode()), lambda: self._take(kept)
        )

    def _take(self, kept: AccessKept) -> None:
        self._kept = kept

    @staticmethod
    def _find[T: (Device, ScopedToken)](among: list[T], wanted: str) -> T | None:
        return next((one for one in among if one.id == wanted), None)

    @staticmethod
    def _one[T: (Device, ScopedToken)](among: list[T], wanted: str) -> T | None:
        by_id = [one for one in among if one.id == wanted]
        found = by_id or [one for one in among if one.name == wanted]
        return found[0] if len(found) == 1 else None


async def write_and(write: Callable[[], object], then: Callable[[], object]) -> None:
    """Writes in a thread and does `then`, even if the caller leaves meanwhile: file and memory stay the same. Raises
    the errors of `write`."""

    async def both() -> None:
        await asyncio.to_thread(write)
        then()

    await _whole(both())


async def _whole(act: Awaitable[None]) -> None:
    task = asyncio.ensure_future(act)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
