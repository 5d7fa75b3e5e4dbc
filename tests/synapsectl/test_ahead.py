"""`attach AGENT` begins before the tool is loaded: only in the plainest case, and with the same in the end."""

import signal
from pathlib import Path

import pytest

from synapsectl.ahead import begin, head_of, told
from synapsectl.client import Client, agent_path
from tests.synapsectl.fake_daemon import DEADLINE, FakeDaemon
from tests.synapsectl.pty_tool import PtyTool

PLAIN = {"status": False, "title": True, "bell": True, "scrollback": 0, "wheel": False, "keys": {}}
AT_IMPORT = """
import os, signal, sys, synapsectl.ahead
synapsectl.ahead.DRAWN_S = 60
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "{module}":
            {does}
sys.meta_path.insert(0, Finder())
"""
"""Does something when a module of the tool is loaded; on no machine is the screen too slow to be drawn ahead."""


def at_import(module: str, does: str) -> str:
    return AT_IMPORT.format(module=module, does=does)


def after(does: str) -> str:
    """When the screen may be drawn and nothing else of the tool is loaded."""
    return at_import("synapsectl.dispatch", does)


@pytest.fixture
def plain(daemon: FakeDaemon) -> FakeDaemon:
    daemon.settings = dict(PLAIN)
    return daemon


def test_the_screen_is_drawn_before_the_tool_is_loaded(plain: FakeDaemon) -> None:
    tool = PtyTool("attach", "claude", before=after("os._exit(7)"))
    tool.until(b"redrawn\r\n")
    assert tool.process.wait(DEADLINE) == 7
    assert tool.shown.startswith(told("claude", "ctrl-]").encode() + b"\r\n\x1b[22;0t")
    assert tool.shown.endswith(b"redrawn\r\n")
    tool.close()


def test_it_is_drawn_once_and_then_attached_as_ever(plain: FakeDaemon) -> None:
    tool = PtyTool("attach", "claude")
    tool.until(b"redrawn")
    tool.type(b"abc")
    plain.until(lambda: plain.typed == b"abc")
    plain.show(b"shown")
    tool.until(b"shown")
    assert (tool.shown.count(b"redrawn"), tool.shown.count(b"detaches"), len(plain.terminals)) == (1, 1, 1)
    tool.type(b"\x1dd")
    assert tool.end() == 0
    tool.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_in_between_gives_the_terminal_back(plain: FakeDaemon, number: signal.Signals) -> None:
    tool = PtyTool("attach", "claude", before=after(f"os.kill(os.getpid(), {int(number)})"))
    assert tool.end() == 128 + number
    tool.until(b"[detached from claude]")
    assert tool.shown.count(b"\x1b[23;0t") == 1
    tool.close()


def test_an_interrupt_before_anything_is_drawn_is_one_of_any_verb(home: Path) -> None:
    tool = PtyTool(
        "attach", "claude", before=at_import("synapsed.config.sockets", "os.kill(os.getpid(), signal.SIGINT)")
    )
    assert tool.end() == 130
    assert tool.shown == b""
    tool.close()


def test_an_interrupt_while_the_tool_is_loaded_is_one_of_any_verb(home: Path) -> None:
    tool = PtyTool("list", before=after("os.kill(os.getpid(), signal.SIGINT)"))
    assert tool.end() == 130
    assert tool.shown == b""
    tool.close()


def test_what_the_screen_brought_is_taken_back(plain: FakeDaemon) -> None:
    """A redraw ends with what the program says of itself: the terminal around would show that for ever."""
    plain.redraw = b"redrawn\x1b]7501;state=working\x1b\\"
    tool = PtyTool("attach", "claude", before=after("pass"))
    tool.until(b"state=working")
    tool.type(b"\x1dd")
    assert tool.end() == 0
    assert b"\x1b]7501;state=clear" in tool.shown
    tool.close()


def test_the_title_tells_how_many_wait_where_that_came_before_the_screen(plain: FakeDaemon) -> None:
    plain.first_news = {"type": "attention", "needs": 2, "here": False, "doing": ""}
    plain.redraw = b"\x1b]2;its own\x1b\\redrawn"
    tool = PtyTool("attach", "claude", before=after("pass"))
    tool.until(b"\x1b]2;(2) its own\x07")
    tool.close()


def test_words_for_no_terminal_are_left_to_the_tool(plain: FakeDaemon) -> None:
    """The connection would be the descriptor on which the words are."""
    tool = PtyTool("attach", "claude", before="import os; os.close(2)" + after("os._exit(7)"))
    assert tool.end() == 7
    assert tool.shown == b""
    assert plain.terminals == []
    tool.close()


@pytest.mark.parametrize("settings", [{"status": True}, {"wheel": True}, {"scrollback": 5}])
def test_what_is_shown_around_a_screen_is_left_to_the_tool(plain: FakeDaemon, settings: dict[str, object]) -> None:
    plain.settings |= settings
    tool = PtyTool("attach", "claude", before=after("os._exit(7)"))
    assert tool.end() == 7
    assert tool.shown == b""
    tool.close()


def test_what_it_asks_is_what_the_tool_asks() -> None:
    client = Client("/nowhere")
    head = client.head(
        "GET",
        agent_path("claude", "terminal"),
        {"cols": 80, "rows": 24, "one_screen": 1},
        version="1.1",
        headers={"Upgrade": "synapse-terminal", "Connection": "Upgrade"},
    )
    assert head_of("claude", 80, 24) == head


@pytest.mark.parametrize(
    "arguments",
    [
        ["list"],
        ["attach"],
        ["attach", "--help"],
        ["attach", "claude@box"],
        ["attach", "claude", "--read-only"],
        ["attach", "a b"],
        ["attach", ""],
        ["run", "claude"],
    ],
)
def test_all_else_is_left_to_the_tool(arguments: list[str]) -> None:
    assert begin(arguments, {}) is None
