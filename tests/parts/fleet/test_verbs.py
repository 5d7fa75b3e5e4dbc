"""`synapsectl fleet …`: two commands from nothing, on two machines with a wire between them, and on one."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from synapsed.config.sockets import control_socket
from tests.parts.fleet.brokers import needs_broker
from tests.support.daemon import eventually
from tests.support.namespaces import NETWORK, needs_namespaces, two_houses
from tests.support.ports import free_port

pytestmark = [needs_broker, pytest.mark.night, pytest.mark.system]


class Machine:
    """A home, and `synapsectl` on it; `house`: the process in whose network namespace it is."""

    def __init__(self, folder: Path, house: int | None = None, **environ: str) -> None:
        folder.mkdir(mode=0o700)
        self.folder = folder
        self.inside = [] if house is None else ["nsenter", f"--net=/proc/{house}/ns/net"]
        self.environ = {
            "SYNAPSED_HOME": str(folder),
            "HOME": str(folder),
            "SYNAPSED_A2A_HOME": str(folder / "a2a"),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(Path(__file__).parents[3]),
            **environ,
        }
        (folder / "config").mkdir()
        (folder / "config" / "config.toml").write_text('[api]\nlisten = "127.0.0.1:0"\nagent_ports = false\n')

    def ctl(self, *arguments: str, given: str = "", code: int | None = 0) -> str:
        done = subprocess.run(
            [*self.inside, sys.executable, "-m", "synapsectl", *arguments],
            input=given,
            capture_output=True,
            text=True,
            env=self.environ,
            timeout=90,
            check=False,
        )
        assert code is None or done.returncode == code, (arguments, done.stdout, done.stderr)
        self.said = done.stderr
        return done.stdout

    def json(self, *arguments: str) -> dict:
        found: dict = json.loads(self.ctl(*arguments, "--json"))
        return found

    def close(self) -> None:
        for arguments in (["fleet", "leave", "--force"], ["shutdown"]):
            subprocess.run(
                [*self.inside, sys.executable, "-m", "synapsectl", *arguments],
                capture_output=True,
                env=self.environ,
                timeout=120,
                check=False,
            )


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path / "box")
    yield machine
    machine.close()


@pytest.fixture
def laptop(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path / "laptop")
    yield machine
    machine.close()


@needs_namespaces
@pytest.mark.fleet
@pytest.mark.timeout(400)
def test_two_commands_from_nothing_on_two_machines(tmp_path: Path) -> None:
    with two_houses() as (here, there):
        box, laptop = Machine(tmp_path / "box", here), Machine(tmp_path / "laptop", there)
        try:
            box.ctl("fleet", "create", "--name", "box", "--address", f"{NETWORK}.1")
            line = box.ctl("fleet", "invite", "laptop")
            assert line.count("\n") == 1
            laptop.ctl("fleet", "join", "-", given=line)
            told = laptop.json("fleet", "status")
            assert told["member"]["urls"] == [f"tls://{NETWORK}.1:4222"]
            assert told["broker"] is None
            assert [host["name"] for host in box.json("fleet", "status")["hosts"]] == ["box", "laptop"]
            box.ctl("start", "dummy")
            eventually(lambda: "dummy" in laptop.ctl("fleet", "hosts"), "laptop sees box's agent")
            assert laptop.ctl("send", "dummy@box", "over the wire", "--wait") == "You said: over the wire\n"
            assert laptop.ctl("fleet", "outbox") == ""
            assert box.ctl("fleet", "quarantine") == ""
            wrong = [
                one
                for one in json.loads(laptop.ctl("doctor", "--json", code=None))["checks"]
                if "fleet" in one["check"] and one["status"] != "ok"
            ]
            assert wrong == []
        finally:
            laptop.close()
            box.close()
        assert not list(box.folder.rglob("*.seed"))
        assert not (laptop.folder / "state" / "fleet" / "host.creds").exists()


@pytest.mark.fleet
@pytest.mark.timeout(400)
def test_a_whole_life(box: Machine, laptop: Machine, tmp_path: Path) -> None:
    port = free_port()
    made = box.json("fleet", "create", "--name", "box", "--listen", f"127.0.0.1:{port}", "--max-store", "1GiB")
    assert made["urls"] == [f"tls://127.0.0.1:{port}"]
    assert made["service"] in ("process", "systemd")
    shown = box.ctl("fleet", "status")
    assert "this host   box, a member until" in shown
    assert f"broker here healthy, at 127.0.0.1:{port}, nats-server 2." in shown
    streams = box.json("fleet", "broker", "status")["streams"]
    assert sum(stream["bytes_max"] for stream in streams) <= 1 << 30

    file = tmp_path / "invitation"
    box.ctl("fleet", "invite", "laptop", "--file", str(file))
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_text().strip() not in box.said
    laptop.ctl("fleet", "join", "--file", str(file))
    laptop.ctl("fleet", "join", "--file", str(file), code=2)
    assert "in a fleet already" in laptop.said

    before = box.json("fleet", "status")["broker"]
    box.ctl("fleet", "broker", "restart")
    after = box.json("fleet", "status")["broker"]
    assert after["pid"] == before["pid"], "the unit stays"
    assert after["server_pid"] != before["server_pid"], "its server is another"
    assert box.ctl("fleet", "repair") == ""
    assert "as it should be" in box.said

    box.ctl("fleet", "leave", code=2)
    assert "laptop would be without their fleet" in box.said
    box.ctl("fleet", "remove", "laptop")
    box.ctl("fleet", "remove", "laptop", code=2)
    box.ctl("fleet", "leave")
    assert not (box.folder / "state" / "fleet" / "broker").exists()
    assert not (box.folder / "config" / "fleet.toml").exists()
    laptop.ctl("fleet", "leave")
    laptop.ctl("fleet", "leave", code=2)


@pytest.mark.fleet
def test_a_known_host_joins_over_ssh(box: Machine, laptop: Machine, tmp_path: Path) -> None:
    """ssh's stand-in runs the command there; what it was given says that no secret stood in a command line."""
    ssh = tmp_path / "ssh"
    variables = " ".join(f"{name}='{value}'" for name, value in laptop.environ.items())
    ssh.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n'
        f'for last; do :; done\nset -- $last\nshift\nexec env {variables} {sys.executable} -m synapsectl "$@"\n'
    )
    ssh.chmod(0o755)
    with (box.folder / "config" / "config.toml").open("a") as config:
        config.write(f'[hosts]\nssh = ["{ssh}"]\n')
    box.ctl("fleet", "create", "--name", "box", "--listen", f"127.0.0.1:{free_port()}")
    box.ctl("fleet", "invite", "laptop", "--over-ssh", "ssh://me@laptop.lan")
    assert laptop.json("fleet", "status")["member"]["name"] == "laptop"
    asked = (tmp_path / "asked").read_text()
    assert "ssh://me@laptop.lan" in asked
    assert "synapsed-fleet-1." not in asked
    box.ctl("fleet", "invite", "other", "--over-ssh", "-oProxyCommand=x", code=2)


