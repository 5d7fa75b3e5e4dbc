"""What the fleet costs: a message to another host beside plain HTTP; how soon it goes on; what an idle member takes.

python -m bench fleet

A real broker, and two hosts that are processes with real stores. "Committed" is durable in the receiver's database; the
sender's commit is in the time of both ways. Three brokers, whose set-up takes minutes, are left out of the smoke run.
`bench.fleethosts` simulates many hosts.
"""

import asyncio
import contextlib
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import aiohttp

from bench.figures import SMOKE, computed, environment, listening, milliseconds, percentile, pss, report, sized
from bench.fleetpeer import HTTP, Peer, commit, member, quiet
from synapsed.clock import SystemClock
from synapsed.errors import NotKnownYet, ProgramNotFound
from synapsed.interfaces import SendRequest
from synapsed.model.task import Message
from synapsed.store.store import SqliteStore
from synapsed_fleet.natsserver import find
from synapsed_fleet.service import Fleet
from tests.parts.fleet.brokers import FleetHome, fleet
from tests.parts.fleet.proxy import Proxy
from tests.parts.fleet.threebrokers import three_brokers
from tests.support.daemon import NO_PORTS, Daemon, eventually

MESSAGES = sized(300, 3)
AGAIN = sized(5, 1)
AWAY_S = sized(8.0, 0.5)
IDLE_S = sized(40.0, 0.5)
SETTLE_S = sized(15.0, 0.1)
P50_BAR, P99_BAR = 2.5, 3.0
"""Of plain HTTP's."""
RESUME_BAR_S = 2.0
LEADER_BAR_S = 10.0
IDLE_MB, IDLE_SHARE = 8.0, 0.001


def main() -> None:
    try:
        find()
    except ProgramNotFound as error:
        print(f"      not measured: {error.message}")
        return
    quiet()
    with tempfile.TemporaryDirectory(prefix="synapsed-bench-") as folder:
        with fleet(Path(folder)) as box:
            laptop = box.joined(Path(folder) / "laptop", "laptop")
            asyncio.run(two_hosts(box, laptop))
            idle(box.joined(Path(folder) / "idle", "idle"), Path(folder) / "alone")
        if sized(full=1, smoke=0):
            lost_leader(Path(folder) / "three")
        else:
            print(f"      a leader's loss is left out with {SMOKE}")


# --- two hosts -------------------------------------------------------------------------------------------------------


async def two_hosts(box: FleetHome, laptop: FleetHome) -> None:
    async with receiving(box) as peer:
        async with member(laptop.paths) as (sender, _):
            await met(sender, "codex@box")
            await latency(box, laptop, sender, peer)
            await broker_started(box, sender, peer)
        # The wire is a thread of this process: what goes through it waits for the interpreter, which HTTP does not.
        with Proxy(box.port) as wire:
            async with member(laptop.paths, [wire.url]) as (sender, _):
                await met(sender, "codex@box")
                await returned(wire, sender, peer)


@contextlib.asynccontextmanager
async def receiving(home: FleetHome, urls: Sequence[str] = ()) -> AsyncIterator[Peer]:
    peer = await Peer.start("fleet", home.environ, urls)
    try:
        await peer.committed("ready")
        yield peer
    finally:
        await peer.end()


async def met(sender: Fleet, address: str) -> None:
    def is_known() -> bool:
        try:
            return sender.carrier.find(address) is not None
        except NotKnownYet:
            return False

    await comes(is_known, f"{address} is known")


