"""`attach` and `run` in a real terminal: what passes, how it ends, and that the terminal is as before."""

import os
import signal
import termios
from collections.abc import Callable, Iterator

import pytest

from synapsed.errors import Forbidden
from synapsed.terminal.emulated_screen import Screen
from tests.synapsectl.conftest import Ctl
from tests.synapsectl.fake_daemon import DEADLINE, FakeDaemon, agent
from tests.synapsectl.pty_tool import PtyTool

Attach = Callable[..., PtyTool]
HASTY = "import synapsectl.attachment; synapsectl.attachment.RECONNECT = 0.3"


@pytest.fixture
def attach(daemon: FakeDaemon) -> Iterator[Attach]:
    """Attach to claude, and wait for the redraw."""
    tools: list[PtyTool] = []

    def start(*arguments: str, verb: str = "attach", target: str = "claude", **options: object) -> PtyTool:
        tool = PtyTool(verb, target, *arguments, **options)  # type: ignore[arg-type]
        tools.append(tool)
        return tool

    yield start
    for tool in tools:
        tool.close()


def attached(tool: PtyTool, daemon: FakeDaemon) -> PtyTool:
    tool.until(b"redrawn")
    assert tool.termios() != tool.before
    assert not tool.termios()[3] & (termios.ICANON | termios.ECHO | termios.ISIG)
    return tool


def test_keys_go_there_and_output_comes_here(attach: Attach, daemon: FakeDaemon) -> None:
    tool = attached(attach(rows=30, cols=100), daemon)
    assert daemon.terminals[-1].query == {"cols": "100", "rows": "30", "one_screen": "1"}
    tool.type(b"hi \x03\x1b[A\xc3\xa9\r")
    daemon.until(lambda: daemon.typed == b"hi \x03\x1b[A\xc3\xa9\r")
    daemon.show("ö\x1b[31mred\x00\xff".encode("latin-1"))
    tool.until("ö\x1b[31mred\x00\xff".encode("latin-1"))


def test_the_detach_key_ends_it_and_puts_everything_back(attach: Attach, daemon: FakeDaemon) -> None:
    daemon.settings = {"status": False}
    tool = attached(attach(), daemon)
    daemon.show(b"\x1b[?1049h\x1b[?1003h\x1b]9;4;3\x07\x1b]0;half a titl")
    tool.until(b"half a titl")
    tool.type(b"abc\x1ddlost")
    assert tool.end() == 0
    tool.until(b"[detached from claude]")
    daemon.until(lambda: daemon.terminals[-1].messages == [{"type": "detach"}])
    assert daemon.typed == b"abc"
    after = tool.shown.partition(b"half a titl")[2]
    for reset in (b"\x1b\\", b"\x1b[?1049l", b"1003", b"\x1b[?7;25h", b"\x1b[23;0t", b"\x1b]9;4;0"):
        assert reset in after
    assert b"\x1b]7501" not in after, "nothing said so before"


@pytest.mark.parametrize("keys", [b"\x1b[93;5u", b"\x1b[27;5;93~", b"\x1b[<0;10;5M\x1b[M !\x1d\x1b[<0;10;5m\x1d"])
def test_the_detach_key_in_its_other_forms(attach: Attach, daemon: FakeDaemon, keys: bytes) -> None:
    tool = attached(attach(), daemon)
    tool.type(keys)
    assert tool.end() == 0


def test_other_detach_keys(attach: Attach, daemon: FakeDaemon) -> None:
    tool = attached(attach("--detach-keys", "ctrl-p,ctrl-q"), daemon)
    tool.type(b"\x1d")
    daemon.until(lambda: daemon.typed == b"\x1d")
    tool.type(b"\x10\x11")
    assert tool.end() == 0
    assert daemon.typed == b"\x1d"


def test_an_escape_alone_reaches_the_agent(attach: Attach, daemon: FakeDaemon) -> None:
    tool = attached(attach(), daemon)
    tool.type(b"\x1b")
    daemon.until(lambda: daemon.typed == b"\x1b")


def test_answers_to_queries_stay_here(attach: Attach, daemon: FakeDaemon) -> None:
    tool = attached(attach(), daemon)
    tool.type(b"\x1b[?62;22c\x1b[12;40R\x1b]11;rgb:0000/0000/0000\x1b\\\x1b[Ix")
    daemon.until(lambda: daemon.typed.endswith(b"x"))
    assert daemon.typed == b"\x1b[Ix"


