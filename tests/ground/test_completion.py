"""Completion by the installed tool, in the real shells: it finds, or is silent, and nothing appears at the prompt."""

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.ground.installed import Installed
from tests.ground.person import Person, living_somewhere
from tests.support.daemon import PATIENCE_S
from tests.support.typed_shell import TypedShell

ALL = ("bash", "zsh", "fish")
NOT_FISH = ("bash", "zsh")

AS_ROOT = sys.platform == "linux" and os.getuid() == 0 and shutil.which("unshare") is not None

pytestmark = [pytest.mark.night, pytest.mark.timeout(4 * PATIENCE_S)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """What is typed before the Tab, and what the line is then; `{home}` and `{tool}` are filled in."""

    name: str
    line: str
    to: str
    first: str = ""
    """What is typed before, which changes the shell."""
    shells: tuple[str, ...] = ALL


TABLE = (
    Typed(name="a verb", line="synapsectl shutd", to="synapsectl shutdown"),
    Typed(name="an agent", line="synapsectl attach dumm", to="synapsectl attach dummy-one"),
    Typed(name="a path from the home", line="~/bin/synapsectl attach dumm", to="~/bin/synapsectl attach dummy-one"),
    Typed(
        name="a path with a space", line="~/my\\ bin/synapsectl shutd", to="~/my bin/synapsectl shutdown", shells=ALL
    ),
    Typed(name="its whole path", line="{tool} attach dumm", to="{tool} attach dummy-one"),
    Typed(name="in double quotes", line='synapsectl attach "dumm', to="synapsectl attach dummy-one"),
    Typed(name="in single quotes", line="synapsectl attach 'dumm", to="synapsectl attach dummy-one"),
    Typed(name="behind a semicolon", line="true; synapsectl versi", to="true"),
    Typed(name="behind a pipe", line="true | synapsectl attach dumm", to=""),
    Typed(name="behind a variable", line="A=1 synapsectl attach dumm", to="A=1 synapsectl attach dummy-one"),
    Typed(name="a file of the option", line="synapsectl send d --file=mei", to="synapsectl send d --file=meine.txt"),
    Typed(name="a file with an umlaut", line="synapsectl send d --file üb", to="synapsectl send d --file über uns.txt"),
    Typed(name="its umlaut joined", line="synapsectl send d --file=üb", to="synapsectl send d --file=über uns.txt"),
    Typed(name="a file with brackets", line="synapsectl send d --file br", to="synapsectl send d --file br[1](2){3}$x"),
    Typed(name="a folder", line="synapsectl start dummy --cwd=or", to="synapsectl start dummy --cwd=ordner"),
    Typed(name="nothing that there is", line="synapsectl attach nothing", to="synapsectl attach nothing"),
    Typed(name="no verb", line="synapsectl nothing ", to="synapsectl nothing"),
    Typed(name="a quote that never ends before it", line="synapsectl send 'a\" ", to=""),
    Typed(
        name="variables that must be set",
        first="set -u",
        line="synapsectl attach dumm",
        to="synapsectl attach dummy-one",
        shells=NOT_FISH,
    ),
    Typed(
        name="no globs",
        first="set -f",
        line="synapsectl attach dumm",
        to="synapsectl attach dummy-one",
        shells=NOT_FISH,
    ),
    Typed(
        name="globs that must match",
        first="shopt -s failglob nullglob",
        line="synapsectl attach dumm",
        to="synapsectl attach dummy-one",
        shells=("bash",),
    ),
    Typed(
        name="POSIX",
        first="set -o posix",
        line="synapsectl attach dumm",
        to="synapsectl attach dummy-one",
        shells=("bash",),
    ),
    Typed(
        name="another IFS",
        first="IFS=dm",
        line="synapsectl attach dumm",
        to="synapsectl attach dummy-one",
        shells=NOT_FISH,
    ),
    Typed(
        name="arrays of ksh",
        first="setopt KSH_ARRAYS",
        line="synapsectl attach dumm",
        to="synapsectl attach dummy-one",
        shells=("zsh",),
    ),
    Typed(
        name="words of sh",
        first="setopt SH_WORD_SPLIT",
        line="synapsectl attach dumm",
        to="synapsectl attach dummy-one",
        shells=("zsh",),
    ),
    Typed(
        name="no language",
        first="export LC_ALL=C",
        line="synapsectl attach dumm",
        to="synapsectl attach dummy-one",
        shells=NOT_FISH,
    ),
    Typed(
        name="a home that is named by nothing",
        first="unset HOME",
        line="synapsectl shutd",
        to="synapsectl shutdown",
        shells=NOT_FISH,
    ),
    Typed(
        name="a current folder that is gone",
        first="mkdir gone; cd gone; rmdir ../gone",
        line="synapsectl attach dumm",
        to="synapsectl attach dummy-one",
    ),
    Typed(
        name="Python's warnings",
        first="export PYTHONWARNINGS=error PYTHONDEVMODE=1",
        line="synapsectl attach dumm",
        to="synapsectl attach dummy-one",
    ),
    Typed(
        name="a colour for every error",
        first="export CLICOLOR_FORCE=1 FORCE_COLOR=1",
        line="synapsectl shutd",
        to="synapsectl shutdown",
    ),
)


@pytest.fixture(scope="module")
def person(installed: Installed) -> Iterator[Person]:
    with living_somewhere(installed) as person:
        person.with_dummy("dummy-one")
        furnish(person)
        yield person


def furnish(person: Person) -> None:
    (person.home / "my bin").mkdir()
    (person.home / "my bin/synapsectl").symlink_to(person.installed.tool)
    (person.home / "bin").symlink_to("my bin")
    (person.home / "ordner").mkdir()
    for name in ("meine.txt", "über uns.txt", "br[1](2){3}$x"):
        (person.home / name).touch()


def shell(name: str, person: Person, first: str = "", around: tuple[str, ...] = ()) -> TypedShell:
    if shutil.which(name) is None:
        pytest.skip(f"there is no {name} here")
    env = {key: value for key, value in person.login.items() if key != "TERM"}
    return TypedShell(name, person.installed.bin, env, first=first, around=around)


def assert_silent(typed: TypedShell) -> None:
    for word in (b"rror:", b"nknown", b"raceback", b"not found", b"No such", b"unbound", b"not set", b"bad "):
        assert word not in typed.told, typed.told


@pytest.mark.parametrize("one", TABLE, ids=lambda one: one.name)
@pytest.mark.parametrize("name", ALL)
def test_a_line_that_is_typed(name: str, one: Typed, person: Person) -> None:
    if name not in one.shells:
        pytest.skip(f"{name} has no such thing")
    check(name, one, person)


def check(name: str, one: Typed, person: Person) -> None:
    typed = shell(name, person, one.first)
    try:
        tool = person.installed.tool
        line, to = (text.replace("{tool}", str(tool)) for text in (one.line, one.to))
        if to:
            typed.completes(line, to)
        else:
            typed.pty.write(f"{line}\t\x15\x03".encode())
        typed.enter("")
        assert_silent(typed)
    finally:
        typed.close()


@pytest.mark.parametrize("name", ALL)
def test_before_there_is_a_daemon(name: str, installed: Installed) -> None:
    """Verbs complete, agents do not; no daemon is started for it, and nothing is made."""
    with living_somewhere(installed) as person:
        typed = shell(name, person)
        try:
            typed.completes("synapsectl shutd", "synapsectl shutdown")
            typed.completes("synapsectl attach dumm", "synapsectl attach dumm")
            assert_silent(typed)
        finally:
            typed.close()
        assert (person.record, person.state.exists()) == (None, False)


@pytest.mark.parametrize("name", ALL)
def test_a_daemon_that_stands_still(name: str, installed: Installed) -> None:
    """The shell is the person's again after the seconds that are given to it, whatever the daemon does."""
    with living_somewhere(installed) as person:
        person.with_dummy("dummy-one")
        pid = person.pid
        os.kill(pid, signal.SIGSTOP)
        try:
            typed = shell(name, person)
            try:
                typed.completes("synapsectl attach dumm", "synapsectl attach dumm")
                typed.completes("synapsectl shutd", "synapsectl shutdown")
                assert_silent(typed)
            finally:
                typed.close()
        finally:
            os.kill(pid, signal.SIGCONT)


@pytest.mark.skipif(not AS_ROOT, reason="makes namespaces")
@pytest.mark.parametrize("name", ALL)
def test_a_home_that_is_read_only(name: str, person: Person) -> None:
    mount = 'mount --bind "$0" "$0"; mount -o remount,bind,ro "$0"; cd "$0"; exec "$@"'
    around = ("unshare", "--mount", "sh", "-c", mount, str(person.home))
    typed = shell(name, person, around=around)
    try:
        typed.completes("synapsectl attach dumm", "synapsectl attach dummy-one")
        typed.completes("synapsectl send d --file=mei", "synapsectl send d --file=meine.txt")
        for word in (b"raceback", b"synapsectl: "):
            assert word not in typed.told, typed.told
    finally:
        typed.close()
