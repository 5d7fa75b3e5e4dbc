"""Turns on the scripted agent: how late a finished turn is known, how soon a message is with the program, how soon a
crashed program is back, how long `list` takes.

python -m bench turns
"""

import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import time
from datetime import datetime
from typing import Any

from bench.figures import daemon, milliseconds, percentile, report, sized
from tests.support.daemon import Daemon

TURNS = sized(200, 3)
CRASHES = sized(10, 1)
LISTS = sized(40, 2)

BACKOFF_S = 0.1
CONFIG = f"""
[api]
listen = "127.0.0.1:0"
agent_ports = false
[agents.dummy]
autostart = true
restart = {{policy = "always", initial = {BACKOFF_S}, factor = 1.0, jitter = 0.0, limit = 1000}}
"""


def main() -> None:
    with daemon(CONFIG) as running:
        running.ready("dummy")
        turns(running)
        crashes(running)
        lists(running)


def turns(running: Daemon) -> None:
    late, soon, right = [], [], 0
    for number in range(TURNS):
        running.ready("dummy")
        sent = time.time()
        body = {"message": {"role": "user", "parts": [{"type": "text", "text": f"clock\necho turn {number}"}]}}
        task_id = running.post("/agents/dummy/tasks/send", body).json["task"]["id"]
        with running.sse(f"/agents/dummy/tasks/{task_id}/subscribe") as events:
            for event in events:
                done = event
        finished = time.time()
        assert done["data"]["state"] == "completed", done
        answer = running.task(task_id)["artifacts"][-1]["parts"][0]["text"]
        clock, _, echo = answer.partition("\n")
        began, said = (float(word) for word in clock.split())
        right += echo == f"turn {number}"
        soon.append(began - sent)
        late.append(finished - said)
    report(
        f"prompt is back → task completed, {TURNS} turns",
        f"{milliseconds(late)}, {right} of {TURNS} right",
        "p50 ≤ 100 ms, all right",
        held=statistics.median(late) <= 0.1 and right == TURNS,
    )
    report("send → bytes at the program", milliseconds(soon), "p50 ≤ 5 ms", held=statistics.median(soon) <= 0.005)


def _at(event: dict[str, Any]) -> float:
    return datetime.fromisoformat(event["data"]["time"]).timestamp()


def crashes(running: Daemon) -> None:
    """From the exit being told to the new program being told, less the configured backoff."""
    beyond = []
    for _ in range(CRASHES):
        pid = running.ready("dummy")["pid"]
        with running.sse("/events") as events:
            os.kill(pid, signal.SIGKILL)
            exited_at = 0.0
            for event in events:
                if event["event"] != "agentState":
                    continue
                if event["data"]["data"]["state"] == "running":
                    break
                exited_at = exited_at or _at(event)
        beyond.append(_at(event) - exited_at - BACKOFF_S)
    report(
        "crash → new process, beyond the backoff",
        milliseconds(beyond),
        "≤ 100 ms",
        held=percentile(beyond, 0.5) <= 0.1,
    )


def lists(running: Daemon) -> None:
    """Beside an interpreter that does nothing, one after the other."""
    bare = []
    for _ in range(LISTS):
        begin = time.monotonic()
        subprocess.run([sys.executable, "-c", ""], check=True)
        bare.append(time.monotonic() - begin)
    took = []
    began = children_cpu_s()
    for _ in range(LISTS):
        begin = time.monotonic()
        done = running.ctl("list", "--json")
        took.append(time.monotonic() - begin)
        assert json.loads(done.out)
    cpu_s = (children_cpu_s() - began) / LISTS
    report(
        "synapsectl list",
        f"{milliseconds(took)}, {cpu_s * 1e3:.0f} ms of CPU; Python alone {milliseconds(bare)}",
        "p95 ≤ 60 ms",
        held=percentile(took, 0.95) <= 0.06,
    )


def children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
