"""A program in its keeper, as a link has it: connects to the keeper, pings it, waits for missed output, ends the
program, and makes the alerts for a person.

Every link (the daemon's object for one running program) has one, for a terminal as for pipes. The link itself reads the
program's output. This module finds the end of the program, or the loss of its keeper, and reports it once.
"""

import asyncio
import contextlib
import functools
import signal
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, Protocol

import structlog

from synapsed import aio
from synapsed.errors import KeeperLost, LaunchError, SynapsedError
from synapsed.keepers.client import KeeperClient
from synapsed.keepers.heartbeat import SILENT, Pulse
from synapsed.keepers.keeper_messages import Alert, Exited, KeeperEvent, KeeperRefused, Lost, OutputGap, WriteResult
from synapsed.keepers.launchers import sweep_launch
from synapsed.model.link import LinkAlert, LinkEvent, LinkExited
from synapsed.model.records import LaunchRecord


def gap_alert(gap: OutputGap) -> LinkAlert:
    message = f"{gap.end - gap.start} bytes of output were overwritten before they were read"
    return LinkAlert("OUTPUT_GAP", message, "happened", {"from": gap.start, "to": gap.end})


def disk_alert(message: str, *, full: bool) -> LinkAlert:
    """Returns the link's alert for the keeper's alert "disk", the only one that keepers send."""
    text = f"{message}: the program stands still until there is space" if full else "its output is stored again"
    return LinkAlert("DISK_FULL", text, "begins" if full else "over")


def silence_alert(*, silent: bool) -> LinkAlert:
    if not silent:
        return LinkAlert("KEEPER_SILENT", "the process that holds its terminal answers again", "over")
    message = (
        f"{SILENT}: messages wait until it goes on (kill -CONT, where it was stopped); stop, restart and kill end it"
    )
    return LinkAlert("KEEPER_SILENT", message, "begins")


CATCH_UP_S = 20.0
"""Seconds that reading the missed output may take; after them, the program is judged by the output read so far."""

GIVEN_UP_S = 3.0
"""Seconds that a keeper that was given up may still take to answer."""

RECALL_STEPS = 2
"""The most requests that `KeeperClient.recall` sends, one after the other."""

log = structlog.get_logger(__name__)


class Owner(Protocol):
    """The link of the program, which is called back."""

    def finishing(self) -> None:
        """Called once, when the program has ended or its keeper is gone."""

    async def last_words(self) -> None:
        """Called before the end is reported: the link does its remaining work."""

    def silenced(self, *, silent: bool) -> None:
        """Called when the keeper does not answer, or answers again; the alert is sent already."""


