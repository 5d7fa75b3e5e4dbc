"""Two hundred clients at once, on new TCP connections: how long the next one waits, beside one who comes alone.

python -m bench connections

Whose each connection is has to be found among the files of all processes, before anything is answered.
"""

import asyncio
import time

from bench.figures import daemon, percentile, report, sized
from tests.support.daemon import NO_PORTS

CLIENTS = sized(200, 10)
TIMES = sized(5, 1)
BAR_S = 1.0
REQUEST = b"GET /agents HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def main() -> None:
    with daemon(NO_PORTS) as running:
        alone, behind = asyncio.run(measured(running.port))
    typical, last = percentile(behind, 0.5), max(behind)
    report(
        f"a client behind {CLIENTS} others that came at once",
        f"{typical:.2f} s, at the most {last:.2f} s; alone {percentile(alone, 0.5) * 1e3:.0f} ms",
        f"≤ {BAR_S:.0f} s",
        held=last <= BAR_S,
    )


async def measured(port: int) -> tuple[list[float], list[float]]:
    """The seconds until an answer of one who comes alone, and of one behind the others, in turns."""
    alone, behind = [], []
    for _ in range(TIMES):
        alone.append(await asked(port))
        others = await asyncio.gather(*(asyncio.open_connection("127.0.0.1", port) for _ in range(CLIENTS)))
        for _, writer in others:
            writer.write(REQUEST)
        behind.append(await asked(port))
        for reader, writer in others:
            assert (await reader.read()).startswith(b"HTTP/1.1 200")
            writer.close()
    return alone, behind


async def asked(port: int) -> float:
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(REQUEST)
    assert (answer := await reader.read()).startswith(b"HTTP/1.1 200"), answer[:300]
    writer.close()
    return time.perf_counter() - began
