"""Dialogs of the real programs that are no permissions for a command: judged by what the model is told next."""

from pathlib import Path
from typing import Any

import pytest

from tests.real.agents import EVERY, RealAgent, StartAgent, nonce
from tests.real.conftest import CliHome
from tests.real.model import Model
from tests.real.questions import ASK, LISTS, PLANNED, PLANNING, PROPOSED, asking
from tests.real.session import untrusted, without_account
from tests.real.terminal import Terminal
from tests.real.ways import typed
from tests.support.daemon import Daemon, eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

ENDED = ("completed", "failed", "canceled")

TOOLS = {"claude": "Bash", "codex": "Bash", "gemini": "run_shell_command", "opencode": "bash"}
"""How each calls its shell."""


def asked(agent: RealAgent, task_id: str, text: str) -> dict[str, Any]:
    """What is asked, once it holds `text`."""
    task = eventually(
        lambda: (t := agent.daemon.task(task_id))["status"] == "input_required" and text in str(t["prompt"]) and t,
        f"it asks {text}",
    )
    prompt: dict[str, Any] = task["prompt"]
    return prompt


def answer(agent: RealAgent, task_id: str, text: str) -> None:
    given = agent.daemon.ctl("input", task_id, text)
    assert given.code == 0, f"{given.err}\n{agent.screen()}"


def told(agent: RealAgent, word: str) -> str:
    """The results that the model got in the turn."""
    return "\n".join(result.text for request in agent.model.turns(word) for result in request.results)


def test_questions_of_the_model_are_answered(start_agent: StartAgent) -> None:
    agent, word = start_agent("claude"), nonce()
    task_id = agent.send(f"{word} {ASK}")
    first = asked(agent, task_id, "Which colour")
    assert (first["type"], [o["label"] for o in first["options"]][:2]) == ("question", ["Red", "Blue"])
    refused = agent.daemon.ctl("input", task_id, "3")  # the row that is for words of one's own
    assert (refused.code, "words of your own" in refused.err) == (6, True), refused.err
    answer(agent, task_id, "Blue")
    asked(agent, task_id, "Which sizes")
    answer(agent, task_id, "2")
    asked(agent, task_id, "[✔] Large")
    answer(agent, task_id, "next")
    asked(agent, task_id, "Review your answers")
    answer(agent, task_id, "yes")
    done = agent.daemon.task_in(task_id, *ENDED)
    assert (done["status"], done["artifacts"][-1]["parts"][0]["text"]) == ("completed", "Thank you."), agent.screen()
    assert '"Which colour do you like?"="Blue"' in told(agent, word)
    assert '"Which sizes do you need?"="Large"' in told(agent, word)


def planning(agent: RealAgent) -> None:
    """Has codex plan, which alone lets its model ask."""
    if agent.name == "codex":
        with agent.attached() as person:
            person.send("/plan")
            # An Enter that comes as fast as a paste is a line break.
            eventually(lambda: plans(person) or person.send("\r"), "it plans")


def plans(person: Terminal) -> bool:
    """Whether it does, by when nothing is written any more."""
    person.settle(0.5)
    return "Plan mode (" in person.screen()


OWN = "2 shades\nof grün"
STEPS = {
    "codex": (("Which size", "Huge"),),
    "claude": (
        ("Which sizes", "Small"),
        ("[✔] Small", "a size of my own"),
        ("[✔] a size of", "next"),
        ("Review", "yes"),
    ),
    "gemini": (("What name", "Ann or\nBob"), ("Review", "yes")),
    "opencode": (
        ("Which sizes", "Large"),
        ("[✓] Large", "a size of my own"),
        ("[✓] Large", "next"),
        ("Review", "yes"),
    ),
}
"""What is asked after the first question, and how it is answered."""
TOLD = {
    "codex": (r'["None of the above","user_note: 2 shades\nof grün"]', '"size":{"answers":["Huge"]}'),
    "claude": (
        '"Which colour do you like?"="2 shades\nof grün"',
        '"Which sizes do you need?"="Small, a size of my own"',
    ),
    "gemini": (r"\"0\":\"2 shades\\nof grün\"", r"\"1\":\"Ann or\\nBob\""),
    "opencode": (
        '"Which colour do you like?"="2 shades\nof grün"',
        '"Which sizes do you need?"="Large, a size of my own"',
    ),
}


