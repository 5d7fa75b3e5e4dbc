"""Prompts of programs that no profile describes: what terminals show of programs at rest, measured; what is learned."""

from collections.abc import Sequence

import pytest

from synapsed.profiles.library import ProfileLibrary
from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.line_prompts.evidence import Reads, TerminalFacts, edits
from synapsed.terminal.line_prompts.judgement import Known, asks, echoes, read_prompt
from synapsed.terminal.line_prompts.learned import (
    KEPT_MAX,
    TEXT_MAX,
    LearnedPrompt,
    add,
    compiled,
    learn,
    pattern_of,
    said,
)

SPEC = ProfileLibrary.builtin().get("generic").composer

LINES, KEYS, HIDDEN = (True, True), (False, False), (True, False)

# Linux, 80 x 24, TERM=xterm-256color: the program's name, the terminal (canonical mode, echo), what is written (the
# modes 2004, 1049, 25 included), and whether a first message may go there.
MEASURED = [
    ("bash", KEYS, "\x1b[?2004hbash-5.2# ", True),
    ("dash", LINES, "# ", True),
    ("ksh", KEYS, "# ", True),
    ("zsh", KEYS, "\x1b[?2004hhost# ", True),
    ("fish", KEYS, "\x1b[?2004hme@host ~# ", True),
    ("tcsh", KEYS, "# ", True),
    ("python3.13", KEYS, "\x1b[?2004h>>> ", True),
    ("python3.11", KEYS, ">>> ", True),
    ("ipython", KEYS, "\x1b[?2004h\r\nIn [1]: ", True),
    ("node", KEYS, 'Type ".help" for more information.\r\n> ', True),
    ("sqlite3", KEYS, 'Enter ".help" for usage hints.\r\n\x1b[?2004hsqlite> ', True),
    ("gdb", KEYS, "\x1b[?2004h(gdb) ", True),
    ("bc", KEYS, "\x1b[?2004h", False),
    ("lua5.4", KEYS, "Lua 5.4.4  Copyright (C) 1994-2022 Lua.org, PUC-Rio\r\n\x1b[?2004h> ", True),
    ("irb", KEYS, "irb(main):001:0> ", True),
    ("tclsh8.6", LINES, "% ", True),
    ("php8.2", KEYS, "Interactive shell\r\n\r\nphp > ", True),
    ("redis-cli", KEYS, "Could not connect to Redis at 127.0.0.1:1\r\nnot connected> ", True),
    ("rlwrap", KEYS, "\x1b[?2004h", False),
    ("ed", LINES, "ed> ", True),
    ("ftp", KEYS, "ftp> ", True),
    ("jshell", KEYS, "|  For an introduction type: /help intro\r\n\r\n\x1b[?2004hjshell> ", True),
    ("python3.13", LINES, "> ", True),
    ("python3.13", KEYS, "agent> ", True),
    ("bash", LINES, "Deploy to production? [y/N] ", False),
    ("bash", KEYS, "\x1b[?2004hDeploy to production? ", False),
    ("bash", HIDDEN, "Password: ", False),
    ("dialog", KEYS, "\x1b(0lqqqqqqk\r\nx\x1b(B Deploy? \x1b(0x\r\nx\x1b(B  < Yes > \x1b[4D", False),
    ("whiptail", KEYS, "\x1b[?1049h\x1b[?25l┌─────┐\r\n│ <Yes> │\r\n└─────┘ ", False),
    ("fzf", KEYS, "  b\r\n> a\r\n  2/2\r\n> ", False),
    ("fzf", KEYS, "\x1b[?1049h  b\r\n> a\r\n  2/2\r\n> ", False),
    ("bash", LINES, "1) a\r\n2) b\r\n3) c\r\n#? ", False),
    ("less", KEYS, "\x1b[?1049h/etc/passwd", False),
    ("vim", KEYS, "\x1b[?2004h\x1b[?1049htype  :help cp-default<Enter> for info on this", False),
    ("top", KEYS, "\x1b[?25l  0      0 S   0.0   0.0   0:00.95 rcu_exp_g+ ", False),
    ("more", KEYS, "--More--(5%)", False),
    ("git", LINES, "(1/1) Stage this hunk [y,n,q,a,d,e,?]? ", False),
    ("node", KEYS, "⠙package name: (prompts) ", False),
    ("python3.13", KEYS, "\x1b[?2004hagent> ", True),
    ("python3.13", KEYS, "\x1b[?2004h\x1b[?1049h  < Yes >   < No > ", False),
    ("python3.13", KEYS, "\x1b[?2004h? Name? ", False),
    ("python3.13", KEYS, "\x1b[?2004h? Deploy? (Y/n) ", False),
    ("python3.13", KEYS, "\x1b[?2004h\x1b[?25l? Which? (Use arrow keys)\r\n » a\r\n   b\r\n > ", False),
    ("python3.13", LINES, "Deploy? [y/N]: ", False),
    ("python3.13", LINES, "Name (x): ", False),
    ("python3.13", KEYS, "[?] Which?: x\r\n > x\r\n   y", False),
    ("python3.13", KEYS, "(1) delete all (2) keep [1]: ", False),
]

