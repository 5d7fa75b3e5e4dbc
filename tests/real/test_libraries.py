"""Libraries that ask: each of their questions is told, answered by `synapsectl input`, and what the program got.

`tests/terminal/test_libraries.py` has the same screens, recorded. Where they are not installed (`python -m
tests.real.libraries install`) they are skipped.
"""

import os
from pathlib import Path

import pytest

from tests.real import libraries
from tests.support.daemon import Daemon, eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

ASKED: list[tuple[str, list[str], str]] = [
    ("sh dialog yesno", ["no"], "1 []"),
    ("sh dialog yesno", ["yes"], "0 []"),
    ("sh dialog msgbox", ["ok"], "0 []"),
    ("sh dialog menu", ["storage"], "0 [storage]"),
    ("sh dialog menu", ["cancel"], "1 []"),
    ("sh dialog checklist", ["mail", "done"], "0 [storage mail]"),
    ("sh dialog radiolist", ["mail"], "0 [mail]"),
    ("sh dialog inputbox", ["Ann Lee"], "0 [Ann Lee]"),
    ("sh dialog passwordbox", ["s3cret"], "0 [s3cret]"),
    ("sh dialog treeview", ["mail"], "0 [mail]"),
    ("sh dialog textbox", ["exit"], "0 []"),
    ("sh dialog calendar", ["ok"], "0 [01/01/2030]"),
    ("sh dialog timebox", ["ok"], "0 [12:30:00]"),
    ("sh whiptail yesno", ["no"], "1 []"),
    ("sh whiptail msgbox", ["ok"], "0 []"),
    ("sh whiptail menu", ["mail"], "0 [mail]"),
    ("sh whiptail menu", ["cancel"], "1 []"),
    ("sh whiptail inputbox", ["Ann Lee"], "0 [Ann Lee]"),
    ("sh whiptail passwordbox", ["s3cret"], "0 [s3cret]"),
    ("py ptk buttons", ["no"], "False"),
    ("py ptk button-dialog", ["maybe"], "None"),
    ("py ptk radiolist", ["mail"], "'mail'"),
    ("py ptk checkboxlist", ["mail", "done"], "['mail']"),
    ("py ptk input", ["Ann Lee"], "'Ann Lee'"),
    ("py ptk message", ["ok"], "None"),
    ("py inquirer list", ["medium"], "'Medium'"),
    ("py inquirer checkbox", ["mail", "done"], "['Mail']"),
    ("py inquirer confirm", ["yes"], "True"),
    ("py inquirer text", ["Ann"], "'Ann'"),
    ("py bullet list", ["banana"], "'banana'"),
    ("py bullet yesno", ["no"], "False"),
    ("py beaupy select", ["blue"], "'blue'"),
    ("py beaupy multiple", ["blue", "done"], "['blue']"),
    ("py beaupy confirm", ["yes"], "True"),
    ("py questionary confirm", ["no"], "False"),
    ("py questionary text", ["Ann"], "'Ann'"),
    ("py inquirerpy fuzzy", ["mail"], "'Mail'"),
    ("py inquirerpy confirm", ["yes"], "True"),
    ("py termmenu multi", ["mail", "done"], "('Mail',)"),
    ("py pick single", ["mail"], "('Mail', 2)"),
    ("py pick multi", ["mail", "done"], "[('Mail', 2)]"),
    ("py cutie confirm", ["yes"], "True"),
    ("py survey select", ["mail"], "'Mail'"),
    ("py survey basket", ["mail", "done"], "{2}"),
    ("py urwid menu", ["mail"], "'Mail'"),
    ("py urwid buttons", ["no"], "'No'"),
    ("py click choice", ["mail"], "'mail'"),
    ("py plain amp", ["no"], "'n'"),
    ("js inquirer rawlist", ["2"], '"Storage"'),
    ("js inquirer search", ["mail"], '"Mail"'),
    ("js inquirer input", ["Ann"], '"Ann"'),
    ("js legacy rawlist", ["2"], '"Storage"'),
    ("js legacy confirm", ["yes"], "true"),
    ("js prompts confirm", ["yes"], "true"),
    ("js prompts autocomplete", ["clooney"], '"Clooney"'),
    ("js enquirer multi", ["grape", "done"], '["grape"]'),
    ("js enquirer autocomplete", ["grape"], '"grape"'),
    ("js enquirer confirm", ["yes"], "true"),
    ("js enquirer input", ["ann"], '"ann"'),
    ("js enquirer quiz", ["175"], '{"selectedAnswer":"175","correctAnswer":"195","correct":false}'),
    ("js ink select", ["mail"], '"Mail"'),
    ("js ink ui-select", ["mail"], '"Mail"'),
    ("js kit column", ["mail"], '"Mail"'),
    ("js blessed list", ["mail"], '"Mail"'),
    ("js sync yn", ["y"], "true"),
    ("js sync select", ["2"], "1"),
    ("js cliselect it", ["mail"], '"Mail"'),
    ("js topcli multi", ["mail", "done"], '["Mail"]'),
    ("sh fzf full", ["mail"], "0 [mail ]"),
    ("sh fzf height", ["mail"], "0 [mail ]"),
    ("sh fzf reverse", ["mail"], "0 [mail ]"),
    ("py questionary select", ["Ask"], "'Ask for hours'"),
    ("py questionary checkbox", ["ham", "done"], "['ham']"),
    ("py inquirerpy select", ["2"], "'Exit'"),
    ("py inquirerpy checkbox", ["mail", "done"], "['Mail']"),
    ("py ptk choice", ["mail"], "'mail'"),
    ("py ptk confirm", ["yes"], "True"),
    ("py termmenu single", ["deny"], "2"),
    ("py survey inquire", ["yes"], "True"),
    ("py click confirm", ["yes"], "True"),
    ("py rich choices", ["Jessica"], "'Jessica'"),
    ("py plain letters", ["d"], "'d'"),
    ("js clack select", ["blog"], '"blog"'),
    ("js clack confirm", ["no"], "false"),
    ("js clack multi", ["tests", "done"], '["Tests"]'),
    ("js inquirer select", ["no"], '"No"'),
    ("js inquirer checkbox", ["mail", "done"], '["Mail"]'),
    ("js inquirer confirm", ["no"], "false"),
    ("js legacy list", ["mail"], '"Mail"'),
    ("js legacy checkbox", ["mail", "done"], '["Mail"]'),
    ("js prompts select", ["blue"], '"Blue"'),
    ("js prompts toggle", ["no"], "false"),
    ("js prompts multi", ["blue", "done"], '["Blue"]'),
    ("js topcli select", ["mail"], '"Mail"'),
    ("js topcli confirm", ["yes"], "true"),
    ("js inquirer password", ["s3cret"], '"s3cret"'),
    ("sh dialog rangebox", ["ok"], "0 [5]"),
    ("sh whiptail checklist", ["mail", "done"], '0 ["storage" "mail"]'),
    ("sh whiptail radiolist", ["mail"], "0 [mail]"),
    ("py textual options", ["mail"], "'Mail'"),
]
"""The program, what is answered, and what it got."""
NOT_READ = [
    "py textual buttons",
    "py npyscreen form",
    "py npyscreen yesno",
    "js kit line",
    "sh dialog form",
    "sh dialog editbox",
]


