"""The service on a real `systemd --user`: what a restart keeps, what a stop ends, what a crash costs."""

import http.client
import os
import signal
import threading
from pathlib import Path

import psutil
import pytest

from synapsed.keeper.processes import start_mark
from tests.service.house import AGENT, House
from tests.support.daemon import PATIENCE_S, eventually
from tests.support.ports import free_port

pytestmark = [pytest.mark.night, pytest.mark.timeout(300)]


def test_install_and_start_by_systemctl(house: House) -> None:
    installed = house.install()
    assert "+ExecStart=" in installed.out
    assert "enable-linger" in installed.err or house.manager.run("id", "-u") != "0"
    house.manager.systemctl("start", "synapsed")
    assert house.daemon.get("/healthz").json["status"] == "ok"
    assert house.manager.show("synapsed.service", "UnitFileState") == "enabled"
    eventually(lambda: house.manager.show("synapsed.service", "StatusText") == "0 agents", "the status is told")
    house.daemon.start_agent()
    eventually(lambda: "1 agent: 1 ready" in house.manager.show("synapsed.service", "StatusText"), "with counts")


def test_the_units_are_clean(house: House) -> None:
    house.daemon.config_file.write_text('[api]\nlisten = "127.0.0.1:18790"\n')
    house.install()
    units = sorted((house.manager.home / ".config/systemd/user").glob("synaps*"))
    assert len(units) == 5
    assert house.manager.run("systemd-analyze", "--user", "verify", *map(str, units)) == ""


def test_an_agent_is_a_unit_of_its_own(house: House) -> None:
    house.daemon.config_file.write_text(
        '[api]\nlisten = "127.0.0.1:0"\nagent_ports = false\n'
        '[agents.dummy]\nautostart = true\nenv = {TOP_SECRET = "hush"}\n'
        'limits = {memory = "2G", cpu = "150%", tasks = 77}\n'
    )
    house.up()
    agent = house.daemon.ready()
    manager = house.manager
    assert manager.show(AGENT, "PartOf") == "synapse-agents.target"
    assert int(manager.show(AGENT, "MainPID")) == psutil.Process(agent["pid"]).ppid()
    assert manager.show(AGENT, "OOMScoreAdjust") == "300"
    assert manager.show(AGENT, "TasksMax") == "77"
    assert manager.show(AGENT, "MemoryMax") == str(2 << 30)
    assert manager.show(AGENT, "CPUQuotaPerSecUSec") == "1.500000s"
    assert Path(f"/proc/{agent['pid']}/oom_score_adj").read_text().strip() == "300"
    assert b"TOP_SECRET=hush" in Path(f"/proc/{agent['pid']}/environ").read_bytes()
    told = manager.systemctl("show", AGENT) + manager.run("ps", "-ef")
    assert "hush" not in told
    assert not list((house.daemon.home / "state").rglob("launch.spec"))


STUBBORN = """
trap '' TERM HUP INT
setsid sh -c 'trap "" TERM HUP; sleep 1000' &
( setsid sh -c 'trap "" TERM HUP; sleep 1001' & ) &
echo stubborn
while :; do sleep 1; done
"""
"""A program that ignores what would end it, and has descendants that no killpg finds."""


def start_two(house: House) -> list[int]:
    """A well-behaved agent and a stubborn one; the pids of all that they consist of."""
    house.daemon.start_agent()
    started = house.daemon.post(
        "/control/start", {"profile": "generic", "name": "stubborn", "cwd": "/", "args": ["sh", "-c", STUBBORN]}
    )
    assert started.status == 200, started.json
    eventually(lambda: "stubborn" in house.daemon.get("/agents/stubborn/screen").body.decode(), "it has begun")
    eventually(lambda: len(house.processes()) >= 8, "all is there")
    return [agent["pid"] for agent in (house.daemon.agent(), house.daemon.agent("stubborn"))]


def test_a_stop_leaves_no_process(house: House) -> None:
    house.up()
    pids = start_two(house)
    house.manager.systemctl("stop", "synapsed")
    eventually(house.gone, "no process is left")
    assert [start_mark(pid) for pid in pids] == [None, None], "one that nobody has waited for yet has ended too"
    assert house.ctl("list").code == 3, "a stop stops the sockets too"
    assert not house.daemon.socket.exists()


def test_an_uninstall_waits_for_what_ignores_its_end(house: House) -> None:
    house.up()
    start_two(house)
    assert house.ctl("uninstall").code == 0
    assert house.gone()


