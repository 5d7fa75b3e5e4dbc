"""The real daemon with the scripted agent: start and end, signals, kills, what is left."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Any

import psutil
import pytest

import synapsed.daemon
from synapsed.cli import main
from synapsed.config.paths import Paths
from synapsed.supervisor.manager import Manager, PortServer
from tests.fakes.clock import until
from tests.support.daemon import ANY_PORTS, NO_PORTS, PATIENCE_S, Daemon, eventually
from tests.support.ports import free_port
from tests.support.threaded import KINDS, ThreadedDaemon, in_a_thread


@pytest.fixture
def kind() -> type[Daemon]:
    """A process here, with real programs."""
    return Daemon


@pytest.fixture
def daemon(tmp_path: Path, kind: type[Daemon]) -> Iterator[Daemon]:
    """Not started yet; whatever the test leaves of it ends."""
    daemon = kind(tmp_path, config=ANY_PORTS)
    yield daemon
    daemon.end()


def test_a_daemon_killed_in_mid_turn_comes_back_and_the_turn_is_finished(daemon: Daemon, tmp_path: Path) -> None:
    daemon.start()
    started = daemon.start_agent(cwd=str(tmp_path))
    pid = started["pid"]
    task = daemon.send("until told\nonce")
    eventually(lambda: daemon.agent()["activity"] == "busy", "the agent works")
    daemon.kill9()
    assert psutil.pid_exists(pid)
    daemon.start()
    (tmp_path / "told").touch()
    done = daemon.ended(task)
    assert done["status"] == "completed", done
    assert daemon.agent()["pid"] == pid
    assert daemon.agent()["restarts"] == 0
    assert daemon.get("/agents/dummy/status").json["context"].count("You said: ") == 1


def test_text_streams_over_a_restart(daemon: Daemon, tmp_path: Path) -> None:
    """Nothing is told twice: what is read again from the output goes on where the last daemon was, and so does the
    answer's end."""
    daemon.start()
    daemon.start_agent(cwd=str(tmp_path))
    task = daemon.send("lines 30\nuntil restarted\nlines 3\nuntil seen\nonce")

    def pieces(last_id: int) -> list[dict[str, Any]]:
        found = []
        with contextlib.suppress(OSError, HTTPException), daemon.sse(path, last_id=last_id) as events:
            for event in events:
                if event["event"] == "artifact":
                    found.append(event["data"] | {"id": event["id"]})
                    if "It is there.\nline 1\nline 2\nline 3" in told(found):
                        (tmp_path / "seen").touch()
                if last_id == 0 and found:
                    break
        return found

    def told(pieces: list[dict[str, Any]]) -> str:
        text = ""
        for piece in pieces:
            said = piece["artifact"]["parts"][0]["text"]
            text = text + said if piece["append"] else said
        return text

    path = f"/agents/dummy/tasks/{task}/subscribe"
    (first,) = pieces(0)
    assert (first["append"], first["lastChunk"]) == (True, False)
    daemon.kill9()
    daemon.start()
    (tmp_path / "restarted").touch()
    *more, last = pieces(int(first["id"]))
    done = daemon.task(task)
    assert [piece["lastChunk"] for piece in more] == [False] * len(more)
    assert last["lastChunk"]
    assert all(piece["append"] for piece in [*more, last])
    assert len(told([first, *more]).split("\n")) > 33
    assert told([first, *more, last]) == done["artifacts"][0]["parts"][0]["text"]
    assert len(done["artifacts"]) == 1


def test_a_daemon_killed_between_typing_and_knowing_it(daemon: Daemon) -> None:
    daemon.start()
    keeper = psutil.Process(psutil.Process(daemon.start_agent()["pid"]).ppid())
    keeper.suspend()  # it gets the message, and cannot say so
    task = daemon.send("echo once")
    eventually(lambda: daemon.task(task)["status"] == "working", "it is being typed")
    daemon.kill9()
    keeper.resume()
    daemon.start()
    assert daemon.ended(task)["status"] == "completed"
    assert daemon.get("/agents/dummy/status").json["context"].count("\nonce\n") == 1


