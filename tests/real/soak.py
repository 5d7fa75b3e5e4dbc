"""Four real agents for an hour: messages at random moments, people typing, dialogs, interrupts, kills of the daemon.

    python -m tests.real.soak [--minutes 60] [--seed N] [--kill-every 300]

Runs inside a loopback-only namespace. At the end every task is judged by the model's log: stranded (not in a final
state), doubled (submitted more than once), concatenated (two messages in one), misattributed (another's answer), wrong
(not the model's text). Exits 1 if any of these is not 0.
"""

import argparse
import contextlib
import json
import os
import random
import re
import secrets
import shutil
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

from tests.real import netns, programs
from tests.real.agents import EVERY, RealAgent
from tests.real.model import Model
from tests.real.script import expected_answer
from tests.support.daemon import Daemon

WORD = re.compile(r"nonce-[0-9a-f]{12}")
DRAIN_S = 240.0
"""For everything that was sent to end."""

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
    ("/{word} looks like a command", 1),
    ("{word} [[tool:shell-ask:echo ran]] say: After the tool.", 2),
    ("{word} I cannot: timeout, API Error, esc to interrupt", 1),
    ("{word} [[status:529x1]] [[answer:short]]", 1),
)


@dataclass
class Sent:
    word: str
    message: str
    agent: str
    task_id: str | None = None
    at: float = 0.0
    disturbed: bool = False
    """Somebody interrupted, canceled or refused something on this agent meanwhile."""


