"""Questions of libraries that nobody here wrote, each with a message that waits for its program: no key is pressed that
nobody asked for, proved by all that the daemon wrote, and a person is told within ten seconds.

They stand under `generic`, in a turn of a shell, in one of a program with a profile of a person's, and where a program
that has a built-in profile should have its composer. A case is a library: all that it asks stands at once, each in a
terminal of its own. It stands for longer, too: a window of another size that draws it again, a killed daemon and its
successor, and a turn beside it that takes longer than it ever took until a key was pressed that nobody asked for.
"""

import json
import os
import shlex
import shutil
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from tests.real import libraries
from tests.support.daemon import NO_PORTS, Daemon, eventually
from tests.support.written import Written, noting
from tests.synapsectl.pty_tool import PtyTool

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

ASK: dict[str, str] = {
    "sh dialog": "yesno msgbox menu checklist radiolist inputbox passwordbox inputmenu form calendar timebox rangebox "
    "fselect textbox editbox buildlist treeview pause",
    "sh whiptail": "yesno msgbox menu checklist radiolist inputbox passwordbox",
    "sh fzf": "full height reverse multi",
    "sh peco": "list",
    "sh fzy": "list",
    "sh percol": "list",
    "sh iselect": "list",
    "py fzf": "full height",
    "py newt": "listbox buttons entry",
    "py inquirer": "list checkbox confirm text",
    "py bullet": "list check yesno input",
    "py beaupy": "select multiple confirm prompt",
    "py questionary": "select checkbox confirm rawselect text password autocomplete",
    "py inquirerpy": "select checkbox confirm fuzzy rawlist text",
    "py ptk": "buttons button-dialog radiolist checkboxlist input message choice confirm prompt",
    "py textual": "options radio selection input buttons",
    "py termmenu": "single multi",
    "py pick": "single multi",
    "py cutie": "select multiple confirm",
    "py survey": "select basket inquire input",
    "py urwid": "menu buttons",
    "py click": "choice confirm int",
    "py rich": "confirm choices text",
    "py npyscreen": "form yesno",
    "py plain": "enter letters amp default",
    "js clack": "select confirm multi text password",
    "js inquirer": "select checkbox confirm rawlist expand search input password",
    "js legacy": "list rawlist checkbox confirm",
    "js prompts": "select toggle multi confirm text autocomplete",
    "js enquirer": "select multi autocomplete confirm toggle input quiz",
    "js ink": "select input ui-select ui-multi ui-confirm",
    "js kit": "column line yesno input",
    "js blessed": "list question prompt",
    "js sync": "yn select text",
    "js cliselect": "it",
    "js topcli": "select confirm multi",
    "go bubbletea": "choose list input",
    "go survey": "select multi confirm input password",
    "go promptui": "select prompt confirm",
    "go tview": "modal list form",
    "rb tty": "select multi yes mask enum slider keypress expand ask",
    "rb highline": "choose agree secret ask",
    "pl choose": "rows line",
    "pl termui": "yn choices",
}
"""What each library asks."""

WITHIN = ["generic", "a shell", "a profile", "claude"]

BESIDE = "beside"
"""A shell."""

LONGER_S = 4
"""A key that nobody asked for was pressed after two seconds."""

TOLD_S = 10.0
"""A person is told within so many seconds of the last that the program drew."""

CLAUDE = """#!/bin/sh
[ "$1" = --version ] && { echo "2.1.330 (Claude Code)"; exit; }
eval "exec $ASKS"
"""