MORE = [
    ("python3.13", KEYS, "(1) delete all (2) keep [1] > ", False),
    ("bash", KEYS, "\x1b[?2004hWhich colour?\r\n> ", False),
    ("bash", KEYS, "\x1b[?2004h1) Log in\r\n2) Quit\r\n> ", False),
    ("bash", KEYS, "\x1b[?2004hKeep it? [y/n]\r\n\r\n> ", False),
    ("node", KEYS, "? What is your name? › ", False),
    ("node", KEYS, "◆  What is your name\r\n│  > ", False),
    ("curl", LINES, "Downloading 45%", True),  # where somebody reads: who computes is seen by the kernel
    ("bash", KEYS, "$ ", False),  # raw, and nothing shows that it edits a line
    ("bash", KEYS, "\x1b[?2004h[me@host src]$ ", True),
    ("bash", KEYS, "\x1b[?2004h(venv) me@host:~/src$ ", True),
    ("zsh", KEYS, "\x1b[?2004h❯ ", True),
    ("yash", KEYS, "$ ", True),
    ("swipl", KEYS, "For built-in help, use ?- help(Topic). or ?- apropos(Word).\r\n\r\n?- ", True),
    ("gp", KEYS, "\x1b[?2004h? ", False),
    ("zsh", KEYS, "\x1b[?2004h% \x1b[70C12:30\x1b[75D", True),
    ("ghci", KEYS, "GHCi, version 9.4: https://www.haskell.org/ghc/  :? for help\r\nghci> ", True),
    ("mariadb", KEYS, "MariaDB [(none)]> ", True),
    ("node", KEYS, "λ ", True),
    ("bash", KEYS, "\x1b[?2004h$ ls", False),
    ("bash", KEYS, "\x1b[?2004h$ \x1b[?25l", False),
    ("bash", KEYS, "\x1b[?2004hWould you like to continue? $ ", False),
]


FIRST_DAY = [
    ("ssh", LINES, "Are you sure you want to continue connecting (yes/no/[fingerprint])? ", False),
    ("ssh", HIDDEN, "me@box's password: ", False),
    ("git", LINES, "Username for 'https://github.com': ", False),
    ("git", HIDDEN, "Password for 'https://me@github.com': ", False),
    ("sudo", HIDDEN, "[sudo] password for me: ", False),
    ("apt", LINES, "After this operation, 12 MB will be used.\r\nDo you want to continue? [Y/n] ", False),
    ("npm", KEYS, "Need to install the following packages:\r\nvite@5\r\nOk to proceed? (y) ", False),
    ("terraform", LINES, "  Only 'yes' will be accepted to approve.\r\n\r\n  Enter a value: ", False),
    ("bash", LINES, "Press any key to continue . . . ", False),
    ("bash", LINES, "Press ENTER to go on > ", True),  # a sign, and a line that is read: nothing tells it from a prompt
    ("rm", LINES, "rm: remove write-protected regular file 'x'? ", False),
    ("cp", LINES, "cp: overwrite 'x'? ", False),
    ("unzip", LINES, "replace x? [y]es, [n]o, [A]ll, [N]one, [r]ename: ", False),
    ("login", LINES, "box login: ", False),
    ("python3.13", LINES, "Proceed (Y/n)? ", False),
    ("python3.13", LINES, "Overwrite (y/n/a) > ", False),
    ("python3.13", LINES, "1. Start\r\n2. Quit\r\n\r\nYour choice > ", False),
    ("ssh-keygen", LINES, "Enter file in which to save the key (/root/.ssh/id_ed25519): ", False),
    ("openssl", LINES, "Country Name (2 letter code) [AU]:", False),
    ("psql", KEYS, "\x1b[?2004hpostgres=# ", True),
    ("zsh", KEYS, "\x1b[?2004h┌──(me㉿kali)-[~]\r\n└─$ ", False),  # as issue 34 has it: a frame is never a prompt
    ("zsh", KEYS, "\x1b[?2004h➜  src git:(main) ✗ ", False),
    ("zsh", KEYS, "\x1b[?2004h~/src main !2 ❯ ", True),
    ("zsh", KEYS, "\x1b[?2004hsrc on  main via 🐍 v3.13\r\n❯ ", True),
]
"""What a person meets on the first day: questions of common tools, and prompts of common themes."""


