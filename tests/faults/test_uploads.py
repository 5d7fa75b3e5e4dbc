"""Fault 19: many clients that send large messages at once. What is read of them at a time has one budget; others wait
for room, and are told to come again where that takes too long. Small messages pass them by."""

import json
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from synapsed.api.memory_reservation import BODIES
from tests.faults.house import House
from tests.faults.test_readers import MB, SPARE, STANDS_S, settled, watched
from tests.support.daemon import NO_PORTS

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]

CLIENTS = 20
TEXT = "Ein Wort, “a quote” and: more\n" * 290_000
"""9.9 MB; twice as much in memory."""


def seeds(text: str, _: int) -> tuple[str, Any, dict[str, str]]:
    message = {"role": "user", "parts": [{"type": "text", "text": text}]}
    return "/agents/{agent}/tasks/send", {"message": message}, {}


def a2a(text: str, number: int) -> tuple[str, Any, dict[str, str]]:
    message = {"messageId": f"m{number}", "role": "ROLE_USER", "parts": [{"text": text}]}
    params = {"message": message, "configuration": {"returnImmediately": True}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}
    return "/agents/{agent}/a2a", body, {"A2A-Version": "1.0"}


@pytest.mark.parametrize("door", [seeds, a2a])
def test_large_messages_of_many_at_once(house: Callable[..., House], door: Callable[..., Any]) -> None:
    home = house("19", f"{CLIENTS} large messages at once ({door.__name__})", config=NO_PORTS)
    daemon = home.daemon.start()
    (agent,) = home.start_agents(1)

    def send(number: int, text: str) -> int:
        path, body, headers = door(text, number)
        written = json.dumps(body, ensure_ascii=False).encode()
        return daemon.request("POST", path.format(agent=agent), written, headers).status

    assert send(0, "warm") == 200
    settled(daemon)
    with watched(daemon) as watch, ThreadPoolExecutor(CLIENTS + 1) as pool:
        large = [pool.submit(send, number, TEXT) for number in range(1, CLIENTS + 1)]
        assert pool.submit(send, CLIENTS + 1, "small").result() == 200
        told = Counter(one.result() for one in large)
    # What is too long for a program is refused after it was read; 1.0 says that in its envelope.
    assert set(told) <= {200, 413, 503}, told
    assert told[503] < CLIENTS, "some had room"
    home.row.figures[door.__name__] = f"{watch.grew / MB:.0f} MB, {watch.lag * 1000:.0f} ms, {dict(told)}"
    assert watch.grew <= 2 * (2 * BODIES) + SPARE, home.row.figures
    assert watch.lag <= STANDS_S, home.row.figures
