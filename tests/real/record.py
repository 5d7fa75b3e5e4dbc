"""Records real runs of the agent programs: golden material for what recognises their screens.

    python -m tests.real.record [CLI …] [--only SCENARIO …] [--into FOLDER]

Each scenario is a fresh program with a home of its own, in a plain terminal of 120 by 40, before the scripted model.
It leaves ``<cli>-<version>/<scenario>.raw`` (every byte that the program wrote), ``.json`` (`chunks`: [seconds,
offset] after every read; `marks`: [seconds, offset, label]; `requests`: what the model was asked), and ``.txt``
(title, OSC 7501 and the visible screen at every mark, for people). ``hooks/<cli>/<scenario>.jsonl`` is what hooks
were given, or what the program's own event stream said, in order; ``hooks/<cli>/<event>.json`` a sample of each.
"""

import argparse
import contextlib
import http.client
import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.real import netns
from tests.real.looks import LAUNCHES, LOOKS, SERVER_PORT, Look
from tests.real.model import Model
from tests.real.programs import PROGRAMS, Prepared, prepare, version
from tests.real.questions import ANSWERING, ASK, ASKING, LISTS, PLANNED, PROPOSED, WORDS, asking
from tests.real.terminal import COLUMNS, ROWS, Mark, Terminal, render, statuses_in, titles_in

__all__ = ["SCENARIOS", "Session", "launched", "main"]

INTO = Path(__file__).parent.parent / "recordings"
NOISE = frozenset({"plugin.added", "server.heartbeat"})  # events of opencode that say nothing of turns


@dataclass
class Session:
    """A program under way in a scenario."""

    cli: str
    model: Model
    prepared: Prepared
    terminal: Terminal
    hooks: Path
    events: list[tuple[float, str]] = field(default_factory=list)

    @property
    def look(self) -> Look:
        return LOOKS[self.cli]

    def mark(self, label: str) -> None:
        self.terminal.mark(label)

    def ready(self) -> None:
        """Waits for the first prompt."""
        self.terminal.wait_screen(self.look.ready, timeout=120)
        self.terminal.settle(0.6, at_most=6)
        self.mark("ready")

    def submit(self, text: str) -> None:
        self.terminal.submit(text)
        self.mark("submitted")

    def settle(self, label: str) -> None:
        self.terminal.settle(0.8, at_most=4)
        self.mark(label)

    def see(self, pattern: str, label: str, *, timeout: float = 40.0) -> None:
        self.terminal.wait_screen(pattern, timeout=timeout)
        self.mark(label)

    def served(self, containing: str, count: int = 1) -> None:
        """Waits until the model has answered that many requests of the turn."""
        self.model.wait_for(
            lambda requests: (
                sum(r.outcome is not None and not r.is_side_call and containing in r.user for r in requests) >= count
            )
        )


@contextlib.contextmanager
def launched(
    cli: str, base: Path, *, extra: Sequence[str] = (), configure: Callable[[Prepared], None] | None = None
) -> Iterator[Session]:
    """The program before a model of its own, with its reports on, in folders below `base`."""
    hooks = base / "hooks"
    hooks.mkdir(parents=True, mode=0o700)
    with Model() as model:
        prepared = prepare(cli, base / "home", base / "project", model.url)
        if configure is not None:
            configure(prepared)
        args, env = LAUNCHES[cli](hooks, prepared.home)
        netns.require()
        argv = [*prepared.argv, *args, *extra]
        with Terminal(argv, env={**prepared.env, **env}, cwd=prepared.cwd) as terminal:
            session = Session(cli, model, prepared, terminal, hooks)
            if cli == "opencode":
                threading.Thread(target=_follow_events, args=(session,), daemon=True).start()
            yield session


def _follow_events(session: Session) -> None:
    """Collects the lines of opencode's event stream until it ends.

    A connection made while the server starts may be accepted and never answered, hence the time limit at first.
    """
    while not session.terminal.ended:
        connection = http.client.HTTPConnection("127.0.0.1", SERVER_PORT, timeout=1)
        try:
            connection.connect()
            socket = connection.sock
            connection.request("GET", "/event")
            stream = connection.getresponse()
            socket.settimeout(None)
            for line in stream:
                if line.startswith(b"data:"):
                    session.events.append((session.terminal.now, line[5:].decode().strip()))
        except (OSError, http.client.HTTPException):
            time.sleep(0.05)
        finally:
            connection.close()


