"""What the quick verbs do without, to be quick, is the same as what they would have had."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from synapsectl.parsing import parse
from synapsectl.verbs import all_verbs
from synapsed import own_python
from synapsed.config.paths import Paths
from synapsed.config.sockets import control_socket
from synapsed_fleet.ctl import fleet
from tests.synapsectl.conftest import Ctl
from tests.synapsectl.fake_daemon import FakeDaemon


def test_quick_arguments_are_what_the_parser_makes_of_them():
    for verb, found in all_verbs().items():
        command = found.load()
        for arguments, values in getattr(command, "QUICK", {}).items():
            args, run = parse([verb, *arguments])
            assert run is command.run
            assert vars(args) == {**values, "rest": None}


@pytest.mark.parametrize(
    "environ",
    [
        {"SYNAPSED_HOME": "/srv//home/./x/"},
        {"SYNAPSED_HOME": "relative/home"},
        {"SYNAPSED_HOME": "/a/../b"},
        {"SYNAPSED_HOME": "/" + "long/" * 30},
        {"XDG_RUNTIME_DIR": "/run/user/1000/"},
        {"XDG_RUNTIME_DIR": "/run/" + "x" * 200},
        {"TMPDIR": "/var//tmp"},
        {},
    ],
)
def test_the_socket_is_found_where_the_daemon_has_it(environ):
    environ = {"HOME": "/home/me", **environ}
    assert control_socket(environ) == str(Paths.from_environ(environ).control_socket)


def test_list_imports_no_more_than_it_needs():
    heavy = ("argparse", "pathlib", "unicodedata", "dataclasses", "asyncio", "http.client", "urllib")
    code = "import sys; from synapsectl.__main__ import main; code = main(['list', '--json']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "synapsectl.commands.list_" in loaded
    assert not loaded & set(heavy)


def test_versions_are_told_without_the_store():
    heavy = {"asyncio", "pydantic", "structlog", "aiohttp"}
    code = "import sys; from synapsed.cli import main; code = main(['version', '--json']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True)
    told, modules = done.stdout.splitlines()
    assert json.loads(told)["store"]["schema"] > 0
    assert not set(modules.split()) & heavy


def test_of_a_host_in_no_fleet_is_told_what_the_daemons_package_would_tell(home: Path, ctl: Ctl):
    command = own_python.command("synapsed.cli", "fleet", "status")
    done = subprocess.run(command, input="{}", capture_output=True, text=True, check=True)
    told = json.loads(ctl("fleet", "status", "--json").out)
    assert told == {**json.loads(done.stdout), "daemon": None}
    assert "in no fleet" in ctl("fleet", "status").err


def test_what_the_daemon_knows_of_its_fleet_is_told_before_the_daemons_package_is_asked(
    daemon: FakeDaemon, ctl: Ctl, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    daemon.own_fleet = {"host": "box", "connected": True, "broker": "tls://box:4222", "outbox": {"sent": 2}}
    (Paths.from_environ().state / "fleet").mkdir(parents=True)
    shown: list[str] = []

    def ask(*_: object) -> dict[str, object]:
        shown.append(capsys.readouterr().out)
        return {**fleet.NOTHING, "member": {"name": "box", "expires": None, "urls": ["tls://box:4222"]}}

    monkeypatch.setattr(fleet, "ask_fleet", ask)
    told = ctl("fleet", "status")
    assert shown == ["connection  connected to tls://box:4222\nunder way   2 without a receipt\n"]
    assert told.out == "this host   box, a member\nbroker at   tls://box:4222\n"
