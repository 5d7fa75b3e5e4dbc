"""A real daemon tells the browser of a paired device what waits, over `kill -9`, and takes it back."""

import json
import stat
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.test_menus import answer_of, asked
from tests.daemon.test_notify import ASKS
from tests.support.daemon import Answer, Daemon, eventually
from tests.support.pushservice import PushService, telling_daemon


class Browser:
    """A paired browser at the main listener: its cookie, and the headers that the page sends."""

    def __init__(self, daemon: Daemon, *rights: str) -> None:
        self._daemon = daemon
        self._cookie = ""
        code = daemon.post("/control/web/code", {"rights": list(rights), "name": "phone"}).json["code"]
        entered = self.ask("POST", "/web/session", {"code": code})
        assert entered.status == 200, entered.body
        self._cookie = entered.headers["set-cookie"].partition(";")[0]
        self.id: str = entered.json["device"]["id"]

    def ask(self, method: str, path: str, body: Any = None, **more: str) -> Answer:
        port = self._daemon.port
        headers = {"Origin": f"http://127.0.0.1:{port}", "Synapsed-Page": "1", "Content-Type": "application/json"}
        connection = HTTPConnection("127.0.0.1", port)
        try:
            payload = None if body is None else json.dumps(body)
            connection.request(method, path, payload, {**headers, "Cookie": self._cookie, **more})
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def turn_on(self, service: PushService) -> None:
        answer = self.ask("POST", "/web/push", service.subscribe())
        assert (answer.status, answer.json) == (200, {"status": "subscribed"})


@pytest.fixture
def service() -> Iterator[PushService]:
    with PushService() as service:
        yield service


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with telling_daemon(tmp_path) as daemon:
        yield daemon


@pytest.mark.night
def test_told_over_a_kill_answered_and_taken_back(daemon: Daemon, service: PushService) -> None:
    one, two = Browser(daemon, "look", "answer"), Browser(daemon, "look")
    one.turn_on(service)
    assert two.ask("POST", "/web/push", service.subscribe("tablet")).status == 200
    me = one.ask("GET", "/web/me").json
    assert me["device"] == {"id": one.id, "name": "phone", "push": True}
    key_file = daemon.home / "state" / "push-key.pem"
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    daemon.kill9()
    daemon.start()
    assert one.ask("GET", "/web/me").json["push_key"] == me["push_key"], "the browsers' subscriptions are for it"
    task = asked(daemon, "Run the tool?", "Yes", "Yes, always", "No")["id"]
    (said,) = eventually(lambda: service.said("opened"), "the phone is told")
    eventually(lambda: service.said("opened", to="/push/tablet"), "the tablet is told")
    assert service.taken[0]["key"] == me["push_key"]
    assert said["agent"] == "shell"
    assert said["task"] == task
    daemon.kill9()
    daemon.start()
    assert "Run the tool?" in said["body"]
    (_, deny) = said["options"]
    assert deny == {"key": "3", "label": "Deny"}
    body = {"input": deny["key"], "prompt_id": said["prompt_id"]}
    answered = one.ask("POST", f"/agents/shell/tasks/{task}/input", body)
    assert answered.status == 200, answered.body
    assert answer_of(daemon, daemon.task(task)) == "chosen: No"
    (gone,) = eventually(lambda: service.said("gone", to="/push/tablet"), "it is taken back elsewhere")
    assert gone == {"id": said["id"], "state": "gone"}
    assert service.said("gone") == [], "who has answered knows"
    assert {one["id"] for one in service.said("opened")} == {said["id"]}, "a kill may have it told again, as the same"
    again = one.ask("POST", f"/agents/shell/tasks/{task}/input", body)
    assert again.json["error"]["code"] in ("PROMPT_CHANGED", "NOT_WAITING")
    for secret in (service.browsers["/push/phone"].keys["auth"], "/push/phone"):
        assert secret not in daemon.log()


@pytest.mark.night
def test_turned_off_removed_and_gone(daemon: Daemon, service: PushService) -> None:
    phone, lost = Browser(daemon, "look"), Browser(daemon, "look")
    phone.turn_on(service)
    assert phone.ask("DELETE", "/web/push").json == {"status": "unsubscribed"}
    assert lost.ask("POST", "/web/push", service.subscribe("lost")).status == 200
    assert daemon.ctl("devices", "remove", lost.id).code == 0
    assert lost.ask("DELETE", "/web/push").status == 401
    stale = Browser(daemon, "look")
    given = service.subscribe("stale")
    assert stale.ask("POST", "/web/push", given).status == 200
    del service.browsers["/push/stale"]
    kept = Browser(daemon, "look")
    assert kept.ask("POST", "/web/push", service.subscribe("kept")).status == 200
    daemon.send(ASKS, "shell")
    eventually(lambda: service.said("opened", to="/push/kept"), "the one that is left is told")
    eventually(lambda: stale.ask("GET", "/web/me").json["device"]["push"] is False, "the browser is forgotten")
    assert service.said() == []
    assert service.said(to="/push/lost") == []
    listed = {one["id"]: one["push"] for one in daemon.get("/control/devices").json}
    assert listed == {phone.id: False, stale.id: False, kept.id: True}


@pytest.mark.night
def test_who_may_be_told(daemon: Daemon, service: PushService) -> None:
    phone = Browser(daemon, "look")
    given = service.subscribe()
    assert daemon.post("/web/push", given).status == 403, "a person without a device"
    assert Browser(daemon, "answer").ask("POST", "/web/push", given).status == 403
    assert phone.ask("POST", "/web/push", given, Origin="https://evil.example").status == 403
    for wrong, field in (
        ({**given, "endpoint": "https://192.168.1.1/push"}, "url"),
        ({**given, "endpoint": "http://push.example.net/a"}, "endpoint"),
        ({**given, "keys": {**given["keys"], "auth": "AAAA"}}, "keys.auth"),
        ({**given, "keys": {**given["keys"], "p256dh": "BAAA"}}, "keys.p256dh"),
    ):
        answer = phone.ask("POST", "/web/push", wrong)
        assert (answer.status, answer.json["error"]["details"]["field"]) == (400, field)
    assert phone.ask("GET", "/web/me").json["device"]["push"] is False


@pytest.mark.night
def test_a_key_file_that_cannot_be_used_stops_nothing_else(daemon: Daemon, service: PushService) -> None:
    path = daemon.home / "state" / "push-key.pem"
    daemon.kill9()
    path.write_text("no key")
    daemon.start()
    phone = Browser(daemon, "look")
    assert phone.ask("GET", "/web/me").json["push_key"] is None
    answer = phone.ask("POST", "/web/push", service.subscribe())
    assert (answer.status, answer.json["error"]["code"]) == (503, "NOT_READY")
    assert any(str(path) in alert for alert in daemon.get("/control/status").json["alerts"])
    assert path.read_text() == "no key"
