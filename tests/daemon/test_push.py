"""Push notifications to a real receiver: both bindings, misbehaving receivers, kills, secrets."""

import asyncio
import json
import threading
import tomllib
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import a2a_pb2 as pb
from google.protobuf import json_format

from synapsed.clock import SystemClock
from synapsed.outgoing import PushPolicy
from synapsed.outgoing.poster import HttpPoster
from synapsed.outgoing.screening import AddressScreen
from synapsed.parts.a2a.push.sender import push_sender
from synapsed.store.store import SqliteStore
from tests.api.serving import Api, serving
from tests.fakes.control import FakeControl
from tests.fakes.served import served
from tests.support.daemon import ANY_PORTS, Answer, Daemon, eventually
from tests.support.kernels import posting_kernel
from tests.support.ports import free_port
from tests.support.webhook import Webhook

CONFIG = f"""{ANY_PORTS}
[a2a.push]
allow = ["loopback"]
timeout = 2
initial = 0.05
maximum = 0.2
"""
WHOLE = ["SUBMITTED", "WORKING", "COMPLETED"]
SECRETS = ("token-Geheimnis", "credentials-Geheimnis")
V1 = {"A2A-Version": "1.0"}


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path, config=CONFIG).start()
    daemon.start_agent()
    yield daemon
    daemon.end()


@asynccontextmanager
async def pushing(control: FakeControl, home: Path) -> AsyncGenerator[Api]:
    """The API over a store and a sender that are real."""
    policy = PushPolicy(**tomllib.loads(CONFIG)["a2a"]["push"])
    control.store = store = await SqliteStore.open(home / "state" / "synapsed.db", clock=SystemClock())
    kernel = posting_kernel(
        lambda: HttpPoster(AddressScreen(policy.allow), timeout=policy.timeout), clock=SystemClock(), policy=policy
    )
    kernel.store, kernel.timers, kernel.texts = store, asyncio.get_running_loop(), store.texts
    sender = push_sender(kernel)
    try:
        await sender.start()
        async with serving(control, home, pushes=sender) as api:
            yield api
    finally:
        await sender.close()
        await store.close()


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with served(tmp_path, pushing) as daemon:
        daemon.add()
        yield daemon


@pytest.fixture
def hook() -> Iterator[Webhook]:
    with Webhook(port=free_port()) as hook:  # nobody gets it while it is stopped
        yield hook


def rpc(daemon: Daemon, method: str, **params: Any) -> dict[str, Any]:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer: dict[str, Any] = daemon.request("POST", "/agents/dummy/a2a", body, V1).json
    return answer


def rest(daemon: Daemon, verb: str, path: str, body: Any = None) -> Answer:
    return daemon.request(verb, f"/agents/dummy/a2a/rest{path}", body, V1)


def send(daemon: Daemon, text: str, config: dict[str, Any] | None = None) -> str:
    """The task's id; the config goes with the message."""
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]}
    configuration: dict[str, Any] = {"returnImmediately": True}
    if config is not None:
        configuration["taskPushNotificationConfig"] = config
    answer = rpc(daemon, "SendMessage", message=message, configuration=configuration)
    assert "result" in answer, answer
    return str(answer["result"]["task"]["id"])


def with_secrets(url: str) -> dict[str, Any]:
    return {"url": url, "token": SECRETS[0], "authentication": {"scheme": "Bearer", "credentials": SECRETS[1]}}


def test_a_config_that_comes_with_the_message(daemon: Daemon, hook: Webhook):
    task = send(daemon, "echo hello", with_secrets(hook.url))
    eventually(lambda: hook.states(task) == WHOLE, "the whole task is told")
    texts = [body["artifactUpdate"]["artifact"]["parts"][0]["text"] for body in hook.taken if "artifactUpdate" in body]
    assert texts == ["hello"]
    for _, headers, _ in hook.requests:
        assert headers["Authorization"] == f"Bearer {SECRETS[1]}"
        assert headers["X-A2A-Notification-Token"] == SECRETS[0]
        assert headers["Content-Type"] == "application/a2a+json"


