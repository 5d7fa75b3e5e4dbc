"""Number 23: 200 questions of 20 agents within minutes, while sinks hang, refuse, lead elsewhere, are slow or away.

The good sink is told of each question once and of its end once, whatever the others do; the inbox and the page answer
all the while, and nothing grows. What comes back is told of what is open then, and of nothing that is over.
"""

import contextlib
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.daemon.test_notify import ASKS
from tests.faults.house import PATIENT_S
from tests.faults.ledger import Ledger, Row
from tests.faults.test_readers import MB
from tests.support.daemon import NO_PORTS, Daemon, eventually
from tests.support.mailserver import MailServer
from tests.support.webhook import Webhook

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]

AGENTS, ROUNDS = 20, 10
SLOW_S = 2.0
"""Of the mail server, for each mail."""
GROWS = 60 * MB
"""What the daemon may hold more at the end, whatever was told."""

CONFIG = """
[a2a.push]
allow = ["loopback"]
[notify]
kinds = ["permission", "question"]
"""


@dataclass
class Places:
    """Where a person is told: one that works, and the others."""

    good: Webhook
    hangs: socket.socket
    broken: Webhook
    moved: Webhook
    phone: Webhook
    mail: MailServer

    @property
    def config(self) -> str:
        hooks = {
            "good": self.good.url,
            "hangs": f"http://127.0.0.1:{self.hangs.getsockname()[1]}/hook",
            "broken": self.broken.url,
            "moved": self.moved.url,
        }
        told = "".join(
            f'[notify.sinks.{name}]\ntype = "webhook"\nurl = "{url}"\nsecret_env = "HOOK_SECRET"\n'
            for name, url in hooks.items()
        )
        ntfy = self.phone.url.removesuffix("/hook")
        told += f'[notify.sinks.phone]\ntype = "ntfy"\nurl = "{ntfy}"\ntopic = "agents"\n'
        return told + (
            f'[notify.sinks.post]\ntype = "mail"\nhost = "127.0.0.1"\nport = {self.mail.port}\nsecurity = "none"\n'
            'sender = "me@here.example"\nto = ["me@there.example"]\n'
        )


@pytest.fixture
def places() -> Iterator[Places]:
    with contextlib.ExitStack() as stack:
        enter = stack.enter_context
        hangs = enter(socket.create_server(("127.0.0.1", 0)))
        good, broken, moved = enter(Webhook()), enter(Webhook()), enter(Webhook())
        broken.answer = lambda _: 500
        moved.answer, moved.location = lambda _: 307, good.url
        phone, mail = enter(Webhook()), enter(MailServer())
        phone.stop()
        mail.slow_s = SLOW_S
        yield Places(good, hangs, broken, moved, phone, mail)


@pytest.fixture
def daemon(tmp_path: Path, places: Places) -> Iterator[Daemon]:
    secret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
    daemon = Daemon(
        tmp_path,
        config=NO_PORTS + CONFIG + places.config,
        environ={"HOOK_SECRET": secret, **psutil.Process().environ()},
    )
    yield daemon.start()
    daemon.end()