def screen_of(written: str) -> Screen:
    screen = Screen(80, 24)
    screen.feed(written.encode())
    return screen


def state(
    written: str,
    facts: TerminalFacts,
    learned: Sequence[LearnedPrompt] = (),
    *,
    before: str = "",
) -> str:
    now = screen_of(written).snapshot()
    edits_from = 1 if now.modes.bracketed_paste else 0
    return read_prompt(SPEC, now, Known(facts=facts, learned=learned, before=before, edits_from=edits_from)).state


def facts_of(name: str, modes: tuple[bool, bool], **more: object) -> TerminalFacts:
    known = TerminalFacts(line_mode=modes[0], echo=modes[1], names=(name,), reads="yes" if modes[0] else None)
    return known._replace(**more)


@pytest.mark.parametrize(("name", "modes", "written", "reads"), [*MEASURED, *MORE, *FIRST_DAY])
def test_where_a_first_message_may_go(name: str, modes: tuple[bool, bool], written: str, *, reads: bool) -> None:
    assert (state(written, facts_of(name, modes)) == "empty") is reads


BASH = facts_of("bash", KEYS, cwd="/work/src")


def known(text: str, facts: TerminalFacts = BASH) -> tuple[LearnedPrompt, ...]:
    return (learn(text, facts),)


@pytest.mark.parametrize(("name", "modes", "written", "reads"), MEASURED)
def test_once_a_prompt_is_known_nothing_else_is_one(
    name: str, modes: tuple[bool, bool], written: str, *, reads: bool
) -> None:
    assert state(written, facts_of(name, modes), [said("my own prompt:", None)]) == "absent"


@pytest.mark.parametrize(
    ("learned", "shown", "found"),
    [
        ("bash-5.2# ", "bash-5.3# ", "empty"),
        ("bash-5.2# ", "bash-5.2# ls", "draft"),
        ("me@host:~$ ", "me@host:/var/log$ ", "empty"),
        ("me@host:~$ ", "me@host:~/My Files$ ", "empty"),
        ("me@host:~$ ", "(venv) me@host:~$ ", "empty"),
        ("me@host:~$ ", "me@host:~/src (main)$ ", "empty"),
        ("me@host:~/src (main)$ ", "me@host:~/src (a/branch-2)*$ ", "empty"),
        ("[me@host src]$ ", "[me@host etc]$ ", "empty"),
        ("me@host ~> ", "me@host ~ [1]> ", "empty"),
        ("12:30:01 $ ", "23:59:59 $ ", "empty"),
        ("[Mon Nov 30] me@host:~$ ", "[Tue Dec 01] me@host:~$ ", "empty"),
        ("11:59 AM $ ", "12:00 PM $ ", "empty"),
        ("9:59am me> ", "10:00pm me> ", "empty"),
        ("May@host $ ", "Jun@host $ ", "empty"),
        ("Mayo $ ", "Juno $ ", "absent"),
        ("[Mon] $ ", "[no] $ ", "absent"),
        ("└─$ ", "└─$ ", "empty"),  # two rows, as Kali's shells have them: learned from a person
        ("➜  src ", "➜  etc ", "empty"),
        ("➜  src ", "➜  src git:(main) ✗ ", "empty"),
        ("➜  src git:(main) ✗ ", "➜  etc ", "empty"),
        ("➜  src git:(main) ✗ ", "➜  src git:(a/b) ", "empty"),
        ("➜  src ", "➜  src git:(yes/no?) ✗ ", "draft"),
        ("irb(main):001:0> ", "irb(main):042:0> ", "empty"),
        ("> ", ">>> ", "absent"),
        (">>> ", "> ", "absent"),
        ("> ", "? ", "absent"),
        ("bash-5.2# ", "> ", "absent"),
        ("bash-5.2# ", "#? ", "absent"),
        ("me@host:~$ ", "Delete /etc? (y/n) $ ", "absent"),
        ("me@host:~$ ", "you@host:~$ ", "absent"),
        ("$ ", "How much in $ ", "absent"),
        ("> ", "> Which one? ", "draft"),
        ("cmd: ", "cmd: ", "empty"),
    ],
)
def test_what_varies_of_a_prompt(learned: str, shown: str, found: str) -> None:
    assert state(f"\x1b[?2004h{shown}", BASH, known(learned)) == found