@pytest.mark.parametrize("cli", STEPS)
def test_questions_are_answered_in_words_of_ones_own(cli: str, start_agent: StartAgent) -> None:
    """Over A2A first, then by hand."""
    agent, word = start_agent(cli), nonce()
    planning(agent)
    task_id = agent.send(f"{word} {asking(cli)}")
    first = asked(agent, task_id, "Which colour")
    assert (first["type"], first["own_words"]) == ("question", True)
    message = {"messageId": nonce(), "taskId": task_id, "role": "ROLE_USER", "parts": [{"text": OWN}]}
    path = f"/agents/{agent.name}/a2a/rest/message:send"
    sent = agent.daemon.request("POST", path, {"message": message}, {"A2A-Version": "1.0"})
    assert sent.status == 200, sent
    for question, given in STEPS[cli]:
        asked(agent, task_id, question)
        answer(agent, task_id, given)
    done = agent.daemon.ended(task_id)
    assert (done["status"], done["artifacts"][-1]["parts"][0]["text"]) == ("completed", "Thank you."), agent.screen()
    for words in TOLD[cli]:
        assert words in told(agent, word), told(agent, word)


@pytest.mark.parametrize("cli", STEPS)
def test_a_question_is_declined(cli: str, start_agent: StartAgent) -> None:
    agent, word, after = start_agent(cli), nonce(), nonce()
    planning(agent)
    task_id = agent.send(f"{word} {asking(cli, 1)}")
    asked(agent, task_id, "Which colour")
    assert agent.daemon.ctl("deny", task_id).code == 0
    done = agent.daemon.task_in(task_id, *ENDED)
    assert done["status"] == "completed", done
    assert "refused" in agent.model.requests()[-1].user, "the model hears of it in the same task"
    agent.ask_exactly(f"And {after}?")


def test_each_question_of_a_call_is_a_prompt_of_its_own(start_agent: StartAgent) -> None:
    agent, word = start_agent("codex"), nonce()
    planning(agent)
    task_id = agent.send(f"{word} {asking('codex')}")
    first = asked(agent, task_id, "Which colour")
    assert [o["label"] for o in first["options"]][:3] == ["Red (Recommended)", "Blue", "None of the above"]
    answer(agent, task_id, "Blue")
    second = asked(agent, task_id, "Which size")
    assert second["prompt_id"] != first["prompt_id"]
    late = {"input": "Blue", "prompt_id": first["prompt_id"]}
    refused = agent.daemon.request("POST", f"/agents/{agent.name}/tasks/{task_id}/input", late)
    assert (refused.status, refused.json["error"]["code"]) == (409, "PROMPT_CHANGED")
    answer(agent, task_id, "2")
    assert daemon_done(agent, task_id) == "completed"
    for words in ('"colour":{"answers":["Blue"]}', '"size":{"answers":["Large"]}'):
        assert words in told(agent, word), told(agent, word)


def test_lists_that_do_not_fit_are_answered(start_agent: StartAgent) -> None:
    """gemini shows three rows of a list: several answers, own words beside them; then one of four."""
    agent, word = start_agent("gemini"), nonce()
    task_id = agent.send(f"{word} {LISTS}")
    for question, given in (
        ("[ ] Large", "Large"),
        ("[x] Large", "2 shades\nof grün"),
        ("[ ] All of the above", "more"),
        ("[ ] Huge", "3"),
        ("[x] Huge", "next"),
        ("Which colour", "more"),
        ("White", "White"),
        ("Review", "yes"),
    ):
        prompt = asked(agent, task_id, question)
        assert prompt["type"] == "question"
        answer(agent, task_id, given)
    assert daemon_done(agent, task_id) == "completed", agent.screen()
    for words in (r"\"0\":\"Large, Huge, 2 shades\\nof grün\"", r"\"1\":\"White\""):
        assert words in told(agent, word), told(agent, word)


