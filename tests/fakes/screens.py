"""A stand-in for a process of screens: what that would do is done here, at the loop's next turn."""

import asyncio
import itertools
from collections.abc import Callable, Iterable, Sequence

from synapsed.screens.protocol import ScreenFrame, ScreenFrameError, ScreenFrameReader, encode
from synapsed.screens.worker import Screens

_PIDS = itertools.count(40_000_000)


class FakeScreenProcess:
    """In the place of `screens.pool.ScreenProcess`. `lie` is given every frame that it would say, and returns those
    that it says."""

    lie: Callable[[ScreenFrame], Iterable[ScreenFrame]] = staticmethod(lambda frame: (frame,))

    def __init__(
        self,
        program: Sequence[str],
        came: Callable[[ScreenFrame], None],
        over: Callable[[str], None],
        delay: float = 0.0,
    ) -> None:
        self._came = came
        self._over = over
        self._screens = Screens(self._says)
        self._decoder = ScreenFrameReader()
        self._to_do: asyncio.Handle | None = None
        self.pid = next(_PIDS)
        self.began = True
        self.ended_from_outside = False
        self.ended = False

    def say(self, frame: ScreenFrame, agent: int = 0) -> None:
        for came in self._decoder.feed(encode(frame, agent)):
            self._screens.take(came)
        if self._to_do is None:
            self._to_do = asyncio.get_running_loop().call_soon(self._work)

    def _work(self) -> None:
        self._to_do = None
        while self._screens.busy and not self.ended:
            self._screens.turn(lambda: None)
        self._screens.acknowledge()

    def _says(self, frame: ScreenFrame) -> None:
        try:
            for said in self.lie(frame):
                if not self.ended:
                    self._came(said)
        except ScreenFrameError as error:
            self.end(f"it broke the protocol: {error}")

    def end(self, reason: str) -> None:
        if not self.ended:
            self.ended = True
            self._over(reason)

    async def wait(self) -> None:
        pass

    def check(self, *, work: bool) -> None:
        pass
