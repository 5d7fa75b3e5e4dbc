"""`synapsectl web --tailscale` before a stand-in of `tailscale`: what it is asked for, and what a person is told."""

import json
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from synapsectl.errors import NotAllowed, NotInstalled
from synapsed.parts.web.ctl import tailscale

NAME = "box.tail1234.ts.net"
RUNNING = {"BackendState": "Running", "Self": {"DNSName": f"{NAME}."}, "CertDomains": [NAME]}
STAND_IN = """#!/bin/sh
echo "$*" >> "$SAID"
case "$1" in
status) printf '%s' "$STATUS" ;;
serve) eval "$SERVE" ;;
esac
"""


class Person:
    """Somebody with that `tailscale`, and a daemon at a port."""

    def __init__(self, folder: Path) -> None:
        program = folder / "tailscale"
        program.write_text(STAND_IN)
        program.chmod(0o755)
        self.asked = folder / "asked"
        self.posted: list[Any] = []
        self.notes: list[str] = []
        self.environ = {"PATH": f"{folder}:/usr/bin:/bin", "SAID": str(self.asked)}

    def serve(self, status: Any = RUNNING, serve: str = "exit 0") -> str:
        said = status if isinstance(status, str) else json.dumps(status)
        client = SimpleNamespace(
            get=lambda path: {"listen": ["127.0.0.1:8090"]}, post=lambda *given: self.posted.append(given)
        )
        out = SimpleNamespace(note=self.notes.append)
        environ = self.environ | {"STATUS": said, "SERVE": serve}
        ctx: Any = SimpleNamespace(environ=environ, client=client, out=out)
        return tailscale.serve(ctx)


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


def test_it_is_served_to_the_tailnet_and_nobody_else(person: Person) -> None:
    assert person.serve() == NAME
    assert person.asked.read_text().splitlines() == ["status --json", "serve --bg http://127.0.0.1:8090"]
    assert person.posted == [("/control/web/serve", {"name": NAME})]
    (note,) = person.notes
    assert f"https://{NAME}/" in note
    assert "tailscale serve reset" in note


def test_an_older_one_tells_less(person: Person) -> None:
    assert person.serve({"Self": {"DNSName": f"{NAME}."}}) == NAME


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (RUNNING | {"BackendState": "NeedsLogin", "Self": {"DNSName": ""}}, "not logged in: 'tailscale up'"),
        (RUNNING | {"BackendState": "Stopped"}, "is stopped: 'tailscale up'"),
        (RUNNING | {"BackendState": "NeedsMachineAuth"}, "waits to be approved"),
        (RUNNING | {"BackendState": "Starting", "Self": None}, "has not started yet"),
        (RUNNING | {"CertDomains": None}, "switch HTTPS on"),
        (RUNNING | {"Self": {"DNSName": ""}}, "switch MagicDNS and HTTPS on"),
        ("not JSON", "switch MagicDNS and HTTPS on"),
        ("[]", "switch MagicDNS and HTTPS on"),
        ("[" * 16_000, "switch MagicDNS and HTTPS on"),
    ],
)
def test_what_a_tailnet_lacks_is_told_before_anything_is_served(person: Person, status: Any, told: str) -> None:
    with pytest.raises(NotAllowed, match=told):
        person.serve(status)
    assert person.asked.read_text().splitlines() == ["status --json"]
    assert person.posted == []


@pytest.mark.parametrize(
    ("serve", "told"),
    [
        ("echo 'Access denied: serve config denied' >&2; exit 1", "exit code 1: Access denied: serve config denied"),
        ("echo 'flag provided but not defined: -bg' >&2; echo USAGE >&2; exit 2", "too old.*1.52"),
    ],
)
def test_what_it_refuses_is_told(person: Person, serve: str, told: str) -> None:
    with pytest.raises(NotAllowed, match=told):
        person.serve(serve=serve)
    assert person.posted == []


def test_what_it_waits_for_is_told(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until somebody has allowed it in a browser: at the address that it says."""
    real = subprocess.run

    def run(command: list[str], **given: Any) -> Any:
        if command[1] == "serve":
            raise subprocess.TimeoutExpired(
                command, given["timeout"], None, b"To enable, visit:\nhttps://login/f/serve\n"
            )
        return real(command, **given)

    monkeypatch.setattr(tailscale.subprocess, "run", run)
    with pytest.raises(NotAllowed, match=r"did not end within 60 s, and said: To enable, visit: https://login/f/serve"):
        person.serve()
    assert person.posted == []


def test_there_is_none(person: Person, tmp_path: Path) -> None:
    (tmp_path / "tailscale").unlink()
    with pytest.raises(NotInstalled, match="'tailscale up'"):
        person.serve()