@pytest.mark.parametrize("approved", [True, False])
def test_a_plan_that_a_turn_ended_with_is_approved_or_not(approved: bool, start_agent: StartAgent) -> None:
    """Its task is done: the agent asks, and is answered by its name."""
    agent, word = start_agent("codex"), nonce()
    planning(agent)
    assert daemon_done(agent, agent.send(f"{word} {PROPOSED}")) == "completed"
    state = eventually(lambda: (a := agent.daemon.agent(agent.name))["prompt"] and a, "it asks")
    assert (state["activity"], state["prompt"]["type"]) == ("waiting", "permission")
    assert "2. Look at it\n" in state["prompt"]["prompt"]
    refused = agent.daemon.ctl("input", agent.name, "perhaps")
    assert (refused.code, "Yes, implement this plan" in refused.err) == (6, True), refused.err
    before = len(agent.model.requests())
    done = agent.daemon.ctl("approve" if approved else "deny", agent.name)
    assert done.code == 0, done.err
    agent.daemon.ready(agent.name)
    assert any("mplement the plan" in request.user for request in agent.model.requests()[before:]) == approved
    assert ("Plan mode (" in agent.screen()) != approved
    agent.ask_exactly(f"And {nonce()}?")


@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize("cli", PLANNING)
def test_a_plan_is_approved_or_not(cli: str, approved: bool, daemon: Daemon, model: Model, cli_home: CliHome) -> None:
    """Approved by hand: `yes` is not the auto mode that the dialog offers first."""
    agent = RealAgent.start(cli, daemon, model, cli_home(cli), "--", *PLANNING[cli])
    word = nonce()
    task_id = agent.send(f"{word} {PLANNED[cli]}")
    prompt = asked(agent, task_id, "ready to execute" if cli == "claude" else "Ready to start")
    assert prompt["type"] == "permission"
    assert "1. Make the file" in prompt["prompt"]
    before = len(model.requests())
    assert daemon.ctl("approve" if approved else "deny", task_id).code == 0
    done = daemon.task_in(task_id, *ENDED)
    assert done["status"] == "completed", f"{done}\n{agent.screen()}"
    if approved:
        assert APPROVED[cli] in told(agent, word), told(agent, word)
        eventually(lambda: MANUAL[cli] in agent.screen(), "it shows that it does not edit unasked")
    else:
        assert "refused" in model.requests()[before].user
        assert APPROVED[cli] not in told(agent, word)


APPROVED = {"claude": "approved your plan", "gemini": "Plan approved. Switching to Default mode"}
MANUAL = {"claude": "manual mode", "gemini": "Shift+Tab to accept edits"}


def test_what_is_to_be_changed_in_a_plan_is_said(daemon: Daemon, model: Model, cli_home: CliHome) -> None:
    agent = RealAgent.start("gemini", daemon, model, cli_home("gemini"), "--", *PLANNING["gemini"])
    word = nonce()
    task_id = agent.send(f"{word} {PLANNED['gemini']}")
    assert asked(agent, task_id, "Ready to start")["own_words"]
    answer(agent, task_id, "two files,\nnot one")
    assert daemon_done(agent, task_id) == "completed"
    assert r"two files,\nnot one" in told(agent, word), told(agent, word)
    assert APPROVED["gemini"] not in told(agent, word)


def test_a_permission_for_good_is_confirmed(daemon: Daemon, start_agent: StartAgent) -> None:
    """At its terminal; over its server it needs no confirmation."""
    typed("opencode", daemon)
    agent, first, second = start_agent("opencode"), nonce(), nonce()
    task_id = agent.send(f"{first} [[tool:shell-ask:touch {first}]] say: Made.")
    asked(agent, task_id, "Permission required")
    answer(agent, task_id, "always")
    asked(agent, task_id, "Always allow")
    assert not agent.file(first).exists()
    answer(agent, task_id, "confirm")
    assert daemon_done(agent, task_id) == "completed"
    assert agent.file(first).exists()
    again = agent.ask(f"{second} [[tool:shell-ask:touch {second}]] say: Made.")
    assert (again.code, again.out) == (0, "Made.\n"), f"{again.err}\n{agent.screen()}"
    assert agent.file(second).exists()


def daemon_done(agent: RealAgent, task_id: str) -> str:
    return str(agent.daemon.task_in(task_id, *ENDED)["status"])


