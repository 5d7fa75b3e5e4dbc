"""`web`, `devices` and `token` as a person uses them: the tool, the API, a browser, and stand-ins for programs."""

import http.client
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import Any

import pytest

from tests.fakes.served import served
from tests.support.daemon import PATIENCE_S, Answer, Daemon, eventually

NAME = "box.tail1234.ts.net"
SERVED = {"Host": NAME, "X-Forwarded-For": "100.64.0.7", "X-Forwarded-Proto": "https", "Origin": f"https://{NAME}"}
"""As `tailscale serve` passes a request on."""

OPENER = """#!/bin/sh
printf '%s' "$1" > "$OPENED.part" && mv "$OPENED.part" "$OPENED"
"""
TAILSCALE = """#!/bin/sh
echo "$*" >> "$SAID"
case "$1 $BROKEN" in
*yes) echo "serve is not enabled on your tailnet" >&2; exit 1 ;;
status*) echo '{"Self": {"DNSName": "box.tail1234.ts.net."}}' ;;
esac
"""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    home = tmp_path_factory.mktemp("web")
    programs = home / "bin"
    programs.mkdir()
    for name, text in (("xdg-open", OPENER), ("tailscale", TAILSCALE)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    path = f"{programs}:/usr/bin:/bin"
    with served(home, environ={"PATH": path, "OPENED": f"{home}/opened", "SAID": f"{home}/said"}) as running:
        running.add()
        yield running


class Browser:
    """Its requests to the daemon's page; `served`: as `tailscale serve` brings them."""

    def __init__(self, daemon: Daemon, *, served: bool = False) -> None:
        self.port = daemon.port
        self.cookie: str | None = None
        own = f"http://localhost:{self.port}"
        self._headers = SERVED if served else {"Host": f"localhost:{self.port}", "Origin": own}

    @contextmanager
    def asking(self, method: str, path: str, body: Any = None) -> Iterator[http.client.HTTPResponse]:
        headers = {**self._headers, "Synapsed-Page": "1"}
        headers |= {} if self.cookie is None else {"Cookie": self.cookie}
        headers |= {} if body is None else {"Content-Type": "application/json"}
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)) as line:
            line.request(method, path, None if body is None else json.dumps(body), headers)
            yield line.getresponse()

    def ask(self, method: str, path: str, body: Any = None) -> Answer:
        with self.asking(method, path, body) as answer:
            headers = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, headers, answer.read())

    def enter(self, address: str) -> Answer:
        """Open the address that a person was given."""
        answer = self.ask("POST", "/web/session", {"code": address.partition("#code=")[2]})
        if answer.status == 200:
            self.cookie = answer.headers["set-cookie"].partition(";")[0]
        return answer

    def status(self, method: str, path: str, body: Any = None) -> int:
        return self.ask(method, path, body).status


def opened(daemon: Daemon, *arguments: str) -> str:
    """What `synapsectl web` gives to the person's browser."""
    file = daemon.home / "opened"
    file.unlink(missing_ok=True)
    told = Daemon.ctl(daemon, "web", *arguments, env={"DISPLAY": ":9"})  # in a process: it leaves the browser running
    assert (told.code, "#code=" in told.out + told.err) == (0, False), told
    return eventually(lambda: file.read_text() if file.exists() else None, "it is opened")


def test_a_browser_of_this_machine_and_its_end(daemon: Daemon) -> None:
    address = opened(daemon, "--name", "desk")
    assert re.fullmatch(rf"http://[a-z0-9.]+:{daemon.port}/#code=[\w-]{{22}}", address)
    daemon.post("/control/web/serve", {"name": NAME})
    assert Browser(daemon, served=True).enter(address).status == 401, "who reads it in `ps` cannot take it elsewhere"
    browser = Browser(daemon)
    assert browser.enter(address).json["rights"] == ["answer", "look", "type"]
    assert Browser(daemon).enter(address).status == 401, "it is good once"

    (device,) = daemon.ctl("devices", "list", "--json").json
    assert (device["name"], device["rights"]) == ("desk", ["answer", "look", "type"])
    assert browser.status("POST", "/control/agents/dummy/keys", {"keys": ["x"]}) == 200
    assert browser.status("POST", "/control/agents/dummy/stop", {}) == 403
    with browser.asking("GET", "/events?stream=sse") as stream:
        assert stream.status == 200
        removed = daemon.ctl("devices", "remove", "desk")
        assert (removed.code, device["id"] in removed.out) == (0, True)
        with suppress(http.client.IncompleteRead, ConnectionError):
            while stream.read1():
                pass
    assert browser.status("GET", "/inbox") == 401, "a stolen cookie is worth nothing"
    assert daemon.ctl("devices", "remove", "desk").code == 4
    assert daemon.ctl("devices", "list", "--json").json == []


def test_a_phone_by_tailscale(daemon: Daemon) -> None:
    alone = daemon.ctl("web", "--phone", env={"PATH": "/usr/bin:/bin"})
    if alone.code:  # nothing is served yet
        assert (alone.code, "--tailscale" in alone.err) == (2, True)
    shown = daemon.ctl("web", "--phone", "--tailscale", "--name", "phone")
    assert shown.code == 0, shown.err
    assert (daemon.home / "said").read_text().splitlines()[-1] == f"serve --bg http://127.0.0.1:{daemon.port}"
    address = shown.out.strip()
    assert address.startswith(f"https://{NAME}/#code=")
    phone = Browser(daemon, served=True)
    answer = phone.enter(address)
    assert answer.json["rights"] == ["answer", "look"]
    assert re.fullmatch(r"__Host-synapsed-443=[\w.-]+; .*Secure", answer.headers["set-cookie"])
    assert phone.status("GET", "/inbox") == 200
    assert phone.status("POST", "/control/agents/dummy/keys", {"keys": ["x"]}) == 403
    assert daemon.ctl("devices", "remove", "phone").code == 0

    refused = daemon.ctl("web", "--phone", "--tailscale", env={"BROKEN": "yes"})
    assert (refused.code, "not enabled on your tailnet" in refused.err, refused.out) == (6, True, "")
    blind = daemon.ctl("web", "--rights", "answer,type")
    assert (blind.code, "add look" in blind.err) == (2, True)
    missing = daemon.ctl("web", "--tailscale", env={"PATH": "/nowhere"})
    assert (missing.code, "tailscale up" in missing.err) == (6, True), missing


def test_a_token_for_one_agent(daemon: Daemon) -> None:
    arguments = ("create", "--rights", "send", "--agent", "dummy", "--days", "30", "--name", "ci")
    made = daemon.ctl("token", *arguments)
    token = made.out.strip()
    assert (made.code, token.startswith("syn_"), token in made.err) == (0, True, False)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def send(agent: str) -> int:
        with closing(http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=PATIENCE_S)) as line:
            line.request("POST", f"/agents/{agent}/tasks/send", json.dumps({"message": "hi"}), headers)
            return line.getresponse().status

    assert (send("dummy"), send("other")) == (200, 403)
    listed = daemon.ctl("token", "list", "--json")
    assert [(one["name"], one["agents"], one["rights"]) for one in listed.json] == [("ci", ["dummy"], ["send"])]
    kept = (daemon.home / "state" / "access.json").read_text()
    assert token.split("_", 2)[2] not in listed.out + kept + daemon.log()
    assert daemon.ctl("token", "revoke", "ci").code == 0
    assert send("dummy") == 401
    unknown: Mapping[str, Any] = daemon.ctl("token", "create", "--rights", "send", "--agent", "no", "--json").json
    assert unknown["error"]["code"] == "UNKNOWN_AGENT"
