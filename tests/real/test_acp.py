"""`synapsectl acp` on the real programs: by the protocol's own SDK, by acpx, and by an editor of the tests."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.real import editors
from tests.real.agents import RealAgent, StartAgent, nonce
from tests.real.script import expected_answer
from tests.support.acp import Editor, editor
from tests.support.daemon import Daemon, eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

TURNS = 20


@pytest.fixture(scope="module")
def clients() -> None:
    if reason := editors.missing():
        pytest.skip(reason)


def command(agent: str) -> list[str]:
    return [sys.executable, "-m", "synapsectl", "acp", agent]


def environment(daemon: Daemon) -> dict[str, str]:
    return {**daemon.env, "PYTHONPATH": str(Path.cwd())}


def by_sdk(agent: RealAgent, turns: list[dict[str, Any]]) -> dict[str, Any]:
    argv = [editors.PYPI.program("python"), str(editors.SDK_CLIENT), str(agent.prepared.cwd), *command(agent.name)]
    # The SDK's interpreter is not to find our packages, ours is to find itself.
    env = {**environment(agent.daemon), "PYTHONSAFEPATH": "1"}
    done = subprocess.run(
        argv, input=json.dumps(turns), capture_output=True, text=True, env=env, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def opened(agent: RealAgent) -> Any:
    return editor(agent.daemon, agent.name, cwd=agent.prepared.cwd)


@pytest.mark.parametrize("cli", ["claude", "codex"])
def test_the_sdk_gets_every_answer_exactly(cli: str, start_agent: StartAgent, clients: None) -> None:
    agent = start_agent(cli)
    kinds = [
        "{}",
        "{} [[answer:fenced]]",
        "{} [[answer:japanese]]",
        "{} [[slow:400]] [[answer:prose]]",
        "/{} is no command",
    ]
    texts = [kinds[n % len(kinds)].format(nonce()) for n in range(TURNS)]
    told = by_sdk(agent, [{"text": text} for text in texts])
    assert told["agent"] == "synapsed"
    assert told["session"] == agent.daemon.agent(agent.name)["id"]
    wrong = [
        (turn, expected_answer(text))
        for text, turn in zip(texts, told["turns"], strict=True)
        if (turn["stop"], turn["text"]) != ("end_turn", expected_answer(text))
    ]
    assert not wrong, wrong
    assert [agent.model.submissions(text.split()[0].strip("/")) for text in texts] == [1] * TURNS


@pytest.mark.parametrize("cli", ["claude", "codex"])
def test_the_sdk_decides_on_permissions(cli: str, start_agent: StartAgent, clients: None) -> None:
    agent = start_agent(cli)
    made, refused = agent.file("made"), agent.file("refused")
    word = nonce()
    told = by_sdk(
        agent,
        [
            {"text": f"{word} [[tool:shell-ask:touch {made}]]", "permission": "allow"},
            {"text": f"{nonce()} [[tool:shell-ask:touch {refused}]]", "permission": "reject"},
            {"text": nonce(), "permission": "allow"},
        ],
    )
    allowed, denied, plain = told["turns"]
    assert (allowed["stop"], allowed["text"]) == ("end_turn", f"Answer to {word}."), allowed
    assert len(allowed["permissions"]) == len(denied["permissions"]) == 1
    for kinds in (*allowed["permissions"], *denied["permissions"]):
        assert {"allow_once", "reject_once"} <= set(kinds), told
    assert (made.exists(), refused.exists()) == (True, False)
    assert (plain["stop"], plain["permissions"]) == ("end_turn", [])
    assert any(tool.startswith("execute ") for tool in allowed["tools"]), allowed


def test_the_sdk_lists_loads_and_leaves_sessions(start_agent: StartAgent, clients: None) -> None:
    agent = start_agent("codex")
    word = nonce()
    told = by_sdk(agent, [{"text": word}])
    assert {"compact", "new"} <= set(told["commands"])
    assert told["after"] == {
        "listed": [told["session"]],
        "loaded": {"asked": [word], "said": [f"Answer to {word}."]},
        "resumed": [],
        "closed": -32002,
        "refused": dict.fromkeys(("fork", "mode", "option", "authenticate"), -32601),
    }


ZED = "move f from {a} (attached: a-L3-9.rs) to {b} (attached: b.rs), please. {word}"
KOOG = "{word} see notes.txt (attached: notes.txt) and {a}:7"


@pytest.mark.parametrize("cli", ["claude", "codex", "opencode"])
def test_prompts_as_editors_build_them(cli: str, start_agent: StartAgent, clients: None) -> None:
    """Zed embeds each mention where it stood, without a type; JetBrains' Koog calls what is attached by its name."""
    agent = start_agent(cli)
    cwd, words = agent.prepared.cwd, [nonce(), nonce()]

    def embedded(uri: str, text: str) -> dict[str, Any]:
        return {"type": "resource", "resource": {"uri": uri, "text": text}}

    zed = [
        {"type": "text", "text": "move f from "},
        embedded(f"file://{cwd}/a.rs?symbol=f#L3:9", "fn f() {}"),
        {"type": "text", "text": " to "},
        embedded(f"file://{cwd}/b.rs", "mod a;"),
        {"type": "text", "text": f", please. {words[0]}"},
    ]
    koog = [
        {"type": "text", "text": f"{words[1]} see"},
        embedded("notes.txt", "a note"),
        {"type": "text", "text": "and"},
        {"type": "resource_link", "name": "a.rs", "uri": f"file://{cwd}/a.rs#L7"},
    ]
    told = by_sdk(agent, [{"blocks": zed}, {"blocks": koog}])
    assert [turn["stop"] for turn in told["turns"]] == ["end_turn"] * 2, told
    (first,), (second,) = (agent.model.turns(word) for word in words)
    assert ZED.format(a=f"{cwd}/a.rs:3-9 (f)", b=f"{cwd}/b.rs", word=words[0]) in first.user
    assert KOOG.format(a=f"{cwd}/a.rs", word=words[1]) in second.user
    for name, request in (("-a-L3-9.rs", first), ("-b.rs", first), ("-notes.txt", second)):
        assert name in request.user, "where the program finds it"