def test_configs_over_both_bindings(daemon: Daemon, hook: Webhook):
    card = daemon.get("/agents/dummy/.well-known/agent-card.json").json
    assert card["capabilities"]["pushNotifications"] is True
    task = send(daemon, "busy 60")
    made = rpc(daemon, "CreateTaskPushNotificationConfig", taskId=task, id="one", **with_secrets(hook.url))["result"]
    assert made == {"id": "one", "taskId": task, "url": hook.url, "authentication": {"scheme": "Bearer"}}
    configs = f"/tasks/{task}/pushNotificationConfigs"
    second = rest(daemon, "POST", configs, with_secrets(hook.url) | {"id": "two"}).json
    assert second == made | {"id": "two"}
    assert rpc(daemon, "GetTaskPushNotificationConfig", taskId=task, id="two")["result"] == second
    assert rest(daemon, "GET", f"{configs}/one").json == made
    listed = {"configs": [made, second], "nextPageToken": ""}
    assert rpc(daemon, "ListTaskPushNotificationConfigs", taskId=task)["result"] == listed
    assert rest(daemon, "GET", configs).json == listed
    for _ in range(2):
        assert rpc(daemon, "DeleteTaskPushNotificationConfig", taskId=task, id="one")["result"] == {}
        assert rest(daemon, "DELETE", f"{configs}/one").status == 200
    assert rpc(daemon, "GetTaskPushNotificationConfig", taskId=task, id="one")["error"]["code"] == -32001
    assert rest(daemon, "GET", f"{configs}/one").status == 404
    assert rest(daemon, "GET", configs).json["configs"] == [second]
    for method in ("Create", "Get", "Delete"):
        unknown = rpc(daemon, f"{method}TaskPushNotificationConfig", taskId="nothing", id="x", url=hook.url)
        assert unknown["error"]["code"] == -32001, method
    assert rpc(daemon, "CancelTask", id=task)["result"]["status"]["state"] == "TASK_STATE_CANCELED"
    eventually(lambda: hook.states(task)[-1:] == ["CANCELED"], "the end is told to the one that is left")
    assert rest(daemon, "GET", configs).json["configs"] == [second], "it can still be read"


REFUSED = [
    ({}, "url"),
    ({"url": "ftp://example.com/"}, "url"),
    ({"url": "http://10.0.0.1/"}, "url"),
    ({"url": "http://[fe80::1]/"}, "url"),
    ({"url": "http://169.254.169.254/latest/meta-data"}, "url"),
    ({"url": "https://u:p@example.com/"}, "url"),
    ({"url": "https://example.com/", "id": "a/b"}, "id"),
    ({"url": "https://example.com/", "token": "a\r\nHost: x"}, "token"),
    ({"url": "https://example.com/", "authentication": {"scheme": "a b", "credentials": "c"}}, "scheme"),
    ({"url": "https://example.com/", "authentication": {"credentials": "c"}}, "scheme"),
    ({"url": "https://example.com/", "authentication": {"scheme": "a", "credentials": "ü"}}, "credentials"),
]


def test_configs_that_are_refused(daemon: Daemon):
    task = send(daemon, "echo one")
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "echo two"}]}
    for config, field in REFUSED:
        refused = rpc(daemon, "CreateTaskPushNotificationConfig", taskId=task, **config)["error"]
        assert refused["code"] == -32602, config
        assert refused["data"][1]["fieldViolations"][0]["field"].endswith(field)
        inline = {"message": message, "configuration": {"taskPushNotificationConfig": config}}
        refused = rpc(daemon, "SendMessage", **inline)["error"]
        assert refused["code"] == -32602, config
        assert refused["data"][1]["fieldViolations"][0]["field"].startswith("configuration.taskPushNotificationConfig.")
    assert rpc(daemon, "ListTasks")["result"]["totalSize"] == 1, "nothing was sent"


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
def test_the_official_client(daemon: Daemon, hook: Webhook, binding: str):
    base = f"http://127.0.0.1:{daemon.port}/agents/dummy"

    async def use() -> str:
        async with httpx.AsyncClient() as http:
            card = await A2ACardResolver(http, base).get_agent_card()
            config = ClientConfig(httpx_client=http, streaming=False, supported_protocol_bindings=[binding])
            client = ClientFactory(config).create(card)
            authentication = pb.AuthenticationInfo(scheme="Bearer", credentials=SECRETS[1])
            wanted = pb.TaskPushNotificationConfig(id="one", url=hook.url, authentication=authentication)
            configuration = pb.SendMessageConfiguration(return_immediately=True, task_push_notification_config=wanted)
            message = pb.Message(message_id="m", role=pb.ROLE_USER, parts=[pb.Part(text="echo hello")])
            sent = pb.SendMessageRequest(message=message, configuration=configuration)
            (answer,) = [event async for event in client.send_message(sent)]
            task = answer.task.id
            two = pb.TaskPushNotificationConfig(id="two", task_id=task, url=hook.url, authentication=authentication)
            made = await client.create_task_push_notification_config(two)
            assert (made.id, made.task_id, made.url, made.authentication.scheme) == ("two", task, hook.url, "Bearer")
            assert not made.authentication.credentials
            asked = pb.GetTaskPushNotificationConfigRequest(task_id=task, id="two")
            assert await client.get_task_push_notification_config(asked) == made
            await client.delete_task_push_notification_config(
                pb.DeleteTaskPushNotificationConfigRequest(task_id=task, id="two")
            )
            listing = pb.ListTaskPushNotificationConfigsRequest(task_id=task)
            listed = await client.list_task_push_notification_configs(listing)
            assert [config.id for config in listed.configs] == ["one"]
            return str(task)

    task = asyncio.run(use())
    eventually(lambda: hook.states(task)[-1:] == ["COMPLETED"], "the end is told")
    for _, _, body in hook.requests:
        json_format.ParseDict(body, pb.StreamResponse())