@pytest.mark.night
def test_a_program_that_worked_is_busy_for_the_next_daemon_too(daemon: Daemon) -> None:
    daemon.start()
    daemon.start_agent()
    task = daemon.send("busy 30")
    eventually(lambda: daemon.agent()["activity"] == "busy", "the agent works")
    daemon.kill9()
    daemon.start()
    eventually(lambda: daemon.agent()["activity"] == "busy", "it is not taken for starting")
    assert daemon.agent()["task"] == task


def test_an_agent_that_is_killed_comes_back_and_answers(daemon: Daemon) -> None:
    daemon.start()
    started = daemon.start_agent()
    task = daemon.send("busy 30")
    eventually(lambda: daemon.agent()["activity"] == "busy", "the agent works")
    os.kill(started["pid"], signal.SIGKILL)
    failed = daemon.ended(task)
    assert failed["error"]["code"] == "AGENT_EXITED"
    assert failed["error"]["details"] == {"exit_code": -9, "signal": "SIGKILL"}
    eventually(lambda: daemon.agent()["activity"] == "ready" and daemon.agent()["restarts"] == 1, "it is back")
    assert daemon.agent()["pid"] != started["pid"]
    answered = daemon.ended(daemon.send("hello"))
    assert answered["artifacts"][-1]["parts"][0]["text"] == "You said: hello"
    assert not psutil.pid_exists(started["pid"])


def test_an_exit_while_the_daemon_was_down(daemon: Daemon, tmp_path: Path) -> None:
    daemon.start()
    pid = daemon.start_agent(cwd=str(tmp_path))["pid"]
    task = daemon.send("until told\nexit 7")
    eventually(lambda: daemon.agent()["activity"] == "busy", "the agent works")
    daemon.kill9()
    (tmp_path / "told").touch()
    eventually(lambda: not psutil.pid_exists(pid), "the program is gone")
    daemon.start()
    failed = daemon.ended(task)
    assert (failed["error"]["code"], failed["error"]["details"]["exit_code"]) == ("AGENT_EXITED", 7)
    eventually(lambda: daemon.agent()["activity"] == "ready", "it is back")
    assert daemon.agent()["restarts"] == 1


def test_sigterm_ends_the_agents_too(daemon: Daemon) -> None:
    daemon.start()
    pid = (daemon.start_agent())["pid"]
    keeper = psutil.Process(pid).ppid()
    assert daemon.signal(signal.SIGTERM) == 0
    eventually(lambda: not psutil.pid_exists(pid) and not psutil.pid_exists(keeper), "all is gone")
    assert not daemon.socket.exists()
    assert list((daemon.home / "a2a" / "registry").iterdir()) == []
    daemon.start()
    again = daemon.ready()
    assert again["pid"] != pid
    daemon.ctl("stop", "dummy")
    assert daemon.signal(signal.SIGTERM) == 0
    daemon.start()
    assert daemon.agent()["state"] == "stopped"


@pytest.mark.night
def test_a_home_too_deep_for_sockets(tmp_path: Path) -> None:
    """They go into a short directory of their own, of which nothing stays."""
    daemon = Daemon(tmp_path / ("deep" * 20), config=ANY_PORTS).start()
    try:
        elsewhere = daemon.socket.parent
        assert not elsewhere.is_relative_to(tmp_path)
        assert elsewhere.stat().st_mode & 0o077 == 0
        daemon.start_agent()
        assert daemon.ended(daemon.send("hello"))["status"] == "completed"
    finally:
        assert daemon.end() == 0
    assert not elsewhere.exists()


@pytest.mark.night
def test_keep_agents(daemon: Daemon) -> None:
    daemon.start("--keep-agents")
    pid = (daemon.start_agent())["pid"]
    assert daemon.signal(signal.SIGINT) == 0
    assert psutil.pid_exists(pid)
    daemon.start()
    eventually(lambda: daemon.agent()["activity"] == "ready", "it is adopted")
    assert daemon.agent()["pid"] == pid