def test_a_stop_while_the_service_waits_to_be_started_again(house: House) -> None:
    house.install()
    drop_in = house.manager.home / ".config/systemd/user/synapsed.service.d/slow.conf"
    drop_in.parent.mkdir(parents=True)
    drop_in.write_text("[Service]\nRestartSec=100\n")
    try:
        house.manager.systemctl("daemon-reload")
        house.manager.systemctl("start", "synapsed")
        start_two(house)
        os.kill(house.pid, signal.SIGKILL)
        eventually(lambda: house.manager.show("synapsed.service", "SubState") == "auto-restart", "it waits")
        assert house.state(AGENT) == "active"
        house.manager.systemctl("stop", "synapsed")
        eventually(house.gone, "no process is left")
    finally:
        drop_in.unlink()
        drop_in.parent.rmdir()


def test_a_shutdown_ends_the_service_and_the_agents(house: House) -> None:
    house.up()
    house.daemon.start_agent()
    refused = house.ctl("shutdown", "--keep-agents")
    assert refused.code == 2
    assert "systemctl --user restart synapsed" in refused.err
    assert house.ctl("shutdown").code == 0
    eventually(house.gone, "no process is left")
    assert house.state() == "inactive"
    assert house.ctl("list").code == 3


def test_who_needs_a_daemon_starts_the_service(house: House) -> None:
    house.install()
    started = house.ctl("start", "dummy", "--cwd", "/")
    assert started.code == 0, started
    assert "started the service" in started.err
    assert house.daemon.get("/control/status").json["pid"] == house.pid


class Knocker(threading.Thread):
    """Asks for the health of the daemon, over and over, on a connection of its own each time: through the control
    socket, or through `port`."""

    def __init__(self, house: House, port: int | None = None) -> None:
        super().__init__()
        self.house = house
        self.port = port
        self.done = threading.Event()
        self.answered = 0
        self.cut = 0
        """Connections that died with the daemon that had accepted them."""
        self.refused: list[OSError] = []

    def ask(self) -> int:
        if self.port is None:
            return self.house.daemon.get("/healthz").status
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status
        finally:
            connection.close()

    def run(self) -> None:
        while not self.done.is_set():
            try:
                assert self.ask() == 200
                self.answered += 1
            except (ConnectionRefusedError, FileNotFoundError) as error:
                self.refused.append(error)
            except (OSError, http.client.HTTPException):
                self.cut += 1


def test_ten_kills_refuse_no_connection(house: House) -> None:
    port = free_port()
    house.daemon.config_file.write_text(f'[api]\nlisten = "127.0.0.1:{port}"\nagent_ports = false\n')
    house.up()
    pid = house.daemon.start_agent()["pid"]
    knockers = [Knocker(house, where) for where in (None, None, port)]
    for knocker in knockers:
        knocker.start()

    def answer_after(before: list[int]) -> bool:
        return all(knocker.answered > count + 1 for knocker, count in zip(knockers, before, strict=True))

    try:
        for _ in range(10):
            answered = [knocker.answered for knocker in knockers]
            house.kill9()
            eventually(lambda before=answered: answer_after(before), "answers go on")
    finally:
        for knocker in knockers:
            knocker.done.set()
            knocker.join()
    assert [error for knocker in knockers for error in knocker.refused] == []
    assert sum(knocker.cut for knocker in knockers) <= 10 * len(knockers)
    assert house.daemon.ready()["pid"] == pid


def test_a_stop_under_load_is_a_stop(house: House) -> None:
    """Who goes on connecting does not start it again."""
    house.up()
    knocker = Knocker(house)
    knocker.start()
    try:
        eventually(lambda: knocker.answered > 10, "answers come")
        house.manager.systemctl("stop", "synapsed")
        eventually(lambda: len(knocker.refused) > 10, "connections are refused")
    finally:
        knocker.done.set()
        knocker.join()
    assert house.state() == "inactive"
    assert house.gone()