async def comes(look: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not look():
        assert time.monotonic() < end, f"never happened: {what}"
        await asyncio.sleep(0.005)


async def sent(sender: Fleet, text: str, address: str = "codex@box") -> float:
    """When it was begun to be sent."""
    began = time.monotonic()
    await sender.carrier.send(address, SendRequest(message=Message.of(text), key=text))
    return began


async def latency(box: FleetHome, laptop: FleetHome, sender: Fleet, peer: Peer) -> None:
    """One message at a time, in turns."""
    plain = await Peer.start(HTTP, box.environ)
    store = await SqliteStore.open(laptop.paths.database.parent / "plain.db", clock=SystemClock())
    took: dict[str, list[float]] = {"fleet": [], HTTP: []}
    try:
        await plain.committed("ready")
        async with aiohttp.ClientSession(f"http://127.0.0.1:{plain.port}") as client:
            for number in range(-5, MESSAGES):  # the first of each way find nothing ready
                text = f"message {number}"
                began = time.monotonic()
                await commit(store, text)
                async with client.post("/", json={"text": text}) as answer:
                    await answer.read()
                by_http = await plain.committed(text) - began
                began = await sent(sender, text)
                by_fleet = await peer.committed(text) - began
                if number >= 0:
                    took[HTTP].append(by_http)
                    took["fleet"].append(by_fleet)
    finally:
        await plain.end()
        await store.close()
    shown = f"{milliseconds(took['fleet'])}; HTTP {milliseconds(took[HTTP])}"
    for share, bar in ((0.5, P50_BAR), (0.99, P99_BAR)):
        ours, floor = percentile(took["fleet"], share), percentile(took[HTTP], share)
        report(
            f"send → committed at another host, p{share * 100:.0f} of {MESSAGES}",
            f"{ours * 1e3:.1f} ms, HTTP and SQLite {floor * 1e3:.1f} ms: {ours / floor:.2f} × ({shown})",
            f"≤ {bar} ×",
            held=ours <= bar * floor,
        )


async def broker_started(box: FleetHome, sender: Fleet, peer: Peer) -> None:
    """The broker is killed, a message is sent, it is started: from the moment that it can be connected to."""
    took = []
    for number in range(AGAIN):
        await asyncio.to_thread(box.kill)
        await comes(lambda: not sender.link.up, "the broker is missed")
        await sent(sender, f"while it is down {number}")
        box.start()
        began = await listening(box.port)
        took.append(await peer.committed(f"while it is down {number}") - began)
    told("a broker's start → what waited is committed", took, RESUME_BAR_S)


async def returned(wire: Proxy, sender: Fleet, peer: Peer) -> None:
    """The sender is out of reach, and back."""
    took = []
    for number in range(AGAIN):
        wire.hold()
        await sent(sender, f"while it is away {number}")
        await asyncio.sleep(AWAY_S)
        wire.release()
        began = time.monotonic()
        took.append(await peer.committed(f"while it is away {number}") - began)
    told(f"a host's return after {AWAY_S:.0f} s → what waited is committed", took, RESUME_BAR_S)


def told(what: str, took: Sequence[float], bar: float) -> None:
    each = ", ".join(f"{one:.1f}" for one in took)
    report(f"{what}, {len(took)} times", f"worst {max(took):.1f} s ({each})", f"≤ {bar:.0f} s", held=max(took) <= bar)


# --- what an idle member takes ---------------------------------------------------------------------------------------


def idle(home: FleetHome, alone: Path) -> None:
    """Two daemons without agents and tasks, one of them a member. The first message brings the types of A2A, 4 MB, as
    it does in a daemon without a fleet."""
    daemons = {
        "member": Daemon(home.folder, environ=environment(), config=NO_PORTS).start(),
        "alone": Daemon(alone, environ=environment(), config=NO_PORTS).start(),
    }
    try:
        eventually(lambda: daemons["member"].get("/fleet").json["connected"], "it is connected")
        time.sleep(SETTLE_S)
        pids = {name: one.process.pid for name, one in daemons.items() if one.process is not None}
        before, began = {name: computed(pid) for name, pid in pids.items()}, time.monotonic()
        time.sleep(IDLE_S)
        passed = time.monotonic() - began
        shares = {name: (computed(pid) - before[name]) / passed for name, pid in pids.items()}
        sizes = {name: pss(pid) / 2**20 for name, pid in pids.items()}
    finally:
        for one in daemons.values():
            one.end()
    more = sizes["member"] - sizes["alone"]
    report(
        "memory of an idle member beyond a daemon without a fleet",
        f"{more:.1f} MB PSS ({sizes['member']:.1f} and {sizes['alone']:.1f})",
        f"≤ {IDLE_MB:.0f} MB",
        held=more <= IDLE_MB,
    )
    share = shares["member"] - shares["alone"]
    report(
        f"CPU of an idle member beyond it, over {IDLE_S:.0f} s",
        f"{share:.3%} of a core ({shares['member']:.3%} and {shares['alone']:.3%})",
        f"≤ {IDLE_SHARE:.1%}",
        held=share <= IDLE_SHARE,
    )


# --- three brokers ---------------------------------------------------------------------------------------------------


def lost_leader(folder: Path) -> None:
    """The broker that leads the mail is killed: from that moment, with a message that was sent just after it."""
    with three_brokers(folder) as three:
        three.scale(3)
        eventually(three.current, "all three have everything", patience=120)
        shed, laptop = (three.box.joined(folder / name, name) for name in ("shed", "laptop"))
        urls = [one.url for one in three.all]

        async def measure() -> None:
            async with receiving(shed, urls) as peer, member(laptop.paths, urls) as (sender, _):
                await met(sender, "codex@shed")
                await sent(sender, "before", "codex@shed")
                await peer.committed("before")
                took = []
                for number in range(2):
                    streams = await asyncio.to_thread(three.streams)
                    leader = three.named(next(one["leader"] for one in streams if one["name"] == "SYN_IN"))
                    await asyncio.to_thread(leader.kill)
                    began = time.monotonic()
                    await sent(sender, f"without a leader {number}", "codex@shed")
                    took.append(await peer.committed(f"without a leader {number}") - began)
                    leader.start()
                    await asyncio.to_thread(eventually, three.current, "all have everything again", patience=120)
                told("a leader's loss → a message is committed", took, LEADER_BAR_S)

        asyncio.run(measure())


if __name__ == "__main__":
    main()