@pytest.mark.parametrize("left", ["\x1b[?1049h", "\x1b[?25l", "\x1b[?1049h\x1b[?25l"])
@pytest.mark.parametrize(
    ("facts", "written", "found"),
    [
        (BASH, "\x1b[?2004hbash-5.2# ", "empty"),
        (BASH, "bash-5.2# ", "absent"),
        (BASH._replace(since=1), "\x1b[?2004hbash-5.2# ", "absent"),
        (BASH._replace(foreign=True), "\x1b[?2004hbash-5.2# ", "absent"),
        (BASH._replace(names=("vim",)), "\x1b[?2004hbash-5.2# ", "absent"),
        (BASH, "\x1b[?2004h< Yes > bash-5.2# ", "absent"),
    ],
)
def test_a_known_prompt_is_one_where_a_killed_program_has_left_the_terminal(
    left: str, facts: TerminalFacts, written: str, found: str
) -> None:
    """On its other screen, without a cursor; where it is seen that the very program reads a line there."""
    assert state(left + written, facts, known("bash-5.2# ")) == found
    assert state(left + written, facts) == "absent", "but for one that is known"


@pytest.mark.parametrize(
    ("reads", "found"), [("yes", "empty"), ("maybe", "absent"), ("no", "absent"), (None, "absent")]
)
def test_so_it_is_in_line_mode_where_somebody_reads(reads: Reads | None, found: str) -> None:
    dash = facts_of("dash", LINES, reads=reads)
    assert state("\x1b[?1049h# ", dash, known("# ", facts_of("dash", LINES))) == found


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        (BASH._replace(line_mode=True, echo=True), "printed, no line editor is up"),
        (BASH._replace(line_mode=True, echo=False), "what is typed is not shown"),
        (BASH._replace(foreign=True), "another program has the terminal"),
        (BASH._replace(names=("fzf",)), "no prompt that is known"),
    ],
)
def test_a_known_prompt_is_none_without_its_reader(facts: TerminalFacts, why: str) -> None:
    found = read_prompt(SPEC, screen_of("$ ").snapshot(), Known(facts=facts, learned=known("$ ")))
    assert (found.state, found.why) == ("absent", why)


@pytest.mark.parametrize(("reads", "found"), [("yes", "empty"), ("maybe", "empty"), (None, "empty"), ("no", "absent")])
def test_whoever_is_not_seen_to_read_has_printed_it(reads: str | None, found: str) -> None:
    dash = facts_of("dash", LINES)
    assert state("$ ", dash._replace(reads=reads), known("$ ", dash)) == found


@pytest.mark.parametrize(("reads", "found"), [("yes", "empty"), ("maybe", "absent"), (None, "empty"), ("no", "absent")])
def test_a_first_message_needs_a_reader(reads: str | None, found: str) -> None:
    assert state("45%", facts_of("curl", LINES)._replace(reads=reads)) == found


def test_bracketed_paste_of_another_program_is_no_evidence() -> None:
    """It was killed, and has left it on; the one that came later has not switched it on."""
    assert state("\x1b[?2004h> ", facts_of("fzf", KEYS, since=7)) == "absent"
    assert state("\x1b[?2004h> ", facts_of("mytool", KEYS)) == "empty"


