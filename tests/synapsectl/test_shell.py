"""What of the shell around a verb is brought to an agent that is there."""

import os
from typing import Any

import pytest

from synapsed import errors
from tests.support.daemon import eventually
from tests.synapsectl.conftest import Ctl
from tests.synapsectl.fake_daemon import FakeDaemon
from tests.synapsectl.pty_tool import PtyTool

GIVEN = "/control/agents/claude/environment"
SOCK = {"SSH_AUTH_SOCK": "/a2"}


def given(daemon: FakeDaemon) -> list[dict[str, Any]]:
    return [body for _, path, body in daemon.requests if path == GIVEN]


def in_terminal(*arguments: str, **environ: str) -> tuple[int, bytes]:
    tool = PtyTool(*arguments, env={**os.environ, "TERM": "xterm", **environ})
    try:
        return tool.end(), tool.shown
    finally:
        tool.close()


def test_restart_in_a_terminal_brings_the_connection_before_it_restarts(daemon: FakeDaemon) -> None:
    code, shown = in_terminal("restart", "claude", **SOCK)
    assert code == 0, shown
    (body,) = given(daemon)
    assert (body["bring"], body["env"]["SSH_AUTH_SOCK"]) == ("connection", "/a2")
    paths = [path for _, path, _ in daemon.requests]
    assert paths.index(GIVEN) + 1 == paths.index("/control/agents/claude/restart")


def test_a_script_without_a_terminal_replaces_what_is_gone(daemon: FakeDaemon, ctl: Ctl) -> None:
    assert ctl("restart", "claude", TERM="xterm", **SOCK).code == 0
    assert [body["bring"] for body in given(daemon)] == ["missing"]


@pytest.mark.parametrize("around", ["cron", "service", "agent"])
def test_cron_services_and_agents_bring_nothing(
    daemon: FakeDaemon, ctl: Ctl, monkeypatch: pytest.MonkeyPatch, around: str
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    match around:
        case "cron":
            monkeypatch.delenv("TERM")
        case "service":
            monkeypatch.setenv("INVOCATION_ID", "i")
        case _:
            monkeypatch.setenv("SYNAPSE_CONTROL_SOCKET", str(daemon.socket))
            monkeypatch.delenv("SYNAPSED_HOME")
    assert ctl("restart", "claude", **SOCK).out == "claude restarted\n"
    assert given(daemon) == []


def test_an_agents_shell_brings_nothing_though_it_has_a_terminal(daemon: FakeDaemon) -> None:
    code, shown = in_terminal("restart", "claude", SYNAPSE_CONTROL_SOCKET=str(daemon.socket), **SOCK)
    assert code == 0, shown
    assert given(daemon) == []


def test_a_daemon_that_does_not_take_it_restarts_all_the_same(daemon: FakeDaemon, ctl: Ctl) -> None:
    """One of another version, or one that knows the caller for an agent's."""
    daemon.refuse("POST", GIVEN, errors.Forbidden("an agent may not"))
    result = ctl("restart", "claude", TERM="xterm")
    assert (result.code, result.out, result.err) == (0, "claude restarted\n", "")


def test_all_of_this_shell_is_asked_for(daemon: FakeDaemon, ctl: Ctl) -> None:
    daemon.activated = ["VIRTUAL_ENV"]
    result = ctl("restart", "claude", "--env-from-here", **SOCK)
    assert (result.code, [body["bring"] for body in given(daemon)]) == (0, ["all"])
    assert "VIRTUAL_ENV went along" in result.err
    daemon.refuse("POST", GIVEN, errors.Forbidden("an agent may not give agents an environment"))
    daemon.requests.clear()
    refused = ctl("restart", "claude", "--env-from-here")
    assert (refused.code, refused.out) == (6, "")
    assert [path for verb, path, _ in daemon.requests if verb == "POST"] == [GIVEN], "it is not restarted without"


@pytest.mark.parametrize("read_only", [False, True])
def test_attach_keeps_it_for_the_next_start(daemon: FakeDaemon, read_only: bool) -> None:
    arguments = ["attach", "claude", *(["--read-only"] if read_only else [])]
    tool = PtyTool(*arguments, env={**os.environ, "TERM": "xterm", **SOCK})
    try:
        if read_only:
            eventually(lambda: any("/terminal" in path for _, path, _ in daemon.requests), "it is attached")
            assert given(daemon) == [], "who only looks changes nothing"
        else:
            eventually(lambda: given(daemon), "it was told")
            assert given(daemon)[0]["env"]["SSH_AUTH_SOCK"] == "/a2"
    finally:
        tool.close()


@pytest.mark.night
def test_status_and_doctor_say_what_is_gone_and_what_brings_it(daemon: FakeDaemon, ctl: Ctl) -> None:
    daemon.agents["claude"] = daemon.agents["claude"].model_copy(update={"gone": ["SSH_AUTH_SOCK", "XAUTHORITY"]})
    told = ctl("status", "claude").out
    assert "SSH_AUTH_SOCK, XAUTHORITY of its environment" in told
    assert "synapsectl restart claude" in told
    (found,) = [line for line in ctl("doctor").out.splitlines() if "environment:" in line]
    assert "claude is started with SSH_AUTH_SOCK, XAUTHORITY, which lead to what is gone" in found