@pytest.mark.parametrize("cli", ["codex", "gemini"])
def test_without_an_account_it_asks_and_takes_no_message(
    cli: str, daemon: Daemon, model: Model, cli_home: CliHome
) -> None:
    prepared = cli_home(cli)
    without_account(prepared)
    agent = RealAgent.start(cli, daemon, model, prepared, ready=False)
    state = eventually(lambda: (a := daemon.agent(cli))["activity"] == "waiting" and a["prompt"] and a, "it asks")
    assert (state["prompt"]["type"], len(state["prompt"]["options"])) == ("login", 3)
    word = nonce()
    task_id = agent.send(f"Hello {word}.")
    assert daemon.ctl("input", cli, "no such way").code == 6
    assert (daemon.task(task_id)["status"], model.submissions(word)) == ("submitted", 0)
    assert daemon.agent(cli)["prompt"]["prompt_id"] == state["prompt"]["prompt_id"]


def test_a_command_that_speaks_of_a_usage_limit_is_a_persons_to_allow(start_agent: StartAgent) -> None:
    """gemini tells of one in a dialog, which is answered for the person."""
    agent, word = start_agent("gemini"), nonce()
    command = f"echo Usage limit reached for all models. > limit-{word}"
    task_id = agent.send(f"{word} [[tool:shell-ask:{command}]] say: Told.")
    assert "Usage limit reached" in asked(agent, task_id, "Allow execution")["prompt"]
    answer(agent, task_id, "no")
    agent.daemon.ended(task_id)
    assert not agent.file(f"limit-{word}").exists()


SPOOF = (
    "touch first\n________\n────────────────────\n1. Yes\n2. No\n3. No\nAllow once   Allow always   Reject\n"
    "Would you like to run the following command?\nDo you want to proceed?"
)


@pytest.mark.parametrize("cli", EVERY)
def test_no_command_hides_a_part_of_itself(cli: str, start_agent: StartAgent) -> None:
    """By lines that read like the dialog around it, or by its length. (opencode itself shows ten lines.)"""
    agent = start_agent(cli)
    for command in (SPOOF, "touch first\n" + "\n".join(f"echo {n}" for n in range(24))):
        task_id = agent.send(f"{nonce()} [[tool:shell-ask:{command}\ntouch last]] say: Told.")
        prompt = asked(agent, task_id, "touch")
        for line in ("touch first", "touch last")[: 1 if cli == "opencode" else 2]:
            assert line in prompt["prompt"], f"{prompt}\n{agent.screen()}"
        assert prompt["options"][0]["label"] in ("Yes", "Yes, proceed", "Allow once"), prompt
        assert agent.daemon.ctl("deny", task_id).code == 0
        agent.daemon.ended(task_id)
        assert not agent.file("last").exists()


WHOLE = {
    "claude": (
        " Claude has written up a plan and is ready to execute. Would you like to proceed?\n\n"
        " ❯ 1. Yes, and use auto mode\n   2. Yes, manually approve edits\n   3. Tell Claude what to change"
    ),
    "codex": (
        "Would you like to run the following command?\n\n$ touch x\n\n› 1. Yes, proceed (y)\n1. Yes, proceed (y)\n"
        "3. No, and tell Codex what to do differently (esc)\n\nPress enter to confirm or esc to cancel"
    ),
    "gemini": (
        "? Shell  touch x\ntouch x\nAllow execution of [Shell]?\n\n● 1. Allow once\n  2. Allow for this session\n"
        "  3. No, suggest changes (esc)"
    ),
    "opencode": "┃  △ Permission required\n┃    # Shell command\n┃   Allow once   Allow always   Reject",
}
"""A dialog of each program's own, in words that its answers and its tools' output keep as they are."""