def test_03(daemon: Daemon, hook: Webhook):
    """Asked in 0.3, told in 0.3."""

    def call(method: str, **params: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = daemon.post("/agents/dummy/a2a", body).json
        assert "result" in answer, answer
        return answer["result"]

    message = {"kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "echo hello"}]}
    config = {
        "url": hook.url,
        "token": SECRETS[0],
        "authentication": {"schemes": ["Bearer"], "credentials": SECRETS[1]},
    }
    configuration = {"blocking": False, "pushNotificationConfig": config}
    task = call("message/send", message=message, configuration=configuration)["id"]
    eventually(lambda: hook.taken and hook.taken[-1]["status"]["state"] == "completed", "the end is told")
    assert {body["kind"] for body in hook.taken} == {"task"}
    assert hook.taken[-1]["artifacts"][0]["parts"][0]["text"] == "hello"
    assert hook.requests[0][1]["Authorization"] == f"Bearer {SECRETS[1]}"
    kept = call("tasks/pushNotificationConfig/get", id=task)
    assert kept == call("tasks/pushNotificationConfig/get", id=task, pushNotificationConfigId="default")
    assert kept["taskId"] == task
    assert (kept["pushNotificationConfig"]["id"], kept["pushNotificationConfig"]["url"]) == (task, hook.url)
    assert SECRETS[0] not in json.dumps(kept)
    other = call("tasks/pushNotificationConfig/set", taskId=task, pushNotificationConfig={"url": hook.url, "id": "b"})
    assert call("tasks/pushNotificationConfig/list", id=task) == [kept, other]
    assert call("tasks/pushNotificationConfig/delete", id=task, pushNotificationConfigId="b") is None
    assert call("tasks/pushNotificationConfig/list", id=task) == [kept]


def test_receivers_that_misbehave(daemon: Daemon, hook: Webhook):
    """Errors, dropped connections, silence: told again until it is taken, in order."""
    silent = threading.Event()

    def answer(number: int) -> int | None:
        if number == 3:
            silent.wait(60)
        return [500, None, 503, 200, 404, 302][number] if number < 6 else 200

    hook.answer = answer
    task = send(daemon, "echo hello", {"url": hook.url})
    eventually(lambda: hook.states(task) == WHOLE, "the whole task is told")
    silent.set()
    first = [body["statusUpdate"]["status"]["state"] for _, _, body in hook.requests[:7]]
    assert set(first) == {"TASK_STATE_SUBMITTED"}, "it is told again and again before the next"


def test_one_dead_receiver_and_one_that_lives(daemon: Daemon, hook: Webhook):
    with Webhook() as gone:
        dead = gone.url
    for number in range(6):
        task = send(daemon, f"echo {number}", {"url": dead, "id": "dead"})
        made = rpc(daemon, "CreateTaskPushNotificationConfig", taskId=task, id="well", url=hook.url)
        assert "result" in made, made
    eventually(lambda: "COMPLETED" in str(hook.taken[-1:]) and task in str(hook.taken[-1:]), "the last end is told")


def test_a_killed_daemon_loses_no_notification(real: Daemon, hook: Webhook):
    """Killed again and again, with a receiver that is down for most of it."""
    hook.stop()
    tasks = [send(real, "echo one", {"url": hook.url}), send(real, "sleep 2\necho two", {"url": hook.url})]
    real.ended(tasks[0])
    for _ in range(2):
        real.kill9()
        real.start()
    tasks.append(send(real, "echo three", {"url": hook.url}))
    real.kill9()
    hook.start()
    real.start()
    for task in tasks:
        eventually(lambda task=task: hook.states(task) == WHOLE, f"{task} is told whole: {hook.states(task)}")
    real.kill9()
    real.start()
    task = send(real, "echo four", {"url": hook.url})
    eventually(lambda: hook.states(task) == WHOLE, "the next one is told")
    for task in tasks:
        assert hook.states(task) == WHOLE, "nothing is told again that was taken before"


@pytest.mark.night
def test_secrets_are_nowhere_but_in_the_database(real: Daemon, hook: Webhook):
    hook.answer = lambda number: 500 if number == 0 else 200
    url = f"{hook.url}?key=url-Geheimnis"
    task = send(real, "echo hello", with_secrets(url))
    eventually(lambda: hook.states(task) == WHOLE, "the task is told")
    with real.sse("/events", last_id=0) as events:
        told = ""
        for event in events:
            told += json.dumps(event, ensure_ascii=False)
            if '"completed"' in told:
                break
    shown = [
        told,
        json.dumps(rpc(real, "GetTask", id=task)),
        json.dumps(rpc(real, "ListTasks")),
        real.get(f"/agents/dummy/tasks/{task}").body.decode(),
        real.get("/control/status").body.decode(),
        real.get("/metrics").body.decode(),
    ]
    configs = rest(real, "GET", f"/tasks/{task}/pushNotificationConfigs").body.decode()
    assert url in configs
    for secret in SECRETS:
        assert not [text for text in [*shown, configs] if secret in text]
    real.end()
    written = [path for path in real.home.rglob("*") if path.is_file()]
    for secret in (*SECRETS, "url-Geheimnis"):
        holding = {path.name for path in written if secret.encode() in path.read_bytes()}
        assert holding <= {"synapsed.db", "synapsed.db-wal"}, secret
    assert all(path.stat().st_mode & 0o077 == 0 for path in written if path.name.startswith("synapsed.db"))


@pytest.mark.night
def test_an_agent_has_the_daemon_do_nothing_for_it(real: Daemon):
    """A notification to the daemon itself has no rights, whatever it carries."""
    control_token = (real.home / "state" / "token").read_text().strip()
    mine = real.token_of(real.agent()["id"])
    victim = send(real, "busy 60")
    target = f"http://127.0.0.1:{real.port}/agents/dummy/tasks/{victim}/cancel"
    for attempts, credentials in enumerate((None, control_token), 1):
        message = {"messageId": f"m{attempts}", "role": "ROLE_USER", "parts": [{"text": "echo mine"}]}
        config = {"url": target, "id": "c" if credentials else "n"}
        if credentials:
            config["authentication"] = {"scheme": "Bearer", "credentials": credentials}
        configuration = {"returnImmediately": True, "taskPushNotificationConfig": config}
        body = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "SendMessage",
            "params": {"message": message, "configuration": configuration},
        }
        headers = V1 | {"Authorization": f"Bearer {mine}"}
        answer = real.request("POST", "/agents/dummy/a2a", body, headers).json
        assert "result" in answer, answer
        eventually(lambda n=attempts: len(set(_refused(real))) == n, "it was tried, and refused")
        theirs = {"taskId": victim, "url": target}
        denied = {"jsonrpc": "2.0", "id": 1, "method": "CreateTaskPushNotificationConfig", "params": theirs}
        assert real.request("POST", "/agents/dummy/a2a", denied, headers).status == 403
    assert real.task(victim)["status"] in ("submitted", "working")


def _refused(daemon: Daemon) -> list[str]:
    """The tasks of notifications that were answered 403."""
    return [json.loads(line)["task"] for line in daemon.log().splitlines() if "it answered 403" in line]
