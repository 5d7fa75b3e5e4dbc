"""Turns on the real programs, judged by the model's log: what arrived, how often, and what came back."""

import asyncio

import pytest
from a2a.client import ClientConfig, ClientFactory
from a2a.client.card_resolver import A2ACardResolver
from a2a.types import Message, Part, Role, SendMessageRequest
from httpx import AsyncClient

from tests.real.agents import EVERY, MAIN, StartAgent, nonce
from tests.real.script import expected_answer
from tests.support.daemon import Daemon, eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

MESSAGES = (
    "{word} [[answer:lines200]]",
    "{word} [[answer:short]]",
    "{word} the same again [[answer:short]]",
    "{word} [[answer:fenced]]",
    "{word} [[answer:japanese]] 日本語で答えてください",
    "{word} [[before:First I run it.]] [[tool:shell:echo ran]] say: After the tool.",
    "{word} [[answer:quotes]]",
    "{word} with\nseveral lines\n\n  indented",
    "{word} [[stall:2]] [[answer:lines20]]",
    "{word} I cannot: timeout, error, failed",
)
"""Rounds of these: longer than the screen, the same twice, markdown, Japanese, a tool call, quoted chrome, a gap."""


@pytest.mark.smoke
@pytest.mark.parametrize("cli", MAIN)
def test_one_turn(cli: str, start_agent: StartAgent) -> None:
    agent = start_agent(cli)
    word = nonce()
    agent.ask_exactly(f"Say hello to {word} please. [[answer:fenced]]")
    assert agent.model.submissions(word) == 1
    assert agent.daemon.ctl("stop", agent.name).code == 0


@pytest.mark.parametrize("cli", EVERY)
def test_twenty_answers_are_exact(cli: str, start_agent: StartAgent) -> None:
    agent = start_agent(cli)
    agent.allow_tools()
    for turn in range(20):
        word = nonce()
        agent.ask_exactly(MESSAGES[turn % len(MESSAGES)].format(word=word))
        assert agent.model.submissions(word) == 1, word


@pytest.mark.parametrize("cli", MAIN)
def test_twenty_messages_at_once_are_twenty_turns(cli: str, start_agent: StartAgent) -> None:
    agent = start_agent(cli)
    words = [nonce() for _ in range(20)]
    clients = [agent.daemon.spawn("send", agent.name, "--wait", "--", f"Answer {word}.") for word in words]
    for word, client in zip(words, clients, strict=True):
        out, err = client.communicate(timeout=300)
        assert client.returncode == 0, err
        assert out == expected_answer(f"Answer {word}.") + "\n"
    assert [agent.model.submissions(word) for word in words] == [1] * 20


@pytest.mark.parametrize("cli", MAIN)
def test_the_official_client_gets_the_same_answer(cli: str, start_agent: StartAgent) -> None:
    agent = start_agent(cli)
    message = f"{nonce()} [[answer:fenced]]"

    async def ask() -> str:
        base = f"http://127.0.0.1:{agent.daemon.port}/agents/{agent.name}"
        async with AsyncClient(timeout=120) as http:
            card = await A2ACardResolver(http, base).get_agent_card()
            client = ClientFactory(ClientConfig(httpx_client=http, streaming=False)).create(card)
            request = SendMessageRequest(
                message=Message(message_id=nonce(), role=Role.ROLE_USER, parts=[Part(text=message)])
            )
            task = None
            async for event in client.send_message(request):
                task = event.task
            assert task is not None
            return "".join(part.text for artifact in task.artifacts for part in artifact.parts)

    assert asyncio.run(ask()) == expected_answer(message)


@pytest.mark.parametrize("cli", [pytest.param("claude", marks=pytest.mark.smoke), "codex", "gemini", "opencode"])
def test_text_streams_while_the_turn_runs(cli: str, start_agent: StartAgent) -> None:
    """Words of the answer come before its end, which is exact."""
    agent = start_agent(cli)
    word = nonce()
    message = f"{word} [[slow:60]] [[answer:explained]]"
    task_id = agent.send(message)
    told: list[tuple[str, bool, bool]] = []
    states: list[str] = []
    with agent.daemon.sse(f"/agents/{agent.name}/tasks/{task_id}/subscribe") as events:
        for event in events:
            data = event["data"]
            if "state" in data:
                states.append(data["state"])
            elif data["artifact"]["artifact_id"] == "answer":
                told.append((data["artifact"]["parts"][0]["text"], data["append"], data["lastChunk"]))
    assert states[-1] == "completed"
    *pieces, last = told
    assert last[2]
    assert len(pieces) >= 3
    assert not any(final for _, _, final in pieces)
    said = whole = ""
    for text, append, _ in told:
        said, whole = whole, whole + text if append else text
    assert "The daemon keeps one" in said
    assert whole == expected_answer(message)
    done = agent.daemon.task(task_id)
    assert done["artifacts"][0]["parts"][0]["text"] == expected_answer(message)
    assert [a["type"] for a in done["artifacts"]] == ["text", "text", "code", "text"]
    assert done["artifacts"][2]["metadata"] == {"language": "python", "mimeType": "text/x-python"}
    assert agent.model.submissions(word) == 1


