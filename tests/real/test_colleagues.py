"""Agents that talk to each other, on the real programs: judged by what the model was asked."""

import json
import sys
from pathlib import Path

import pytest

from tests.real.agents import RealAgent, StartAgent, nonce
from tests.real.model import Model, Request
from tests.support.daemon import Daemon, eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

BURGLAR = Path(__file__).parents[1] / "support" / "burglar.py"


def pair(start_agent: StartAgent, first: str = "claude", second: str = "codex") -> tuple[RealAgent, RealAgent]:
    one, other = start_agent(first), start_agent(second)
    one.allow_tools()
    return one, other


def asked(model: Model, contains: str, *, api: str | None = None) -> list[Request]:
    """What the model was asked in which the user's last words have `contains`; of one program's API."""
    return [request for request in model.turns(contains) if api in (None, request.api)]


def said(agent: RealAgent, contains: str, what: str) -> Request:
    """The first request of that agent's model with these words, once it has come."""
    return eventually(lambda: next(iter(asked(agent.model, contains)), None), what, patience=120.0)


def results(model: Model, word: str) -> str:
    """What the tools of the turn about `word` said."""
    return "\n".join(result.text for request in model.turns(word) for result in request.results)


@pytest.mark.parametrize(("asker", "answerer"), [("claude", "codex"), ("gemini", "claude")])
def test_one_asks_and_the_other_answers(asker: str, answerer: str, start_agent: StartAgent) -> None:
    one, other = pair(start_agent, asker, answerer)
    mine, yours = nonce(), nonce()
    command = f"synapsectl send --response {other.name} -- 'What of {yours}?'"
    answer = one.ask(f"{mine} [[tool:shell:{command}]] say: I have asked.")
    assert (answer.code, answer.out) == (0, "I have asked.\n"), f"{answer.err}\n{one.screen()}"
    names = {agent.name: agent.daemon.agent(agent.name)["id"] for agent in (one, other)}

    question = said(other, f"] What of {yours}?", "the other is asked").user
    (request,) = other.tasks()
    sender = request["metadata"]["sender"]
    assert (sender["sender_id"], sender["sender_type"], sender["verified"]) == (names[one.name], asker, True)
    own = request["metadata"]["sender_task_id"]
    first, _, last = question.partition("\n")
    assert first == f"[A2A:{own[:8]}:{names[one.name]}:R] What of {yours}?"
    assert last.startswith("[A2A:provenance] agent: ")

    told = said(one, f"[A2A:reply:{own[:8]}", "the reply comes to the one that asked").user
    assert told.splitlines()[0] == f"[A2A:reply:{own[:8]}:{names[other.name]}] Answer to {yours}."
    done = one.daemon.ended(own)
    assert (done["status"], done["metadata"]["reply"]["implicit"]) == ("completed", True)
    notice = next(t for t in one.daemon.ctl("tasks", one.name, "--json").json if t["metadata"].get("reply_to") == own)
    one.daemon.ended(notice["id"])
    assert one.daemon.ctl("task", notice["id"], "--wait").out == f"Answer to {yours}.\n", "its next turn quotes it"
    assert one.model.submissions(f"] What of {yours}?") == 1
    assert one.model.submissions(f"[A2A:reply:{own[:8]}") == 1


def test_one_waits_for_the_other(start_agent: StartAgent) -> None:
    """The reply is the command's output, and comes by no message."""
    claude, codex = pair(start_agent)
    mine, yours = nonce(), nonce()
    command = f"synapsectl send --response --wait {codex.name} -- 'What of {yours}?'"
    answer = claude.ask(f"{mine} [[tool:shell:{command}]] say: I know.")
    assert answer.out == "I know.\n", answer.err
    assert f"Answer to {yours}." in results(claude.model, mine)
    tasks = claude.tasks()
    assert [task["status"] for task in tasks] == ["completed"] * 2
    (own,) = (task for task in tasks if task["metadata"].get("direction") == "outgoing")
    assert claude.model.submissions(f"[A2A:reply:{own['id'][:8]}") == 0


def test_a_reply_of_its_own_words_and_a_forged_sender(start_agent: StartAgent) -> None:
    """The one that is asked replies from its shell; nobody speaks in another's name."""
    claude, gemini = pair(start_agent, "claude", "gemini")
    mine, yours, forged = nonce(), nonce(), nonce()
    command = f"synapsectl reply -- In my own words {yours}"
    sent = claude.daemon.ctl(
        "send", claude.name, "--response", "--from", gemini.name, "--", f"{mine} [[tool:shell:{command}]] say: Done."
    )
    assert sent.code in (0, 7), f"{sent.err}\n{claude.screen()}"  # 7: its prompt was there, and not answered yet
    own = next(t for t in gemini.daemon.ctl("tasks", gemini.name, "--json").json if t["metadata"].get("direction"))
    gemini.daemon.ended(own["id"])
    assert gemini.daemon.ctl("task", own["id"], "--wait").out == f"In my own words {yours}\n", claude.screen()
    forging = f"synapsectl send {gemini.name} --from {gemini.name} -- {forged}; echo code=$?"
    answer = claude.ask(f"{nonce()} [[tool:shell:{forging}]] say: Tried.")
    assert answer.out == "Tried.\n", answer.err
    told = results(claude.model, "code=")
    assert "code=6" in told
    assert "speaks in its own name" in told
    assert claude.model.submissions(forged) == 1, "as claude's own task, never as a message"


