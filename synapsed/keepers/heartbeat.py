"""Finds out if a keeper answers. A keeper that was stopped (SIGSTOP), or hangs, still has its socket and its program:
the screen may be old and typed keys wait, but nothing is lost when the keeper goes on."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from synapsed.errors import KeeperLost
from synapsed.keeper.processes import start_mark
from synapsed.keepers.client import KeeperClient
from synapsed.keepers.keeper_messages import KeeperSilent
from synapsed.keepers.launchers import call_keeper
from synapsed.model.records import LaunchRecord

ANSWER_S = 3.0
"""Seconds for an answer, which takes a millisecond except on a machine that swaps. A keeper counts as silent after two
missing answers in a row."""

PATIENT_S = 60.0
"""Seconds for the answer of a silent keeper: it comes when the keeper goes on; more pings would only wait there."""

CONNECT_AGAIN_S = 1.0
"""Seconds between two attempts to reach a keeper that was stopped."""

CALLED_S = 0.05
"""Seconds until the next attempt after a keeper was asked to bind its socket again."""

AT_ONCE = 20
"""Number of such attempts, CALLED_S apart, after which the keeper counts as silent."""

SILENT = "the process that holds its terminal does not answer"


class Pulse:
    """Pings one keeper. `changed` is called with True when it falls silent, with False when it answers again."""

    def __init__(self, keeper: Callable[[], KeeperClient], changed: Callable[[bool], None]) -> None:
        self._keeper = keeper
        self._changed = changed
        self.silent = False

    async def beat(self) -> None:
        """Pings the keeper; a silent one again and again, until it answers or its connection is gone."""
        while not self._lost:
            await self._ask()
            if not self.silent:
                return
            await asyncio.sleep(0)

    async def reach(
        self,
        connect: Callable[[], Awaitable[KeeperClient]],
        launch: LaunchRecord,
        given_up: asyncio.Event,
        closing: Callable[[], bool],
    ) -> KeeperClient:
        """Connects to the keeper of `launch`, and tries again while the keeper lives and is not `given_up`: it may be
        late or stopped, or its socket was removed, and then it is asked to bind the socket again. Raises KeeperLost."""
        tries = 0
        while True:
            try:
                client = await connect()
            except KeeperLost as lost:
                if closing():
                    raise asyncio.CancelledError from None  # the program lives on, for the next daemon
                if given_up.is_set() or not await asyncio.to_thread(lives, launch):
                    raise
                tries += 1
                if isinstance(lost, KeeperSilent) or not await asyncio.to_thread(_call, launch) or tries > AT_ONCE:
                    self.told(silent=True)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(given_up.wait(), CONNECT_AGAIN_S if self.silent else CALLED_S)
            else:
                self.told(silent=False)
                return client

    async def answers(self) -> bool:
        """Returns True if the keeper answers a ping now; False without a ping if it is known to be silent."""
        return not self.silent and await self._ask()

    async def _ask(self) -> bool:
        for patience in [PATIENT_S] if self.silent else [ANSWER_S, ANSWER_S]:
            try:
                await self._keeper().ping_briefly(timeout=patience)
            except KeeperLost:
                if self._lost:
                    return False  # the client reports the lost connection itself
            else:
                self.told(silent=False)
                return True
        self.told(silent=True)
        return False

    @property
    def _lost(self) -> bool:
        try:
            return self._keeper().lost is not None
        except KeeperLost:
            return True

    def told(self, *, silent: bool) -> None:
        """Notes if the keeper is silent, and reports a change."""
        if silent != self.silent:
            self.silent = silent
            self._changed(silent)


def lives(launch: LaunchRecord) -> bool:
    """Returns True if the keeper's process exists. Reads /proc."""
    return start_mark(launch.keeper_pid) == launch.keeper_start


def _call(launch: LaunchRecord) -> bool:
    """Asks the keeper to bind its socket again. Returns True if the keeper lives and supports this."""
    return lives(launch) and call_keeper(launch.keeper_pid)
