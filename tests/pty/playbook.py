"""A turn of the machine, brought to where a playbook begins; no clock but the one passed in."""

from typing import Any

from synapsed.interfaces import Delivery
from synapsed.model.agent import Activity
from synapsed.model.facts import PromptAccepted, TurnEnded
from synapsed.model.link import (
    LinkTurnAccepted,
    LinkTurnEnded,
    LinkTurnFailed,
    LinkTurnInterrupted,
    LinkUndelivered,
)
from synapsed.model.records import TurnRecord
from synapsed.model.task import Prompt
from synapsed.profiles.profile import Profile
from synapsed.profiles.screen_spec import Composer
from synapsed.pty.turn import PtyTurn
from synapsed.pty.turn_types import Command, Phase, Save, Say, Seen, TurnState, Type
from synapsed.terminal.delivery import Typed
from synapsed.terminal.prompts import Asked
from synapsed.terminal.verdict import Verdict

TUI = Profile(name="tui", command="tui", composer=Composer(line="> (?P<text>.*)"))
LINES = Profile(name="lines", command="lines", composer=Composer(line="^> (?P<text>.*)$", at_cursor=True))
ASKED = Asked(Prompt(prompt_id="p", type="permission", prompt="May I?"), None)


def turn(
    profile: Profile = TUI,
    *,
    text: str = "hello",
    channels: bool = True,
    state: TurnState | None = None,
    command: bool = False,
    denial: str | None = None,
) -> PtyTurn:
    state = state or TurnState()
    told = delivery_of(text, command=command)
    return PtyTurn(profile, told, compose, state, channels_tell=channels, denial=denial)


def delivery_of(text: str = "hello", *, task: str = "t", command: bool = False) -> Delivery:
    record = TurnRecord(task_id=task, launch_id="l")
    return Delivery(task_id=task, text=text, command=command, record=record, fresh=True)


def compose(text: str) -> Typed:
    return Typed(text, text.encode(), b"\r")


def seen(
    now: float,
    *,
    activity: Activity = Activity.READY,
    composer: str = "empty",
    offset: int = 30,
    changed_at: float = 0.0,
    settled: bool = True,
    can_receive: bool | None = None,
    asked: Asked | None = None,
    error: tuple[str, str] | None = None,
    interrupted: bool = False,
    echoed: bool = False,
    text: str = "",
    stopped: bool = False,
    unread: bool = False,
    computes: bool = False,
    lag: float = 0.0,
    starting: bool = False,
    source: str = "test",
    worked_until: int = 0,
    person: bool = False,
) -> Seen:
    """`offset` is beyond the submit key's of `submitted`: the program has printed something since."""
    receives = activity is Activity.READY and composer == "empty" if can_receive is None else can_receive
    verdict = Verdict(activity=activity, evidence="test", source=source, settled=settled, asked=asked)
    return Seen(
        verdict=verdict,
        may_type=receives,
        composer=composer,
        offset=offset,
        now=now,
        changed_at=changed_at,
        error=error,
        interrupted=interrupted,
        echoed=echoed,
        text=text,
        stopped=stopped,
        unread=unread,
        computes=computes,
        lag=lag,
        starting=starting,
        worked_until=worked_until,
        person=person,
    )


def pasted(text: str = "hello") -> PtyTurn:
    """A turn whose paste was written at 0.1 s, at offset 10."""
    machine = turn(text=text)
    machine.begin(0.0)
    machine.seen(seen(0.0))
    machine.saved()
    machine.typed("paste", 10, 0.1)
    return machine


def submitted(profile: Profile = TUI, *, shown: str = "", **more: Any) -> PtyTurn:
    """A turn whose submit key was written at 1.0 s, at offset 20; its message stood in the composer as `shown`."""
    machine = turn(profile, **more)
    assert machine.begin(0.0) == []
    assert machine.seen(seen(0.0)) == [Save()]
    assert machine.saved() == [Type("paste", b"hello")]
    assert machine.typed("paste", 10, 0.1) == []
    assert machine.seen(seen(0.15, composer="draft", offset=15, changed_at=0.12)) == []
    assert machine.seen(seen(1.0, composer="draft", offset=15, changed_at=0.12, text=shown)) == [Save()]
    assert machine.state.submitted
    assert machine.saved() == [Type("submit", b"\r")]
    assert machine.typed("submit", 20, 1.0) == [Save()]
    assert machine.state.phase is Phase.SUBMITTED
    return machine


def ns(seconds: float) -> int:
    return int(seconds * 1e9)


def ended(at: float, answer: str | None = "answer", turn_id: str | None = None) -> TurnEnded:
    return TurnEnded(channel="hooks", at_ns=ns(at), answer=answer, turn=turn_id)


def accepted(at: float, prompt: str | None, turn_id: str | None = None) -> PromptAccepted:
    return PromptAccepted(channel="hooks", at_ns=ns(at), prompt=prompt, turn=turn_id)


# --- what the machine says of the turn ---


def says_accepted(evidence: str) -> Say:
    return Say(LinkTurnAccepted("t", evidence))


def says_ended(answer: str, exact: bool, evidence: str) -> Say:
    return Say(LinkTurnEnded("t", answer, exact, evidence))


def says_failed(code: str, message: str, evidence: str) -> Say:
    return Say(LinkTurnFailed("t", code, message, evidence))


def says_interrupted(reason: str, evidence: str, *, left: bool = False) -> Say:
    return Say(LinkTurnInterrupted("t", reason, evidence), left=left)


def says_undelivered(reason: str) -> Say:
    return Say(LinkUndelivered("t", reason), left=True)


UNTYPED = says_interrupted("interrupted", "not yet typed")
TAKEN_BACK = says_interrupted("interrupted", "not yet submitted", left=True)


OUTCOMES = (LinkTurnEnded, LinkTurnFailed, LinkTurnInterrupted, LinkUndelivered)


def kind(command: Command) -> type:
    """What the command is, or the event that it says."""
    return type(command.event) if isinstance(command, Say) else type(command)
