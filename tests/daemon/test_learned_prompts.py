"""Programs that no profile describes, each in a real terminal: those that read lines get their first message without a
word to a person; of those that ask, nothing is typed that nobody asked for, proved by all that the daemon wrote.
"""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from synapsed.terminal.verdict import HIDDEN_CURSOR_S
from tests.support.daemon import ANY_PORTS, PATIENCE_S, Daemon, eventually
from tests.support.written import Written, noting

pytestmark = [pytest.mark.night, pytest.mark.timeout(300)]

READERS: dict[str, tuple[list[str], list[tuple[str, str]]]] = {
    "bash": (["bash", "--norc"], [("echo hi", "hi\n"), ("cd /tmp", "\n"), ("echo $((6*7))", "42\n")]),
    "dash": (["dash", "-i"], [("echo hi", "hi\n"), ("cd /tmp", "\n"), ("printf abc", "abc\n")]),
    "ksh": (["ksh"], [("echo hi", "hi\n"), ("echo two", "two\n")]),
    "mksh": (["mksh"], [("echo hi", "hi\n"), ("echo two", "two\n")]),
    "yash": (["yash", "--norcfile"], [("echo hi", "hi\n"), ("echo two", "two\n")]),
    "elvish": (["elvish", "-norc"], [("echo hi", "hi\n"), ("echo two", "two\n")]),
    "zsh": (["zsh", "-f"], [("echo hi", "hi\n"), ("cd /tmp", "\n"), ("echo two", "two\n")]),
    "fish": (["fish", "--no-config"], [("echo hi", "hi\n"), ("cd /tmp", "\n"), ("echo two", "two\n")]),
    "tcsh": (["tcsh", "-f"], [("echo hi", "hi\n"), ("echo two", "two\n")]),
    "python": ([sys.executable, "-q"], [("6*7", "42\n"), ("for i in range(2):\n    print(i)", "0\n1\n")]),
    "node": (["node"], [("6*7", "42\n"), ("1+1", "2\n")]),
    "sqlite3": (["sqlite3"], [("select 6*7;", "42\n"), ("select 1;", "1\n")]),
    "gdb": (["gdb", "-q"], [("print 6*7", "$1 = 42\n"), ("print 2", "$2 = 2\n")]),
    "lua5.4": (["lua5.4"], [("print(6*7)", "42\n"), ("1+1", "2\n")]),
    "irb": (["irb"], [("6*7", "=> 42\n"), ("1+1", "=> 2\n")]),
    "tclsh": (["tclsh"], [("expr 6*7", "42\n"), ("expr 1+1", "2\n")]),
    "php": (["php", "-a"], [("echo 6*7 . PHP_EOL;", "42\n"), ("echo 2 . PHP_EOL;", "2\n")]),
    "redis-cli": (
        ["redis-cli", "-p", "1"],
        [("ping", "Could not connect to Redis at 127.0.0.1:1: Connection refused\n")],
    ),
    "ed": (["ed", "-p", "ed> "], [("=", "0\n"), ("H", "\n")]),
    "jshell": (["jshell"], [("6*7", "$1 ==> 42\n"), ("1+1", "$2 ==> 2\n")]),
    "gnuplot": (["gnuplot"], [("print 6*7", "42\n")]),
    "guile": (["guile"], [("(* 6 7)", "$1 = 42\n")]),
    "clisp": (["clisp", "-q"], [("(* 6 7)", "42\n")]),
    "swipl": (["swipl"], [("X is 6*7.", "X = 42.\n")]),
    "erl": (["erl"], [("6*7.", "42\n")]),
    "ocaml": (["ocaml"], [("6*7;;", "- : int = 42\n")]),
    "telnet": (["telnet"], [("status", "No connection.\nEscape character is '^]'.\n")]),
    "ftp": (["ftp"], [("pwd", "Not connected.\n")]),
    "input": ([sys.executable, "-c", "while 1: print('=' + input('> '))"], [("one", "=one\n"), ("two", "=two\n")]),
    "agent": (
        [sys.executable, "-c", "import readline\nwhile 1: print('=' + input('agent> '))"],
        [("one", "=one\n"), ("two", "=two\n")],
    ),
}