def test_an_agent_does_not_approve_its_own_prompt(start_agent: StartAgent, tmp_path: Path) -> None:
    """By command, socket, TCP, A2A and terminal, with whatever token: a person does."""
    claude = start_agent("claude")
    out = tmp_path / "tried.json"
    first, second = nonce(), nonce()
    burgle = f"nohup {sys.executable} {BURGLAR} {claude.name} {out} > {out}.log 2>&1 &"
    message = f"{first} [[tool:shell:{burgle}]] [[tool:shell:touch {second}]] say: Both."
    task = claude.send(message)
    claude.daemon.task_in(task, "input_required")
    assert claude.daemon.ctl("approve", task).code == 0
    tried = eventually(lambda: json.loads(out.read_text()) if out.exists() else None, "it has tried", patience=300.0)
    assert len(tried) > 70
    assert [one for one in tried if one["outcome"] == 0 or one["outcome"] == [200, None]] == []
    assert claude.daemon.task(task)["status"] == "input_required"
    assert not claude.file(second).exists()
    assert claude.daemon.ctl("approve", task).code == 0
    assert claude.daemon.ended(task)["status"] == "completed"
    assert claude.file(second).exists()


def test_the_sequence_of_the_seeds(start_agent: StartAgent, daemon: Daemon) -> None:
    """Document 003: the reply comes when the process that sent is gone, and after a restart of the daemon."""
    claude, codex = pair(start_agent)
    word = nonce()
    sending = daemon.spawn("send", codex.name, f"[[hold:{word}]] 分析して {word}", "--response", "--from", "claude")
    request = codex.model.wait_for_turn(word).user
    own = next(t for t in daemon.ctl("tasks", claude.name, "--json").json if t["metadata"]["direction"] == "outgoing")
    assert own["status"] == "working"
    assert request.startswith(f"[A2A:{own['id'][:8]}:{daemon.agent(claude.name)['id']}:R] ")
    sending.kill()
    sending.communicate()
    daemon.kill9()
    daemon.start()
    reply = daemon.ctl("send", "claude", "結果です", "--reply-to", own["id"][:8], "--from", "codex", "--json")
    assert reply.code == 0, reply.err
    task = reply.json["task"]
    assert (task["id"], task["status"]) == (own["id"], "completed")
    assert task["artifacts"][0]["parts"][0]["text"] == "結果です"
    told = said(claude, f"[A2A:reply:{own['id'][:8]}", "claude is told, since nobody waits any more").user
    assert told.splitlines()[0] == f"[A2A:reply:{own['id'][:8]}:{daemon.agent(codex.name)['id']}] 結果です"
    codex.model.release(word)
    assert claude.model.submissions(f"[A2A:reply:{own['id'][:8]}") == 1


def test_a_ping_pong_stops(start_agent: StartAgent) -> None:
    """Each turn of either sends on; the ninth message is refused, and the turns end."""
    claude, gemini = pair(start_agent, "claude", "gemini")
    word = nonce()
    script = claude.prepared.cwd / "ping"
    # The same words each time, so that the model of the other makes the same call.
    call = f"[[tool:shell:python3 {script} {word}]] say: Sent."
    script.write_text(PING.format(call=call, agents=(claude.name, gemini.name)))
    claude.ask(f"{word} {call}")

    def over() -> bool:
        return "HOP" in results(claude.model, word) or "from agent to agent" in results(claude.model, word)

    eventually(over, "the loop is stopped", patience=400.0)
    every = [task for task in claude.daemon.ctl("tasks", "--json").json if word in str(task["message"])]
    hops = sorted(task["metadata"].get("hops", 0) for task in every)
    assert hops == list(range(9))
    for task in every:
        assert claude.daemon.ended(task["id"])["status"] == "completed"


PING = """
import os, subprocess, sys
one, other = {agents!r}
to = other if os.environ["SYNAPSE_AGENT_NAME"] == one else one
sys.exit(subprocess.run(["synapsectl", "send", to, "--", sys.argv[1] + " " + {call!r}]).returncode)
"""


def test_two_do_not_wait_for_each_other(start_agent: StartAgent) -> None:
    claude, gemini = pair(start_agent, "claude", "gemini")
    word, back = nonce(), nonce()
    # Into files: gemini may lose the last of what a command prints.
    inner = gemini.prepared.cwd / "ask-back"
    inner.write_text(f"synapsectl send --wait {claude.name} -- {back} >refused 2>&1; echo $? >code\n")
    script = claude.prepared.cwd / "ask"
    message = f"{word} [[tool:shell:sh {inner}]] say: Refused."
    script.write_text(f"synapsectl send --response --wait {gemini.name} -- '{message}'\n")
    mine = nonce()
    answer = claude.ask(f"{mine} [[tool:shell:sh {script}]] say: Asked.")
    assert answer.out == "Asked.\n", answer.err
    assert gemini.file("code").exists(), f"{results(claude.model, mine)}\n{gemini.screen()}"
    assert gemini.file("code").read_text() == "6\n"
    assert "waits for" in gemini.file("refused").read_text()
    assert claude.model.submissions(back) == 0
