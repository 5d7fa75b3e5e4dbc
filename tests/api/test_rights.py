"""Who may what: the decision as a table, and each right."""

from dataclasses import replace
from functools import partial

import pytest

from synapsed.api.rights import Peer, Rights, Standing, Token, TokenKind, decide
from synapsed.errors import Forbidden, Unauthorized
from synapsed.model.grants import Grant
from synapsed.model.task import Message, Prompt, Task, WaitsBehind

ME, OTHER = 1000, 1001
PERSON, NOBODY = Rights(Standing.PERSON), Rights(Standing.NONE)
SOME_AGENT, CLAUDE, CODEX = Rights(Standing.AGENT), Rights(Standing.AGENT, "claude"), Rights(Standing.AGENT, "codex")
ABSENT, UNKNOWN, CONTROL = Token(), Token(TokenKind.UNKNOWN), Token(TokenKind.CONTROL)
OF_CODEX = Token(TokenKind.AGENT, "codex")
ROUTE = Token(TokenKind.ROUTE, route="/metrics")
OF_A_ROUTE = Rights(Standing.NONE, route="/metrics")


def unix(uid: int | None = ME, settled: bool = True, agent_id: str | None = None) -> Peer:
    return Peer(transport="unix", uid=uid, settled=settled, agent_id=agent_id)


def tcp(uid: int | None = ME, settled: bool = True, agent_id: str | None = None) -> Peer:
    return Peer(transport="tcp", uid=uid, settled=settled, agent_id=agent_id)


ELSEWHERE = Peer(transport="tcp", can_look_up=False)
REMOTE = Peer(transport="tcp", loopback=False, can_look_up=False)

ITSELF = Peer(transport="tcp", uid=ME, settled=True, own=True)

TABLE = [
    # peer, token, rights or error
    (unix(), ABSENT, PERSON),
    (unix(agent_id="claude"), ABSENT, CLAUDE),
    (unix(settled=False), ABSENT, SOME_AGENT),
    (unix(OTHER), ABSENT, Forbidden),
    (unix(OTHER), CONTROL, Forbidden),
    (unix(None), ABSENT, Forbidden),
    (unix(), OF_CODEX, CODEX),
    (unix(agent_id="claude"), CONTROL, CLAUDE),
    (unix(agent_id="claude"), OF_CODEX, Forbidden),
    (unix(agent_id="codex"), OF_CODEX, CODEX),
    (unix(agent_id="claude"), UNKNOWN, Unauthorized),
    (unix(settled=False), CONTROL, PERSON),
    (unix(), UNKNOWN, Unauthorized),
    (tcp(), ABSENT, PERSON),
    (tcp(agent_id="claude"), ABSENT, CLAUDE),
    (tcp(agent_id="claude"), OF_CODEX, Forbidden),
    (tcp(agent_id="claude"), CONTROL, CLAUDE),
    (tcp(), OF_CODEX, CODEX),
    (tcp(OTHER, agent_id="claude"), ABSENT, Forbidden),
    (tcp(settled=False), ABSENT, SOME_AGENT),
    (tcp(OTHER, settled=False), ABSENT, Forbidden),
    (tcp(None, settled=False), ABSENT, Forbidden),
    (tcp(OTHER, settled=False), CONTROL, PERSON),
    (tcp(OTHER, settled=False), UNKNOWN, Unauthorized),
    (ELSEWHERE, ABSENT, SOME_AGENT),
    (ELSEWHERE, CONTROL, PERSON),
    (ELSEWHERE, OF_CODEX, CODEX),
    (REMOTE, ABSENT, NOBODY),
    (REMOTE, CONTROL, Rights(Standing.PERSON, remote=True)),
    (REMOTE, OF_CODEX, CODEX),
    (REMOTE, UNKNOWN, Unauthorized),
    (tcp(OTHER, settled=False), ROUTE, OF_A_ROUTE),
    (tcp(), ROUTE, OF_A_ROUTE),
    (tcp(agent_id="claude"), ROUTE, CLAUDE),
    (unix(), ROUTE, OF_A_ROUTE),
    (unix(OTHER), ROUTE, Forbidden),
    (REMOTE, ROUTE, OF_A_ROUTE),
    (ITSELF, ROUTE, SOME_AGENT),
    (ITSELF, ABSENT, SOME_AGENT),
    (ITSELF, CONTROL, SOME_AGENT),
    (ITSELF, OF_CODEX, SOME_AGENT),
]


@pytest.mark.parametrize(("peer", "token", "expected"), TABLE)
def test_decide(peer, token, expected):
    if isinstance(expected, Rights):
        assert decide(peer, token, ME) == expected
    else:
        with pytest.raises(expected):
            decide(peer, token, ME)