@pytest.fixture(scope="module")
def daemon(isolated: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    path = tmp_path_factory.mktemp("unasked")
    running = Daemon(path, config=NO_PORTS, environ=noting(path / "keys"))
    shutil.copytree(Path(__file__).with_name("profiles"), path / "config" / "profiles")
    (path / "bin").mkdir()
    (path / "bin" / "claude").write_text(CLAUDE)
    (path / "bin" / "claude").chmod(0o755)
    running.start()
    running.start_agent(profile="generic", name=BESIDE, args=["bash", "--norc"])
    yield running
    running.end()


class Asking:
    """One program that asks."""

    def __init__(self, daemon: Daemon, program: str, within: str) -> None:
        self._daemon, self._program = daemon, program
        self._command = shlex.join(libraries.argv(program))
        self._asked_for = ""
        env = {**os.environ, "HOME": str(daemon.home), "PS1": "$ ", "TERM": "xterm-256color", "LANG": "C.UTF-8"}
        env |= {"ASKS": self._command, "PATH": f"{daemon.home / 'bin'}{os.pathsep}{env['PATH']}"}
        profile, args = {
            "generic": ("generic", libraries.argv(program)),
            "a shell": ("generic", ["bash", "--norc"]),
            "a profile": ("handing", [str(Path(__file__).with_name("handing.py"))]),
            "claude": ("claude", []),
        }[within]
        name = f"{within} {program}".replace(" ", "-")
        cwd = daemon.home / name
        cwd.mkdir()
        answer = daemon.post(
            "/control/start", {"profile": profile, "args": args, "name": name, "cwd": str(cwd), "env": env}
        )
        assert answer.status == 200, answer.json
        self._agent = dict(answer.json)
        self.name = name
        self._in_turn = within in ("a shell", "a profile")

    def begin(self) -> None:
        """The question stands in a turn, or the program asks anyway; and a message waits behind it."""
        if self._in_turn:
            self._daemon.ready(self.name)
            self._daemon.send(self._command, self.name)
            self._asked_for = f"{self._command}\r"
        self._behind = self._daemon.send("b please", self.name)

    def _told(self) -> bool:
        agent = self._daemon.agent(self.name)
        return bool(agent.get("held") in ("unknown screen", "dialog") and agent.get("prompt")) or not self._waits()

    def _waits(self) -> bool:
        return bool(self._daemon.task(self._behind)["status"] == "submitted")

    def _told_after_s(self) -> float:
        """Between the last that it drew and the last that a person was told."""
        told = self._daemon.ctl("events", "--json", "--after", "0", "--types", "inputRequired", "--agents", self.name)
        told_at = datetime.fromisoformat(json.loads(told.out.splitlines()[-1])["time"]).timestamp()
        spool = self._daemon.home / "state" / "agents" / self._agent["id"] / "spool"
        return float(told_at - max(one.stat().st_mtime for one in spool.iterdir()))

    def fault(self) -> str | None:
        """What is wrong, once a person is told of it."""
        if (fault := self.pressed()) is not None:
            return fault
        after = self._told_after_s()
        return None if after <= TOLD_S else f"told after {after:.1f} s"

    def redrawn(self) -> None:
        """A person looks at it in a smaller window, and leaves."""
        tool = PtyTool("attach", self.name, rows=20, cols=70, env=self._daemon.env)
        try:
            tool.until(b"\x1b[?1049h")
            tool.type(b"\x1d\x1d")
            assert tool.end() == 0
        finally:
            tool.close()

    def pressed(self) -> str | None:
        """What was typed that nobody asked for, once a person is told of it."""
        eventually(self._told, f"{self._program} is told")
        typed = "".join(Written(self._daemon, self._daemon.home / "keys").of(self._agent))
        typed = typed.replace("\x1b[200~", "").replace("\x1b[201~", "")
        if not self._waits() or typed != self._asked_for:
            return f"typed: {typed!r}"
        return None


@pytest.mark.parametrize("library", ASK)
@pytest.mark.parametrize("within", WITHIN)
def test_nothing_is_typed_into_what_asks(daemon: Daemon, within: str, library: str) -> None:
    programs = [f"{library} {kind}" for kind in ASK[library].split()]
    if (reason := libraries.missing(programs[0])) is not None:
        pytest.skip(reason)
    asking = {program: Asking(daemon, program, within) for program in programs}
    for one in asking.values():
        one.begin()
    faults = {program: fault for program, one in asking.items() if (fault := one.fault()) is not None}
    assert faults == {}
    for one in asking.values():
        one.redrawn()
    daemon.kill9()
    daemon.start()
    beside = daemon.ctl("send", BESIDE, "--wait", f"sleep {LONGER_S}; echo over")
    assert beside.out == "over\n", beside.err
    faults = {program: fault for program, one in asking.items() if (fault := one.pressed()) is not None}
    assert faults == {}, "later"
    daemon.ctl("stop", "--remove", *(one.name for one in asking.values()))