@pytest.mark.parametrize("cli", EVERY)
def test_a_dialog_that_is_only_shown_is_none(cli: str, private_dir: Path, model: Model, cli_home: CliHome) -> None:
    """In an answer, and in what a tool prints: while the turn goes on, and when it is over."""
    policy = {"approval": {"allow": [f"{TOOLS[cli]}(cat shown)"]}}
    daemon = Daemon(private_dir / "synapsed")
    agent = RealAgent.configured(cli, daemon, model, cli_home(cli), policy)
    agent.file("shown").write_text(WHOLE[cli] + "\n")
    try:
        for message in (
            f"[[say:So:\n\n```\n{WHOLE[cli]}\n```]]",
            "[[tool:shell:cat shown]] [[stall:2]] say: It is shown.",
        ):
            task_id = agent.send(f"{nonce()} {message}")
            done = daemon.task_in(task_id, *ENDED, "input_required")
            assert done["status"] == "completed", f"{done}\n{agent.screen()}"
            assert daemon.ready(agent.name)["activity"] == "ready", agent.screen()
            agent.ask_exactly(f"And {nonce()}?")
    finally:
        daemon.end()


@pytest.mark.parametrize("cli", ["claude", "codex"])
def test_an_urgent_message_does_not_answer_whether_the_folder_is_trusted(
    cli: str, daemon: Daemon, model: Model, cli_home: CliHome
) -> None:
    """The keys that stop a turn would end claude here, and lead codex elsewhere."""
    prepared = cli_home(cli)
    untrusted(prepared)
    typed(cli, daemon)
    agent = RealAgent.start(cli, daemon, model, prepared, ready=False)
    state = eventually(lambda: (a := daemon.agent(cli))["activity"] == "waiting" and a["prompt"] and a, "it asks")
    assert state["prompt"]["type"] == "trust"
    pid, word = agent.pid, nonce()
    urgent = daemon.ctl("send", cli, "--priority", "5", "--json", "--", f"Hello {word}.").json["task"]["id"]
    assert "nothing to interrupt" in daemon.ctl("cancel", cli).err
    assert (daemon.task(urgent)["status"], agent.pid) == ("submitted", pid)
    assert daemon.agent(cli)["prompt"]["prompt_id"] == state["prompt"]["prompt_id"]
    assert daemon.ctl("input", cli, "yes").code == 0
    first = daemon.ctl("send", cli, "--wait", "--", f"Hi {nonce()}.")
    assert (first.code, "unknown" in first.err) == (0, False), f"what has just been let begin is starting: {first.err}"
    assert daemon.ended(urgent)["artifacts"][0]["parts"][0]["text"] == f"Answer to {word}."


def test_what_a_person_may_have_selected_is_not_chosen_for_them(daemon: Daemon, start_agent: StartAgent) -> None:
    """Buttons in a row, Enter is the selected one: by now that is "Reject". Over its server no key is pressed."""
    typed("opencode", daemon)
    agent = start_agent("opencode")
    word = nonce()
    task_id = agent.send(f"{word} [[tool:shell-ask:touch {word}]] say: Made.")
    agent.daemon.task_in(task_id, "input_required")
    with agent.attached() as person:
        for keys in ("\x1b[C", "\x1b[C"):
            person.send(keys)
            person.settle(0.3)
        refused = agent.daemon.ctl("approve", task_id)
        assert (refused.code, "moved the selection" in refused.err) == (6, True), refused
        assert agent.daemon.task(task_id)["status"] == "input_required"
        for keys in ("\x1b[D", "\x1b[D", "\r"):
            person.send(keys)
            person.settle(0.3)
        assert daemon_done(agent, task_id) == "completed"
    assert agent.file(word).exists()


@pytest.mark.parametrize("cli", EVERY)
def test_an_answer_and_an_urgent_message_at_the_same_moment(cli: str, start_agent: StartAgent) -> None:
    """The answer's key is for the dialog or for nothing: not text that the urgent message would wait for."""
    agent = start_agent(cli)
    for _ in range(3):
        word, urgent = nonce(), nonce()
        task_id = agent.send(f"{word} [[tool:shell-ask:touch {word}]] say: Made.")
        agent.daemon.task_in(task_id, "input_required")
        second = agent.send(f"Urgent {urgent}.", "--priority", "5")
        given = agent.daemon.request("POST", f"/agents/{agent.name}/tasks/{task_id}/input", {"input": "yes"})
        assert given.status == 200 or given.json["error"]["code"] in ("PROMPT_CHANGED", "NOT_WAITING"), given
        done = agent.daemon.ended(second)
        assert (done["status"], done["artifacts"][-1]["parts"][0]["text"]) == ("completed", f"Answer to {urgent}.")
        assert agent.daemon.ended(task_id)["status"] == "canceled"