def a_task(agent_id: str, sender: str | None) -> Task:
    metadata = {} if sender is None else {"sender": {"sender_id": sender}}
    return Task(agent_id=agent_id, message=Message.of("x"), metadata=metadata, created_at="", updated_at="")


@pytest.mark.parametrize(
    ("rights", "agent_id", "sender", "read", "cancel"),
    [
        (PERSON, "codex", None, True, True),
        (CLAUDE, "claude", None, True, False),
        (CLAUDE, "codex", "claude", True, True),
        (CLAUDE, "codex", None, False, False),
        (CLAUDE, "codex", "gemini", False, False),
        (SOME_AGENT, "codex", None, True, False),
        (NOBODY, "codex", None, False, False),
    ],
)
def test_tasks(rights, agent_id, sender, read, cancel):
    task = a_task(agent_id, sender)
    assert rights.may_read(task) is read
    assert _allowed(rights.require_read, task) is read
    assert _allowed(rights.require_cancel, task) is cancel


@pytest.mark.parametrize(("rights", "allowed"), [(PERSON, True), (CLAUDE, True), (CODEX, False), (SOME_AGENT, False)])
def test_who_adds_to_a_task(rights, allowed):
    assert _allowed(rights.require_work_on, a_task("claude", "codex")) is allowed


@pytest.mark.parametrize(("rights", "allowed"), [(PERSON, True), (CLAUDE, False), (SOME_AGENT, False), (NOBODY, False)])
def test_a_persons_verbs(rights, allowed):
    assert _allowed(rights.require_person, "stop agents") is allowed


def test_sight_and_lists():
    assert CLAUDE.may_see_agent("claude")
    assert not CLAUDE.may_see_agent("codex")
    assert not SOME_AGENT.may_see_agent("codex")
    assert PERSON.may_see_agent("codex")
    assert not _allowed(SOME_AGENT.require_list)
    assert _allowed(CLAUDE.require_list)


def _allowed(require, *args) -> bool:
    try:
        require(*args)
    except Forbidden:
        return False
    return True


def test_what_a_profile_grants_is_for_others_only():
    chief = replace(CLAUDE, granted=frozenset({"answer_prompts", "read_screens"}))
    assert _allowed(partial(chief.require, of="codex"), "answer_prompts", "answer prompts")
    assert not _allowed(partial(chief.require, of="claude"), "answer_prompts", "answer prompts")
    assert not _allowed(partial(chief.require, of="codex"), "stop_agents", "stop agents")
    assert chief.may_see_agent("codex")
    nameless = replace(SOME_AGENT, granted=frozenset({"answer_prompts", "read_screens"}))
    assert not _allowed(partial(nameless.require, of="codex"), "answer_prompts", "answer prompts")
    assert not nameless.may_see_agent("codex")


def test_who_cannot_be_told_is_told_so() -> None:
    """A person in another container is more than an agent, but nobody can know it."""
    with pytest.raises(Forbidden, match=r"who asks cannot be told from here.*do it where the daemon runs"):
        SOME_AGENT.require_person("stop agents")
    with pytest.raises(Forbidden, match=r"^an agent may not stop agents: ask a person$"):
        CLAUDE.require_person("stop agents")


def test_who_sees_a_question():
    """Whoever may answer it needs it; a question that is the screen itself is for those who may see the screen."""
    asked = Prompt(prompt_id="p", type="permission", prompt="May it?", command="rm x", diff="-x")
    screen = Prompt(prompt_id="p", type="screen", prompt="rows")
    answers = replace(CLAUDE, granted=frozenset({"answer_prompts"}))
    reads = replace(CLAUDE, granted=frozenset({"read_screens"}))
    for rights, sees in ((PERSON, (True, True)), (CLAUDE, (False, False)), (reads, (True, True))):
        assert tuple(rights.may_see_prompt("codex", prompt) for prompt in (asked, screen)) == sees
    assert tuple(answers.may_see_prompt("codex", prompt) for prompt in (asked, screen)) == (True, False)
    assert answers.may_see_prompt("claude", asked), "its own"

    waiting = a_task("codex", "claude").model_copy(update={"waits_behind": WaitsBehind(prompt=asked)})
    assert CLAUDE.shown(waiting).waits_behind == WaitsBehind()
    assert answers.shown(waiting) == waiting

    behind = WaitsBehind(task="t", prompt=asked)
    waiting = waiting.model_copy(update={"waits_behind": behind})
    for right, seen in (("send", WaitsBehind()), ("look", behind), ("answer", behind)):
        token = replace(PERSON, grant=Grant(kind="token", id="1", name="ci", rights=frozenset({right})))
        assert token.shown(waiting).waits_behind == seen, right
    assert asked.unseen() == Prompt(prompt_id="p", type="permission", prompt="")
