"""Three real agents that ask, one at its usage limit and one that crashes in a loop, all at once: the person is told of
each at every sink, answers each with one key, and every sink takes it back. How long each took is printed (`-s`)."""

import os
import shutil
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from tests.real.agents import MAIN, RealAgent, nonce
from tests.real.conftest import CliHome
from tests.real.model import Model
from tests.real.sinks import TAKES_BACK, TELLS, Sinks
from tests.real.test_person import BROKEN
from tests.support.daemon import eventually
from tests.support.desktop import DBUS_DAEMON

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(900),
    pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux"),
    pytest.mark.skipif(DBUS_DAEMON is None, reason="there is no dbus-daemon"),
]

WITHIN_S = float(os.environ.get("TOLD_WITHIN_S", "5"))
"""By then a person is told of what is in the inbox; more where the machine has other work."""

KINDS = dict.fromkeys(MAIN, "permission") | {"limited": "limit", "broken": "crash_loop"}


@pytest.fixture
def sinks(private_dir: Path) -> Iterator[Sinks]:
    with Sinks(private_dir) as sinks:
        yield sinks


def table(title: str, rows: Mapping[str, Mapping[str, float]], columns: tuple[str, ...]) -> None:
    print(f"\n{title}, in seconds")
    print("".join(f"{column:>10}" for column in ("", *columns)))
    for name, found in rows.items():
        print(f"{name:>10}" + "".join(f"{found[column]:>10.2f}" for column in columns))


def test_told_of_all_at_every_sink_answered_with_one_key_and_taken_back(
    sinks: Sinks, model: Model, cli_home: CliHome
) -> None:
    daemon = sinks.daemon
    agents = {cli: RealAgent.start(cli, daemon, model, cli_home(cli)) for cli in MAIN}
    limited = RealAgent.start("claude", daemon, model, cli_home("claude"), "--name", "limited")
    daemon.start_agent(name="desk")
    sinks.attach("desk")
    inbox = sinks.pane("inbox")
    inbox.run("synapsectl", "inbox")
    inbox.until("nobody needs you")

    words = {name: nonce() for name in agents}
    tasks = {
        name: agent.send(f"{words[name]} [[tool:shell-ask:touch {words[name]}]] say: Made.")
        for name, agent in agents.items()
    }
    resumed = limited.send(f"[[limit:7200]] {nonce()}")
    with daemon.config_file.open("ab") as file:
        tomli_w.dump({"agents": {"broken": BROKEN}}, file)
    assert daemon.ctl("reload").code == 0

    def open_items() -> list[dict[str, Any]]:
        found = [item for item in daemon.ctl("inbox", "--json").json if item["kind"] != "finished"]
        return found if {item["agent"]: item["kind"] for item in found} == KINDS else []

    items = eventually(open_items, "all five need a person", patience=240.0)
    since = {item["agent"]: seconds(item["since"]) for item in items}
    places = {item["id"]: place for place, item in enumerate(items, 1)}
    told = {
        item["agent"]: eventually(
            lambda item=item: found if len(found := sinks.told(item, places[item["id"]])) == len(TELLS) else None,  # type: ignore[misc]
            f"{item['agent']} is told at every sink: {TELLS}",
        )
        for item in items
    }
    delays = {name: {sink: at - since[name] for sink, at in found.items()} for name, found in told.items()}
    asks = {name: {"asks": since[name] - asked_at(model, words[name])} for name in agents}
    table("in the inbox after the model had its program call the tool", asks, ("asks",))
    table("told after it was in the inbox", delays, TELLS)
    assert {name: found for name, found in delays.items() if max(found.values()) > WITHIN_S} == {}
    assert "(5) synapsed" in inbox.says("#{pane_title}")

    answered: dict[str, float] = {}
    inbox.until(*(f"{name} " for name in KINDS))
    inbox.press("g")
    for item in items:  # the oldest first, as its rows; what is answered chooses the next
        inbox.until(f"> {item['agent']} ")
        answered[item["agent"]] = time.time()
        inbox.press("y" if item["kind"] == "permission" else "x")
    for name, word in words.items():
        eventually(agents[name].file(word).exists, f"{name} made its file")
    eventually(lambda: not open_items_of(daemon.ctl("inbox", "--json").json), "nothing is open")
    # Whoever reads a task that has ended takes its end out of the inbox; the limit is over after a minute.
    for task in (*tasks.values(), resumed):
        eventually(lambda task=task: daemon.task(task)["status"] == "completed", "it has ended", patience=240.0)  # type: ignore[misc]
    for task in tasks.values():
        assert daemon.ctl("task", task).out.strip().endswith("Made.")
    inbox.until("nobody needs you")
    back = {
        item["agent"]: eventually(
            lambda item=item: found if len(found := sinks.taken_back(item)) == len(TAKES_BACK) else None,  # type: ignore[misc]
            f"{item['agent']} is taken back everywhere: {TAKES_BACK}",
        )
        for item in items
    }
    taken = {name: {sink: at - answered[name] for sink, at in found.items()} for name, found in back.items()}
    table("taken back after the key, of which 3 are for taking it back", taken, TAKES_BACK)
    assert sinks.desktop.service.shown == {}
    eventually(lambda: sinks.title is not None and sinks.title.titles[-1][0] == 0, "the attached terminal's title, too")
    for sink, count in once(sinks).items():
        assert count == len(KINDS), f"{sink} was told {count} times of {len(KINDS)}"


def asked_at(model: Model, word: str) -> float:
    """When the model had told the program to call its tool: from then on it could ask."""
    (turn, *_) = [request for request in model.turns(word) if request.reply == "tool"]
    assert turn.ended_at is not None
    return turn.ended_at


def seconds(iso: str) -> float:
    return datetime.fromisoformat(iso).timestamp()


def open_items_of(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [item for item in items if item["kind"] != "finished"]


def once(sinks: Sinks) -> dict[str, int]:
    """How many notices each sink was given in all."""
    return {
        "desktop": len(sinks.desktop.service.all),
        "webhook": sum(body["type"] == "attention.opened" for body in sinks.hook.taken),
        "ntfy": sinks.ntfy.methods.count("POST"),
        "mail": len(sinks.mail.mails),
        "browser": len(sinks.push.said("opened")),
    }
