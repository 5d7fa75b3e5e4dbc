"""What the kernel tells of a terminal's foreground, of a proc(5) written down."""

import os
from pathlib import Path

import pytest

from synapsed.pty.foreground import Foreground

GROUP = 10


class Proc:
    def __init__(self, at: Path) -> None:
        self.at = at

    def process(
        self,
        pid: int,
        *,
        group: int = GROUP,
        wchan: str = "0",
        ticks: int = 0,
        children: str = "",
        reads: str = "/dev/pts/3",
        state: str = "S",
        begun: int = 99,
    ) -> "Proc":
        home = self.at / str(pid)
        thread = home / "task" / str(pid)
        thread.mkdir(parents=True, exist_ok=True)
        (home / "fd").mkdir(exist_ok=True)
        stat = f"{pid} (a ) b) {state} 1 {group} 1 34816 {group} 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 {begun}\n"
        for at in (home, thread):
            for name, text in (("stat", stat), ("wchan", wchan), ("syscall", "0 0x0 0x1")):
                (at / name).write_text(text)
        (home / "task" / str(pid) / "children").write_text(children)
        (home / "fd" / "0").unlink(missing_ok=True)
        (home / "fd" / "0").symlink_to(reads)
        return self

    def named(self, pid: int, name: str, *, children: str = "") -> "Proc":
        self.process(pid, children=children)
        (self.at / str(pid) / "comm").write_text(f"{name}\n")
        return self


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    return Proc(tmp_path)


def test_who_is_blocked_reading_a_line_reads(proc: Proc) -> None:
    proc.process(GROUP, wchan="wait_woken")
    assert Foreground(proc.at).look(GROUP, line_mode=True, now=1.0) == "reads"


@pytest.mark.parametrize(
    ("wchan", "reads"),
    [("hrtimer_nanosleep", "/dev/pts/3"), ("do_wait", "/dev/pts/3"), ("wait_woken", "socket:[1]")],
    ids=["sleeps", "waits for a child", "reads a socket"],
)
def test_everybody_else_in_line_mode_works(proc: Proc, wchan: str, reads: str) -> None:
    proc.process(GROUP, wchan=wchan, reads=reads)
    assert Foreground(proc.at).look(GROUP, line_mode=True, now=1.0) == "works"


@pytest.mark.parametrize("wchan", ["poll_schedule_timeout.constprop.0", "ep_poll", "wait_woken"])
def test_who_waits_for_several_things_or_in_a_thread_may_read(proc: Proc, wchan: str) -> None:
    proc.process(GROUP, wchan="futex_do_wait")
    thread = proc.at / str(GROUP) / "task" / "11"
    thread.mkdir()
    for name, text in (("stat", "11 (a ) b) S 1\n"), ("wchan", wchan), ("syscall", "0 0x0 0x1")):
        (thread / name).write_text(text)
    assert Foreground(proc.at).look(GROUP, line_mode=True, now=1.0) == "polls"
    (thread / "stat").write_text("11 (a ) b) R 1\n")
    assert Foreground(proc.at).look(GROUP, line_mode=True, now=2.0) == "works"


def test_a_child_of_the_group_may_be_the_one_that_reads(proc: Proc) -> None:
    proc.process(GROUP, wchan="do_wait", children="11 12 ").process(11, group=99, wchan="wait_woken")
    look = Foreground(proc.at).look
    assert look(GROUP, line_mode=True, now=1.0) == "works", "another group's is in the background"
    proc.process(12, wchan="wait_woken")
    assert look(GROUP, line_mode=True, now=2.0) == "reads"


def test_who_has_the_terminal_for_itself_rests_unless_it_computes(proc: Proc) -> None:
    look = Foreground(proc.at).look
    second = os.sysconf("SC_CLK_TCK")
    proc.process(GROUP, wchan="ep_poll")
    assert look(GROUP, line_mode=False, now=1.0) is None, "one look tells nothing"
    proc.process(GROUP, wchan="ep_poll", ticks=1)
    assert look(GROUP, line_mode=False, now=2.0) == "rests"
    proc.process(GROUP, wchan="ep_poll", ticks=1 + second)
    assert look(GROUP, line_mode=False, now=3.0) == "works"


@pytest.mark.parametrize(("group", "line_mode"), [(None, True), (GROUP, None), (77, True)])
def test_where_nothing_is_known_nothing_is_said(proc: Proc, group: int | None, line_mode: bool | None) -> None:
    proc.process(GROUP, wchan="wait_woken")
    assert Foreground(proc.at).look(group, line_mode=line_mode, now=1.0) is None


@pytest.mark.parametrize(("state", "computes"), [("S", False), ("R", True), ("D", True), ("T", False)])
def test_whoever_is_on_a_processor_or_waits_for_one_computes(proc: Proc, state: str, computes: bool) -> None:
    """Any thread of anybody in the group; those of another group are not asked."""
    proc.process(GROUP, children="11").process(11, children="12").process(12, group=99)
    for pid, letter in ((GROUP, "S"), (11, state), (12, "R")):
        for thread in (pid, pid + 100):
            task = proc.at / str(pid) / "task" / str(thread)
            task.mkdir(exist_ok=True)
            (task / "stat").write_text(f"{thread} (a ) b) {letter if thread > 100 else 'S'} 1 {GROUP}\n")
    assert Foreground(proc.at).computes(GROUP) is computes


def test_of_whom_nothing_is_known_it_is_not_said_that_he_computes(proc: Proc) -> None:
    assert not Foreground(proc.at).computes(GROUP)
    assert not Foreground(proc.at).computes(None)


@pytest.mark.parametrize(("state", "begun", "acts"), [("S", 99, False), ("R", 99, False), ("S", 300, True)])
def test_a_program_acts_while_a_new_child_of_it_lives(proc: Proc, state: str, begun: int, acts: bool) -> None:
    """The child has a group of its own, as hooks have. A build that began before the key does not count. Times are
    ticks."""
    proc.process(GROUP, children="11").process(11, group=11, state=state, begun=begun)
    assert Foreground(proc.at).acts(GROUP, 200 / os.sysconf("SC_CLK_TCK")) is acts


def test_a_program_of_which_nothing_is_known_does_not_act(proc: Proc) -> None:
    assert not Foreground(proc.at).acts(GROUP, 0.0)


@pytest.mark.parametrize("names", [["ssh"], ["sudo", "claude"], ["sh", "docker"], ["bash", "timeout", "mosh-client"]])
def test_a_relay_passes_its_keys_on_alone_or_in_a_wrapper(names: list[str], proc: Proc) -> None:
    for number, name in enumerate(names):
        proc.named(GROUP + number, name, children=str(GROUP + number + 1) if number + 1 < len(names) else "")
    assert Foreground(proc.at).computes_or_relays(GROUP) == (False, True)


@pytest.mark.parametrize("names", [["claude"], ["sh", "claude"], ["node", "ssh"], ["bash"]])
def test_a_program_that_reads_its_keys_itself_is_no_relay(names: list[str], proc: Proc) -> None:
    """Nor is one whose tool is ssh."""
    for number, name in enumerate(names):
        proc.named(GROUP + number, name, children=str(GROUP + number + 1) if number + 1 < len(names) else "")
    assert Foreground(proc.at).computes_or_relays(GROUP) == (False, False)
