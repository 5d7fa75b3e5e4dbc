"""What a keeper sends comes in order, a little at a time: the loop has its turn in between."""

import asyncio
from typing import Any

from synapsed.keeper import frames
from synapsed.keeper.frames import Frame
from synapsed.keepers.keeper_messages import TURN_S, KeeperConnection

MARKS = "a\u0301".encode() * 4000
"""Output in many portions."""


class FakeTransport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.reading = True

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def abort(self) -> None:
        pass

    def is_closing(self) -> bool:
        return False


class Consumer:
    """Takes what a connection hands on; each frame costs `cost` seconds of a clock of its own."""

    def __init__(self, cost: float = TURN_S) -> None:
        self.cost = cost
        self.now = 0.0
        self.got: list[Frame] = []
        self.lost: list[str] = []
        self.transport = FakeTransport()
        self.connection = KeeperConnection(self.take, self.lost.append, clock=lambda: self.now)
        self.connection.connection_made(self.transport)

    def take(self, frame: Frame) -> None:
        self.now += self.cost
        self.got.append(frame)

    def receive(self, *sent: tuple[int, dict[str, Any], bytes]) -> None:
        data = b"".join(frames.encode(kind, header, payload) for kind, header, payload in sent)
        buffer = self.connection.get_buffer(-1)
        buffer[: len(data)] = data
        self.connection.buffer_updated(len(data))

    @property
    def output(self) -> bytes:
        return b"".join(frame.payload for frame in self.got if frame.type == frames.OUTPUT)

    async def until(self, count: int) -> int:
        """Let the loop run until so many frames came; how many turns of its it took."""
        turns = 0
        while len(self.got) < count:
            await asyncio.sleep(0)
            turns += 1
        return turns


def output(data: bytes, offset: int = 0) -> tuple[int, dict[str, Any], bytes]:
    return frames.OUTPUT, {"channel": "pty", "offset": offset}, data


REPLY = (frames.REPLY, {"req": 1}, b"")


async def test_the_loop_has_its_turn_between_portions_that_cost_much() -> None:
    here = Consumer(cost=TURN_S)
    here.receive(output(MARKS))
    assert len(here.got) == 1, "one portion, and the rest in later turns"
    assert not here.transport.reading, "nothing is read that would wait here"
    asked: list[int] = []
    asyncio.get_running_loop().call_soon(lambda: asked.append(len(here.got)))
    await here.until(5)
    assert asked[0] <= 2, "what others want of the loop does not wait for the end of it"


async def test_all_of_it_comes_in_order_with_its_offsets() -> None:
    here = Consumer()
    here.receive(output(MARKS, 100), REPLY, output(b"end", 100 + len(MARKS)))
    while len(here.output) < len(MARKS) + 3:
        await asyncio.sleep(0)
    assert here.output == MARKS + b"end"
    reply = next(n for n, frame in enumerate(here.got) if frame.type == frames.REPLY)
    assert b"".join(frame.payload for frame in here.got[:reply]) == MARKS, "an answer comes behind what came before it"
    at = 100
    for frame in here.got:
        if frame.type == frames.OUTPUT:
            assert frame.header["offset"] == at
            at += len(frame.payload)
    await here.until(len(here.got))
    await asyncio.sleep(0)
    assert here.transport.reading


async def test_what_costs_little_comes_at_once() -> None:
    here = Consumer(cost=0.0)
    here.receive(output(MARKS), REPLY)
    assert here.output == MARKS
    assert here.got[-1].type == frames.REPLY
    assert here.transport.reading


async def test_the_end_is_told_behind_the_last_output() -> None:
    here = Consumer()
    here.receive(output(MARKS))
    here.connection.connection_lost(None)
    assert here.lost == []
    while not here.lost:
        await asyncio.sleep(0)
    assert here.output == MARKS
    assert here.lost == ["the keeper closed the connection"]


async def test_nothing_comes_after_it_was_ended_here() -> None:
    here = Consumer()
    here.receive(output(MARKS))
    here.connection.abort()
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(here.got) == 1


async def test_what_is_no_frame_ends_the_connection() -> None:
    here = Consumer()
    buffer = here.connection.get_buffer(-1)
    buffer[:8] = b"no frame"
    here.connection.buffer_updated(8)
    assert "broke the protocol" in here.lost[0]