def test_sighup_reads_the_configuration_again(daemon: Daemon) -> None:
    daemon.start()
    daemon.config_file.write_text(ANY_PORTS + '[agents.late]\nprofile = "dummy"\nautostart = true\n')
    os.kill(daemon.pid, signal.SIGHUP)
    eventually(lambda: daemon.agent("late").get("activity") == "ready", "it is started")
    pid = daemon.agent("late")["pid"]
    daemon.config_file.write_text(ANY_PORTS + '[agents.late]\nprofil = "dummy"\n')
    os.kill(daemon.pid, signal.SIGHUP)
    eventually(lambda: "unknown key 'agents.late.profil'" in daemon.log(), "it says where it is broken")
    assert daemon.agent("late")["pid"] == pid


def environ_of(daemon: Daemon, name: str) -> dict[str, str]:
    pid = daemon.ready(name)["pid"]
    return daemon.plan(name).env if isinstance(daemon, ThreadedDaemon) else psutil.Process(pid).environ()


def arguments_of(daemon: Daemon, name: str) -> Sequence[str]:
    pid = daemon.ready(name)["pid"]
    return daemon.plan(name).args if isinstance(daemon, ThreadedDaemon) else psutil.Process(pid).cmdline()


@pytest.mark.parametrize("kind", KINDS)
def test_reload(daemon: Daemon) -> None:
    agents = '[agents.{}]\nprofile = "dummy"\nautostart = true\nenv_file = "vars"\n'
    (daemon.home / "config" / "vars").write_text("# of both\nexport COLOUR='green'\nSHAPE=round\n")
    daemon.config_file.write_text(ANY_PORTS + agents.format("one") + agents.format("two") + 'depends_on = ["one"]\n')
    daemon.start()
    pids = [daemon.ready(name)["pid"] for name in ("one", "two")]
    environ = environ_of(daemon, "one")
    assert (environ["COLOUR"], environ["SHAPE"]) == ("green", "round")
    assert daemon.agent("two")["since"] >= daemon.agent("one")["since"]
    assert "nothing has changed" in daemon.ctl("reload").err

    task = daemon.send("busy 1\necho to the end", "two")
    three = agents.format("three") + 'env = { SHAPE = "square" }\n'
    daemon.config_file.write_text(ANY_PORTS + agents.format("two") + 'args = ["--new"]\n' + three)
    told = daemon.ctl("reload", "--dry-run")
    assert told.out.splitlines() == [
        "one is stopped: it is configured no more",
        "three is started: it is new",
        "two is restarted when it is idle: args, depends_on changed",
    ]
    assert daemon.agent("one")["pid"] == pids[0]
    assert daemon.ctl("reload").out == told.out
    assert daemon.agent("one")["state"] == "stopped"
    assert environ_of(daemon, "three")["SHAPE"] == "square"
    assert daemon.ended(task)["status"] == "completed"
    eventually(lambda: daemon.agent("two")["pid"] not in (None, pids[1]), "it is restarted")
    assert "--new" in arguments_of(daemon, "two")

    daemon.config_file.write_text("[agents.two]\ndepends_on = ['three']\n")
    refused = daemon.ctl("reload")
    assert refused.code != 0
    assert "agent 'two' depends on 'three', which is not configured" in refused.err
    assert daemon.ready("three")["state"] == "running"


