"""Rules of a real daemon: a message and a signed webhook that follow from a task's end, over `kill -9`."""

import base64
import json
import os
from pathlib import Path

import pytest
from standardwebhooks.webhooks import Webhook as Verifier

from tests.support.daemon import NO_PORTS, Daemon, eventually
from tests.support.ports import free_port
from tests.support.served_world import served_world
from tests.support.webhook import Webhook

SECRET = "whsec_" + base64.b64encode(b"a secret of the test's own, only").decode()
RULES = """
[a2a.push]
allow = ["loopback"]
initial = 0.05
[webhooks.ci]
url = "URL"
secret_env = "CI_SECRET"
[[rule]]
name = "next"
on = { event = "taskStatus", agent = "dummy", match = { state = "completed" } }
do = { send = "{agent}", message = "echo next" }
[[rule]]
name = "tell"
on = { event = "taskStatus", match = { state = "completed" } }
do = { webhook = "ci" }
"""


@pytest.fixture
def hook():
    with Webhook(port=free_port()) as hook:  # nobody gets it while it is stopped
        yield hook


@pytest.fixture
def daemon(tmp_path: Path, hook: Webhook):
    environ = {**os.environ, "CI_SECRET": SECRET}
    daemon = Daemon(tmp_path, config=NO_PORTS + RULES.replace("URL", hook.url), environ=environ)
    yield daemon
    daemon.end()


def test_what_follows_from_a_tasks_end(daemon: Daemon, hook: Webhook) -> None:
    daemon.start()
    assert daemon.ctl("start", "dummy").code == 0
    hook.stop()
    assert daemon.ctl("send", "dummy", "echo first", "--wait").code == 0
    eventually(lambda: len(texts(daemon)) == 4, "the rule's own messages end it, three deep")
    daemon.kill9()
    hook.start()
    daemon.start()
    eventually(lambda: len(hook.taken) >= 4, "each end is told, the first ones late")
    assert texts(daemon) == ["echo first", "echo next", "echo next", "echo next"]
    assert len({headers["webhook-id"] for _, headers, _ in hook.requests}) == 4
    for _, headers, body in hook.requests:
        raw = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        assert Verifier(SECRET).verify(raw, headers)["type"] == "taskStatus"
    assert SECRET.removeprefix("whsec_") not in daemon.log()
    assert "tell" in daemon.ctl("events", "--after", "0", "--json").out


ODD = """
[webhooks.idle]
url = "URL"
secret_env = "CI_SECRET"
[webhooks.keyless]
url = "URL"
secret_env = "NO_SUCH_SECRET"
[[rule]]
name = "lost"
on = { event = "agentReported" }
do = { send = "dumy", message = "hello" }
[[rule]]
name = "unheard"
on = { event = "agentReported", agent = "nobody-*" }
do = { notify = "hello" }
[[schedule]]
name = "past"
at = "2020-01-01 08:00 UTC"
agent = "dummy"
message = "hello"
"""


@pytest.mark.night
def test_doctor_names_what_does_not_work(daemon: Daemon, hook: Webhook) -> None:
    daemon.config_file.write_text(daemon.config + ODD.replace("URL", hook.url))
    daemon.start()
    assert daemon.ctl("start", "dummy").code == 0
    hook.stop()
    assert daemon.ctl("send", "dummy", "echo first", "--wait").code == 0
    found: dict[str, dict[str, str]] = {}

    def fails() -> bool:
        checks = daemon.ctl("doctor", "--json").json["checks"]
        found.update({check["check"]: check for check in checks})
        return "webhook ci" in found

    eventually(fails, "the receiver fails")
    ci = found["webhook ci"]
    assert (ci["status"], "it fails since 20" in ci["detail"], " attempt" in ci["detail"]) == ("wrong", True, True)
    assert found["webhook keyless"]["detail"] == "it is not told anything: the variable NO_SUCH_SECRET is not set"
    assert (found["webhook idle"]["status"], found["webhook idle"]["detail"]) == ("note", "no rule uses it")
    assert (found["rule lost"]["status"], found["rule lost"]["detail"][:9]) == ("wrong", "do.send: ")
    assert found["rule unheard"]["detail"] == "on.agent: no agent is called 'nobody-*'"
    assert found["rule unheard"]["status"] == "note"
    assert found["schedule past"]["detail"] == "none of its times comes again (2020-01-01 08:00 UTC)"
    assert found["rules"]["detail"] == "2 as they should be"
    assert "reload" in (found["rule lost"]["mend"] or "")
    told = daemon.ctl("doctor")
    assert told.code == 1
    assert "WRONG rule lost: do.send: " in told.out


def test_what_is_wrong_is_told_with_its_place(tmp_path: Path) -> None:
    with served_world(tmp_path) as below:
        _what_is_wrong(below.daemon)


def _what_is_wrong(daemon: Daemon) -> None:
    daemon.config_file.write_text(NO_PORTS + RULES.replace('"taskStatus", agent', '"taskState", agent'))
    refused = daemon.ctl("reload")
    assert refused.code == 2
    assert "rule.0.on.event: 'taskState' is not an event" in refused.err
    daemon.config_file.write_text(NO_PORTS + RULES.replace('webhook = "ci"', 'webhook = "cii"'))
    assert "there is no webhook 'cii'; did you mean 'ci'?" in daemon.ctl("reload").err


def texts(daemon: Daemon) -> list[str]:
    tasks = daemon.ctl("tasks", "--json").json
    return sorted(task["message"]["parts"][0]["text"] for task in tasks if "instructions" not in str(task["metadata"]))