ANSWERS = b"\x1b]10;rgb:10/10/10\x07\x1b]11;rgb:fa/f0/e6\x07\x1b[6;23;11t\x1b[?0u\x1b[?62c"
LIGHT = {
    "type": "terminal",
    "foreground": [16, 16, 16],
    "background": [250, 240, 230],
    "cell": [11, 23],
    "keyboard": True,
}


def test_the_terminal_is_asked_what_it_is_like_and_the_daemon_told(attach: Attach, daemon: FakeDaemon) -> None:
    tool = attached(attach(), daemon)
    tool.until(b"\x1b]11;?\x1b\\")
    tool.type(b"a" + ANSWERS + b"b")
    daemon.until(lambda: LIGHT in daemon.terminals[-1].messages and daemon.typed == b"ab")
    tool.resize(50, 132)
    tool.when(lambda shown: shown.count(b"\x1b]11;?") == 2)
    tool.type(ANSWERS.replace(b"23;11", b"46;22") + b"c")
    daemon.until(lambda: LIGHT | {"cell": [22, 46]} in daemon.terminals[-1].messages and daemon.typed == b"abc")


def test_it_is_asked_again_when_its_colours_change(attach: Attach, daemon: FakeDaemon) -> None:
    tool = attached(attach(), daemon)
    tool.type(ANSWERS + b"a")
    daemon.until(lambda: LIGHT in daemon.terminals[-1].messages)
    tool.type(b"\x1b[?997;1n")
    tool.when(lambda shown: shown.count(b"\x1b]11;?") == 2)
    tool.type(ANSWERS.replace(b"fa/f0/e6", b"00/00/00") + b"b")
    daemon.until(lambda: LIGHT | {"background": [0, 0, 0]} in daemon.terminals[-1].messages)
    daemon.until(lambda: daemon.typed == b"ab")


def test_a_terminal_that_prints_what_it_does_not_know_is_not_asked(attach: Attach, daemon: FakeDaemon) -> None:
    tool = attached(attach(env={**os.environ, "TERM": "linux"}), daemon)
    tool.type(b"a")
    daemon.until(lambda: daemon.typed == b"a")
    daemon.show(b"shown")
    tool.until(b"shown")
    assert b"]11;?" not in tool.shown


def test_one_that_is_stopped_gives_the_terminal_back_and_takes_it_again(attach: Attach, daemon: FakeDaemon) -> None:
    tool = attached(attach(), daemon)
    daemon.show(b"\x1b[>1u\x1b[?1003hbefore")
    tool.until(b"before")
    tool.process.send_signal(signal.SIGTSTP)
    tool.when(lambda shown: shown.count(b"redrawn") == 2)
    between = tool.shown.partition(b"before")[2].rpartition(b"redrawn")[0]
    assert b"\x1b[<99u" in between, "the keys as they were"
    assert b"\x1b[23;0t" in between
    assert b"\x1b[22;0t" in between.partition(b"\x1b[23;0t")[2]
    assert not tool.termios()[3] & termios.ICANON
    tool.type(b"x\x1d\x1d")
    assert tool.end() == 0
    assert daemon.typed == b"x"
    assert tool.termios() == tool.before


def test_resize_is_told(attach: Attach, daemon: FakeDaemon) -> None:
    tool = attached(attach(), daemon)
    tool.resize(50, 132)
    daemon.until(lambda: {"type": "resize", "cols": 132, "rows": 49} in daemon.terminals[-1].messages)


def test_read_only_sends_nothing(attach: Attach, daemon: FakeDaemon) -> None:
    tool = attached(attach("--read-only"), daemon)
    assert daemon.terminals[-1].query["read_only"] == "1"
    tool.type(b"hello\x1d")
    assert tool.end() == 0
    assert daemon.typed == b""


@pytest.mark.parametrize(("code", "said"), [(3, b"exit code 3"), (-9, b"by SIGKILL"), (None, b"[claude ended]")])
def test_the_programs_end_is_the_end(attach: Attach, daemon: FakeDaemon, code: int | None, said: bytes) -> None:
    tool = attached(attach(), daemon)
    daemon.exit(code)
    assert tool.end() == 0
    tool.until(said)