@pytest.mark.parametrize("cli", ["claude", "codex"])
def test_acpx_gets_every_answer_exactly(cli: str, start_agent: StartAgent, clients: None, tmp_path: Path) -> None:
    agent = start_agent(cli)
    acpx = editors.NPM.folder / "node_modules" / ".bin" / "acpx"
    env = {**environment(agent.daemon), "HOME": str(tmp_path)}
    cwd = agent.prepared.cwd
    for _ in range(TURNS):
        text = f"{nonce()} [[answer:explained]]"
        argv = [acpx, "--cwd", cwd, "--format", "quiet", "--agent", " ".join(command(agent.name)), "exec", text]
        done = subprocess.run(argv, capture_output=True, text=True, env=env, cwd=cwd, timeout=120, check=False)
        assert (done.returncode, done.stdout.rstrip("\n")) == (0, expected_answer(text)), (done.stdout, done.stderr)


@pytest.mark.parametrize("cli", ["claude", "codex", "opencode"])
def test_two_who_answer_at_once_are_one_answer(cli: str, start_agent: StartAgent) -> None:
    """An editor and a terminal, in any order: the tool runs once, and what comes next is as ever."""
    agent = start_agent(cli)
    with opened(agent) as one, ThreadPoolExecutor(2) as both:
        one.new(agent.prepared.cwd)
        for n in range(8):
            made, word = agent.file(f"made-{n}"), nonce()
            asked = len(one.requests())
            prompt = one.prompting(f"{word} [[tool:shell-ask:echo once >> {made}]]")
            request = one.see(lambda _, asked=asked: one.requests()[asked:], "the editor is asked")[0]
            yes = next(o["optionId"] for o in request["params"]["options"] if o["kind"] == "allow_once")
            answers = [
                both.submit(one.select, request, yes),
                both.submit(agent.daemon.ctl, "approve", agent.name),
            ]
            for answer in answers if n % 2 else reversed(answers):
                answer.result()
            assert one.answer(prompt)["stopReason"] == "end_turn"
            assert made.read_text() == "once\n"
            assert agent.model.submissions(word) == 1
        assert one.prompt(last := nonce())[1] == f"Answer to {last}."


@pytest.mark.parametrize("cli", ["claude", "codex"])
def test_the_terminal_answers_what_the_editor_was_asked(cli: str, start_agent: StartAgent) -> None:
    agent = start_agent(cli)
    with opened(agent) as one:
        one.new(agent.prepared.cwd)
        for n in range(5):
            made, word = agent.file(f"made-{n}"), nonce()
            asked = len(one.requests())
            prompt = one.prompting(f"{word} [[tool:shell-ask:touch {made}]]")
            request = one.see(lambda _, asked=asked: one.requests()[asked:], "the editor is asked")[0]
            assert request["params"]["toolCall"]["toolCallId"]
            assert agent.daemon.ctl("approve", agent.name).code == 0
            assert one.answer(prompt)["stopReason"] == "end_turn"
            assert request["id"] in one.withdrawn()
            assert made.exists()
            one.select(request, "1")  # too late: it is for nothing
        word = nonce()
        assert one.prompt(word)[1] == f"Answer to {word}."


