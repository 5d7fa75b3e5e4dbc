"""What a later shell brings to an agent that is there, and what of its environment is gone."""

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from synapsed.model.records import AgentRecord
from synapsed.supervisor.environment import gone, place_of, renewed

OWN = {"PATH": "/bin", "SSH_AUTH_SOCK": "/daemon"}


def record(**fields: Any) -> AgentRecord:
    return AgentRecord(id="a", name="a", profile="p", port=None, cwd="/", created_at=0.0, **fields)


def brought(of: AgentRecord, env: dict[str, str], bringing: Any = "connection", **options: Any) -> dict[str, Any]:
    """`dead` are the paths that are gone."""
    dead = options.pop("dead", ())

    def is_gone(environ: Mapping[str, str]) -> set[str]:
        return {name for name, value in environ.items() if value in dead}

    return renewed(of, env, bringing, own=OWN, is_gone=is_gone, **{"update": (), **options})


STARTED = record(env={"PATH": "/old", "SSH_AUTH_SOCK": "/a1", "DISPLAY": ":0", "KEY": "k"})


def test_a_persons_shell_brings_its_connection_and_nothing_else() -> None:
    shell = {"PATH": "/new", "SSH_AUTH_SOCK": "/a2", "DISPLAY": ":0", "WAYLAND_DISPLAY": "w", "KEY": "x"}
    assert brought(STARTED, shell) == {"connection": {"SSH_AUTH_SOCK": "/a2", "WAYLAND_DISPLAY": "w"}}


def test_what_it_lacks_stays() -> None:
    assert brought(STARTED, {"PATH": "/bin"}) == {}
    before = record(env=STARTED.env, connection={"SSH_AUTH_SOCK": "/a2"})
    assert brought(before, {"DISPLAY": ":9"}) == {"connection": {"SSH_AUTH_SOCK": "/a2", "DISPLAY": ":9"}}
    assert brought(before, {"SSH_AUTH_SOCK": "/a2"}) == {}, "nothing is new"


def test_what_leads_nowhere_replaces_nothing_that_leads_somewhere() -> None:
    """The shell of a window that is older than the login which started the agent."""
    shell = {"SSH_AUTH_SOCK": "/a0", "SSH_CONNECTION": "c"}
    assert brought(STARTED, shell, dead=["/a0"]) == {"connection": {"SSH_CONNECTION": "c"}}
    assert brought(STARTED, shell, dead=["/a0", "/a1"]) == {"connection": shell}


def test_a_script_only_replaces_what_is_gone_by_what_is_there() -> None:
    shell = {"SSH_AUTH_SOCK": "/a2", "DISPLAY": ":9", "SSH_CONNECTION": "c"}
    assert brought(STARTED, shell, "missing") == {}
    assert brought(STARTED, shell, "missing", dead=["/a1"]) == {"connection": {"SSH_AUTH_SOCK": "/a2"}}
    assert brought(STARTED, shell, "missing", dead=["/a1", "/a2"]) == {}


def test_all_is_for_good() -> None:
    before = record(env=STARTED.env, connection={"SSH_AUTH_SOCK": "/a2"})
    shell = {"PATH": "/new"}
    assert brought(before, shell, "all") == {"env": shell, "connection": {}}
    assert brought(record(env=None), shell, "all") == {"env": shell, "connection": {}}


def test_the_configuration_adds_to_it() -> None:
    assert brought(STARTED, {"PATH": "/new", "KEY": "x"}, update=["PA*"]) == {"connection": {"PATH": "/new"}}


def test_one_with_the_daemons_environment() -> None:
    """It is configured, or was started with --clean-env, which is meant."""
    shell = {"SSH_AUTH_SOCK": "/a2"}
    assert brought(record(env=None), shell) == {}
    assert brought(record(env=None, from_config=True), shell) == {"connection": shell}
    assert brought(record(env=None, from_config=True), {"SSH_AUTH_SOCK": "/daemon"}) == {}


@pytest.mark.parametrize(
    ("name", "value", "place"),
    [
        ("SSH_AUTH_SOCK", "/s", "/s"),
        ("KRB5CCNAME", "FILE:/tmp/krb5cc_1", "/tmp/krb5cc_1"),
        ("KRB5CCNAME", "KCM:1000", None),
        ("WAYLAND_DISPLAY", "wayland-0", "/run/user/1/wayland-0"),
        ("WAYLAND_DISPLAY", "/w", "/w"),
        ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/user/1/bus,guid=1", "/run/user/1/bus"),
        ("DBUS_SESSION_BUS_ADDRESS", "unix:abstract=/tmp/dbus", None),
        ("XAUTHORITY", "", None),
    ],
)
def test_the_place_that_a_variable_names(name: str, value: str, place: str | None) -> None:
    assert place_of(name, {"XDG_RUNTIME_DIR": "/run/user/1", name: value}) == place


def test_what_is_gone(tmp_path: Path) -> None:
    listens, left, folder = (tmp_path / name for name in ("listens", "left", "folder"))
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as other:
        one.bind(str(listens))
        one.listen()
        other.bind(str(left))
        other.close()
        environ = {
            "SSH_AUTH_SOCK": str(left),
            "SWAYSOCK": str(listens),
            "TMPDIR": str(folder),
            "VIRTUAL_ENV": str(tmp_path / "none"),
            "XAUTHORITY": str(listens / "below a file"),
            "I3SOCK": "/\0",
            "HOME": "/none",
            "KRB5CCNAME": "MEMORY:x",
        }
        assert gone(environ) == {"SSH_AUTH_SOCK", "VIRTUAL_ENV", "XAUTHORITY", "I3SOCK"}