ASKS_ONE = """
print("hi", flush=True)
while True:
    input("agent> ")
    print("got", repr(input("(1) delete all (2) keep [1]: ")), flush=True)
"""

LIBRARIES = {
    "questionary": "import questionary; print('got', questionary.select('Which one', choices=['a', 'b']).ask())",
    "questionary-confirm": "import questionary; print('got', questionary.confirm('Deploy').ask())",
    "questionary-text": "import questionary; print('got', questionary.text('Name').ask())",
    "prompt-toolkit": "from prompt_toolkit.shortcuts import yes_no_dialog; print(yes_no_dialog('t', 'Deploy?').run())",
    "inquirer": "import inquirer; print(inquirer.prompt([inquirer.List('a', message='Which', choices=['x', 'y'])]))",
}
PYTHON_OF_LIBRARIES = os.environ.get("SYNAPSED_TEST_LIBRARIES", sys.executable)
"""An interpreter that has them."""

ASKERS = {
    "dialog-yesno": "dialog --yesno 'Deploy to production?' 8 40",
    "dialog-menu": "dialog --menu 'Pick a colour' 12 40 4 r Red g Green b Blue",
    "dialog-checklist": "dialog --checklist 'Pick some' 12 40 4 r Red on g Green off",
    "dialog-ascii": "dialog --ascii-lines --yesno 'Deploy?' 8 40",
    "whiptail": "whiptail --yesno 'Deploy to production?' 8 40",
    "fzf": "printf 'a\\nb\\n' | fzf",
    "fzf-height": "printf 'a\\nb\\n' | fzf --height 10",
    "read-p": "bash -c 'read -p \"Deploy to production? [y/N] \" it; echo got $it'",
    "read-e-p": "bash -c 'read -e -p \"Deploy to production? \" it; echo got $it'",
    "read-sign": 'bash -c \'echo "Which colour?"; read -e -p "> " it; echo got $it\'',
    "read-s": "bash -c 'read -s -p \"Password: \" it; echo got'",
    "select": "bash -c 'select it in a b c; do echo got $it; break; done'",
    "npm-init": "cd $(mktemp -d) && npm init",
    "git-add-p": "cd $(mktemp -d) && git init -q . && echo 1 >f && git add f && echo 2 >f && git add -p",
    "less": "less /etc/passwd",
    "vim": "vim -u NONE",
    "more": "more /etc/services",
    **{name: f'{PYTHON_OF_LIBRARIES} -c "{code}"' for name, code in LIBRARIES.items()},
}
NEEDS = {
    "read-p": "bash",
    "read-e-p": "bash",
    "read-sign": "bash",
    "read-s": "bash",
    "select": "bash",
    "npm-init": "npm",
    "git-add-p": "git",
}
COLS = 80
HELD = ("unknown screen", "dialog")
MOVES = {"top": "top"}
"""This program hides the cursor and redraws its screen without end; an installer does so for a while."""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    path = tmp_path_factory.mktemp("learned")
    daemon = Daemon(path, config=ANY_PORTS, environ=noting(path / "keys")).start()
    yield daemon
    daemon.end()


@pytest.fixture
def written(daemon: Daemon) -> Written:
    return Written(daemon, daemon.home / "keys")


def start(daemon: Daemon, name: str, args: list[str], **more: Any) -> dict[str, Any]:
    """The agent, without waiting for it to be ready."""
    env = {**os.environ, "HOME": str(daemon.home), "PS1": "$ ", "TERM": "xterm-256color", "PAGER": "cat"}
    wanted = {"profile": "generic", "name": name, "args": args, "cwd": str(daemon.home), "env": env, **more}
    answer = daemon.post("/control/start", wanted)
    assert answer.status == 200, answer.json
    return dict(answer.json)


def alerts(daemon: Daemon, name: str) -> list[str]:
    told = daemon.ctl("events", "--json", "--after", "0", "--types", "agentAlert", "--agents", name)
    return [json.loads(line)["data"].get("code", "") for line in told.out.splitlines()]


