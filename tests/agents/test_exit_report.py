"""How a program's end is told, and which ends are a refusal of its arguments."""

import pytest

from synapsed.agents.exit_report import REFUSAL_S, Parting, doubted, parting
from synapsed.model.link import LinkExited

REFUSED = {
    "commander": ("error: unknown option '--append-system-prompt-file'\n(Did you mean --append-system-prompt?)", 1),
    "clap": (
        "error: unexpected argument '--no-daemon' found\n\nUsage: codex [OPTIONS]\n\nFor more, try '--help'.",
        2,
    ),
    "yargs": ("Options:\n  -m, --model  Model [string]\n\nUnknown arguments: session-id, sessionId", 42),
    "argparse": ("usage: prog [-h]\nprog: error: unrecognized arguments: --bogus", 2),
    "getopt": ("sh: 0: Illegal option --", 2),
    "gnu": ("ls: unrecognized option '--bogus'\nTry 'ls --help' for more information.", 2),
    "two that exclude each other": (
        "Error: --session-id can only be used with --continue or --resume if --fork-session is also specified.",
        1,
    ),
    "only its usage": ("Usage: tool FILE", 64),
}

OTHERS = {
    "a lost conversation": ("No conversation found with session ID: 1234", 1),
    "a system call's": ("OSError: [Errno 22] Invalid argument: '/x'", 1),
    "another system call's": ("read: /dev/x: Invalid argument", 1),
    "a missing module": ("Error: Cannot find module 'x'", 1),
    "a shell's": ("sh: 1: nothing-like-that: not found", 127),
    "a signal's": ("error: unknown option '--x'", 143),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_is_told_in_the_programs_words(case: str) -> None:
    screen, code = REFUSED[case]
    end = parting(LinkExited(code, "the program ended"), screen, ready=False, uptime=1.0)
    assert end.refused
    assert end.how.endswith(f"(exit code {code})")
    words = end.how.removesuffix(f" (exit code {code})")
    assert words in screen
    assert words.lower().startswith(("error", "unknown", "prog", "usage", "sh", "ls"))


@pytest.mark.parametrize("case", OTHERS)
def test_other_last_words_are_evidence_but_no_refusal(case: str) -> None:
    screen, code = OTHERS[case]
    end = parting(LinkExited(code, "the program ended"), screen, ready=False, uptime=1.0)
    assert not end.refused
    assert end.how == f"{screen} (exit code {code})"


@pytest.mark.parametrize(
    ("exited", "ready", "uptime"),
    [
        (LinkExited(2, ""), True, 1.0),
        (LinkExited(0, ""), False, 1.0),
        (LinkExited(-9, ""), False, 1.0),
        (LinkExited(None, "it was gone"), False, 1.0),
        (LinkExited(2, ""), False, REFUSAL_S + 1),
    ],
    ids=["was ready", "ended well", "was killed", "nobody saw it", "much later"],
)
def test_each_piece_of_evidence_is_needed(exited: LinkExited, ready: bool, uptime: float) -> None:
    assert not parting(exited, "error: unknown option '--x'", ready=ready, uptime=uptime).refused


def test_an_end_without_words_has_its_code() -> None:
    assert parting(LinkExited(3, ""), " \n\n", ready=False, uptime=0.1).how == "exit code 3"


@pytest.mark.parametrize(
    "words",
    [
        "Killed",
        '/home/u/bin/wrapper: line 2: 12345 Killed                  claude "$@"',
        "Segmentation fault (core dumped)",
        "sh: line 1:  7 Aborted  gemini",
    ],
)
def test_success_is_not_believed_behind_a_shells_word_for_a_signal(words: str) -> None:
    end = doubted(Parting(how="exit code 0"), f"❯ \n\n{words}\n\n", in_turn=False)
    assert end.crashed
    assert end.how == f"exit code 0; its last words are {words!r}: that is no success"


def test_nor_in_the_middle_of_a_turn() -> None:
    end = doubted(Parting(how="exit code 0"), "✻ Working\n", in_turn=True)
    assert end.crashed
    assert end.how == "exit code 0; nobody ended it, and it worked on a message: that is no success"


@pytest.mark.parametrize("screen", ["", "Goodbye!", "● The word Killed\n  stands in an answer.", "Killed\nBye"])
def test_else_it_is(screen: str) -> None:
    end = Parting(how="exit code 0")
    assert doubted(end, screen, in_turn=False) == end


def test_nor_of_one_that_does_not_go_on_with_its_conversation() -> None:
    end = doubted(Parting(how="exit code 0"), "No conversation found\n", in_turn=False, unresumable=True)
    assert (end.crashed, end.how) == (True, "exit code 0; it did not go on with its conversation: that is no success")
