"""The row of one program, and its scenarios recorded again, in a loopback-only namespace.

    python -m tests.drift.row PROGRAM INTO [--version VERSION --programs FOLDER]

INTO/row.json is what came of it: `told` at its start, `cells` and `faults`, and the `screen` (SVG) where it failed. The
recordings are written below INTO/recordings. Without FOLDER it is the pinned version, which is not recorded.
"""

import argparse
import json
import secrets
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from synapsed.profiles.library import ProfileLibrary
from tests.drift.compare import COMPARED
from tests.real import netns, programs, shipped
from tests.real.agents import STARTS_S, RealAgent, nonce
from tests.real.model import Model
from tests.real.record import INTO, record
from tests.real.recorded import is_possible
from tests.support.daemon import Daemon, eventually
from tests.support.npm import cache_root

__all__ = ["Row", "cells", "main"]

MARKUP = ("{word} [[answer:fenced]]", "{word} with\nseveral lines\n\n  indented", "{word} [[answer:japanese]]")
LONG = "{word} [[answer:lines200]]"


@dataclass
class Row:
    """The cells of a row: after one that fails the program is in an unknown state, and no more are tried."""

    told: str = ""
    cells: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    screen: str | None = None

    def attempt(self, what: str, work: Callable[[], None], shown: Callable[[], str | None]) -> None:
        if self.faults:
            self.cells[what] = "-"
            return
        try:
            work()
        except Exception as error:  # a program that nobody has seen may fail in any way
            self.cells[what] = "NO"
            self.faults.append(f"{what}: {type(error).__name__}: {error}")
            self.screen = shown()
        else:
            self.cells[what] = "yes"


@dataclass(frozen=True)
class Trial:
    """One agent whose row is tried."""

    agent: RealAgent

    @property
    def asks(self) -> bool:
        found = shipped.PROGRAMS.get(self.agent.prepared.cli)
        return found is None or found.asks

    def starts(self) -> None:
        self.agent.daemon.ready(self.agent.name, patience=STARTS_S)

    def turns(self) -> None:
        for shape in (LONG, *MARKUP):
            word = nonce()
            self.agent.ask_exactly(shape.format(word=word))
            assert self.agent.model.submissions(word) == 1, word

    def permission(self) -> None:
        daemon = self.agent.daemon
        for verb in ("approve", "deny") if self.asks else ():
            made, word = self.agent.file(f"made-{verb}"), nonce()
            task = self.agent.send(f"{word} [[tool:shell-ask:touch {made}]]")
            asked = daemon.task_in(task, "input_required", "completed", "failed")
            assert asked["status"] == "input_required", asked
            assert f"touch {made}" in f"{asked['prompt'].get('command')} {asked['prompt']['prompt']}", asked
            assert daemon.ctl(verb, task).code == 0
            daemon.ended(task)
            assert made.exists() is (verb == "approve"), f"{verb}: {made} is there: {made.exists()}"
            self.agent.ask_exactly(f"And {nonce()}.")

    def cancel(self) -> None:
        word = nonce()
        task = self.agent.send(f"{word} [[hold-mid:never-{word}]] [[answer:lines20]]")
        self.agent.model.wait_for_turn(word)
        self.agent.daemon.task_in(task, "working")
        canceled = self.agent.daemon.ctl("cancel", task)
        done = self.agent.daemon.ended(task)
        assert done["status"] == "canceled", (canceled.code, canceled.err, done)
        self.agent.ask_exactly(f"After that, {nonce()}?")

    def restart(self) -> None:
        assert self.agent.daemon.ctl("restart", self.agent.name).code == 0
        self.agent.daemon.ready(self.agent.name, patience=STARTS_S)
        self.agent.ask_exactly(f"Next {nonce()}.")

    def draft(self) -> None:
        daemon, name = self.agent.daemon, self.agent.name
        assert daemon.ctl("keys", name, "half a thought").code == 0
        eventually(lambda: "half a thought" in self.agent.screen(), "the draft stands in the composer")
        word = nonce()
        task = self.agent.send(f"Wait {word}.")
        eventually(lambda: daemon.agent(name)["held"] == "typing", "it is held for what a person types")
        assert daemon.task(task)["status"] == "submitted"
        assert self.agent.model.submissions(word) == 0

    def screen(self) -> str | None:
        try:
            answer = self.agent.daemon.get(f"/agents/{self.agent.name}/screen?format=svg")
        except OSError:
            return None
        return answer.body.decode() if answer.status == 200 else None


def tried(cli: str, base: Path, folder: Path | None) -> Row:
    """Runs the row of a program in `base`."""
    row = Row()
    daemon = Daemon(base / "synapsed").start()
    try:
        with Model() as model:
            known = shipped if cli in shipped.PROGRAMS else programs
            prepared = known.prepare(cli, base / "home", base / "project", model.url)
            if folder is not None:
                prepared = programs.of_folder(prepared, folder)
            env = {**daemon.env, **prepared.env}
            started = daemon.ctl("start", cli, "--cwd", str(prepared.cwd), env=env)
            row.told = " ".join(started.err.split())
            trial = Trial(RealAgent(cli, daemon, model, prepared))
            for cell in cells(cli):
                row.attempt(cell.__name__, partial(cell, trial), trial.screen)
    finally:
        daemon.end()
    return row


def cells(cli: str) -> tuple[Callable[[Trial], None], ...]:
    """Returns what is tried of a program, in this order. One on pipes has no composer, in which a person may leave a
    draft: its terminal is drawn by synapsed."""
    usual = (Trial.starts, Trial.turns, Trial.permission, Trial.cancel, Trial.restart)
    return (*usual, Trial.draft) if ProfileLibrary.builtin().get(cli).transport == "pty" else usual


def recorded_again(cli: str, into: Path, base: Path, version: str, folder: Path) -> None:
    """Records the scenarios that the verified version has been recorded in."""
    for known in sorted(INTO.glob(f"{cli}-*")):
        for scenario in COMPARED:
            if (known / f"{scenario}.raw").exists() and is_possible(cli, scenario):
                try:
                    record(cli, scenario, into, base, number=version, programs_in=folder)
                except Exception as error:
                    print(f"{cli} {scenario}: {type(error).__name__}: {error}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.drift.row", description="The row of one program.")
    parser.add_argument("program")
    parser.add_argument("into", type=Path)
    parser.add_argument("--version", default="")
    parser.add_argument("--programs", type=Path)
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))  # the daemon and the program are ended then, too
    try:
        netns.enter()
    except netns.NotIsolatedError as error:
        print(error, file=sys.stderr)
        return 2
    base = cache_root() / "t" / secrets.token_hex(3)  # short, for sockets, and not below /tmp, for gemini
    base.mkdir(parents=True, mode=0o700)
    try:
        row = tried(options.program, base / "row", options.programs)
        (options.into / "row.json").write_text(json.dumps(asdict(row)))
        if options.programs is not None:
            recorded_again(
                options.program, options.into / "recordings", base / "again", options.version, options.programs
            )
    finally:
        shutil.rmtree(base, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