@pytest.mark.parametrize("name", READERS)
def test_the_first_message_goes_without_a_word_to_a_person(daemon: Daemon, name: str) -> None:
    command, messages = READERS[name]
    if shutil.which(command[0]) is None:
        pytest.skip(f"needs {command[0]}")
    agent = name.replace(".", "-")
    start(daemon, agent, command)
    got = [daemon.ctl("send", agent, "--wait", "--", text) for text, _ in messages]
    assert [one.out for one in got] == [out for _, out in messages], [
        (one.err, daemon.ctl("screen", agent).out) for one in got
    ]
    assert alerts(daemon, agent) == []


LEAST = 15
"""Shells, interpreters and small prompt programs that must be there: what is skipped shows nothing."""


def test_enough_of_them_are_there() -> None:
    there = [name for name, (command, _) in READERS.items() if shutil.which(command[0]) is not None]
    assert len(there) >= LEAST, f"install some of {sorted(READERS.keys() - set(there))}: there are only {there}"


@pytest.mark.parametrize("name", ["bash", "dash", "ksh", "yash", "zsh", "fish", "tcsh"])
def test_a_message_may_fill_its_rows(daemon: Daemon, name: str) -> None:
    """Each line editor has its own way, where a row is full, to put the cursor on the next one: fish ends the line."""
    command, _ = READERS[name]
    if shutil.which(command[0]) is None:
        pytest.skip(f"needs {command[0]}")
    agent = f"rows-{name}"
    start(daemon, agent, command, cols=COLS)
    assert daemon.ctl("send", agent, "--wait", "echo hi").out == "hi\n"
    prompt = len(daemon.ctl("screen", agent).out.rstrip("\n").rpartition("\n")[2])
    for length in (full + more for full in (COLS - prompt, 2 * COLS - prompt) for more in range(-2, 2)):
        word = "x" * (length - len("echo "))
        assert daemon.ctl("send", agent, "--wait", f"echo {word}").out == f"{word}\n", (length, daemon.agent(agent))


def held(daemon: Daemon, name: str, *, patience: float = PATIENCE_S) -> dict[str, Any]:
    """The agent, once a person is told that it waits."""

    def told() -> dict[str, Any] | None:
        agent = daemon.agent(name)
        return agent if agent["held"] in HELD and agent["prompt"] else None

    return eventually(told, f"{name} is told", patience=patience)


def needed(name: str) -> None:
    program = NEEDS.get(name, name.partition("-")[0])
    if name in LIBRARIES:
        program = PYTHON_OF_LIBRARIES
        if os.spawnlp(os.P_WAIT, program, program, "-c", LIBRARIES[name].partition(";")[0]) != 0:
            pytest.skip(f"needs {name}")
    elif shutil.which(program) is None:
        pytest.skip(f"needs {program}")


@pytest.mark.parametrize("name", ASKERS | MOVES)
def test_who_asks_is_told_of_and_not_typed_into(daemon: Daemon, written: Written, name: str) -> None:
    needed(name)
    agent = start(daemon, f"own-{name}", ["sh", "-c", (ASKERS | MOVES)[name]])
    task = daemon.send("b please", agent["name"])
    held(daemon, agent["name"], patience=PATIENCE_S + (HIDDEN_CURSOR_S if name in MOVES else 0))
    assert daemon.task(task)["status"] == "submitted"
    assert written.of(agent) == []


def test_what_moves_inside_an_agent_that_is_a_shell_is_at_work_until_it_is_stopped(daemon: Daemon) -> None:
    needed("top")
    agent = start(daemon, "in-top", ["bash", "--norc"])
    assert daemon.ctl("send", agent["name"], "--wait", "echo one").out == "one\n"
    task = daemon.send("top", agent["name"])
    eventually(lambda: daemon.agent(agent["name"])["doing"] == "top", "it runs")
    assert daemon.task(task)["status"] == "working"
    assert daemon.ctl("cancel", task).code == 0
    assert daemon.task_in(task, "canceled")
    assert daemon.ctl("send", agent["name"], "--wait", "echo two").out == "two\n"


@pytest.mark.parametrize("name", ASKERS)
def test_inside_an_agent_that_is_a_shell_it_ends_no_turn(daemon: Daemon, written: Written, name: str) -> None:
    needed(name)
    agent = start(daemon, f"in-{name}", ["bash", "--norc"])
    assert daemon.ctl("send", agent["name"], "--wait", "echo one").out == "one\n"
    command = ASKERS[name]
    before = written.of(agent)
    task = daemon.send(command, agent["name"])
    daemon.task_in(task, "input_required")
    behind = daemon.send("b please", agent["name"])
    held(daemon, agent["name"])
    assert (daemon.task(task)["status"], daemon.task(behind)["status"]) == ("input_required", "submitted")
    typed = written.of(agent)[len(before) :]
    assert "".join(typed).replace("\x1b[200~", "").replace("\x1b[201~", "") == f"{command}\r"