class Looking:
    """A person who looks at the inbox and the page all the while; how long each took, seconds."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.took: list[float] = []
        self.refused: list[int] = []

    def __enter__(self) -> "Looking":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.05):
            for path in ("/inbox", "/agents", "/"):
                began = time.monotonic()
                status = self._daemon.get(path).status
                self.took.append(time.monotonic() - began)
                if status != 200:
                    self.refused.append(status)


def events(place: Webhook, kind: str) -> Counter[str]:
    """How often the place was told so of each item."""
    return Counter(body["data"]["id"] for body in place.taken if body["type"] == f"attention.{kind}")


def open_items(daemon: Daemon) -> list[dict[str, Any]]:
    return [item for item in daemon.get("/inbox").json if item["kind"] == "question"]


def test_23_two_hundred_questions(daemon: Daemon, places: Places, ledger: Ledger) -> None:
    row = ledger.open("23", f"{AGENTS * ROUNDS} questions of {AGENTS} agents, six sinks, one that works")
    names = [f"a{number:02d}" for number in range(AGENTS)]
    for name in names:
        daemon.start_agent(profile="generic", name=name, args=["bash", "--norc"], env={"PS1": "$ "})
    for name in names:
        daemon.ready(name, patience=PATIENT_S)
    process = psutil.Process(daemon.process.pid if daemon.process is not None else 0)
    before = process.memory_info().rss
    asked: set[str] = set()
    began = time.monotonic()
    with Looking(daemon) as looking:
        for _ in range(ROUNDS):
            asked |= ask_and_answer(daemon, places, names)
            row.injected += AGENTS
    took = time.monotonic() - began
    told_of(row, looking, took)
    grown = process.memory_info().rss - before
    row.figures["more memory"] = f"{grown / MB:.1f} MB"

    assert looking.refused == []
    eventually(lambda: len(events(places.good, "closed")) == len(asked), "every end is told", patience=PATIENT_S)
    assert len(asked) == AGENTS * ROUNDS
    for kind in ("opened", "closed"):
        assert events(places.good, kind) == Counter(asked), f"{kind}: each once"
    assert (places.broken.taken, places.moved.taken) == ([], []), "no redirect is followed"
    mails = Counter(str(mail["Message-ID"]) for mail in places.mail.mails)
    assert not mails or max(mails.values()) == 1
    assert grown < GROWS
    back_again(daemon, places, names[0], asked)


def ask_and_answer(daemon: Daemon, places: Places, names: Sequence[str]) -> set[str]:
    """Every agent asks one question, the good sink is told of all, each is answered; the items' ids."""
    tasks = [daemon.send(ASKS, name) for name in names]
    items = eventually(
        lambda: found if len(found := open_items(daemon)) == len(names) else None, "all ask", patience=PATIENT_S
    )
    ids = {item["id"] for item in items}
    eventually(lambda: ids <= events(places.good, "opened").keys(), "the good sink is told of all", patience=PATIENT_S)
    for item in items:
        path = f"/control/tasks/{item['task']}/input"
        answer = daemon.post(path, {"input": "1", "prompt_id": item["prompt_id"]})
        assert answer.status == 200, answer.json
    for task in tasks:
        assert daemon.task_in(task, "completed", "failed", patience=PATIENT_S)["status"] == "completed"
    eventually(lambda: not open_items(daemon), "nothing is open", patience=PATIENT_S)
    return ids


def told_of(row: Row, looking: Looking, took: float) -> None:
    row.figures["questions a minute"] = f"{AGENTS * ROUNDS / took * 60:.0f}"
    ordered = sorted(looking.took)
    middle, high = ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100]
    row.figures["a look at inbox, list or page"] = (
        f"median {middle * 1000:.0f} ms, 99 % within {high * 1000:.0f} ms, at most {ordered[-1] * 1000:.0f} ms"
    )


def back_again(daemon: Daemon, places: Places, name: str, asked: set[str]) -> None:
    """Sinks that work again are told of the one question that is open then."""
    task = daemon.send(ASKS, name)
    (item,) = eventually(lambda: open_items(daemon), "one more asks")
    places.phone.start()
    places.broken.answer = places.moved.answer = lambda _: 200
    for place in (places.broken, places.moved):
        eventually(lambda place=place: place.taken, "it is told again", patience=PATIENT_S)  # type: ignore[misc]
        assert events(place, "opened") == Counter([item["id"]])
    posted = eventually(lambda: places.phone.taken, "the phone is told", patience=PATIENT_S)
    assert [body["sequence_id"] for body in posted] == [item["id"]]
    assert daemon.ctl("input", task, "1").code == 0
    eventually(lambda: "DELETE" in places.phone.methods, "and it is taken back", patience=PATIENT_S)