def untrusted(prepared: Prepared) -> None:
    """Takes back what makes the project folder trusted."""
    claude, codex = prepared.home / ".claude.json", prepared.home / ".codex" / "config.toml"
    if claude.exists():
        claude.write_text(json.dumps({**json.loads(claude.read_text()), "projects": {}}))
    if codex.exists():
        codex.write_text(codex.read_text().partition("[projects")[0])
        subprocess.run(["git", "init", "-q"], cwd=prepared.cwd, check=True)  # it asks in repositories alone
    if prepared.cli == "gemini":
        settings = prepared.home / ".gemini" / "settings.json"
        config = json.loads(settings.read_text())
        config["security"]["folderTrust"] = {"enabled": True}
        settings.write_text(json.dumps(config))
        del prepared.env["GEMINI_CLI_TRUST_WORKSPACE"]  # type: ignore[attr-defined]


def without_account(prepared: Prepared) -> None:
    """Takes back what it signs in with."""
    claude, codex = prepared.home / ".claude.json", prepared.home / ".codex" / "config.toml"
    if claude.exists():
        claude.write_text(json.dumps({**json.loads(claude.read_text()), "customApiKeyResponses": {}}))
    if codex.exists():
        lines = codex.read_text().splitlines()
        codex.write_text("\n".join(line for line in lines if not line.startswith("model")) + "\n")
    settings = prepared.home / ".gemini" / "settings.json"
    if settings.exists():
        config = json.loads(settings.read_text())
        del config["security"]["auth"]
        settings.write_text(json.dumps(config))
    for name in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "SCRIPTED_API_KEY"):
        prepared.env.pop(name, None)  # type: ignore[attr-defined]


def start(session: Session) -> None:
    session.ready()
    session.terminal.send("a draft that nobody has sent")
    session.see("a draft that nobody", "draft")
    session.terminal.send(b"\x1b[200~first line\nsecond line\x1b[201~")
    session.settle("pasted two lines")


def leave(session: Session) -> None:
    session.ready()
    for key in session.look.leave:
        session.terminal.send(key)
        session.terminal.settle(0.3)
        session.mark(f"sent {key!r}")
    session.terminal.wait_exit()
    session.mark("ended")


def turn(session: Session) -> None:
    session.ready()
    session.submit("Say the fenced one. [[answer:fenced]]")
    session.served("fenced")
    session.settle("answered")
    session.submit("The same again. [[answer:fenced]]")
    session.served("again")
    session.settle("answered again")


def delayed(session: Session) -> None:
    session.ready()
    session.submit("[[delay:3]] [[stall:2]] [[answer:japanese]]")
    session.see(session.look.busy, "busy")
    session.served("japanese")
    session.settle("answered")


def long(session: Session) -> None:
    session.ready()
    session.submit("[[answer:lines200]]")
    session.served("lines200")
    session.terminal.wait_screen("Line 200")
    session.settle("answered")


def slow(session: Session) -> None:
    """Text that comes as a model writes it: markdown, then more than a screen."""
    session.ready()
    session.submit("Slowly, fenced. [[slow:60]] [[answer:fenced]]")
    session.served("Slowly")
    session.settle("answered")
    session.submit("Longer. [[slow:8000]] [[answer:lines200]]")
    session.served("Longer")
    session.terminal.wait_screen("Line 200")
    session.settle("answered again")


def quotes(session: Session) -> None:
    session.ready()
    session.submit("[[answer:quotes]]")
    session.served("quotes")
    session.settle("answered")


_TOUCH = "[[before:I will make the file.]] [[tool:shell-ask:touch made-by-tool]] say: The tool has run."


def accept(session: Session) -> None:
    session.ready()
    session.submit(_TOUCH)
    session.see(session.look.dialog, "dialog")
    session.settle("dialog settled")
    session.terminal.send(session.look.accept)
    session.mark("accepted")
    session.served("has run", 2)
    session.settle("answered")


def reject(session: Session) -> None:
    session.ready()
    session.submit(_TOUCH)
    session.see(session.look.dialog, "dialog")
    session.settle("dialog settled")
    session.terminal.send(session.look.reject)
    session.mark("rejected")
    session.settle("after rejection")
    session.submit("And now? nonce-after-rejection")
    session.served("nonce-after")
    session.settle("answered")


def question(session: Session) -> None:
    """Of the model to the person: one answer, several, and a page to look them over."""
    session.ready()
    session.submit(ASK)
    session.see(r"Which colour do you like\?[\s\S]*Enter to select", "one of them")
    session.settle("dialog settled")
    for key, label in (("2", "several of them"), ("1", "chosen"), ("\x1b[C", "look over"), ("1", "answered")):
        session.terminal.send(key)
        session.settle(label)