def test_a_question_of_a_program_with_a_prompt_is_asked(daemon: Daemon, written: Written) -> None:
    agent = start(daemon, "asks", [sys.executable, "-c", ASKS_ONE])
    task = daemon.send("one", "asks")
    asked = daemon.task_in(task, "input_required")["prompt"]
    assert asked["prompt"] == "(1) delete all (2) keep [1]:"
    held(daemon, "asks")
    assert "".join(written.of(agent)) == "one\r"
    assert daemon.ctl("input", "asks", "2").code == 0
    assert "got '2'" in daemon.task_in(task, "completed")["artifacts"][0]["parts"][0]["text"]


def test_a_prompt_without_a_sign_is_told_by_a_person(daemon: Daemon, written: Written) -> None:
    code = "while 1: print('=' + input('command: '))"
    agent = start(daemon, "unsaid", [sys.executable, "-c", code])
    waiting = daemon.send("one", "unsaid")
    assert held(daemon, "unsaid")["held"] == "unknown screen"
    (alert,) = daemon.agent("unsaid")["alerts"]
    assert "--prompt 'TEXT'" in alert
    assert written.of(agent) == []
    start(daemon, "said", [sys.executable, "-c", code], prompt="command:")
    assert daemon.ctl("send", "said", "--wait", "one").out == "=one\n"
    assert daemon.ctl("keys", "unsaid", "t", "w", "o", "Enter").code == 0
    assert daemon.task_in(waiting, "completed")["artifacts"][0]["parts"][0]["text"] == "=one"


def test_what_was_learned_is_kept_for_a_restart_of_the_agent_and_of_the_daemon(daemon: Daemon) -> None:
    code = "print('Tip: ask?'); print('=' + input('command> '))\nwhile 1: print('=' + input('command> '))"
    start(daemon, "kept", [sys.executable, "-c", code])
    held(daemon, "kept")  # a question mark stands above it
    assert daemon.ctl("keys", "kept", "x", "Enter").code == 0
    daemon.ready("kept")
    assert daemon.ctl("restart", "kept").code == 0
    daemon.ready("kept")
    daemon.kill9()
    daemon.start()
    assert daemon.ctl("send", "kept", "--wait", "one").out == "=one\n"


@pytest.mark.parametrize("other", [False, True], ids=["the same command", "another command"])
def test_an_agent_that_is_removed_takes_along_what_it_learned(daemon: Daemon, written: Written, other: bool) -> None:
    """The next agent of that name learns its prompt again, whichever program it runs."""
    code = "print('Tip: ask?')\nwhile 1: print('=' + input('command> '))"
    name = f"again-{other}".lower()
    start(daemon, name, [sys.executable, "-c", code])
    held(daemon, name)
    assert daemon.ctl("keys", name, "x", "Enter").code == 0
    daemon.ready(name)
    assert daemon.ctl("stop", name, "--remove").code == 0
    agent = start(daemon, name, [sys.executable, *(["-B"] if other else []), "-c", code])
    waiting = daemon.send("one", name)
    held(daemon, name)
    assert daemon.task(waiting)["status"] == "submitted"
    assert written.of(agent) == []


def test_a_message_that_is_not_shown_where_it_is_typed_is_not_submitted(daemon: Daemon, written: Written) -> None:
    """It says that it shows what is typed, and takes the keys."""
    code = (
        "import os, termios, tty\nos.write(1, b'> ')\nold = termios.tcgetattr(0)\ntty.setraw(0)\n"
        "while 1:\n os.read(0, 1)"
    )
    agent = start(daemon, "mute", [sys.executable, "-c", code])
    failed = daemon.ctl("send", "mute", "--wait", "--", "one")
    assert failed.code != 0
    assert "was not submitted" in failed.err, failed
    assert "\r" not in "".join(written.of(agent))
