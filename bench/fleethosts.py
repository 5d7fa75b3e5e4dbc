"""Many hosts of one fleet at one broker, or three: what they cost it, and how soon they are served.

python -m bench.fleethosts [--brokers 3] [HOSTS ...]   (10, 100 and 1,000 without any; docs/fleet.md has the figures)

Each simulated host is the real connection, the real pull loop and a signed token of its own; it has no database, and
acks what comes. All hosts are in this process. Measured are the brokers' processes.
"""

import argparse
import asyncio
import contextlib
import functools
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path

import psutil

from bench.figures import SMOKE, listening, percentile, sized
from bench.fleetpeer import quiet
from synapsed.errors import ProgramNotFound, Unreachable
from synapsed_fleet import streams
from synapsed_fleet.admin import Admin, administering
from synapsed_fleet.dial import options
from synapsed_fleet.envelope import Envelope
from synapsed_fleet.keyring import Keyring
from synapsed_fleet.link import Link
from synapsed_fleet.mail_pulling import Pull
from synapsed_fleet.names import MailKind, MailSubject, record
from synapsed_fleet.natsserver import find
from synapsed_fleet.nkey import KeyPair
from synapsed_fleet.ports import BrokerRefused, Delivered, NoBroker
from synapsed_fleet.signing import signed
from tests.parts.fleet.brokers import FleetHome, fleet
from tests.parts.fleet.threebrokers import Three, three_brokers
from tests.support.daemon import eventually

SIZES = (10, 100, 1000)
LEASE_S = 10.0
LEASE = b"x" * 2048
IDLE_S = sized(20.0, 0.5)
MAIL_S = sized(15.0, 0.5)
AT_ONCE = 64
"""Connections, or messages, that are begun at a time."""
PATIENCE_S = 120.0