@pytest.mark.night
def test_logs_are_followed_over_daemons_and_recorded(daemon: Daemon, tmp_path: Path) -> None:
    daemon.start()
    daemon.start_agent()
    following = daemon.spawn("logs", "-f", "dummy")
    lines: list[str] = []
    assert following.stdout is not None
    reader = threading.Thread(target=lambda: lines.extend(line.strip() for line in following.stdout))
    reader.start()
    daemon.ended(daemon.send("echo before"))
    eventually(lambda: "before" in lines, "it is followed")
    daemon.kill9()
    daemon.start()
    daemon.ended(daemon.send("echo between\nsleep 0.3\necho after"))
    eventually(lambda: "after" in lines, "it is followed still")
    cast = tmp_path / "a.cast"
    assert daemon.ctl("logs", "dummy", "--cast", str(cast)).code == 0
    daemon.ctl("stop", "dummy")
    assert following.wait(PATIENCE_S) == 0
    reader.join()
    assert following.stderr is not None
    assert "waiting for the next one" in following.stderr.read()
    following.stdout.close()
    following.stderr.close()
    assert [lines.count(word) for word in ("before", "between", "after")] == [1, 1, 1]
    head, *events = [json.loads(line) for line in cast.read_text().splitlines()]
    assert head["version"] == 3
    assert "after" in "".join(text for _, _, text in events)
    assert any(pause > 0.2 for pause, _, _ in events)
    assert cast.stat().st_mode & 0o077 == 0


@pytest.mark.night
def test_a_restart_that_waits_for_the_end_of_the_turn(daemon: Daemon, tmp_path: Path) -> None:
    daemon.start()
    pid = daemon.start_agent(cwd=str(tmp_path))["pid"]
    first = daemon.send("until told\necho first")
    second = daemon.send("echo second")
    assert "when it is idle" in daemon.ctl("restart", "--when-idle", "dummy").out
    assert daemon.agent()["held"] == "restart"
    daemon.kill9()  # the wish is not forgotten
    daemon.start()
    (tmp_path / "told").touch()
    assert daemon.ended(first)["artifacts"][-1]["parts"][0]["text"].endswith("first")
    assert daemon.ended(second)["status"] == "completed"
    assert daemon.agent()["pid"] != pid
    assert daemon.agent()["held"] is None


@pytest.mark.night
def test_a_second_daemon_leaves_the_first_unharmed(daemon: Daemon) -> None:
    daemon.start()
    assert daemon.run().wait(PATIENCE_S) == 1
    assert f"(pid {daemon.pid})" in daemon.log()
    assert daemon.get("/healthz").json["status"] == "ok"


@pytest.mark.night
def test_the_agent_s_own_port_again_at_once_after_a_kill(daemon: Daemon) -> None:
    daemon.start()
    port = (daemon.start_agent())["port"]

    def status() -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as client:
            client.sendall(b"GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return b"".join(iter(lambda: client.recv(65536), b""))

    assert b"200 OK" in status()
    daemon.kill9()
    daemon.start()
    assert b"200 OK" in status()


@in_a_thread
def test_what_the_daemon_itself_writes_is_private(daemon: Daemon) -> None:
    daemon.start()
    daemon.ended(daemon.start_agent() and daemon.send("hello"))
    for path in [daemon.home / "state", daemon.home / "run", *(daemon.home / "state").rglob("*")]:
        assert path.lstat().st_mode & 0o077 == 0, path
    assert daemon.socket.stat().st_mode & 0o077 == 0


@pytest.mark.night
def test_directories_and_files_are_private(daemon: Daemon) -> None:
    daemon.start()
    daemon.start_agent()
    (told,) = (daemon.home / "state").glob("agents/*/agent.log")
    assert [json.loads(line)["state"] for line in told.read_text().splitlines()] == ["starting", "running"]
    for path in [daemon.home / "state", daemon.home / "run", *(daemon.home / "state").rglob("*")]:
        assert path.lstat().st_mode & 0o077 == 0, path
    assert daemon.socket.stat().st_mode & 0o077 == 0


def test_a_bad_configuration_is_told_and_nothing_started(daemon: Daemon) -> None:
    daemon.config_file.write_text("[api]\nlistn = 1\n")
    assert daemon.run().wait(PATIENCE_S) == 2
    assert "config.toml:2: unknown key 'api.listn'; did you mean 'listen'?" in daemon.log()


@pytest.mark.night
@pytest.mark.slow
def test_a_main_port_that_is_taken_is_waited_for(daemon: Daemon) -> None:
    taken = free_port()
    with socket.create_server(("127.0.0.1", taken)):
        listen = f"127.0.0.1:{taken}"
        daemon.config_file.write_text(f'[api]\nlisten = "{listen}"\nagent_ports = false\n')
        assert daemon.run().wait(PATIENCE_S) == 2, "in the foreground a person is told at once"
        assert f"cannot listen on {listen}" in daemon.log()
        daemon.start("--late-port")
        status = daemon.get("/control/status").json
        assert status["listen"] == []
        assert [f"{listen} cannot be listened on" in alert for alert in status["alerts"]] == [True]
        assert "the main port is not served yet" in daemon.log()
        assert daemon.ctl("start", "dummy").code == 0
        assert daemon.ctl("send", "dummy", "reverse abc", "--wait").out == "cba\n"
        told = daemon.ctl("doctor", "--json")
        (port,) = [check for check in json.loads(told.out)["checks"] if check["check"] == "main port"]
        assert (port["status"], "Address already in use" in port["detail"]) == ("wrong", True)
    eventually(lambda: daemon.get("/control/status").json["listen"][:1] == [listen], "the port is taken once free")
    assert daemon.get("/control/status").json["alerts"] == []
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=PATIENCE_S):
        pass