def planning(session: Session) -> None:
    """Has codex plan, which alone lets its model ask."""
    session.terminal.send("/plan")
    session.terminal.settle(0.6, at_most=3)
    session.terminal.send("\r")
    session.see(r"\bPlan mode \(", "planning")
    session.terminal.settle(0.6, at_most=3)


def _put(session: Session, message: str, dialog: str) -> None:
    """Submits what has the model ask. Some show so long a paste as a placeholder."""
    session.terminal.send(f"\x1b[200~{message}\x1b[201~")
    session.settle("pasted")
    session.terminal.send("\r")
    session.see(dialog, "one of them")
    session.settle("dialog settled")


def own_words(session: Session) -> None:
    """Questions of the model, answered in words of one's own."""
    session.ready()
    if session.cli == "codex":
        planning(session)
    _put(session, asking(session.cli), r"Which colour do you like\?[\s\S]*(?i:enter) (?:to select|to submit|confirm)")
    for keys, label in ANSWERING[session.cli]:
        session.terminal.send(keys)
        session.settle(label)


def scrolled(session: Session) -> None:
    """Questions with more options than are shown: several answers, and one."""
    session.ready()
    _put(session, LISTS, r"Which sizes do you need\?[\s\S]*Enter to select")
    for keys, label in (
        ("2", "chosen"),
        ("\x0f", "all of them"),
        ("x", "own words"),
        (f"\x7f{WORDS}", "typed"),
        ("\x1b[B", "left"),
        ("1", "another chosen"),
        ("1", "taken back"),
        ("\x0f", "all of them with words"),
        ("\x1b[A", "at the end"),
        ("\r", "one of them"),
        ("\x0f", "all four"),
        ("4", "look over"),
        ("\r", "answered"),
    ):
        session.terminal.send(keys)
        session.settle(label)


def unanswered(session: Session) -> None:
    """A question that was passed over."""
    session.ready()
    planning(session)
    _put(session, asking(session.cli), r"Which colour do you like\?[\s\S]*enter to submit")
    for keys, label in (
        ("\x1b[C", "another"),
        ("1", "passed over"),
        ("2", "selected"),
        ("\r", "the first again"),
        ("1", "the other again"),
        ("2", "answered"),
    ):
        session.terminal.send(keys)
        session.settle(label)


def plan(session: Session) -> None:
    session.ready()
    if session.cli == "codex":
        planning(session)
        session.submit(PROPOSED)
        session.see(r"Implement this plan\?[\s\S]*3\. ", "dialog")
        session.settle("dialog settled")
        session.terminal.send("1")
        session.served("mplement the plan")
    else:
        session.submit(PLANNED)
        session.see(r"Would you like to proceed\?[\s\S]*3\. ", "dialog")
        session.settle("dialog settled")
        session.terminal.send("2")
        session.served("PLAN-FILE", 3)
    session.settle("answered")


def always(session: Session) -> None:
    """A permission for good, where the program asks twice."""
    session.ready()
    session.submit(_TOUCH)
    session.see(session.look.dialog, "dialog")
    session.settle("dialog settled")
    session.terminal.send("\x1b[C")
    session.terminal.settle(0.4, at_most=2)
    session.terminal.send("\r")
    session.settle("asked again")
    session.terminal.send("\r")
    session.served("has run", 2)
    session.settle("answered")


def sign_in(session: Session) -> None:
    """Without an account. claude asks only when it is told to."""
    if session.cli == "claude":
        session.ready()
        session.terminal.send("/login")
        session.terminal.settle(0.6, at_most=3)
        session.terminal.send("\r")
    session.see(session.look.sign_in, "dialog", timeout=120)
    session.settle("dialog settled")


def refuse_with_reason(session: Session) -> None:
    """Refuses so that the turn goes on and the model is told, where the program's dialog can do that."""
    session.ready()
    session.submit(_TOUCH)
    session.see(session.look.dialog, "dialog")
    session.settle("dialog settled")
    for key in session.look.refuse_with_reason:
        session.terminal.send(key)
        session.terminal.settle(0.3, at_most=1)
        session.mark(f"sent {key!r}")
    session.served("has run", 2)
    session.settle("answered")


def trust(session: Session) -> None:
    assert session.look.trust is not None
    session.see(session.look.trust, "dialog")
    session.settle("dialog settled")
    for key in session.look.trust_keys:
        session.terminal.send(key)
        session.terminal.settle(0.3, at_most=1)
    session.mark("trusted")
    session.terminal.settle(2.5, at_most=8)
    session.mark("after trust")


