"""Real agents for an hour, of pinned programs, of older versions of them, and strangers with a profile of a person's.
There are messages at random moments, people typing, dialogs, interrupts, kills of the daemon, a wall clock that is set
by days. Messages go by all ways there are (`ways`): over a program's own server, typed at its terminal, and over pipes.

    python -m tests.real.soak [--minutes 60] [--seed N] [--kill-every 300] [--older 2] [--set-every 240]
    python -m tests.real.soak --judge FOLDER     # again, by what a run left

Runs inside a loopback-only namespace. At the end every message is judged by the model's log (`judgement`): none
stranded, doubled, concatenated, misattributed or answered wrongly, none canceled by nobody, each cancel confirmed in
time, each non-delivery told within 10 s. Exits 1, and keeps the folder, if there is any fault.
"""

import argparse
import os
import random
import secrets
import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any

from tests.fakes.clock import JUMPS
from tests.real import netns, pace, programs, strangers, versions
from tests.real.agents import EVERY, RealAgent, nonce
from tests.real.judgement import Happening, Journal, begun_at, ends_of, judge, letters_of, unaccounted
from tests.real.model import Model, read_log
from tests.real.programs import Prepared
from tests.real.terminal import Terminal
from tests.real.versions import Version
from tests.real.ways import ACP, OFF, PIPES, TYPED, Way
from tests.support.daemon import Daemon
from tests.support.set_clock import SetClock

EVERY_S = 2.0
"""Between two messages, over all agents: with more of them each gets fewer, so that the load stays what it is."""

DRAIN_S = 240.0
"""For everything that was sent to end."""

REPEATS_S = 60.0
"""How long a person watches a program that repeats itself; no answer of the model's takes half of it."""

BEGUN_S = 60.0
"""How long a message that is to be canceled may wait for its turn."""

TYPED_MAX = 40
"""Characters that a person types at most."""

READ_S = 30.0
"""How long a person watches the program work before they go."""

LIFE_S = 10.0
"""The least time from the start of a daemon to its kill."""

ENTERS = 5
"""How often a person presses Enter before they give up and take back what they wrote."""

PACE = "pace.jsonl"

LINES = "\n".join(f"line {n:04d} of a long message" for n in range(200))

SHAPES = (
    ("{word} [[answer:short]]", 6),
    ("Say {word}.", 6),
    ("{word} [[answer:lines200]]", 2),
    ("{word} [[answer:fenced]]", 2),
    ("{word} [[answer:japanese]]", 1),
    ("{word} [[delay:2]] [[answer:short]]", 2),
    ("{word} [[stall:3]] [[answer:lines20]]", 2),
    ("{word} [[slow:300]] [[answer:lines20]]", 2),
    ("{word}\nin several\n\nlines", 2),
    ("{word} long\n" + LINES, 1),
    ("/{word} looks like a command", 1),
    ("!echo {word}", 1),
    ("{word} ends with a backslash \\", 1),
    ("{word} [[tool:shell-ask:touch {word}]] say: After the tool.", 2),
    ("{word} I cannot: timeout, API Error, esc to interrupt", 1),
    ("{word} [[answer:quotes]]", 1),
    ("{word} [[status:529x1]] [[answer:short]]", 1),
)
"""Messages, each with its weight."""

STRANGERS = ("qwen", "cn", "pi")
"""Programs under a profile of a person's (`strangers`), which counts over the shipped one where there is one."""

TO_STRANGERS = ("{word} [[answer:short]]", "Say {word}.", "{word} [[delay:2]] [[answer:short]]", "{word}\nin two lines")
"""Messages to these: an answer is read off their screens as they draw it, so it is a plain one."""


@dataclass
class Sent:
    """What was tried to be sent; `task_id` is None as long as nobody knows whether the daemon has it."""

    word: str
    message: str
    agent: str
    task_id: str | None = None


type Prepare = Callable[[str, Path, Path, str], Prepared]


def _prepare_older(version: Version, _cli: str, home: Path, project: Path, model_url: str) -> Prepared:
    return versions.prepare(version, home, project, model_url)