@pytest.mark.parametrize(("code", "expected"), [(0, 0), (3, 3), (-15, 143), (None, 1)])
def test_run_ends_as_the_program_does(attach: Attach, daemon: FakeDaemon, code: int | None, expected: int) -> None:
    tool = attached(attach("--", "--model", "x", verb="run", target="dummy", rows=33, cols=90), daemon)
    body = next(body for _, path, body in daemon.requests if path == "/control/start")
    assert (body["args"], body["cols"], body["rows"]) == (["--model", "x"], 90, 33)
    daemon.exit(code)
    assert tool.end() == expected


def test_a_program_that_is_run_has_no_larger_window_than_there_is(attach: Attach, daemon: FakeDaemon) -> None:
    attached(attach(verb="run", target="dummy", cols=10_000, rows=30), daemon)
    (body,) = [body for _, path, body in daemon.requests if path == "/control/start"]
    assert (body["cols"], body["rows"]) == (1000, 30)


def test_run_and_detach_is_0(attach: Attach, daemon: FakeDaemon) -> None:
    tool = attached(attach(verb="run", target="dummy"), daemon)
    tool.type(b"\x1d")
    assert tool.end() == 0


def test_a_new_daemon_is_gone_on_with(attach: Attach, daemon: FakeDaemon) -> None:
    tool = attached(attach(), daemon)
    daemon.die()
    tool.until(b"the daemon is away")
    tool.type(b"typed meanwhile")
    daemon.redraw = b"\x1b[H\x1b[2Jsecond redraw"
    daemon.start()
    tool.until(b"second redraw")
    daemon.until(lambda: daemon.typed == b"typed meanwhile")
    tool.type(b"\x1d")
    assert tool.end() == 0


def test_keys_for_a_connection_that_is_over_wait_for_the_next_daemon(attach: Attach, daemon: FakeDaemon) -> None:
    """Its last output is still to be read, so the tool does not know yet."""
    tool = attached(attach(), daemon)
    os.kill(tool.process.pid, signal.SIGSTOP)
    daemon.show(b"output\r\n" * 20_000)
    daemon.die()
    tool.type(b"typed meanwhile")
    os.kill(tool.process.pid, signal.SIGCONT)
    tool.until(b"the daemon is away")
    daemon.start()
    daemon.until(lambda: daemon.typed == b"typed meanwhile")
    tool.type(b"\x1d")
    assert tool.end() == 0


def test_a_daemon_that_stays_away_is_3(attach: Attach, daemon: FakeDaemon) -> None:
    tool = attached(attach(before=HASTY), daemon)
    daemon.die()
    assert tool.end() == 3
    tool.until(b"claude goes on without it")


def test_detaching_while_the_daemon_is_away(attach: Attach, daemon: FakeDaemon) -> None:
    tool = attached(attach(), daemon)
    daemon.die()
    tool.until(b"the daemon is away")
    tool.type(b"\x1d")
    assert tool.end() == 0


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT])
def test_signals_restore_the_terminal(attach: Attach, daemon: FakeDaemon, signum: signal.Signals) -> None:
    tool = attached(attach(), daemon)
    tool.process.send_signal(signum)
    assert tool.end() == 128 + signum


def test_a_terminal_that_takes_nothing_does_not_hold_it(attach: Attach, daemon: FakeDaemon) -> None:
    tool = attach(read=False)
    daemon.until(lambda: daemon.terminals)
    daemon.show(b"x" * 300_000)
    tool.process.send_signal(signal.SIGTERM)
    assert tool.end() == 143


def test_a_terminal_that_hangs_up_ends_it(attach: Attach, daemon: FakeDaemon) -> None:
    tool = attach(read=False)
    daemon.until(lambda: daemon.terminals)
    tool.hang_up()
    assert tool.process.wait(DEADLINE) == 129


def test_a_refused_terminal_is_left_alone(attach: Attach, daemon: FakeDaemon) -> None:
    daemon.refuse("GET", "/agents/claude/terminal", Forbidden("an agent may not use a terminal"))
    tool = attach()
    assert tool.end() == 6
    assert b"\x1b" not in tool.shown