def interrupt(session: Session) -> None:
    session.ready()
    session.submit("[[hold-mid:never]] [[answer:lines20]]")
    session.see("Line 0", "streaming")
    session.terminal.settle(0.5, at_most=1)
    session.mark("held")
    for key in session.look.interrupt:
        session.terminal.send(key)
        time.sleep(0.3)
    session.mark("interrupting")
    session.see(session.look.interrupted, "interrupted")
    session.settle("after interrupt")
    session.submit("Next. nonce-after-interrupt")
    session.served("nonce-after")
    session.settle("answered")


def interrupt_early(session: Session) -> None:
    """Before the model has said anything."""
    session.ready()
    session.submit("[[hold:never]] nonce-held")
    session.model.wait_for_turn("nonce-held")
    session.see(session.look.busy, "busy")
    for key in session.look.interrupt:
        session.terminal.send(key)
        time.sleep(0.3)
    session.settle("after interrupt")


def menu(session: Session) -> None:
    """What the keys that clear the composer open where it is empty."""
    assert session.look.menu is not None
    session.ready()
    session.submit("Say nonce-before-menu.")
    session.served("nonce-before-menu")
    session.settle("answered")
    for key in session.look.interrupt * 2:
        session.terminal.send(key)
    session.see(session.look.menu, "menu")
    session.settle("menu settled")
    session.terminal.send("\x1b")
    session.settle("closed")


def error(session: Session) -> None:
    session.ready()
    session.submit("[[status:400]] nonce-broken")
    session.see(session.look.error, "error")
    session.settle("after error")
    session.submit("Next. nonce-after-error")
    session.served("nonce-after")
    session.settle("answered")


def retry(session: Session) -> None:
    session.ready()
    session.submit("[[status:529x1]] nonce-overloaded")
    with contextlib.suppress(TimeoutError):
        session.see(session.look.retry, "retrying", timeout=8)
    session.served("nonce-overloaded", 2)
    session.settle("answered")


def limit(session: Session) -> None:
    """The account's allowance is used up, for two hours."""
    _refused(session, "[[limit:7200]] nonce-limited")


def overlong(session: Session) -> None:
    _refused(session, "[[overlong]] nonce-overlong")


def login(session: Session) -> None:
    _refused(session, "[[status:401]] nonce-login")


def _refused(session: Session, message: str) -> None:
    session.ready()
    session.submit(message)
    session.served(message.rpartition(" ")[2])
    session.settle("refused")
    with contextlib.suppress(TimeoutError):
        session.see(session.look.error, "error", timeout=25)
    session.settle("after error")


def queued(session: Session) -> None:
    """Typed while the program works."""
    session.ready()
    session.submit("[[hold-mid:gate]] [[answer:lines20]]")
    session.see("Line 0", "streaming")
    session.terminal.settle(0.5, at_most=1)
    session.submit("Second message nonce-second")
    session.settle("second submitted")
    session.model.release("gate")
    session.served("nonce-second")
    session.settle("answered")


SCENARIOS: Mapping[str, Callable[[Session], None]] = {
    "start": start,
    "leave": leave,
    "turn": turn,
    "delayed": delayed,
    "long": long,
    "slow": slow,
    "quotes": quotes,
    "accept": accept,
    "reject": reject,
    "refuse-with-reason": refuse_with_reason,
    "trust": trust,
    "question": question,
    "own-words": own_words,
    "scrolled": scrolled,
    "unanswered": unanswered,
    "plan": plan,
    "always": always,
    "sign-in": sign_in,
    "interrupt": interrupt,
    "interrupt-early": interrupt_early,
    "menu": menu,
    "error-400": error,
    "retry-529": retry,
    "limit": limit,
    "overlong": overlong,
    "error-401": login,
    "queued": queued,
}


