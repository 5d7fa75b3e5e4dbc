"""Who is told to have sent a message: the verdict as a table."""

import pytest

from synapsed.errors import AmbiguousAddress, Forbidden, InvalidRequest
from synapsed.model.agent import Activity, AgentRef, AgentView, ProcessState, resolve
from synapsed.model.sender import Sender, Tier, sender_of
from synapsed.model.task import Message, Task
from synapsed.tasks.sender_verdict import Caller, settle_sender

CLAUDE, SECOND, CODEX = "synapse-claude-8100", "synapse-claude-8101", "synapse-codex-8120"


def view(name: str, kind: str, port: int) -> AgentView:
    return AgentView(
        name=name, id=f"synapse-{kind}-{port}", type=kind, port=port, pid=1, state=ProcessState.RUNNING,
        activity=Activity.READY, since="", evidence="", held=None, queue=0, task=None, restarts=0, cwd="/",
        endpoint=f"http://localhost:{port}",
    )  # fmt: skip


VIEWS = [view("main", "claude", 8100), view("second", "claude", 8101), view("codex", "codex", 8120)]


def find(address: str) -> AgentView:
    wanted = resolve(address, (AgentRef(v.name, v.id, v.type, v.port, running=True) for v in VIEWS)).id
    return next(v for v in VIEWS if v.id == wanted)


PERSON, SOMEBODY, REMOTE = Caller(person=True), Caller(person=False), Caller(person=True, remote=True)
AGENT = Caller(person=False, agent_id=CLAUDE)
VERIFIED = Sender(id=CLAUDE, tier=Tier.AGENT, type="claude", endpoint="http://localhost:8100")
CLAIMED = Sender(id=CODEX, tier=Tier.CLAIMED, type="codex", endpoint="http://localhost:8120")


@pytest.mark.parametrize(
    ("caller", "claim", "expected"),
    [
        (AGENT, None, VERIFIED),
        (AGENT, {}, VERIFIED),
        (AGENT, {"sender_id": CLAUDE, "sender_type": "codex", "tier": "person"}, VERIFIED),
        (AGENT, "main", VERIFIED),
        (AGENT, "@claude-8100", VERIFIED),
        (AGENT, "claude", VERIFIED),  # ambiguous, and it is one of them
        (AGENT, CODEX, Forbidden),
        (AGENT, "second", Forbidden),
        (AGENT, SECOND, Forbidden),
        (AGENT, "a person", Forbidden),
        (AGENT, "main@elsewhere", Forbidden),
        (AGENT, "synapse-system", Forbidden),
        (Caller(person=False, agent_id="gone"), None, Sender(id="gone", tier=Tier.AGENT)),
        (PERSON, None, None),
        (PERSON, "", None),
        (PERSON, {"sender_type": "codex"}, None),
        (PERSON, "codex", CLAIMED),
        (PERSON, {"sender_id": CODEX, "verified": True, "tier": "agent"}, CLAIMED),
        (PERSON, "bob", Sender(id="bob", tier=Tier.CLAIMED)),
        (PERSON, "claude", AmbiguousAddress),
        (PERSON, "synapse-system", Forbidden),
        (PERSON, "@Synapse-System", Forbidden),
        (PERSON, "synapse-[system]", Forbidden),  # as it is read later
        (SOMEBODY, "synapse-\u200bsystem", Forbidden),
        (REMOTE, "ｓｙｎａｐｓｅ-system", Forbidden),
        (REMOTE, " synapse-system:", Forbidden),
        (PERSON, "claude@laptop", Sender(id="claude@laptop", tier=Tier.EXTERNAL)),
        (SOMEBODY, None, Sender(id="unknown", tier=Tier.CLAIMED)),
        (SOMEBODY, "codex", CLAIMED),
        (REMOTE, None, None),
        (REMOTE, "codex", Sender(id="codex", tier=Tier.EXTERNAL)),
        (PERSON, 7, InvalidRequest),
        (PERSON, {"sender_id": ["codex"]}, InvalidRequest),
        (PERSON, "[]", InvalidRequest),
        (PERSON, "x" * 129, InvalidRequest),
    ],
)
def test_verdict(caller: Caller, claim: object, expected: object) -> None:
    if isinstance(expected, type) and issubclass(expected, Exception):
        with pytest.raises(expected):
            settle_sender(caller, claim, find)
    else:
        assert settle_sender(caller, claim, find) == expected


def a_task(sender: object) -> Task:
    return Task(agent_id="a", message=Message.of("x"), metadata={"sender": sender}, created_at="", updated_at="")


def test_what_is_kept_is_read_again() -> None:
    for sender in (VERIFIED, CLAIMED, Sender(id="bob", tier=Tier.EXTERNAL)):
        assert sender_of(a_task(sender.metadata())) == sender
        assert sender.metadata()["verified"] is (sender is VERIFIED)


@pytest.mark.parametrize("sender", [None, 7, {"sender_id": 7}, {}, {"sender_id": "[:]\n"}])
def test_a_sender_that_is_none(sender: object) -> None:
    assert sender_of(a_task(sender)) is None