class Soak:
    def __init__(self, root: Path, model: Model, rng: random.Random) -> None:
        self.model = model
        self.rng = rng
        self.daemon = Daemon(root / "synapsed").start()
        self.agents = [
            RealAgent.start(
                cli,
                self.daemon,
                model,
                programs.prepare(cli, root / cli / "home", root / cli / "project", model.url),
                ready=False,
            )
            for cli in EVERY
        ]
        self.sent: list[Sent] = []
        self.persons: list[str] = []
        self.counts: Counter[str] = Counter()
        self.over = threading.Event()
        self.up = threading.Event()
        self.up.set()
        self.lock = threading.Lock()

    # --- what happens ---

    def run(self, minutes: float, kill_every: float) -> None:
        threads = [threading.Thread(target=self._guard, args=(self._send_to, agent)) for agent in self.agents]
        threads += [
            threading.Thread(target=self._guard, args=(self._be_a_person,)),
            threading.Thread(target=self._guard, args=(self._approve,)),
            threading.Thread(target=self._guard, args=(self._kill, kill_every)),
        ]
        for thread in threads:
            thread.start()
        end = time.monotonic() + minutes * 60
        while (left := end - time.monotonic()) > 0 and not self.over.wait(min(left, 60)):
            print(f"{left / 60:5.1f} minutes left; {len(self.sent)} messages, {dict(self.counts)}", flush=True)
        self.over.set()
        for thread in threads:
            thread.join(60)
        self.up.wait(60)

    def _guard(self, work: Any, *arguments: Any) -> None:
        while not self.over.is_set():
            try:
                work(*arguments)
            except (OSError, HTTPException, TimeoutError, AssertionError, ValueError) as error:
                self.counts["disturbances"] += 1  # the daemon is being killed: go on when it is back
                if not self.up.is_set():
                    self.up.wait(60)
                else:
                    print(f"disturbed: {str(error)[:200]}", flush=True)
                    self.over.wait(2)

    def _send_to(self, agent: RealAgent) -> None:
        while not self.over.wait(self.rng.expovariate(1 / 8)):
            with self.lock:
                (shape,) = self.rng.choices([s for s, _ in SHAPES], [w for _, w in SHAPES])
                urgent = self.rng.random() < 0.04
                cancel = self.rng.random() < 0.04
            word = f"nonce-{secrets.token_hex(6)}"
            sent = Sent(word, shape.format(word=word), agent.name)
            self._post(agent, sent, 5 if urgent else 1)
            self.counts["urgent" if urgent else "sent"] += 1
            if urgent:
                self._disturb(agent)
            if cancel and sent.task_id:
                self._disturb(agent)
                self.counts["canceled"] += 1
                self.daemon.post(f"/control/tasks/{sent.task_id}/cancel", {})

    def _post(self, agent: RealAgent, sent: Sent, priority: int) -> None:
        """Once, also where the daemon is killed in the middle: its list of tasks tells whether it had taken it."""
        body = {
            "message": {"role": "user", "parts": [{"type": "text", "text": sent.message}]},
            "priority": priority,
        }
        while True:
            try:
                answer = self.daemon.post(f"/agents/{agent.name}/tasks/send", body)
            except (OSError, HTTPException):
                self.up.wait(60)
                time.sleep(0.5)
                if (found := self._find(agent, sent.word)) is None:
                    continue
                sent.task_id = found
                break
            if answer.status == 200:
                sent.task_id = answer.json["task"]["id"]
                break
            self.counts[f"refused {answer.json['error']['code']}"] += 1
            if self.over.wait(5):
                return
        sent.at = time.monotonic()
        self.sent.append(sent)

    def _find(self, agent: RealAgent, word: str) -> str | None:
        for task in self.daemon.get(f"/control/tasks?agent={agent.name}").json:
            if word in json.dumps(task["message"]):
                return str(task["id"])
        return None

    def _disturb(self, agent: RealAgent) -> None:
        for sent in self.sent:
            if sent.agent == agent.name:
                sent.disturbed = True

    def _be_a_person(self) -> None:
        while not self.over.wait(self.rng.uniform(15, 45)):
            agent = self.rng.choice(self.agents)
            with agent.attached() as terminal:
                terminal.settle(0.5, at_most=2)
                what = self.rng.random()
                if what < 0.5:
                    self.counts["drafts"] += 1
                    draft = f"draft {secrets.token_hex(3)}"
                    for key in draft:
                        terminal.send(key)
                        time.sleep(0.05)
                    self.over.wait(self.rng.uniform(0.5, 4))
                    terminal.send("\x7f" * len(draft))
                    time.sleep(0.5)
                elif what < 0.75:
                    self.counts["own prompts"] += 1
                    word = f"nonce-{secrets.token_hex(6)}"
                    self.persons.append(word)
                    terminal.send(f"person {word}")
                    time.sleep(1.0)
                    terminal.send("\r")
                    time.sleep(1.0)
                else:
                    self.counts["esc"] += 1
                    self._disturb(agent)
                    terminal.send("\x1b")
                    time.sleep(0.3)
                terminal.send("\x1d")
                terminal.wait_exit()

    def _approve(self) -> None:
        with self.daemon.sse("/events") as events:
            for event in events:
                if self.over.is_set() and not self._open():
                    return
                data = event["data"]["data"]
                if data.get("type") == "agentActivity" and data.get("activity") == "waiting" and data.get("prompt"):
                    yes = self.rng.random() < 0.7
                    self.counts["approved" if yes else "refused"] += 1
                    name = next(
                        (a.name for a in self.agents if event["data"]["agent_id"].endswith(self._port(a))), None
                    )
                    if name and not yes:
                        self._disturb(next(a for a in self.agents if a.name == name))
                    self.daemon.ctl("input", name or "", "yes" if yes else "no")

    def _port(self, agent: RealAgent) -> str:
        return f"-{self.daemon.agent(agent.name)['port']}"

    def _kill(self, every: float) -> None:
        if self.over.wait(self.rng.uniform(0.5, 1.5) * every):
            return
        self.up.clear()
        self.counts["kills"] += 1
        self.daemon.kill9()
        self.daemon.start()
        self.up.set()

    def _open(self) -> list[Sent]:
        final = ("completed", "failed", "canceled", "rejected")
        return [s for s in self.sent if s.task_id and self.daemon.task(s.task_id)["status"] not in final]

    # --- how it is judged ---

    def judge(self) -> bool:
        approver = threading.Thread(target=self._approve_rest, daemon=True)
        approver.start()
        deadline = time.monotonic() + DRAIN_S
        while (left := self._open()) and time.monotonic() < deadline:
            time.sleep(1)
        faults: Counter[str] = Counter()
        outcome: Counter[str] = Counter()
        faults["stranded"] = len(left)
        for sent in left:
            print("stranded:", sent, json.dumps(self.daemon.task(sent.task_id or ""))[:600])
        requests = self.model.requests()
        for sent in self.sent:
            task = self.daemon.task(sent.task_id or "")
            outcome[task["status"] + (f" {task['error']['code']}" if task["error"] else "")] += 1
            submissions = self.model.submissions(sent.word)
            if submissions > 1:
                faults["doubled"] += 1
                print("doubled:", sent, submissions)
            if task["status"] == "completed":
                text = task["artifacts"][0]["parts"][0]["text"] if task["artifacts"] else ""
                answers = [a["parts"][0]["text"] for a in task["artifacts"] if a["artifact_id"] == "answer"]
                text = answers[0] if answers else text
                others = set(WORD.findall(text)) - {sent.word}
                if others:
                    faults["misattributed"] += 1
                    print("misattributed:", sent, repr(text[:200]))
                elif not sent.disturbed and "tool:" not in sent.message and text != expected_answer(sent.message):
                    faults["wrong"] += 1
                    print("wrong:", sent, task["exact"], repr(text[:300]))
                if submissions == 0:
                    faults["completed without a submission"] += 1
                    print("never submitted:", sent, repr(text[:200]))
        for request in requests:
            words = set(WORD.findall(request.user))
            if len(words) > 1:
                faults["concatenated"] += 1
                print("concatenated:", words, request.user[:300])
            if "draft " in request.user:
                faults["drafts submitted"] += 1
                print("draft submitted:", request.user[:300])
        print(f"messages {len(self.sent)}, of people {len(self.persons)}, events {dict(self.counts)}")
        print(f"outcomes {dict(outcome)}")
        print(f"faults {dict(faults)}")
        return not any(faults.values())

    def _approve_rest(self) -> None:
        while True:
            with contextlib.suppress(OSError, HTTPException):
                for agent in self.agents:
                    if self.daemon.agent(agent.name).get("prompt"):
                        self.daemon.ctl("input", agent.name, "yes")
            time.sleep(1)


def main() -> int:
    parser = argparse.ArgumentParser(description="A long run of real agents.")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)))
    parser.add_argument("--kill-every", type=float, default=300, help="seconds between kills of the daemon, about")
    options = parser.parse_args()
    if reason := programs.missing():
        sys.exit(reason)
    netns.enter()
    root = programs.cache_dir().parent / "t" / f"soak-{secrets.token_hex(3)}"
    root.mkdir(mode=0o700, parents=True)
    print(f"seed {options.seed}, in {root}")
    with Model(log_file=root / "model.jsonl") as model:
        soak = Soak(root, model, random.Random(options.seed))
        try:
            soak.run(options.minutes, options.kill_every)
            good = soak.judge()
        finally:
            soak.over.set()
            soak.daemon.end()
    if good:
        shutil.rmtree(root, ignore_errors=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
