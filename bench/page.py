"""The page: what a first load takes, in a real browser, and what open pages cost the daemon.

python -m bench page

A phone and a desk are windows of the system's Chromium, each time with nothing kept. Beside the phone's first paint
stands that of a page of one line, from a server that does nothing else. Twenty open pages are their connections, as the
page makes them, held by a process of its own: what is measured is the daemon.
"""

import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

import aiohttp
import psutil

from bench.figures import daemon, milliseconds, percentile, report, sized
from bench.many import cpu_s, screens
from tests.support.daemon import Daemon, eventually

LOADS = sized(15, 1)
SLOW_LOADS = sized(5, 1)
PAGES = sized(20, 2)
ROUNDS, ROUND_S = sized(4, 1), sized(5.0, 1.0)
ASKED_EVERY_S = 0.02

PAINT_RATIO = 4.0
SLOW_PAINT_S = 1.8
"""What Lighthouse calls good, on its slow line."""
SLOW_LINE = {"offline": False, "latency": 150, "downloadThroughput": 1.6e6 / 8, "uploadThroughput": 0.75e6 / 8}
SLOW_CPU = 4
PAGES_CPU, PAGES_DELAY_MS = 0.10, 10.0

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "has_touch": True}
DESK: dict[str, Any] = {"viewport": {"width": 1440, "height": 900}}
FLAGS = ["--no-sandbox", "--disable-dev-shm-usage"]

DRAWS = """
import itertools, time
for turn in itertools.count():
    rows = [f"\\x1b[{row};1H\\x1b[3{(turn + row) % 8}m{turn}: {'=' * ((turn * 7 + row) % 90)}" for row in range(40)]
    print("\\x1b[?2026h", "\\x1b[K".join(rows), "\\x1b[K\\x1b[?2026l", sep="", end="", flush=True)
    time.sleep(0.05)
"""
"""A program that draws all of its screen twenty times a second."""
CONFIG = '[api]\nlisten = "127.0.0.1:0"\nagent_ports = false\n'

PAINTED = """() => new Promise((done) => {
  new PerformanceObserver((list) => done(list.getEntriesByName("first-contentful-paint")[0]?.startTime))
    .observe({ type: "paint", buffered: true });
})"""


def main() -> None:
    from tests.web.programs import chromium

    browser = chromium()
    with daemon(CONFIG) as running:
        for name, args in (("draws", ["-c", DRAWS]), ("rests", ["-c", "import time; print('there'); time.sleep(1e6)"])):
            wanted = {"profile": "generic", "name": name, "args": [sys.executable, *args], "cols": 120, "rows": 40}
            assert running.request("POST", "/control/start", wanted).status == 200
        eventually(lambda: "there" in running.get("/agents/rests/screen").body.decode(), "both draw")
        if browser is None:
            print("      not measured: first loads need Chromium (apt-get install chromium)")
        else:
            _first_loads(running, browser)
        _open_pages(running)


# --- first loads -----------------------------------------------------------------------------------------------------


def _first_loads(running: Daemon, path: str) -> None:
    from playwright.sync_api import sync_playwright

    from tests.web.firstload import PHONE_KB, SIZES, TERMINAL_KB

    token = next(running.home.rglob("token")).read_text().strip()
    own = f"http://127.0.0.1:{running.port}/"
    with sync_playwright() as playwright, _one_line() as other:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)

        def load(
            url: str, device: dict[str, Any], wanted: str, *, slow: bool = False, act: Any = None
        ) -> tuple[float, list[int]]:
            """Seconds to the first paint, and the page's sizes, once `wanted` is there. Where there is something to do
            then (`act`), a service worker would bring files, whose sizes a browser tells wrongly: it is off."""
            headers = {"Authorization": f"Bearer {token}"}
            workers: Literal["allow", "block"] = "allow" if act is None else "block"
            context = browser.new_context(extra_http_headers=headers, service_workers=workers, **device)
            page = context.new_page()
            page.set_default_timeout(60_000)
            if slow:
                line = context.new_cdp_session(page)
                line.send("Network.enable")
                line.send("Network.emulateNetworkConditions", SLOW_LINE)
                line.send("Emulation.setCPUThrottlingRate", {"rate": SLOW_CPU})
            page.goto(url)
            page.locator(wanted).first.wait_for()
            if act is not None:
                act(page)
            painted, sizes = page.evaluate(PAINTED) / 1e3, page.evaluate(SIZES) if url != other else []
            context.close()
            return painted, sizes

        if LOADS > 1:
            load(own, PHONE, ".agents .name")  # the browser's own first time
        paints: tuple[list[float], list[float]] = ([], [])
        sizes: list[int] = []
        for _ in range(LOADS):
            painted, sizes = load(own, PHONE, ".agents .name")
            paints[0].append(painted)
            paints[1].append(load(other, PHONE, "p")[0])
        slow = [load(own, PHONE, ".agents .name", slow=True)[0] for _ in range(SLOW_LOADS)]

        def open_terminal(page: Any) -> None:
            page.locator("#terminal").click()
            page.locator(".xterm-rows").wait_for()

        _, desk = load(f"{own}#/agent/draws", DESK, ".r", act=open_terminal)
        browser.close()
    ratio = statistics.median(paints[0]) / statistics.median(paints[1])
    report(
        "a phone's first paint, beside a page of one line",
        f"{milliseconds(paints[0])}; that: {milliseconds(paints[1])}: {ratio:.1f} ×",
        f"≤ {PAINT_RATIO:g} ×",
        held=ratio <= PAINT_RATIO,
    )
    report(
        f"the same at 1.6 Mbit/s, 150 ms away, on a CPU of 1/{SLOW_CPU}",
        f"p50 {statistics.median(slow):.2f} s",
        f"≤ {SLOW_PAINT_S} s",
        held=statistics.median(slow) <= SLOW_PAINT_S,
    )
    for what, (files, wire, count), bar in (
        ("a phone's first load", sizes, PHONE_KB),
        ("a desk with a terminal", desk, TERMINAL_KB),
    ):
        figure = f"files {files / 1024:.1f} KB; with answers and headers {wire / 1024:.1f} KB, {count} requests"
        report(what, figure, f"files ≤ {bar} KB", held=files <= bar * 1024)


