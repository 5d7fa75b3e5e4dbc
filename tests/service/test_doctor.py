"""`doctor` and the installed environment, on a real `systemd --user`."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from synapsed.keeper.processes import start_mark
from tests.service.house import House
from tests.support.daemon import eventually

pytestmark = [pytest.mark.night, pytest.mark.timeout(300)]


def examine(house: House, code: int) -> dict[str, list[dict[str, Any]]]:
    """The findings by check; what is ok or not by the exit code."""
    done = house.ctl("doctor", "--json")
    assert done.code == code, done
    assert done.json["ok"] is (code == 0)
    found: dict[str, list[dict[str, Any]]] = {}
    for check in done.json["checks"]:
        found.setdefault(check["check"], []).append(check)
    return found


def wrong(found: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    return [check for checks in found.values() for check in checks if check["status"] == "wrong"]


def test_all_is_well(house: House) -> None:
    house.daemon.config_file.write_text(house.daemon.config + "[agents.dummy]\nautostart = true\n")
    house.install("--start")
    house.daemon.ready()
    found = examine(house, 0)
    assert wrong(found) == []
    assert found["service"][0]["detail"] == f"runs, pid {house.pid}"
    assert found["service files"][0]["status"] == "ok"
    assert Path(found["agent dummy"][0]["detail"]).is_file(), "its profile does not say how it is asked for its version"
    assert found["keepers"][0]["detail"] == "1 alive"
    assert found["registry"][0]["status"] == "ok"
    assert "agents" not in found
    told = house.ctl("doctor")
    assert told.code == 0
    assert told.out.startswith("OK    python: ")


def test_what_is_wrong_comes_with_what_mends_it(house: House) -> None:
    house.daemon.config_file.write_text(
        house.daemon.config
        + '[agents.dummy]\nautostart = true\n[agents.ghost]\nprofile = "dummy"\ncommand = "no-such-one"\n'
    )
    installed = house.install("--start")
    assert "no-such-one (agent ghost) was not found" in installed.err
    pid = house.daemon.ready()["pid"]
    home = house.daemon.home
    (home / "state" / "token").chmod(0o644)
    unit = house.manager.home / ".config/systemd/user/synapsed.service"
    unit.write_text(unit.read_text().replace("WatchdogSec=30", "WatchdogSec=31"))
    entry = home / "a2a" / "registry" / "somebody.json"
    entry.write_text(json.dumps({"pid": dead_pid()}))
    found = {check["check"]: check for check in wrong(examine(house, 1))}
    assert set(found) == {"agent ghost", "permissions", "service files"}
    assert found["permissions"]["mend"] == f"chmod go= {home}/state/token"
    assert found["service files"]["mend"] == "synapsectl install --start"
    assert "synapsed.service" in found["service files"]["detail"]
    assert "no-such-one was not found" in found["agent ghost"]["detail"]
    refused = house.ctl("install", "--start")
    assert refused.code == 1, "a daemon takes no token that others can read"
    (home / "state" / "token").chmod(0o600)
    eventually(lambda: house.state() == "active", "it is tried again and again, and comes up as soon as it can")
    house.ctl("list")
    house.daemon.config_file.write_text(house.daemon.config + "[agents.dummy]\nautostart = true\n")
    eventually(lambda: not entry.exists(), "the registry is swept")
    assert house.install("--start").code == 0
    assert wrong(examine(house, 0)) == []
    assert house.daemon.ready()["pid"] == pid, "the agent went on through all of it"


def dead_pid() -> int:
    return next(pid for pid in range(2, 1 << 22) if not psutil.pid_exists(pid))


def test_a_service_that_was_stopped_and_one_that_is_not_there(house: House) -> None:
    assert examine(house, 0)["service"][0]["status"] == "note"
    house.up()
    house.manager.systemctl("stop", "synapsed")
    eventually(house.gone, "it is down")
    (service,) = examine(house, 1)["service"]
    assert service["detail"].startswith("inactive (dead)")
    assert service["mend"] == "synapsectl install --start"


def test_an_agent_from_before_the_service_is_named(house: House) -> None:
    assert house.ctl("start", "dummy", "--cwd", "/").code == 0
    house.install("--start")
    house.daemon.ready()
    (agents,) = examine(house, 0)["agents"]
    assert (agents["status"], agents["mend"]) == ("note", "synapsectl restart dummy")
    assert house.ctl("restart", "dummy").code == 0
    assert "agents" not in examine(house, 0)


def test_keepers_without_a_daemon(house: House) -> None:
    assert house.ctl("start", "dummy", "--cwd", "/").code == 0
    agent = house.daemon.ready()
    pid = house.daemon.get("/control/status").json["pid"]
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: start_mark(pid) is None, "it is dead")
    (keepers,) = examine(house, 0)["keepers"]
    assert keepers["detail"] == "1 go on without a daemon"
    assert psutil.pid_exists(agent["pid"])
    assert house.ctl("start", "dummy", "--cwd", "/", "--name", "second").code == 0
    assert house.ctl("shutdown").code == 0


def test_a_broken_configuration_is_told_once(house: House) -> None:
    house.daemon.config_file.write_text("[api]\nlistn = 1\n")
    found = examine(house, 1)
    (configuration,) = found["configuration"]
    assert "did you mean 'listen'?" in configuration["detail"]
    refused = house.ctl("install")
    assert refused.code != 0
    assert "did you mean 'listen'?" in refused.err


def test_the_service_has_the_login_shell_s_path(house: House) -> None:
    """Odd characters and all: what systemd reads from the environment file is what the login shell said."""
    tools = house.manager.home / 'odd "dir" $HOME 50% `x`'
    tools.mkdir(exist_ok=True)
    program = tools / "my-agent"
    program.write_text('#!/bin/sh\nexec python3 -S -E -I "$@"\n')
    program.chmod(0o755)
    profile = house.manager.home / ".bash_profile"
    profile.write_text(f"PATH='{tools}':$PATH\n")
    try:
        house.daemon.config_file.write_text(
            house.daemon.config + '[agents.dummy]\nautostart = true\ncommand = "my-agent"\n'
        )
        house.install("--start")
        agent = house.daemon.ready()
        environ = Path(f"/proc/{house.pid}/environ").read_bytes().split(b"\0")
        (path,) = (value for value in environ if value.startswith(b"PATH="))
        assert path.decode().startswith(f"PATH={tools}:")
        assert psutil.pid_exists(agent["pid"])
        assert wrong(examine(house, 0)) == []
    finally:
        profile.unlink()