def test_what_cannot_be_attached_to(attach: Attach, daemon: FakeDaemon, ctl: Ctl) -> None:
    assert attach(target="nobody").end() == 4
    daemon.agents["claude"] = agent("claude", state="stopped")
    tool = attach()
    assert tool.end() == 6
    tool.until(b"synapsectl restart claude")
    assert attach("--detach-keys", "ctrl-é").end() == 2
    assert ctl("attach", "claude").code == 2, "no terminal"
    assert ctl("run", "dummy").code == 2
    daemon.die()
    assert attach().end() == 3


def test_the_status_line_the_title_and_the_bell(attach: Attach, daemon: FakeDaemon) -> None:
    tool = attached(attach(cols=60, rows=10), daemon)
    tool.until(b"\x1b[10;1H")
    daemon.tell(type="attention", needs=1, here=False, doing="busy")
    tool.until(b"1 needs you")
    tool.until(b"\x1b]2;(1) synapsed\x07")
    assert b"\x07\a" not in tool.shown, "what waited before rings no bell"
    daemon.tell(type="attention", needs=2, here=True, doing="ready")
    tool.until(b"\x1b]2;(2) synapsed\x07\a")
    tool.until(b"2 need you (this one)")
    tool.type(b"\x1ds")
    daemon.until(lambda: {"type": "resize", "cols": 60, "rows": 10} in daemon.terminals[-1].messages)
    tool.type(b"\x1ds")
    daemon.until(lambda: {"type": "resize", "cols": 60, "rows": 9} in daemon.terminals[-1].messages[1:])


def test_without_status_line_title_and_bell(attach: Attach, daemon: FakeDaemon) -> None:
    daemon.settings = {"status": False, "title": False, "bell": False}
    tool = attached(attach(cols=60, rows=10), daemon)
    assert daemon.terminals[-1].query["rows"] == "10"
    daemon.tell(type="attention", needs=1, here=False, doing="busy")
    daemon.tell(type="attention", needs=2, here=False, doing="busy")
    daemon.show(b"on it goes")
    tool.until(b"on it goes")
    assert b"need" not in tool.shown
    assert b"\x1b]2;" not in tool.shown


def test_looking_back_and_live_again(attach: Attach, daemon: FakeDaemon) -> None:
    tool = attached(attach(cols=60, rows=10), daemon)
    tool.type(b"\x1d[")
    daemon.until(lambda: any(message["type"] == "earlier" for message in daemon.terminals[-1].messages))
    daemon.earlier(b"line 2998\r\nline 2999", b"".join(b"line %d\r\n" % n for n in range(3000)), cols=60, rows=9)
    tool.until(b"3000/3000")
    daemon.show(b"not shown now")
    tool.type(b"g")
    tool.until(b"9/3000")
    tool.type(b"/line 1500\r")
    tool.until(b"1509/3000")
    count = tool.shown.count(b"redrawn")
    tool.type(b"qtyped")
    daemon.until(lambda: daemon.typed == b"typed")
    assert b"not shown now" not in tool.shown
    daemon.show(b"and on it goes")
    tool.until(b"and on it goes")
    assert tool.shown.count(b"redrawn") == count + 1


def test_hops_to_the_next_agent(attach: Attach, daemon: FakeDaemon) -> None:
    tool = attached(attach(cols=60, rows=10), daemon)
    first = daemon.terminals[-1]
    tool.type(b"a\x1dnb")
    daemon.until(lambda: daemon.terminals[-1].query["cols"] == "60" and daemon.typed == b"b")
    tool.until(b" codex ")
    daemon.until(lambda: first.received == b"a")
    tool.type(b"\x1dd")
    assert tool.end() == 0
    tool.until(b"[detached from codex]")


def test_help_without_a_status_line_stands_over_the_last_row_for_a_moment(attach: Attach, daemon: FakeDaemon) -> None:
    daemon.settings = {"status": False, "keys": {"next": "j"}}
    tool = attached(attach(rows=10, cols=40), daemon)
    tool.type(b"\x1d?")
    tool.until(b"\x1b[999;1H\x1b[0;7m j next")
    said = tool.shown.partition(b"\x1b[0;7m ")[2].partition(b" \x1b[0m")[0].decode()
    assert len(said) <= 38, "it would scroll the screen"
    again = {"type": "resize", "cols": 40, "rows": 10}
    daemon.until(lambda: again in daemon.terminals[-1].messages)  # the daemon draws the screen then