def test_a_daemon_whose_loop_does_not_turn_is_started_again(house: House) -> None:
    house.install()
    drop_in = house.manager.home / ".config/systemd/user/synapsed.service.d/watch.conf"
    drop_in.parent.mkdir(parents=True)
    drop_in.write_text("[Service]\nWatchdogSec=3\nTimeoutAbortSec=1\n")
    try:
        house.manager.systemctl("daemon-reload")
        house.manager.systemctl("start", "synapsed")
        agent = house.daemon.start_agent()["pid"]
        before = house.pid
        os.kill(before, signal.SIGSTOP)
        eventually(lambda: house.pid not in (0, before) and house.state() == "active", "the watchdog has it replaced")
        assert house.daemon.ready()["pid"] == agent
    finally:
        drop_in.unlink()
        drop_in.parent.rmdir()


def test_a_reload_is_told(house: House) -> None:
    before = house.up()
    house.manager.systemctl("reload", "synapsed")
    eventually(lambda: house.state() == "active", "it is ready again")
    assert house.pid == before


def test_a_program_that_is_missing_is_told_through_the_unit_too(house: House) -> None:
    """The daemon looks first; what only the keeper can find out comes through the unit's files."""
    house.up()
    refused = house.daemon.post("/control/start", {"profile": "dummy", "cwd": "/nowhere/at/all"})
    assert refused.status != 200
    assert "/nowhere/at/all" in refused.json["error"]["message"]
    eventually(lambda: house.state(AGENT) == "inactive", "no unit is left")


def test_an_agent_that_dies_comes_back_in_its_unit(house: House) -> None:
    house.up()
    before = house.daemon.start_agent()["pid"]
    os.kill(before, signal.SIGKILL)
    eventually(lambda: house.daemon.agent()["activity"] == "ready" and house.daemon.agent()["restarts"] == 1, "back")
    after = house.daemon.agent()["pid"]
    assert after != before
    assert int(house.manager.show(AGENT, "MainPID")) == psutil.Process(after).ppid()


def test_a_keeper_that_is_killed_takes_its_agent_only(house: House) -> None:
    house.up()
    other = house.daemon.start_agent(name="other")["pid"]
    pid = house.daemon.start_agent(name="dummy")["pid"]
    os.kill(psutil.Process(pid).ppid(), signal.SIGKILL)
    eventually(lambda: house.daemon.agent("dummy")["restarts"] == 1, "it is started again")
    house.daemon.ready("dummy")
    assert house.daemon.agent("other")["pid"] == other
    assert start_mark(pid) is None


def test_install_takes_over_from_a_daemon_that_was_started_by_hand(house: House) -> None:
    started = house.ctl("start", "dummy", "--cwd", "/")
    assert started.code == 0, started
    pid = house.daemon.ready()["pid"]
    done = house.ctl("install", "--start")
    assert done.code == 0, done
    assert "its agents go on" in done.err
    assert house.daemon.ready()["pid"] == pid
    assert house.daemon.get("/control/status").json["pid"] == house.pid
    assert house.ctl("stop", "dummy").code == 0


def test_install_again_changes_nothing_and_uninstall_leaves_nothing(house: House) -> None:
    before = house.install("--start") and house.pid
    again = house.install("--start")
    assert again.out == ""
    assert house.pid == before
    config = house.manager.home / ".config"
    assert (house.daemon.home / "config" / "service.env").stat().st_mode & 0o777 == 0o600
    dry = house.ctl("uninstall", "--dry-run")
    assert dry.code == 0
    assert "would remove" in dry.out
    assert house.pid == before
    assert house.ctl("uninstall").code == 0
    assert house.gone()
    assert [path for path in config.rglob("*") if "synaps" in path.name] == []
    assert not (house.daemon.home / "config" / "service.env").exists()
    assert house.daemon.config_file.exists()
    assert (house.daemon.home / "state" / "synapsed.db").exists()
    assert house.manager.show("synapsed.service", "LoadState") == "not-found"
    assert house.ctl("uninstall").err.strip() == "synapsectl: no service is installed"


def test_a_changed_configuration_changes_the_units(house: House) -> None:
    before = house.up()
    listen = f"127.0.0.1:{free_port()}"
    house.daemon.config_file.write_text(f'[api]\nlisten = "{listen}"\nagent_ports = false\n')
    done = house.install()
    assert f"+ListenStream={listen}" in done.out
    assert "restarts it" in done.err
    assert house.pid == before
    assert house.install("--start").code == 0
    assert house.pid != before
    assert house.daemon.get("/control/status").json["listen"] == [listen, listen.replace("127.0.0.1", "[::1]")]
    for unit in ("synapsed-http.socket", "synapsed-http6.socket"):
        assert house.state(unit) == "active"