@pytest.mark.night
def test_a_daemon_that_a_verb_starts_comes_up_without_its_port(daemon: Daemon) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        listen = f"127.0.0.1:{other.getsockname()[1]}"
        daemon.config_file.write_text(f'[api]\nlisten = "{listen}"\nagent_ports = false\n')
        started = daemon.ctl("start", "dummy")
        assert (started.code, "started one" in started.err) == (0, True), started
        assert "(the control socket alone)" in daemon.ctl("status").out


def test_check_config_and_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setenv("SYNAPSED_HOME", str(tmp_path))
    assert main(["version"]) == 0
    assert main(["check-config"]) == 0
    assert "0 agents" in capsys.readouterr().out
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text('[agents.x]\nprofile = "clade"\n')
    assert main(["check-config"]) == 2
    assert "did you mean 'claude'?" in capsys.readouterr().err
    with pytest.raises(SystemExit) as caught:
        main(["dance"])
    assert caught.value.code == 2


async def test_who_waits_for_the_control_socket_finds_the_agents_ports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = {**os.environ, "SYNAPSED_HOME": str(tmp_path), "SYNAPSED_A2A_HOME": str(tmp_path / "a2a")}
    paths = Paths.from_environ(environ)
    paths.config.mkdir(parents=True)
    paths.config_file.write_text(NO_PORTS)
    serve_ports, early = Manager.serve_ports, []

    async def serving(self: Manager, server: PortServer, *, listen: str) -> None:
        early.append(paths.control_socket.exists())
        await serve_ports(self, server, listen=listen)

    monkeypatch.setattr(Manager, "serve_ports", serving)
    umask = os.umask(0o077)
    running = asyncio.create_task(synapsed.daemon.Daemon(paths, environ=environ, keep_agents=False).run())
    try:
        await until(lambda: paths.decide_socket.exists() or running.done(), "all that listens does")
        await asyncio.sleep(0)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        os.umask(umask)
    assert early == [False]


_AS_IT_LISTENS = """
import os, signal, sys
from synapsed import cli
from synapsed.api import listeners
control = listeners.Listeners.control
async def signalled(self, inherited):
    await control(self, inherited)
    os.kill(os.getpid(), signal.SIGINT)
listeners.Listeners.control = signalled
sys.argv = ["synapsed", "run"]
sys.exit(cli.main())
"""


@pytest.mark.night
def test_a_signal_that_comes_as_it_begins_to_listen_ends_it_in_order(tmp_path: Path):
    daemon = Daemon(tmp_path)
    command = [sys.executable, "-c", _AS_IT_LISTENS]
    done = subprocess.run(command, env=daemon.env, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    assert "daemon ended" in done.stderr