def started(daemon: Daemon, program: str, folder: Path) -> None:
    if (reason := libraries.missing(program)) is not None:
        pytest.skip(reason)
    env = {**daemon.env, "TERM": "xterm-256color", "LANG": "C.UTF-8", "PATH": os.environ["PATH"]}
    done = daemon.ctl("start", "generic", "--name", "it", "--cwd", str(folder), "--", *libraries.argv(program), env=env)
    assert done.code == 0, done.err


@pytest.mark.parametrize(("program", "answers", "got"), ASKED, ids=[program for program, _, _ in ASKED])
def test_what_is_asked_is_answered(daemon: Daemon, tmp_path: Path, program: str, answers: list[str], got: str) -> None:
    started(daemon, program, tmp_path)
    for answer in answers:
        asked = eventually(lambda: daemon.ctl("status", "it", "--json").json.get("prompt"), "a prompt")
        assert asked["type"] != "screen", asked
        told = daemon.ctl("input", "it", answer)
        assert told.code == 0, told.err
    eventually(lambda: f"answered {got}" in daemon.ctl("screen", "it").out or None, f"it got {got}")


@pytest.mark.parametrize("program", NOT_READ)
def test_what_is_not_read_is_told_as_it_stands(daemon: Daemon, tmp_path: Path, program: str) -> None:
    started(daemon, program, tmp_path)
    asked = eventually(lambda: daemon.ctl("status", "it", "--json").json.get("prompt"), "an unknown screen")
    assert asked["type"] == "screen"