def _save(session: Session, scenario: str, into: Path) -> None:
    folder = into / f"{session.cli}-{version(session.cli)}"
    folder.mkdir(parents=True, exist_ok=True)
    terminal = session.terminal
    raw = bytes(terminal.raw)
    (folder / f"{scenario}.raw").write_bytes(raw)
    requests = [
        {
            "user": r.user,
            "results": [result.text[:600] for result in r.all_results],
            "notes": [note[:200] for note in r.notes if "interrupt" in note.lower() or "abort" in note.lower()],
            "side": r.side,
            "reply": r.reply,
            "outcome": r.outcome,
        }
        for r in session.model.requests(side=True)
    ]
    facts = {
        "cli": session.cli,
        "version": version(session.cli),
        "size": [COLUMNS, ROWS],
        "marks": [[round(mark.at, 6), mark.offset, mark.label] for mark in terminal.marks],
        "chunks": [[round(at, 6), offset] for at, offset in terminal.chunks],
        "titles": terminal.titles(),
        "statuses": terminal.statuses(),
        "hooks": [path.stem.partition("-")[2] for path in sorted(session.hooks.glob("*.json"))],
        "requests": requests,
    }
    (folder / f"{scenario}.json").write_text(json.dumps(facts, ensure_ascii=False) + "\n")
    seen = [_seen(mark, raw[: mark.offset]) for mark in terminal.marks]
    (folder / f"{scenario}.txt").write_text("\n".join(seen))
    _save_reports(session, into / "hooks" / session.cli, scenario)


def _seen(mark: Mark, raw: bytes) -> str:
    title, status = (titles_in(raw) or [""])[-1], (statuses_in(raw) or [""])[-1]
    heads = [
        f"=== {mark.label}, {mark.at:.2f} s, offset {mark.offset}",
        f"title {title.strip()!r}, OSC 7501 {status!r}",
    ]
    return "\n".join([*heads, render(raw), ""])


def _save_reports(session: Session, folder: Path, scenario: str) -> None:
    """Keeps what hooks were given, or the event stream said: all of it in order, and a sample of each kind."""
    folder.mkdir(parents=True, exist_ok=True)
    reports = [(at, event, payload) for at, event, payload in _reports(session) if event not in NOISE]
    lines = [
        json.dumps({"at": at, "event": event, "payload": payload}, ensure_ascii=False) for at, event, payload in reports
    ]
    (folder / f"{scenario}.jsonl").write_text("".join(line + "\n" for line in lines))
    for _, event, payload in reports:
        sample = folder / f"{event}.json"
        if not sample.exists():
            sample.write_text(json.dumps(payload, indent=1, ensure_ascii=False) + "\n")


def _reports(session: Session) -> Iterator[tuple[float, str, dict[str, Any]]]:
    for path in sorted(session.hooks.glob("*.json")):
        written, _, event = path.stem.partition("-")
        yield round(int(written) / 1e9 - session.terminal.started_at, 3), event, json.loads(path.read_text())
    for at, data in session.events:
        event = json.loads(data)
        yield round(at, 3), event["type"], event


def record(cli: str, scenario: str, into: Path, base: Path) -> None:
    """Runs one scenario and keeps what was seen, also when the scenario fails (which it then reports)."""
    shutil.rmtree(base, ignore_errors=True)
    configure = {"trust": untrusted, "sign-in": without_account}.get(scenario)
    extra = ("--permission-mode", "plan") if (cli, scenario) == ("claude", "plan") else ()
    with launched(cli, base, configure=configure, extra=extra) as session:
        session.mark("started")
        try:
            SCENARIOS[scenario](session)
        except TimeoutError as late:
            session.mark("failed")
            print(f"{cli} {scenario}: {late}", file=sys.stderr)
        session.terminal.kill()
        _save(session, scenario, into)
        print(f"{cli} {scenario}: {len(session.terminal.raw)} bytes in {session.terminal.now:.1f} s", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.real.record", description="Records real runs.")
    parser.add_argument("cli", nargs="*", choices=[*PROGRAMS, []], default=[])
    parser.add_argument("--only", nargs="+", choices=list(SCENARIOS), default=list(SCENARIOS))
    parser.add_argument("--into", type=Path, default=INTO)
    parser.add_argument(
        "--base", type=Path, default=Path.home() / ".cache" / "synapsed" / "recording", help="homes and projects"
    )
    options = parser.parse_args(arguments)
    netns.enter()
    for cli in options.cli or PROGRAMS:
        for scenario in options.only:
            if _possible(cli, scenario):
                record(cli, scenario, options.into, options.base / cli)


SOME = {
    "menu": ("claude",),
    "question": ("claude",),
    "own-words": tuple(ASKING),
    "scrolled": ("gemini",),
    "unanswered": ("codex",),
    "plan": ("claude", "codex"),
    "always": ("opencode",),
    "sign-in": ("claude", "codex", "gemini"),
}
"""What only some can show."""


def _possible(cli: str, scenario: str) -> bool:
    look = LOOKS[cli]
    if scenario == "trust":
        return look.trust is not None
    if scenario in SOME:
        return cli in SOME[scenario]
    return scenario != "refuse-with-reason" or bool(look.refuse_with_reason)


if __name__ == "__main__":
    main()