class KeptProgram:
    """One launched program and its keeper. `client`, the connection to the keeper, is None until `reach` returns."""

    def __init__(self, agent_id: str, launch: LaunchRecord, owner: Owner) -> None:
        self._agent_id = agent_id
        self.launch = launch
        self._owner = owner
        self.emit: Callable[[LinkEvent], None] = lambda _event: None
        self.client: KeeperClient | None = None
        self.tasks = aio.TaskSet(lambda error: log.error("link task failed", agent_id=self._agent_id, exc_info=error))
        self.exited: asyncio.Future[LinkExited] = asyncio.get_running_loop().create_future()
        """Future that is done when the program has ended, or its keeper is gone."""
        self.given_up = asyncio.Event()
        self.caught_up = asyncio.Event()
        """Set when the missed output is read, or when the wait for it is over."""
        self.missed_to = 0
        """Offset where the missed output ends."""
        self.closing = False
        self.finishing = False
        self.silent = False
        """True while the keeper does not answer."""
        self._pulse = Pulse(self.keeper, self._silence)
        self._beating: asyncio.Task[None] | None = None
        self._limit: asyncio.Timeout | None = None
        """Time limit of the present wait for the keeper; None outside such a wait."""

    def keeper(self) -> KeeperClient:
        """Returns the client. Raises KeeperLost if `reach` has not returned yet."""
        if self.client is None:
            raise KeeperLost("the link is not open")
        return self.client

    # --- reaching it ---

    async def reach(self, on_event: Callable[[KeeperEvent], None]) -> KeeperClient:
        """Connects to the keeper. Raises KeeperLost."""
        connect = functools.partial(KeeperClient.connect, self.launch.socket, on_event=on_event)
        client = await self._pulse.reach(connect, self.launch, self.given_up, lambda: self.closing)
        if self.closing:  # the link was closed meanwhile: no other caller would close this connection
            client.close()
            raise asyncio.CancelledError
        self.client = client
        self.missed_to = client.hello.spool_end
        if client.hello.alert is not None:
            self.alert(disk_alert(client.hello.alert, full=True))
        return client

    async def subscribe(self, offset: int | None, *, channel: str | None = None) -> None:
        """Requests the program's output from `offset` on (None: from now on), which arrives as events. Waits for a late
        keeper until it is given up. Raises KeeperLost; KeeperRefused as `KeeperClient.subscribe` does."""
        async with self._until_given_up():
            await self.keeper().subscribe(offset, channel=channel)

    async def has_inputs(self, names: Iterable[str]) -> frozenset[str]:
        """Returns those of the inputs `names` that the keeper has: they are written, or will be when the program reads.
        Waits for a late keeper until it is given up. Raises KeeperLost."""
        client = self.keeper()
        asked = {name: asyncio.create_task(client.recall(name)) for name in names}
        try:
            async with self._until_given_up():
                for _ in range(RECALL_STEPS if asked else 0):
                    # The recalls are sent before the ping, and the keeper answers in order: an input that it does not
                    # know is refused before the ping's answer. A recall without an answer by then is of a queued input.
                    await asyncio.sleep(0)
                    await client.ping_briefly(timeout=None)
            return frozenset(name for name, one in asked.items() if not one.done() or _is_known(one))
        finally:
            await aio.cancel_all(asked.values())

    @contextlib.asynccontextmanager
    async def _until_given_up(self) -> AsyncIterator[None]:
        """Limits a wait for the keeper, the body of `async with`, to GIVEN_UP_S from when it is given up; then raises
        KeeperLost. A long wait is reported, as a silent keeper."""
        self.pulse()
        try:
            async with asyncio.timeout(GIVEN_UP_S if self.given_up.is_set() else None) as self._limit:
                yield
        except TimeoutError:
            raise KeeperLost(f"{SILENT}, and the request was given up") from None
        finally:
            self._limit = None

    def give_up(self) -> None:
        """Limits every wait for the keeper, the present one too, to GIVEN_UP_S."""
        if self._limit is not None and not self.given_up.is_set():
            self._limit.reschedule(asyncio.get_running_loop().time() + GIVEN_UP_S)
        self.given_up.set()

    def leave_unreached(self) -> None:
        """Stops connecting, and so leaves the keeper to the next daemon. Does nothing if connected or given up."""
        if self.client is None and not self.given_up.is_set():
            self.closing = True

    def has(self, offset: int) -> None:
        """Notes that the link has read the output, or has drawn it, up to `offset`."""
        if not self.caught_up.is_set() and offset >= self.missed_to:
            self.caught_up.set()

    async def catch_up(self) -> None:
        """Returns when the missed output is read, or after CATCH_UP_S."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.caught_up.wait(), CATCH_UP_S)
        self.caught_up.set()

    # --- reports ---

    def alert(self, alert: LinkAlert) -> None:
        log.warning("link alert", agent_id=self._agent_id, code=alert.code, state=alert.state, message=alert.message)
        self.emit(alert)

    def _silence(self, silent: bool) -> None:
        self.silent = silent
        self.alert(silence_alert(silent=silent))
        self._owner.silenced(silent=silent)

    def pulse(self) -> None:
        """Pings the keeper, unless a ping is under way."""
        if self._beating is None or self._beating.done():
            self._beating = self.tasks.spawn(self._pulse.beat())

    def told(self, event: Exited | Alert | Lost) -> None:
        """Handles the keeper's events other than output."""
        match event:
            case Exited(record):
                self._finish(record.exit_code, "the program ended")
            case Alert():
                self.alert(disk_alert(event.message, full=event.active))
            case Lost(reason) if self.client is not None:  # else the caller of `reach` gets the error
                self._lose(reason)

    # --- its end ---

    def _finish(self, exit_code: int | None, reason: str) -> None:
        if self._begins_to_end():
            self.tasks.spawn(self._tell_exit(exit_code, reason))

    def _lose(self, reason: str) -> None:
        if not self.closing and self._begins_to_end():
            self.tasks.spawn(self._keeper_lost(reason))

    def _begins_to_end(self) -> bool:
        """Returns True for the first call only, and calls the owner then."""
        if self.finishing:
            return False
        self.finishing = True
        self._owner.finishing()
        return True

    async def _keeper_lost(self, reason: str) -> None:
        log.warning("keeper lost", agent_id=self._agent_id, reason=reason)
        try:
            await sweep_launch(self.launch.launch_id)
        except LaunchError as error:
            log.error("processes are left over", agent_id=self._agent_id, error=error.message)  # noqa: TRY400
        await self._tell_exit(None, f"its keeper is gone ({reason})")

    async def _tell_exit(self, exit_code: int | None, reason: str) -> None:
        await self._owner.last_words()
        event = LinkExited(exit_code, reason)
        if not self.exited.done():
            self.exited.set_result(event)
        self.emit(event)

    async def stop(self, grace: float, *, leave: Callable[[], Any]) -> LinkExited:
        """Ends the program: awaits `leave`, then requests a stop, which kills after `grace` seconds. Returns the end.
        `leave` may fail: the program may end at the first key, and its end be reported later. A keeper that does not
        answer would never report the end: it is killed together with its program."""
        if not self.exited.done() and not await self._pulse.answers():
            self._lose(SILENT)
        elif not self.exited.done():
            with contextlib.suppress(KeeperRefused, KeeperLost):
                await leave()
            try:
                await self.keeper().stop(grace)
            except KeeperRefused:
                pass  # the program has ended already
            except KeeperLost as error:
                self._lose(error.message)
        return await asyncio.shield(self.exited)

    async def signal(self, signum: int) -> None:
        """Sends the signal to the program. If the keeper is silent, SIGKILL kills both, and their end is awaited."""
        if signum == signal.SIGKILL and not await self._pulse.answers():
            self._lose(SILENT)
            await asyncio.shield(self.exited)
        else:
            await self.keeper().signal(signum)

    async def let_go(self) -> None:
        """Closes the connection; acknowledges a reported exit before that, so that the keeper can end."""
        if self.client is not None:
            if self.exited.done():
                with contextlib.suppress(SynapsedError):
                    await self.client.acknowledge_exit()
            self.client.close()


def _is_known(recalled: asyncio.Task[WriteResult | None]) -> bool:
    """Returns True if the keeper has written the recalled input; False if it does not know it, or refused to write it
    (it was discarded, or could not be journalled)."""
    return not isinstance(recalled.exception(), KeeperRefused) and recalled.result() is not None