@pytest.mark.parametrize("cli", ["claude", "codex"])
@pytest.mark.parametrize("when", ["held", "asking", "streaming"])
def test_a_prompt_ends_right_over_a_kill_of_the_daemon(cli: str, when: str, start_agent: StartAgent) -> None:
    agent = start_agent(cli)
    word, made = nonce(), agent.file("made")
    how = {
        "held": f"[[hold:{word}]]",
        "asking": f"[[tool:shell-ask:touch {made}]]",
        "streaming": f"[[hold-mid:{word}]]",
    }
    with opened(agent) as one:
        one.new(agent.prepared.cwd)
        one.choose = lambda _: None
        text = f"{word} {how[when]} [[answer:prose]]"
        prompt = one.prompting(text)
        agent.model.wait_for_turn(word)
        if when == "asking":
            one.see(lambda _: one.requests(), "the editor is asked")
        agent.daemon.kill9()
        agent.model.release(word)
        agent.daemon.start()
        if when == "asking":
            one.choose = lambda request: "1"
            eventually(lambda: agent.daemon.agent(agent.name)["activity"] == "waiting", "it asks still")
            for request in one.requests():
                one.select(request, "1")
        result = one.answer(prompt)
        assert result["stopReason"] == "end_turn"
        said = "".join(u["content"]["text"] for u in one.updates("agent_message_chunk"))
        assert said == expected_answer(text)
        assert agent.model.submissions(word) == 1


def test_two_editors_and_a_terminal_see_each_others_turns(start_agent: StartAgent) -> None:
    agent = start_agent("claude")
    with opened(agent) as one, opened(agent) as two:
        for each in (one, two):
            each.new(agent.prepared.cwd)
        words = [nonce() for _ in range(3)]
        assert one.prompt(words[0])[1] == f"Answer to {words[0]}."
        assert two.prompt(words[1])[1] == f"Answer to {words[1]}."
        with agent.attached() as person:
            person.submit(words[2])
            for each in (one, two):
                each.see(lambda _, each=each: shown(each, words[2]), "what was typed at the terminal")
        for each, other in ((one, words[1]), (two, words[0])):
            each.see(lambda _, each=each, other=other: shown(each, other), "the other's turn")


def shown(one: Editor, word: str) -> bool:
    """Whether the editor shows the turn of somebody else, and its answer."""
    asked = [u["content"]["text"] for u in one.updates("user_message_chunk")]
    said = [u["content"]["text"] for u in one.updates("agent_message_chunk")]
    return word in asked and f"Answer to {word}." in said


@pytest.mark.parametrize("cli", ["codex", "opencode"])
def test_what_was_said_before_a_tool_call_comes_before_it(cli: str, start_agent: StartAgent) -> None:
    agent = start_agent(cli)
    with opened(agent) as one:
        one.new(agent.prepared.cwd)
        one.choose = lambda request: next(o["optionId"] for o in request["options"] if o["kind"] == "allow_once")
        for _ in range(10):
            word, begin = nonce(), len(one.messages)
            one.prompt(f"{word} [[before:I will look at {word}.]] [[tool:shell:true {word}]]")
            came = [m["params"]["update"] for m in one.messages[begin:] if m.get("method") == "session/update"]
            order = [
                "call" if update["sessionUpdate"] == "tool_call" else update["content"]["text"]
                for update in came
                if update["sessionUpdate"] in ("tool_call", "agent_message_chunk")
            ]
            assert "".join(order) == f"I will look at {word}.callAnswer to {word}.", came


def test_failures_are_typed(start_agent: StartAgent) -> None:
    agent = start_agent("codex")  # claude tries a refused sign-in for minutes
    told = []
    with opened(agent) as one:
        one.new(agent.prepared.cwd)
        for status in (400, 401):
            id_ = one.prompting(f"{nonce()} [[status:{status}]]")
            message = one.see(lambda m, id_=id_: next((x for x in m if x.get("id") == id_), None), "an answer")
            told.append((message["error"]["code"], message["error"]["data"]["code"]))
    assert told == [(-32603, "MODEL_ERROR"), (-32000, "AUTH_REQUIRED")]


def test_a_large_prompt_and_one_canceled_at_once(start_agent: StartAgent) -> None:
    agent = start_agent("claude")
    with opened(agent) as one:
        one.new(agent.prepared.cwd)
        word = nonce()
        filler = "\n".join(f"line {n} of a long prompt" for n in range(2000))[: 48 * 1024 - 64]
        assert one.prompt(f"{word}\n{filler}")[1] == f"Answer to {word}."
        for _ in range(5):
            gone = nonce()
            prompt = one.prompting(f"{gone} [[hold:{gone}]]")
            one.write({"method": "session/cancel", "params": {"sessionId": one.session}})
            assert one.answer(prompt)["stopReason"] == "cancelled"
            agent.model.release(gone)
        after = nonce()
        assert one.prompt(after)[1] == f"Answer to {after}."