def test_help_in_the_status_line(attach: Attach, daemon: FakeDaemon) -> None:
    daemon.settings = {"status": True, "keys": {"next": "v"}}
    tool = attached(attach(cols=100, rows=10), daemon)
    tool.type(b"\x1d?")
    tool.until(b"v next  p previous")


def test_the_wheel_looks_back_where_that_is_wanted(attach: Attach, daemon: FakeDaemon) -> None:
    daemon.settings = {"status": True, "wheel": True}
    tool = attached(attach(cols=60, rows=10), daemon)
    tool.type(b"a\x1b[<0;3;3M\x1b[<0;3;3mb\x1b[<64;3;3M")
    daemon.until(lambda: any(message["type"] == "earlier" for message in daemon.terminals[-1].messages))
    daemon.until(lambda: daemon.typed == b"ab")


MINE = b"".join(b"mine %d\r\n" % number for number in range(40))


def screen_of(shown: bytes) -> Screen:
    screen = Screen(80, 24)
    screen.feed(MINE + shown)
    return screen


@pytest.mark.parametrize("ahead", [True, False])
def test_what_stood_there_stands_there_again(attach: Attach, daemon: FakeDaemon, *, ahead: bool) -> None:
    daemon.one_screen = True
    daemon.settings = {"status": not ahead, "title": True, "bell": True, "scrollback": 0, "wheel": False, "keys": {}}
    tool = attached(attach(), daemon)
    assert screen_of(tool.shown).snapshot().alternate
    daemon.die()
    tool.until(b"the daemon is away")
    daemon.start()
    tool.when(lambda shown: shown.count(b"redrawn") == 2)
    assert screen_of(tool.shown).snapshot().alternate
    tool.type(b"\x1d\x1d")
    assert tool.end() == 0
    tool.until(b"[detached from claude]\r\n")
    lines = screen_of(tool.shown).text(scrollback=True).splitlines()
    assert lines[:40] == MINE.decode().splitlines()
    assert [line[:9] for line in lines[40:]] == ["[claude: ", "[detached"]


def test_a_daemon_of_another_version_that_comes_back_is_shown_as_it_wants(attach: Attach, daemon: FakeDaemon) -> None:
    daemon.one_screen = True
    tool = attached(attach(), daemon)
    for one_screen, times in ((False, 2), (True, 3)):
        daemon.die()
        tool.when(lambda shown, times=times: shown.count(b"the daemon is away") == times - 1)  # type: ignore[misc]
        daemon.one_screen = one_screen
        daemon.start()
        tool.when(lambda shown, times=times: shown.count(b"redrawn") == times)  # type: ignore[misc]
        assert screen_of(tool.shown).snapshot().alternate == one_screen
    tool.type(b"\x1d\x1d")
    assert tool.end() == 0
    assert not screen_of(tool.shown).snapshot().alternate


def test_a_terminal_without_another_screen_goes_on_below(attach: Attach, daemon: FakeDaemon) -> None:
    daemon.one_screen = True
    tool = attached(attach(), daemon)
    tool.type(b"\x1d\x1d")
    assert tool.end() == 0
    tool.until(b"[detached from claude]\r\n")
    screen = screen_of(tool.shown.replace(b"\x1b[?1049h", b"").replace(b"\x1b[?1049l", b""))
    lines = screen.text(scrollback=True).splitlines()
    assert lines[:40] == MINE.decode().splitlines()
    assert "redrawn" in lines[41:]
    assert lines[-1] == "[detached from claude]"


def test_the_last_words_of_a_program_are_left_behind(attach: Attach, daemon: FakeDaemon) -> None:
    daemon.one_screen = True
    daemon.agents["claude"].screen = "no key is set"
    tool = attached(attach(), daemon)
    daemon.exit(1)
    tool.end()
    tool.until(b"[claude ended with exit code 1]")
    lines = screen_of(tool.shown).text(scrollback=True).splitlines()
    assert lines[-2:] == ["no key is set", "[claude ended with exit code 1]"]