def test_nothing_is_one_while_the_reader_is_not_known() -> None:
    screen = screen_of("\x1b[?2004h$ ").snapshot()
    assert read_prompt(SPEC, screen, Known(facts=None, learned=known("$ "))).state == "absent"
    later = Known(facts=BASH._replace(offset=5), offset=9, edits_from=1)
    assert read_prompt(SPEC, screen, later).state == "absent", "it was asked before that was shown"


def test_a_persons_draft_at_a_prompt_that_nothing_was_sent_to() -> None:
    offered = learn("$ ", BASH, confirmed=False)
    assert state("\x1b[?2004h$ ls", BASH, [offered]) == "draft"
    assert state("\x1b[?2004h? [y/n] $ ", BASH, [offered]) == "absent", "it is no prompt by that"


@pytest.mark.parametrize(
    ("shown", "prompt", "before", "found"),
    [
        ("abc$ ", "$ ", "", "empty"),
        ("abc $ ", "$ ", "", "absent"),
        ("Name> ", "> ", "", "absent"),
        ("abcsqlite> ", "sqlite> ", "", "empty"),
        ("abc> ", "> ", "abc", "empty"),
    ],
)
def test_output_that_is_not_ended_before_the_prompt(shown: str, prompt: str, before: str, found: str) -> None:
    dash = facts_of("dash", LINES)
    assert state(shown, dash, known(prompt, dash), before=before) == found


def test_an_empty_prompt_is_an_empty_row() -> None:
    bc = facts_of("bc", KEYS)
    assert state("\x1b[?2004h", bc, [said("", None)]) == "empty"
    assert state("\x1b[?2004hquit?", bc, [said("", None)]) == "absent"


def test_a_message_is_shown_behind_its_prompt() -> None:
    now = screen_of("> one\r\n=> [1, 2].map(x => {\r\n... })").snapshot()
    assert echoes(now, "=> ", "[1, 2].map(x => {\n})")
    assert echoes(now, "> ", "one")
    assert not echoes(now, "$ ", "one")
    assert not echoes(now, "> ", "two")


@pytest.mark.parametrize(
    ("names", "found"),
    [(("python3.13",), "python3.13"), (("ruby3.1", "irb"), "ruby3.1"), (("fzf",), None), (("lua5.4",), "lua5.4")],
)
def test_a_version_behind_a_name_does_not_count(names: tuple[str, ...], found: str | None) -> None:
    assert edits(names, SPEC.line_editors) == found


def test_what_was_learned_is_bounded_and_the_newest_counts() -> None:
    many: tuple[LearnedPrompt, ...] = ()
    for number in range(KEPT_MAX + 3):
        many = add(many, learn(f"p{'x' * number}> ", BASH))
    assert len(many) == KEPT_MAX
    assert add(many, many[0])[-1] == many[0]
    assert len(add(many, many[0])) == KEPT_MAX


@pytest.mark.parametrize(
    ("text", "shown"), [("/ ", "/ "), ("~:", "~:"), ("src+", "src+"), ("src+", "/+"), ("/:1", "/:1")]
)
def test_a_prompt_of_many_folders_is_searched_for_in_little_time(text: str, shown: str) -> None:
    """No deadline is asserted: exponential behaviour would exceed the test's time-out."""
    learned = learn(f"{text * (TEXT_MAX // len(text) - 1)}$", BASH)
    assert compiled(learned.pattern).match(learned.text)
    assert not compiled(learned.pattern).match(f"{shown * 2000}x")


def test_signs_of_a_question_are_searched_for_in_little_time() -> None:
    """No deadline is asserted: quadratic behaviour would exceed the test's time-out."""
    assert asks(SPEC, f"a (){' ' * 500_000}x") is None
    assert asks(SPEC, "Name (x) : ") == "a default"


def test_the_last_folders_of_a_prompt_vary() -> None:
    pattern = compiled(pattern_of("src@src:~/src (main)$", "/home/src"))
    assert pattern.fullmatch("src@etc:/etc (other)$")
    assert not pattern.fullmatch("etc@etc:/etc (other)$"), "the person"


@pytest.mark.parametrize("text", ["a.b*c> ", "[x]+ $ ", "(((> ", "\\d> ", "~/a(b> "])
def test_a_prompt_is_itself(text: str) -> None:
    assert compiled(pattern_of(text, None)).fullmatch(text)
