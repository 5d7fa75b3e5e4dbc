"""The real daemon with the scripted agent: start and end, signals, kills, what is left."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from synapsed.cli import main
from tests.daemon.running import Home, eventually


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    home = Home(tmp_path)
    yield home
    await home.down()


async def test_a_daemon_killed_in_mid_turn_comes_back_and_the_turn_is_finished(home: Home) -> None:
    await home.up()
    started = await home.start()
    pid = started["pid"]
    task = home.send("busy 1\nonce")
    await eventually(lambda: home.agent()["activity"] == "busy", "the agent works")
    await home.kill()
    assert psutil.pid_exists(pid)
    await home.up()
    done = await home.settled(task)
    assert done["status"] == "completed", done
    assert home.agent()["pid"] == pid
    assert home.agent()["restarts"] == 0
    assert home.get("/agents/dummy/status")["context"].count("You said: ") == 1


async def test_a_program_that_worked_is_busy_for_the_next_daemon_too(home: Home) -> None:
    await home.up()
    await home.start()
    task = home.send("busy 30")
    await eventually(lambda: home.agent()["activity"] == "busy", "the agent works")
    await home.kill()
    await home.up()
    await eventually(lambda: home.agent()["activity"] == "busy", "it is not taken for starting")
    assert home.agent()["task"] == task


async def test_an_agent_that_is_killed_comes_back_and_answers(home: Home) -> None:
    await home.up()
    started = await home.start()
    task = home.send("busy 30")
    await eventually(lambda: home.agent()["activity"] == "busy", "the agent works")
    os.kill(started["pid"], signal.SIGKILL)
    failed = await home.settled(task)
    assert failed["error"]["code"] == "AGENT_EXITED"
    assert failed["error"]["details"] == {"exit_code": -9, "signal": "SIGKILL"}
    await eventually(lambda: home.agent()["activity"] == "ready" and home.agent()["restarts"] == 1, "it is back")
    assert home.agent()["pid"] != started["pid"]
    answered = await home.settled(home.send("hello"))
    assert answered["artifacts"][-1]["parts"][0]["text"] == "You said: hello"
    assert not psutil.pid_exists(started["pid"])


async def test_an_exit_while_the_daemon_was_down(home: Home) -> None:
    await home.up()
    pid = (await home.start())["pid"]
    task = home.send("busy 1\nexit 7")
    await eventually(lambda: home.agent()["activity"] == "busy", "the agent works")
    await home.kill()
    await eventually(lambda: not psutil.pid_exists(pid), "the program is gone")
    await home.up()
    failed = await home.settled(task)
    assert (failed["error"]["code"], failed["error"]["details"]["exit_code"]) == ("AGENT_EXITED", 7)
    await eventually(lambda: home.agent()["activity"] == "ready", "it is back")
    assert home.agent()["restarts"] == 1


async def test_sigterm_ends_the_agents_too(home: Home) -> None:
    await home.up()
    pid = (await home.start())["pid"]
    keeper = psutil.Process(pid).ppid()
    home.process.send_signal(signal.SIGTERM)
    assert await home.ended() == 0
    await eventually(lambda: not psutil.pid_exists(pid) and not psutil.pid_exists(keeper), "all is gone")
    assert not home.socket.exists()
    assert list((home.root / "a2a" / "registry").iterdir()) == []
    await home.up()
    assert home.agent()["state"] == "stopped"


async def test_keep_agents(home: Home) -> None:
    await home.up("--keep-agents")
    pid = (await home.start())["pid"]
    home.process.send_signal(signal.SIGINT)
    assert await home.ended() == 0
    assert psutil.pid_exists(pid)
    await home.up()
    await eventually(lambda: home.agent()["activity"] == "ready", "it is adopted")
    assert home.agent()["pid"] == pid


async def test_sighup_changes_nothing(home: Home) -> None:
    await home.up()
    home.process.send_signal(signal.SIGHUP)
    await eventually(lambda: "SIGHUP" in home.log.read_text(), "it is logged")
    assert home.get("/healthz")["status"] == "ok"


async def test_a_second_daemon_leaves_the_first_unharmed(home: Home) -> None:
    await home.up()
    first = home.process
    second = await home.spawn("run")
    assert await asyncio.wait_for(second.wait(), 60) == 1
    home.processes.remove(second)
    assert f"(pid {first.pid})" in home.log.read_text()
    assert home.get("/healthz")["status"] == "ok"


async def test_the_agent_s_own_port_again_at_once_after_a_kill(home: Home) -> None:
    await home.up()
    port = (await home.start())["port"]

    def status() -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
            client.sendall(b"GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return b"".join(iter(lambda: client.recv(65536), b""))

    assert b"200 OK" in await asyncio.to_thread(status)
    await home.kill()
    await home.up()
    assert b"200 OK" in await asyncio.to_thread(status)


async def test_directories_and_files_are_private(home: Home) -> None:
    await home.up()
    await home.start()
    for path in [home.root / "state", home.root / "run", *(home.root / "state").rglob("*")]:
        assert path.lstat().st_mode & 0o077 == 0, path
    assert home.socket.stat().st_mode & 0o077 == 0


async def test_a_bad_configuration_is_told_and_nothing_started(home: Home) -> None:
    (home.root / "config" / "config.toml").write_text("[api]\nlistn = 1\n")
    process = await home.spawn("run")
    assert await asyncio.wait_for(process.wait(), 60) == 2
    assert "config.toml:2: unknown key 'api.listn'; did you mean 'listen'?" in home.log.read_text()
    home.processes.clear()


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