class Soak:
    def __init__(self, root: Path, model: Model, rng: random.Random, older: Sequence[Version] = ()) -> None:
        self.root = root
        self.model = model
        self.rng = rng
        self.journal = Journal(root / "journal.jsonl")
        self.clock = SetClock(root, os.environ)
        """That of the daemon and its programs; this run and the model have the machine's."""
        self.ahead = 0.0
        self.journal.note(Happening(what="begin", since=time.time()))
        self.daemon = Daemon(root / "synapsed", self.clock.env).start()
        self.agents = [self._start(cli, programs.prepare, cli) for cli in EVERY]
        self.agents += [self._start_typed(way) for way in TYPED if way.cli in OFF]
        self.agents += [
            self._start(version.cli, partial(_prepare_older, version), str(version), "--name", str(version))
            for version in older
        ]
        self.agents += [self._start_stranger(name) for name in STRANGERS]
        self.terminals = list(self.agents)
        """Those at which a person may sit."""
        self.agents += [self._start_on_pipes(way) for way in PIPES]
        self.ids = {agent.name: str(self.daemon.agent(agent.name)["id"]) for agent in self.agents}
        self.sent: list[Sent] = []
        self.counts: Counter[str] = Counter()
        self.over = threading.Event()
        self.drained = threading.Event()
        """Nothing more is waited for: until then dialogs are answered, over kills too."""
        self.up = threading.Event()
        self.up.set()
        self.lock = threading.Lock()

    def _start(self, cli: str, prepare: Prepare, folder: str, *options: str) -> RealAgent:
        prepared = prepare(cli, *self._folders(folder), self.model.url)
        return RealAgent.start(cli, self.daemon, self.model, prepared, *options, ready=False)

    def _start_typed(self, way: Way) -> RealAgent:
        """The program with a profile by which messages are typed although it has a server."""
        self._add_profile(str(way), f'extends = "{way.cli}"\n{OFF[way.cli]}')
        prepared = programs.prepare(way.cli, *self._folders(str(way)), self.model.url)
        return RealAgent.start(str(way), self.daemon, self.model, prepared, ready=False)

    def _start_stranger(self, name: str) -> RealAgent:
        self._add_profile(name, Path(__file__).with_name("profiles").joinpath(f"{name}.toml").read_text())
        prepared = strangers.prepare(name, *self._folders(name), self.model.url)
        return RealAgent.start(name, self.daemon, self.model, prepared, "--", *prepared.argv[1:], ready=False)

    def _add_profile(self, name: str, text: str) -> None:
        folder = self.daemon.home / "config" / "profiles"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.toml").write_text(text)
        assert self.daemon.ctl("reload").code == 0

    def _start_on_pipes(self, way: Way) -> RealAgent:
        prepared = programs.prepare(way.cli, *self._folders(str(way)), self.model.url)
        options = ("--name", str(way), "--", *ACP[way.cli])
        return RealAgent.start("acp", self.daemon, self.model, prepared, *options, ready=False)

    def _folders(self, name: str) -> tuple[Path, Path]:
        return self.root / name / "home", self.root / name / "project"

    # --- what happens ---

    def run(self, minutes: float, kill_every: float, set_every: float) -> None:
        works: list[Callable[[], None]] = [lambda agent=agent: self._send_to(agent) for agent in self.agents]  # type: ignore[misc]  # mypy cannot infer a lambda with a default
        works += [self._be_a_person, lambda: self._kill(kill_every), lambda: self._set_clock(set_every)]
        threads = [threading.Thread(target=self._guard, args=(work, self.over)) for work in works]
        watches = [
            threading.Thread(target=self._guard, args=(work, self.drained), daemon=True)
            for work in (self._answer_dialogs, self._stop_repeating, self._watch_pace)
        ]
        for thread in (*threads, *watches):
            thread.start()
        end = time.monotonic() + minutes * 60
        while (left := end - time.monotonic()) > 0:
            print(f"{left / 60:5.1f} minutes left; {len(self.sent)} messages, {dict(self.counts)}", flush=True)
            self.over.wait(min(left, 60))
        self.over.set()
        for thread in threads:
            thread.join()

    def _watch_pace(self) -> None:
        pace.watch(self.root / PACE, self.drained)

    def _guard(self, work: Callable[[], None], over: threading.Event) -> None:
        while not over.is_set():
            try:
                work()
            except (OSError, HTTPException, TimeoutError, AssertionError, ValueError, KeyError) as error:
                self._count("disturbances")  # the daemon is being killed: go on when it is back
                if not self.up.is_set():
                    self.up.wait(60)
                else:
                    print(f"disturbed: {type(error).__name__} {str(error)[:200]}", flush=True)
                    over.wait(2)

    def _count(self, what: str) -> None:
        with self.lock:
            self.counts[what] += 1

    def _note(self, what: str, agent: RealAgent | None, since: float, word: str = "", told: str = "") -> None:
        name = self.ids[agent.name] if agent is not None else ""
        self.journal.note(Happening(what=what, agent=name, since=since, until=time.time(), word=word, told=told))
        self._count(what)

    def _send_to(self, agent: RealAgent) -> None:
        while not self.over.wait(self.rng.expovariate(1 / (EVERY_S * len(self.agents)))):
            with self.lock:
                shape = self._shape(agent)
                urgent, cancel = self.rng.random() < 0.04, self.rng.random() < 0.08
                soon = self.rng.uniform(0.0, 2.0)
            word, since = nonce(), time.time()
            sent = Sent(word, shape.replace("{word}", word), agent.name)
            self._post(agent, sent, 5 if urgent else 1)
            if urgent:
                self._note("urgent", agent, since)
            if cancel and sent.task_id:
                self._cancel(agent, sent.task_id, word, soon)

    def _shape(self, agent: RealAgent) -> str:
        if agent.name in STRANGERS:
            return self.rng.choice(TO_STRANGERS)
        (shape,) = self.rng.choices([s for s, _ in SHAPES], [w for _, w in SHAPES])
        return shape

    def _cancel(self, agent: RealAgent, task_id: str, word: str, soon: float) -> None:
        """Cancel the task `soon` after it is WORKING; one that waits for its turn for long, while it waits."""
        deadline = time.monotonic() + BEGUN_S
        while self.daemon.task(task_id)["status"] == "submitted" and time.monotonic() < deadline:
            if self.over.wait(0.05):
                return
        self.over.wait(soon)
        since, told = time.time(), ""
        try:
            answer = self.daemon.post(f"/control/tasks/{task_id}/cancel", {})
            told = "canceled" if answer.status == 200 else answer.json["error"]["code"]
        finally:  # killed in the middle it may have been done
            self._note("cancel", agent, since, word, told)

    def _post(self, agent: RealAgent, sent: Sent, priority: int) -> None:
        """Once, also where the daemon is killed in the middle: its list of tasks tells whether it had taken it."""
        body = {
            "message": {"role": "user", "parts": [{"type": "text", "text": sent.message}]},
            "priority": priority,
        }
        self.sent.append(sent)  # first: a daemon that is killed may have taken it, whatever comes of the rest here
        while sent.task_id is None:
            try:
                answer = self.daemon.post(f"/agents/{agent.name}/tasks/send", body)
            except (OSError, HTTPException, ValueError):
                self.up.wait(60)
                time.sleep(0.5)
                sent.task_id = self._find(agent, sent.word)
                continue
            if answer.status == 200:
                sent.task_id = answer.json["task"]["id"]
            else:
                self._count(f"refused {answer.json['error']['code']}")
                if self.over.wait(5):
                    return

    def _find(self, agent: RealAgent, word: str) -> str | None:
        for task in self.daemon.get(f"/control/tasks?agent={agent.name}").json:
            if word in task["message"]["parts"][0]["text"]:
                return str(task["id"])
        return None

    def _be_a_person(self) -> None:
        while not self.over.wait(self.rng.uniform(15, 45)):
            agent = self.rng.choice(self.terminals)
            if self.daemon.agent(agent.name)["prompt"]:
                continue  # a person reads what is on the screen first
            what = self.rng.choice(("draft", "draft", "prompt", "esc"))
            since, word = time.time(), nonce() if what == "prompt" else ""
            kills = self.counts["kill"]
            try:
                with agent.attached() as terminal:
                    terminal.settle(0.5, at_most=2)
                    self._type(agent, terminal, what, word)
                    terminal.send("\x1d")
                    terminal.wait_exit()
            finally:  # whatever a kill has cut off: what stands in the composer would hold all messages
                self._note(what, agent, since, word)
                if not self.up.is_set() or self.counts["kill"] != kills:
                    self._come_back(agent)

    def _come_back(self, agent: RealAgent) -> None:
        """The daemon was killed under a person's hands: what they had typed may stand there still, or be drawn later
        by a program that is starved. A person takes it out, whatever is shown by then."""
        self.up.wait(60)
        self._count("people cut off")
        with agent.attached() as terminal:
            terminal.settle(0.5, at_most=2)
            self._take_back(agent, terminal, TYPED_MAX)
            terminal.send("\x1d")
            terminal.wait_exit()

    def _type(self, agent: RealAgent, terminal: Terminal, what: str, word: str) -> None:
        if what == "draft":
            draft = f"draft {secrets.token_hex(3)}"
            for key in draft:
                terminal.send(key)
                time.sleep(0.05)
            self.over.wait(self.rng.uniform(0.5, 4))
            self._take_back(agent, terminal, len(draft))
        elif what == "prompt":
            terminal.send(f"person {word}")
            for _ in range(ENTERS):  # gemini takes none while it works
                time.sleep(1.0)
                terminal.send("\r")
                time.sleep(1.0)
                if not self._stands_there(agent):
                    return
            self._take_back(agent, terminal, TYPED_MAX)
        else:
            terminal.send("\x1b")
            time.sleep(0.3)

    def _take_back(self, agent: RealAgent, terminal: Terminal, characters: int) -> None:
        """A program that is starved takes many keys for one, or for text (cn): a person sees that, and goes on until
        all is gone."""
        for attempt in range(TYPED_MAX):
            for key in "\x15" if attempt % 2 else "\x7f" * characters:
                terminal.send(key)
                time.sleep(0.03)
            time.sleep(0.5)
            if not self._stands_there(agent):
                return

    def _stands_there(self, agent: RealAgent) -> bool:
        """Whether what was typed is still not sent, which shows when the program has done what it was at, and a daemon
        that has just come up knows its screen."""
        deadline = time.monotonic() + READ_S
        while not _at_rest(state := self.daemon.agent(agent.name)) and time.monotonic() < deadline:
            time.sleep(0.2)
        return state["held"] in ("typing", "unknown screen")

    def _answer_dialogs(self) -> None:
        while not self.drained.is_set():
            for agent in self.agents:
                if prompt := self.daemon.agent(agent.name)["prompt"]:
                    self._answer(agent, prompt["prompt_id"])
            time.sleep(0.5)

    def _stop_repeating(self) -> None:
        """Cancel what an opencode works on for so long after the clock was set: where its newest messages are dated
        ahead, it may ask its model again and again (docs/clocks.md)."""
        begun: dict[str, float] = {}
        while not self.drained.wait(5):
            for agent in self.agents if self.counts["clock"] else ():
                task = self.daemon.agent(agent.name)["task"] if "opencode" in agent.name else None
                if task is not None and time.monotonic() - begun.setdefault(task, time.monotonic()) > REPEATS_S:
                    since, answer = time.time(), self.daemon.post(f"/control/tasks/{task}/cancel", {})
                    told = "canceled" if answer.status == 200 else answer.json["error"]["code"]
                    self._note("cancel", agent, since, told=told)
                    del begun[task]

    def _answer(self, agent: RealAgent, prompt_id: str) -> None:
        what = "yes" if self.rng.random() < 0.7 else "no"
        time.sleep(self.rng.uniform(0, 2))
        since = time.time()
        answer = self.daemon.post(f"/control/agents/{agent.name}/input", {"input": what, "prompt_id": prompt_id})
        if answer.status == 200:
            self._note(what, agent, since)
        else:
            self._count(f"refused {answer.json['error']['code']}")

    def _kill(self, every: float) -> None:
        if self.over.wait(max(LIFE_S, self.rng.uniform(0.5, 1.5) * every)):
            return
        since = time.time()
        self.up.clear()
        self.daemon.kill9()
        self.daemon.start()
        self._note("kill", None, since)
        self.up.set()

    def _set_clock(self, every: float) -> None:
        """Set the clock by days, now and then back; a kill may follow at once, so a daemon may start at any date."""
        if self.over.wait(self.rng.uniform(0.5, 1.5) * every):
            return
        since = time.time()
        self.ahead = self.rng.choice([days for days in (0.0, *JUMPS) if days != self.ahead])
        self.clock.to(self.ahead)
        self._note("clock", None, since)

    # --- its end ---

    def drain(self) -> None:
        """Wait for the end of everything that was sent."""
        final = ("completed", "failed", "canceled", "rejected")
        deadline = time.monotonic() + DRAIN_S
        agents = {agent.name: agent for agent in self.agents}
        for sent in self.sent:
            sent.task_id = sent.task_id or self._find(agents[sent.agent], sent.word)
        left = [sent.task_id for sent in self.sent if sent.task_id]
        while left and time.monotonic() < deadline:
            left = [task for task in left if self.daemon.task(task)["status"] not in final]
            time.sleep(1)
        self.drained.set()
        for agent in self.agents:
            print(f"{agent.name}: {self._state(agent)}")

    def _state(self, agent: RealAgent) -> dict[str, Any]:
        state = self.daemon.agent(agent.name)
        return {key: state[key] for key in ("state", "activity", "restarts", "queue", "held")}