def test_without_a_server_it_is_said_what_installs_it(box: Machine, tmp_path: Path) -> None:
    old = tmp_path / "old" / "nats-server"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho nats-server: v2.10.1\n")
    old.chmod(0o755)
    code = (
        "import sys; sys.executable = '/nowhere/python'\n"
        "from synapsed.cli import main\nsys.exit(main(['fleet', 'create']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input='{"name": "box"}',
        env={**box.environ, "PATH": str(old.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert f"{old} is 2.10.1" in done.stderr
    assert "pip install 'synapsed[broker]'" in done.stderr
    assert not (box.folder / "state" / "fleet" / "keys").exists()


def test_an_agent_changes_nothing(box: Machine) -> None:
    socket = control_socket(box.environ)
    box.environ |= {"SYNAPSE_CONTROL_SOCKET": socket, "SYNAPSE_AGENT_TOKEN": "x", "SYNAPSE_AGENT_ID": "a"}
    for arguments in (["create"], ["invite", "x"], ["join", "x"], ["leave"], ["remove", "x"], ["repair"]):
        box.ctl("fleet", *arguments, code=6)
        assert "an agent's shell" in box.said
    for name in ("SYNAPSE_CONTROL_SOCKET", "SYNAPSE_AGENT_TOKEN", "SYNAPSE_AGENT_ID"):
        del box.environ[name]


@pytest.mark.fleet
def test_a_create_that_was_interrupted_goes_on(box: Machine) -> None:
    """The first was killed after its keys were made, and before anybody was a member."""
    box.ctl("fleet", "create", "--name", "box", "--listen", f"127.0.0.1:{free_port()}")
    eventually(lambda: box.json("fleet", "status")["broker"]["healthy"], "the broker is healthy")
    (box.folder / "state" / "fleet" / "host.creds").unlink()
    before = (box.folder / "state" / "fleet" / "keys" / "account.jwt").read_text()
    box.ctl("fleet", "leave", "--force")
    box.ctl("fleet", "create", "--name", "box", "--listen", f"127.0.0.1:{free_port()}")
    assert (box.folder / "state" / "fleet" / "keys" / "account.jwt").read_text() != before
    assert box.json("fleet", "status")["broker"]["healthy"]
