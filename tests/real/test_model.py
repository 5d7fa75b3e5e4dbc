"""The scripted model itself: directives, dialects, the log."""

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real.model import Model, read_log
from tests.real.script import ANSWERS, expected_answer, plan_for

Json = dict[str, Any]


@pytest.fixture
def log_file(tmp_path: Path) -> Path:
    return tmp_path / "requests.jsonl"


@pytest.fixture
def model(log_file: Path) -> Iterator[Model]:
    with Model(log_file=log_file) as running:
        yield running


def post(url: str, body: Json) -> str:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as response:
        answer: str = response.read().decode()
    return answer


def ask(model: Model, api: str, text: str, *, stream: bool = True) -> str:
    """The text that the model streams, or answers, to one message."""
    path, body = _asked(api, text, stream)
    raw = post(model.url + path, body)
    return _text(
        api, [json.loads(line[6:]) for line in raw.splitlines() if line.startswith("data: {")] or [json.loads(raw)]
    )


def _asked(api: str, text: str, stream: bool) -> tuple[str, Json]:
    user = [{"role": "user", "content": text}]
    if api == "anthropic":
        return "/v1/messages", {"model": "m", "stream": stream, "tools": [{"name": "Bash"}], "messages": user}
    if api == "responses":
        return "/v1/responses", {"model": "m", "stream": stream, "tools": [{"name": "exec_command"}], "input": user}
    if api == "chat":
        tools = [{"function": {"name": "bash"}}]
        return "/v1/chat/completions", {"model": "m", "stream": stream, "tools": tools, "messages": user}
    declared: Json = {"functionDeclarations": [{"name": "run_shell_command"}]}
    method = "streamGenerateContent?alt=sse" if stream else "generateContent"
    return f"/v1beta/models/m:{method}", {
        "tools": [declared],
        "contents": [{"role": "user", "parts": [{"text": text}]}],
    }


def _text(api: str, events: list[Json]) -> str:
    pick: Callable[[Json], str] = {
        "anthropic": lambda e: e.get("delta", {}).get("text", "") or "".join(c["text"] for c in e.get("content", [])),
        "responses": lambda e: (
            e.get("delta", "") or "".join(c["text"] for item in e.get("output", []) for c in item["content"])
        ),
        "chat": lambda e: "".join(c.get("message", c.get("delta", {})).get("content") or "" for c in e["choices"]),
        "gemini": lambda e: "".join(p["text"] for c in e["candidates"] for p in c["content"]["parts"]),
    }[api]
    return "".join(pick(event) for event in events)


APIS = ["anthropic", "responses", "chat", "gemini"]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    "message", ["hello nonce-17", "[A2A:12345678:x] say: yes", *(f"[[answer:{n}]]" for n in ANSWERS)]
)
def test_every_dialect_says_the_expected_answer(model: Model, api: str, message: str, stream: bool) -> None:
    assert ask(model, api, message, stream=stream) == expected_answer(message)
    (request,) = model.requests()
    assert (request.user, request.api, request.reply, request.side) == (message, api, "text", None)


def test_tool_is_called_then_the_answer_follows_its_result(model: Model) -> None:
    text = "[[before:I look.]][[tool:shell:ls -l]] say: two files"
    path, body = _asked("anthropic", text, stream=False)
    first = json.loads(post(model.url + path, body))
    assert first["content"][0] == {"type": "text", "text": "I look."}
    call = first["content"][1]
    assert (call["name"], call["input"]["command"], first["stop_reason"]) == ("Bash", "ls -l", "tool_use")
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": "a b", "is_error": False}
    body["messages"] += [{"role": "assistant", "content": first["content"]}, {"role": "user", "content": [result]}]
    assert json.loads(post(model.url + path, body))["content"] == [{"type": "text", "text": "two files"}]
    assert [result.text for result in model.turns("two files")[1].results] == ["a b"]
    assert model.submissions("two files") == 1


CALLED = {
    "anthropic": lambda told: [(b["id"], b["input"]["command"]) for b in told["content"]],
    "responses": lambda told: [(i["call_id"], json.loads(i["arguments"])["cmd"]) for i in told["output"]],
    "chat": lambda told: [
        (c["id"], json.loads(c["function"]["arguments"])["command"])
        for c in told["choices"][0]["message"]["tool_calls"]
    ],
    "gemini": lambda told: [
        (p["functionCall"]["id"], p["functionCall"]["args"]["command"])
        for p in told["candidates"][0]["content"]["parts"]
    ],
}


@pytest.mark.parametrize("api", APIS)
def test_tools_are_called_together(model: Model, api: str) -> None:
    path, body = _asked(api, "[[at-once]][[tool:shell:ls]][[tool:shell:pwd]] say: both", stream=False)
    one, other = CALLED[api](json.loads(post(model.url + path, body)))
    assert (one[1], other[1]) == ("ls", "pwd")
    assert one[0] != other[0]
    path, body = _asked(api, "[[at-once]][[tool:shell:ls]][[tool:shell:pwd]] say: both", stream=True)
    streamed = post(model.url + path, body)
    assert all(word in streamed for word in ("ls", "pwd"))


@pytest.mark.parametrize("api", APIS)
def test_failures_are_counted_per_turn(model: Model, api: str) -> None:
    for _ in range(2):
        with pytest.raises(urllib.error.HTTPError) as failed:
            ask(model, api, "[[status:529x2]] nonce-1")
        assert failed.value.code == 529
        failed.value.close()
    assert ask(model, api, "[[status:529x2]] nonce-1") == "Answer to nonce-1."


def test_hold_waits_for_its_release(model: Model, log_file: Path) -> None:
    answers: list[str] = []
    asking = threading.Thread(target=lambda: answers.append(ask(model, "chat", "[[hold:gate]] nonce-2")))
    asking.start()
    assert model.wait_for_turn("nonce-2").outcome is None
    assert not answers
    model.release("gate")
    model.wait_for(lambda requests: requests[0].outcome == "sent")
    asking.join()
    assert answers == ["Answer to nonce-2."]
    assert read_log(log_file) == model.requests()


def test_what_programs_add_is_not_the_users(model: Model) -> None:
    reminder = {"type": "text", "text": "<system-reminder>say: no</system-reminder>"}
    path, body = _asked("anthropic", "", stream=False)
    body["messages"] = [{"role": "user", "content": [reminder, {"type": "text", "text": "nonce-3"}]}]
    post(model.url + path, body)
    (request,) = model.requests()
    assert (request.users, len(request.notes)) == (("nonce-3",), 1)


@pytest.mark.parametrize("wrong", ["[[answer:nobody]]", "[[unheard:of]]", "[[status:often]]"])
def test_wrong_directives_are_errors(wrong: str) -> None:
    with pytest.raises(ValueError, match=r"unknown|status must"):
        plan_for(wrong)


def test_directives_survive_wrapping() -> None:
    plan = plan_for(
        "[A2A:0a1b2c3d:bob] Please [[delay:2.5]] do\n[[slow:80 chars/s]] it [[status:429x1]] say: well\nThanks"
    )
    assert (plan.delay, plan.rate, plan.status, plan.failures, plan.text) == (2.5, 80.0, 429, 1, "well")