@contextlib.contextmanager
def _one_line() -> Iterator[str]:
    """A server in a process of its own that has such a page."""
    with tempfile.TemporaryDirectory(prefix="synapsed-bench-") as folder:
        (Path(folder) / "index.html").write_text("<!doctype html><title>x</title><p>One line.</p>")
        command = [sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1", "--directory", folder, "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
            assert server.stdout is not None
            port = server.stdout.readline().split(" port ")[1].split()[0]
            yield f"http://127.0.0.1:{port}/"
            server.kill()


# --- open pages ------------------------------------------------------------------------------------------------------


def _open_pages(running: Daemon) -> None:
    """In turns without and with them, so that whatever else the machine does counts for both."""
    used: dict[int, list[float]] = {0: [], PAGES: []}
    waited: dict[int, list[float]] = {0: [], PAGES: []}
    frames = 0
    for _ in range(ROUNDS):
        for pages in (0, PAGES):
            with _pages(running, pages) as count:
                spent, delays = _watched(running)
                used[pages].append(spent)
                waited[pages] += delays
            frames += count()
    more = statistics.median(used[PAGES]) - statistics.median(used[0])
    rate = frames / (ROUNDS * ROUND_S * PAGES)
    report(
        f"{PAGES} open pages on an agent that draws 20 times a second",
        f"{100 * more:.1f} % of a core (daemon and screens: {100 * statistics.median(used[0]):.1f} without them); "
        f"{rate:.1f} frames a second each",
        f"≤ {100 * PAGES_CPU:.0f} %",
        held=more <= PAGES_CPU and frames > 0,
    )
    later = (statistics.median(waited[PAGES]) - statistics.median(waited[0])) * 1e3
    report(
        "another agent's /status meanwhile, p50 more than without",
        f"{later:.1f} ms ({milliseconds(waited[PAGES])}; without {milliseconds(waited[0])}, "
        f"p99 {percentile(waited[PAGES], 0.99) * 1e3:.0f} and {percentile(waited[0], 0.99) * 1e3:.0f} ms)",
        f"≤ {PAGES_DELAY_MS:g} ms",
        held=later <= PAGES_DELAY_MS,
    )


def _watched(running: Daemon) -> tuple[float, list[float]]:
    """Share of a core that the daemon has used in one round, and how long another agent's status took each time."""
    main_process = psutil.Process(running.pid)
    everyone = [main_process, *screens(main_process)]
    before, began = sum(map(cpu_s, everyone)), time.monotonic()
    delays: list[float] = []
    while time.monotonic() - began < ROUND_S:
        asked = time.perf_counter()
        assert running.get("/agents/rests/status").status == 200
        delays.append(time.perf_counter() - asked)
        time.sleep(ASKED_EVERY_S)
    return (sum(map(cpu_s, everyone)) - before) / (time.monotonic() - began), delays


@contextlib.contextmanager
def _pages(running: Daemon, count: int) -> Iterator[Any]:
    """So many open pages; gives what tells, when they are closed, how many screens came to all of them."""
    told: list[str] = []
    if not count:
        yield lambda: 0
        return
    command = [sys.executable, __file__, "--pages", str(running.port), str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ) as pages:
        assert pages.stdin is not None
        assert pages.stdout is not None
        assert pages.stdout.readline() == "open\n"
        yield lambda: int(told[0])
        pages.stdin.close()
        told.append(pages.stdout.readline())


async def _be_pages(port: int, count: int) -> None:
    """Says `open` when all are, and at the end of stdin how many screens came."""
    frames = 0

    async def follow(session: aiohttp.ClientSession, path: str, *, counted: bool) -> None:
        nonlocal frames
        async with session.ws_connect(path, max_msg_size=0) as socket:
            first = True
            async for message in socket:
                if first:
                    first = False
                    opened.release()
                frames += counted
                if not counted:
                    json.loads(message.data)

    opened = asyncio.Semaphore(0)
    own = f"http://127.0.0.1:{port}"
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(own, connector=connector, headers={"Origin": own}) as session:
        tasks = [asyncio.create_task(follow(session, "/agents/draws/screen/live", counted=True)) for _ in range(count)]
        tasks += [asyncio.create_task(follow(session, "/events?batch=100ms", counted=False)) for _ in range(count)]
        for _ in range(count):
            await opened.acquire()
        frames = 0
        print("open", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        print(frames, flush=True)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--pages"]:
        asyncio.run(_be_pages(int(sys.argv[2]), int(sys.argv[3])))
    else:
        main()