@pytest.mark.parametrize("cli", MAIN)
def test_priority_five_stops_the_turn_and_goes_first(cli: str, start_agent: StartAgent) -> None:
    agent = start_agent(cli)
    pid = agent.pid
    old, waiting, new = nonce(), nonce(), nonce()
    running = agent.send(f"[[hold-mid:never-{old}]] {old} [[answer:lines200]]")
    agent.model.wait_for_turn(old)
    agent.daemon.task_in(running, "working")
    queued = agent.send(f"Later {waiting}.")
    answer = agent.daemon.ctl("send", agent.name, "--priority", "5", "--wait", "--", f"Now {new}.")
    assert answer.out == expected_answer(f"Now {new}.") + "\n", answer.err
    stopped = agent.daemon.task(running)
    assert (stopped["status"], stopped["metadata"]["reason"]) == ("canceled", "interrupted")
    agent.daemon.task_in(queued, "completed")
    assert agent.pid == pid
    users = [request.user for request in agent.model.requests()]
    assert next(n for n, text in enumerate(users) if new in text) < next(
        n for n, text in enumerate(users) if waiting in text
    )


@pytest.mark.parametrize("cli", ["claude", "gemini", "codex"])
def test_a_permission_is_asked_for_and_granted(cli: str, start_agent: StartAgent) -> None:
    agent = start_agent(cli)
    word = nonce()
    asked = agent.ask(f"{word} [[tool:shell-ask:touch {word}]] say: It is there.")
    assert asked.code == 7, asked.err
    task = agent.tasks()[-1]
    assert task["status"] == "input_required"
    assert task["prompt"]["type"] == "permission"
    assert word in task["prompt"]["prompt"]
    assert len(task["prompt"]["options"]) >= 2
    assert not agent.file(word).exists()
    assert agent.daemon.ctl("input", task["id"], "nonsense").code == 6
    assert agent.daemon.ctl("input", task["id"], "yes").code == 0
    done = agent.daemon.task_in(task["id"], "completed", "failed", "canceled")
    assert done["status"] == "completed"
    assert agent.file(word).exists()
    assert done["artifacts"][-1]["parts"][0]["text"] == "It is there."


@pytest.mark.parametrize("cli", ["claude", "gemini", "codex"])
def test_a_refused_permission_is_told_to_the_model(cli: str, start_agent: StartAgent) -> None:
    agent = start_agent(cli)
    word, after = nonce(), nonce()
    asked = agent.ask(f"{word} [[tool:shell-ask:touch {word}]] say: It is there.")
    assert asked.code == 7, asked.err
    task = agent.tasks()[-1]
    before = len(agent.model.requests())
    assert agent.daemon.ctl("input", task["id"], "no").code == 0
    done = agent.daemon.task_in(task["id"], "completed", "canceled", "failed")
    assert done["status"] == "completed", done
    told = agent.model.requests()[before]
    heard = " ".join([told.user, *(result.text for result in told.results)])
    assert "refused" in heard or "rejected" in heard, "the model's next request says so"
    agent.ask_exactly(f"And {after}?")
    assert not agent.file(word).exists()


@pytest.mark.parametrize("cli", MAIN)
def test_an_agent_killed_in_mid_turn_comes_back(cli: str, start_agent: StartAgent) -> None:
    agent = start_agent(cli)
    pid, word = agent.pid, nonce()
    task_id = agent.send(f"[[hold:never-{word}]] {word}")
    agent.model.wait_for_turn(word)
    assert agent.daemon.ctl("kill", agent.name).code == 0
    failed = agent.daemon.task_in(task_id, "failed")
    assert failed["error"]["code"] == "AGENT_EXITED"
    again = eventually(lambda: (a := agent.daemon.agent(agent.name))["pid"] not in (None, pid) and a, "a new process")
    assert again["restarts"] == 1
    agent.ask_exactly(f"Back, {nonce()}?")
    assert not _zombies_of(agent.daemon)


def _zombies_of(daemon: Daemon) -> list[str]:
    import psutil

    assert daemon.process is not None
    children = psutil.Process(daemon.process.pid).children(recursive=True)
    return [child.name() for child in children if child.status() == psutil.STATUS_ZOMBIE]