def _at_rest(state: dict[str, Any]) -> bool:
    return state["activity"] in ("ready", "waiting") or state["held"] == "unknown screen"


def tell(root: Path, sent: Sequence[Sent] | None = None) -> bool:
    """Judge what a run left in `root`, which has `sent` that; whether it was good."""
    happenings = Journal.read(root / "journal.jsonl")
    letters = letters_of(root / "synapsed" / "state" / "synapsed.db", time.time(), begun_at(happenings))
    verdict = judge(letters, read_log(root / "model.jsonl"), happenings, pace.Pace.read(root / PACE))
    for end in ends_of(root / "synapsed" / "state" / "synapsed.db"):
        verdict.fault("program ended", end)
    if sent is not None:
        taken = [each.word for each in sent if each.task_id is not None]
        for wrong in unaccounted([each.word for each in sent], taken, letters):
            verdict.fault("lost", wrong)
    for kind, texts in verdict.faults.items():
        print(f"{kind}: {len(texts)}", *texts, sep="\n    ")
    print(f"messages {len(letters)}, outcomes {dict(verdict.outcomes)}")
    print(f"figures {verdict.figures}")
    print(f"faults {sum(map(len, verdict.faults.values()))}")
    return not verdict.faults


def main() -> int:
    parser = argparse.ArgumentParser(description="A long run of real agents.")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)))
    parser.add_argument("--kill-every", type=float, default=300, help="seconds between kills of the daemon, about")
    parser.add_argument("--set-every", type=float, default=240, help="seconds between two settings of the clock, about")
    parser.add_argument("--older", type=int, default=2, help="older versions of each program beside the pinned one")
    parser.add_argument("--judge", type=Path, metavar="FOLDER", help="judge again what a run left there")
    options = parser.parse_args()
    if options.judge is not None:
        return 0 if tell(options.judge) else 1
    if reason := programs.missing() or strangers.missing():
        sys.exit(reason)
    if shutil.which("cc") is None:
        sys.exit("there is no C compiler (cc): the library that sets the clock is compiled; install gcc or clang")
    older = [version for cli in EVERY for version in versions.of(cli)[: options.older]]
    if reason := next(filter(None, map(versions.missing, older)), None):
        sys.exit(reason)
    netns.enter()
    root = programs.cache_dir().parent / "t" / f"soak-{secrets.token_hex(3)}"
    root.mkdir(mode=0o700, parents=True)
    print(f"seed {options.seed}, in {root}", flush=True)
    with Model(log_file=root / "model.jsonl") as model:
        soak = Soak(root, model, random.Random(options.seed), older)
        try:
            soak.run(options.minutes, options.kill_every, options.set_every)
            soak.drain()
            good = tell(root, soak.sent)  # before the agents end, and with them what is stranded
        finally:
            soak.over.set()
            soak.drained.set()
            soak.daemon.end()
    if good:
        shutil.rmtree(root, ignore_errors=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
