"""The command line: every verb's parser, its examples, and what is said of one that is wrong."""

import shlex
import subprocess
import sys
from itertools import takewhile

import pytest

from synapsectl.output import PROGRAM
from synapsectl.parsing import VerbParser, command_line, parse, parsers
from synapsectl.verbs import ALIASES, QUICK_VERBS, SYNONYMS, all_verbs, overview
from tests.synapsectl.conftest import Ctl

ALL = list(parsers(command_line()))
LEAVES = [parser for parser in ALL if not parser.parts]


def named(parser: VerbParser) -> str:
    return parser.prog.removeprefix(f"{PROGRAM} ")


def test_help_has_no_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as Python 3.14 would have it, on a terminal too
    assert [parser.prog for parser in ALL if "\x1b" in parser.format_help() + parser.format_usage()] == []


def test_help_has_examples_that_the_parser_takes(ctl: Ctl) -> None:
    for parser in ALL:
        done = ctl(*named(parser).split(), "--help")
        assert (done.code, done.err) == (0, "")
        assert parser.verb.examples
        for line, about in parser.verb.examples:
            assert f"  {line}\n      {about}\n" in done.out
            words = shlex.split(line.removeprefix('eval "$(').removesuffix(')"'))
            own = takewhile(lambda word: word not in ("|", ">", "&&"), words[words.index(PROGRAM) + 1 :])
            assert callable(parse(list(own))[1])
        assert any(parser.prog in line for line, _ in parser.verb.examples)


def test_every_verb_can_print_a_json_document() -> None:
    """But for those that take the terminal or a protocol's streams, and for texts."""
    without = {named(leaf) for leaf in LEAVES if not any("--json" in each.option_strings for each in leaf.own_actions)}
    assert without == {"run", "next", "top", "attach", "mcp", "acp", "completion", "help"}


def test_help_of_a_verb_is_what_its_option_shows(ctl: Ctl) -> None:
    assert ctl("help").out == ctl("-h").out == ctl("--help").out
    assert ctl("help", "send").out == ctl("send", "-h").out
    assert ctl("help", "host", "add").out == ctl("host", "add", "--help").out
    assert (ctl("help", "hots").code, ctl("help", "host", "ad").code) == (2, 2)


def test_the_overview_has_every_verb(ctl: Ctl) -> None:
    shown = ctl("-h").out
    assert [name for name, verb in all_verbs().items() if f"\n  {name:<12}{verb.help}\n" not in shown] == []


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("lst", "did you mean list?"),
        ("statsu", "did you mean status"),
        ("ps", "did you mean list?"),
        ("rm claude", "did you mean stop --remove?"),
        ("frobnicate", "see 'synapsectl -h'"),
        ("--frobnicate", "see 'synapsectl -h'"),
        ("host ad", "did you mean add?"),
        ("host frobnicate", "there are add, list, remove"),
        ("host", "name what to do first: add, list, remove"),
        ("host --json", "--json comes after it"),
        ("list --jsn", "did you mean --json?"),
        ("send a b --wiat", "did you mean --wait?"),
        ("host add --sokcet=/x a b", "did you mean --socket?"),
        ("start dummy --model x", "synapsectl start … -- --model x"),
        ("start claude api", "a name of its own is given with --name: synapsectl start … --name api"),
        ("run claude fix it", "what is for the program comes after --: synapsectl run … -- fix it"),
        ("stop a -- b", "stop takes nothing after --"),
        ("external list -- b", "external list takes nothing after --"),
        ("profiles --version", "unrecognized arguments: --version"),
        ("host list more", "unrecognized arguments: more"),
        ("host remove", "required: NAME"),
    ],
)
def test_a_wrong_command_line_says_what_was_meant(ctl: Ctl, line: str, meant: str) -> None:
    done = ctl(*line.split())
    assert (done.code, done.out) == (2, "")
    assert meant in done.err
    assert done.err.startswith("synapsectl")


def test_names_that_others_use_lead_to_verbs_that_are() -> None:
    assert not SYNONYMS.keys() & (all_verbs().keys() | ALIASES.keys())
    for meant in SYNONYMS.values():
        assert meant.split()[0] in all_verbs()


def test_arguments_and_options_stand_in_any_order() -> None:
    args, _ = parse(["send", "--json", "claude", "--wait", "a", "word", "--", "--more"])
    assert (args.words, args.rest, args.wait, args.json) == (["claude", "a", "word"], ["--more"], True, True)
    args, _ = parse(["external", "remove", "--json", "far"])
    assert (args.name, args.json, args.rest) == ("far", True, None)


def test_quick_verbs_are_those_that_have_something_quick() -> None:
    assert {name for name, verb in all_verbs().items() if hasattr(verb.load(), "QUICK")} == QUICK_VERBS


@pytest.mark.parametrize("arguments", [["status", "-h"], ["host", "list", "-h"], ["-h"]])
def test_no_other_verb_is_imported(arguments: list[str]) -> None:
    code = f"""
import sys
from synapsectl.__main__ import main
try:
    main({arguments!r})
except SystemExit:
    pass
print(*(name for name in sys.modules if ".commands." in name or (".ctl." in name and not name.endswith(".verbs"))))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    wanted = {all_verbs()[arguments[0]].full_module} if arguments[0] in all_verbs() else set()
    assert loaded - wanted <= {"synapsectl.commands.list_"}, "which status shares with list"


def test_a_verbs_import_leaves_out_what_is_slow() -> None:
    """Each of these takes more than a fifth of what a verb may take to its first byte."""
    slow = {"asyncio", "dataclasses", "inspect", "aiohttp", "pydantic", "mcp", "httpx", "anyio", "http.client", "ssl"}
    code = f"""
import sys; sys.path[:0] = [".", "packages/synapsed-fleet"]
from synapsectl.verbs import verbs, with_part
for name, verb in with_part(verbs(), "synapsed_fleet.ctl").items():
    if name != "mcp":
        verb.load()
        assert not {slow!r} & sys.modules.keys(), name
"""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_help_breaks_at_words_where_the_terminal_is_narrow() -> None:
    told = [overview(50), command_line(50).parts["send"].format_help(), command_line(50).parts["start"].format_help()]
    lines = [line for text in told for line in text.splitlines()]
    commands = {f"  {line}" for name in ("send", "start") for line, _ in command_line().parts[name].verb.examples}
    assert [line for line in lines if len(line) > 50 and line not in commands] == []
    assert "  adopt       start an agent on an earlier\n              conversation of its program\n" in told[0]