class Host:
    """One simulated host."""

    def __init__(self, keyring: Keyring, urls: Sequence[str], name: str) -> None:
        self.name = name
        self.fleet = keyring.pair("account").public
        self.pair = KeyPair.generate("user")
        now = time.time()
        token = keyring.host_token(name, self.pair.public, issued=now, expires=now + 3600)
        inbox = f"_INBOX_{name}"
        asked = options(urls, token=token, pair=self.pair, ca=keyring.trusted(), inbox=inbox)
        self.link = Link(lambda: asked, inbox, on_up=self._connected)
        self._pull = Pull(self.link, streams.IN, name, inbox, self._take)
        self.came: dict[bytes, float] = {}
        self.tasks: list[asyncio.Task[None]] = []

    def _connected(self) -> None:
        self._pull.reconnected()

    async def _take(self, delivered: Delivered) -> None:
        self.came[delivered.body] = time.monotonic()
        await delivered.ack()

    def connect(self) -> None:
        self.tasks.append(asyncio.create_task(self.link.run()))

    def work(self, phase: float) -> None:
        """Take what comes, and tell a record every 10 s."""
        self.tasks += [asyncio.create_task(self._pull.run()), asyncio.create_task(self._lease(phase))]

    async def _lease(self, phase: float) -> None:
        await asyncio.sleep(phase)
        while True:
            with contextlib.suppress(NoBroker, BrokerRefused):
                await self.link.say(record(self.name), LEASE)
            await asyncio.sleep(LEASE_S)

    async def send(self, to: "Host", text: bytes) -> float:
        """When it was begun to be sent; it is sent again until the broker has it."""
        began = time.monotonic()
        subject = str(MailSubject(to.name, self.name, MailKind.MESSAGE))
        envelope = signed(Envelope(subject=subject, id=text.decode(), body=text), self.fleet, self.pair)
        while True:
            try:
                await self.link.publish(envelope)
            except (NoBroker, BrokerRefused):  # or the same is in process there
                await asyncio.sleep(0.1)
            else:
                return began

    async def end(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


def main() -> None:
    try:
        find()
    except ProgramNotFound as error:
        print(f"      not measured: {error.message}")
        return
    quiet()
    parser = argparse.ArgumentParser(prog="python -m bench.fleethosts")
    parser.add_argument("--brokers", type=int, choices=(1, 3), default=1)
    parser.add_argument("sizes", type=int, nargs="*", default=SIZES, metavar="HOSTS")
    asked = parser.parse_args()
    for count in [3] if os.environ.get(SMOKE) else asked.sizes:
        with (
            tempfile.TemporaryDirectory(prefix="synapsed-bench-") as folder,
            started(Path(folder), asked.brokers) as all_,
        ):
            asyncio.run(measure(all_, count))


@contextlib.contextmanager
def started(folder: Path, brokers: int) -> Iterator[list[FleetHome]]:
    """The first has the keys."""
    if brokers == 1:
        with fleet(folder) as box:
            box.healthy()
            yield [box]
        return
    with three_brokers(folder) as three:
        three.scale(3)
        eventually(three.current, "all three have everything", patience=PATIENCE_S)
        yield three.all


async def measure(brokers: Sequence[FleetHome], count: int) -> None:
    load = os.getloadavg()[0]
    print(f"\n{count} hosts, {len(brokers)} brokers, load {load:.0f}", flush=True)
    keyring, urls = brokers[0].home.keyring, [box.url for box in brokers]
    hosts = [Host(keyring, urls, f"host{n}") for n in range(count)]
    say(f"consumers made in {await timed(consumers(keyring, urls, hosts, len(brokers))):.1f} s")
    async with serving(hosts):
        await idle(brokers)
        await mail(brokers, hosts)
        await broadcast(hosts)
        if len(brokers) > 1:
            await without_leader(brokers, hosts)
        await restarted(brokers, hosts)


async def consumers(keyring: Keyring, urls: Sequence[str], hosts: Sequence[Host], replicas: int) -> None:
    """Three brokers answer late where many are asked for at once: what has no answer is asked for again."""
    left = {host.name for host in hosts}

    async def made(admin: Admin, name: str) -> None:
        with contextlib.suppress(Unreachable):
            await admin.ensure_consumer(streams.IN, streams.mail_of(name, replicas=replicas))
            left.discard(name)

    while left:
        with contextlib.suppress(Unreachable):
            async with administering(keyring, urls) as admin:
                await all_of(sorted(left), functools.partial(made, admin), at_once=8)


@contextlib.asynccontextmanager
async def serving(hosts: Sequence[Host]) -> AsyncIterator[None]:
    async def connected(host: Host) -> None:
        host.connect()
        await host.link.wait_up()

    try:
        say(f"connected in {await timed(all_of(hosts, connected)):.1f} s")
        for number, host in enumerate(hosts):
            host.work(LEASE_S * number / len(hosts))
        yield
    finally:
        await asyncio.gather(*(host.end() for host in hosts))


async def all_of[Each](
    them: Sequence[Each], do: Callable[[Each], Awaitable[object]], *, at_once: int = AT_ONCE
) -> None:
    gate = asyncio.Semaphore(at_once)

    async def one(each: Each) -> None:
        async with gate:
            await do(each)

    await asyncio.gather(*map(one, them))


async def timed(work: Awaitable[object]) -> float:
    began = time.monotonic()
    await work
    return time.monotonic() - began


def say(text: str) -> None:
    print(f"      {text}", flush=True)


async def costs(brokers: Sequence[FleetHome], seconds: float, work: Awaitable[object] | None = None) -> str:
    """Each broker's memory after `seconds`, or after the work, and its share of a core in them."""
    servers = [psutil.Process(box.server_pid) for box in brokers]
    before, began = [sum(server.cpu_times()[:2]) for server in servers], time.monotonic()
    await (asyncio.sleep(seconds) if work is None else work)
    passed = time.monotonic() - began
    told = [
        f"{server.memory_info().rss / 2**20:.0f} MB {(sum(server.cpu_times()[:2]) - then) / passed:.1%}"
        for server, then in zip(servers, before, strict=True)
    ]
    return f"brokers {', '.join(told)} of a core"


async def idle(brokers: Sequence[FleetHome]) -> None:
    say(f"idle with leases: {await costs(brokers, IDLE_S)}")


async def mail(brokers: Sequence[FleetHome], hosts: Sequence[Host]) -> None:
    """Each host writes to the next one every 10 s."""
    took: list[float] = []

    async def one(number: int) -> None:
        await asyncio.sleep(MAIL_S * number / len(hosts))
        to, text = hosts[(number + 1) % len(hosts)], f"mail-{number:08d}".encode()
        began = await hosts[number].send(to, text)
        took.append(await came(to, text) - began)

    async def all_() -> None:
        await asyncio.gather(*map(one, range(len(hosts))))

    told = await costs(brokers, 0, all_())
    p50, p99 = statistics.median(took) * 1e3, percentile(took, 0.99) * 1e3
    say(f"{len(hosts) / MAIL_S:.0f} messages a second: {told}; sent → there p50 {p50:.0f}, p99 {p99:.0f} ms")


async def came(host: Host, text: bytes) -> float:
    end = time.monotonic() + PATIENCE_S
    while text not in host.came:
        assert time.monotonic() < end, f"{text!r} never came to {host.name}"
        await asyncio.sleep(0.005)
    return host.came[text]


async def broadcast(hosts: Sequence[Host]) -> None:
    """One writes to all others."""
    first, others = hosts[0], hosts[1:]
    began = time.monotonic()
    await all_of(others, lambda host: first.send(host, f"all-{host.name:0>20}".encode()))
    last = max([await came(host, f"all-{host.name:0>20}".encode()) for host in others])
    say(f"one message to each other: the last is there after {last - began:.2f} s")


async def without_leader(brokers: Sequence[FleetHome], hosts: Sequence[Host]) -> None:
    """The broker that leads the mail is killed; afterwards all three have everything again."""
    three = Three(brokers[0], list(brokers[1:]))
    found = await asyncio.to_thread(three.streams)
    leader = three.named(next(one["leader"] for one in found if one["name"] == streams.IN))
    await asyncio.to_thread(leader.kill)
    began = time.monotonic()
    await hosts[0].send(hosts[-1], b"without-a-leader")
    first = await came(hosts[-1], b"without-a-leader") - began
    leader.start()
    await asyncio.to_thread(eventually, three.current, "all three have everything again", patience=PATIENCE_S)
    say(f"the leader killed: first message after {first:.1f} s")


async def restarted(brokers: Sequence[FleetHome], hosts: Sequence[Host]) -> None:
    """All are killed and started."""
    for box in brokers:
        await asyncio.to_thread(box.kill)
    for box in brokers:
        box.start()
    for box in brokers:
        await listening(box.port)
    began = time.monotonic()
    await hosts[0].send(hosts[-1], b"after-the-start")
    first = await came(hosts[-1], b"after-the-start") - began
    await asyncio.gather(*(host.link.wait_up() for host in hosts))
    every = time.monotonic() - began
    say(f"all brokers killed: first message {first:.1f} s after their start, all connected after {every:.1f} s")


if __name__ == "__main__":
    main()
