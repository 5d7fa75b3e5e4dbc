"""What is told of an agent whose program takes messages over a channel."""

from typing import Any

import pytest

from synapsed.errors import InvalidChoice
from synapsed.model.agent import Activity
from synapsed.model.facts import Choice, PermissionAsked
from synapsed.model.link import LinkObserved
from synapsed.model.task import Prompt, PromptOption
from synapsed.profiles.profile import Profile
from synapsed.profiles.screen_spec import DeliverySpec
from synapsed.pty.channel_view import ASKING_MAX, COMES_S, COMING_S, PAUSE_S, SAME_S, Beside, ChannelView, chosen

READY = LinkObserved(Activity.READY, "composer", None, can_receive=True)
DRAFT = LinkObserved(Activity.READY, "composer", None, can_receive=False, held="typing")
BUSY = LinkObserved(Activity.BUSY, "title", None, can_receive=False)
DIALOG = LinkObserved(
    Activity.WAITING,
    "dialog",
    Prompt(prompt_id="d", type="permission", prompt="Allow?", options=[PromptOption(key="1", label="Yes")]),
    can_receive=False,
    held="dialog",
)
OPTIONS = (Choice(key="once", label="Allow once", aliases=("yes", "y")), Choice(key="no", label="No, stop"))


def view(while_typing: str = "after_pause", *, coming: bool = False) -> ChannelView:
    delivery = DeliverySpec.model_validate({"while_typing": while_typing})
    return ChannelView(Profile(name="x", command="x", delivery=delivery), coming=coming)


def beside(**given: Any) -> Beside:
    fields = {"now": 100.0, "reach": "idle", "coming": False, "channel": "server", "in_turn": False, "draft": False}
    return Beside(**{**fields, "hands_at": 0.0, **given})


def asked(request: str = "r1", question: str = "Run it?\nls") -> PermissionAsked:
    return PermissionAsked(channel="server", at_ns=1, request=request, question=question, options=OPTIONS)


def test_a_channel_that_is_away_changes_nothing() -> None:
    for seen in (READY, DRAFT, BUSY, DIALOG):
        assert view().seen(seen, beside(reach="away", draft=True)) == seen


def test_a_program_that_was_just_started_is_reached_before_it_takes_messages() -> None:
    it = view(coming=True)
    assert it.seen(BUSY, beside(reach="away", now=90.0)) == BUSY
    for now in (100.0, 99.9 + COMING_S):
        seen = it.seen(READY, beside(reach="away", now=now))
        assert (seen.activity, seen.can_receive) == (Activity.STARTING, False)
        assert it.due == 100.0 + COMING_S
    assert it.seen(READY, beside(now=104.0)).can_receive
    assert it.seen(READY, beside(reach="away", now=104.1)) == READY, "it was reached, so that it is away now"


def test_a_program_that_is_not_reached_takes_messages_at_its_terminal() -> None:
    it = view(coming=True)
    it.seen(READY, beside(reach="away"))
    assert it.seen(READY, beside(reach="away", now=100.0 + COMING_S)) == READY
    assert it.due is None


def test_a_program_that_is_being_connected_to_is_waited_for() -> None:
    """On a busy machine its server answers seconds after its terminal is ready: a message that is typed waits for a
    draft, and has less told of it."""
    it = view(coming=True)
    for now in (100.0, 100.0 + COMING_S, 99.9 + COMES_S):
        seen = it.seen(READY, beside(reach="away", coming=True, now=now))
        assert (seen.activity, seen.can_receive) == (Activity.STARTING, False)
        assert it.due == min(now + COMING_S, 100.0 + COMES_S)
    assert it.seen(READY, beside(reach="away", coming=True, now=100.0 + COMES_S)) == READY
    refused = view(coming=True)
    refused.seen(READY, beside(reach="away", coming=True))
    assert refused.seen(READY, beside(reach="away", now=101.0)) == READY


@pytest.mark.parametrize(
    ("policy", "since_key", "held"),
    [
        ("after_pause", 1.0, "typing"),
        ("after_pause", PAUSE_S, None),
        ("hold", 1e6, "typing"),
        ("deliver", 0.0, None),
    ],
)
def test_a_draft_is_as_the_policy_says(policy: str, since_key: float, held: str | None) -> None:
    it = view(policy)
    seen = it.seen(DRAFT, beside(draft=True, hands_at=100.0 - since_key))
    assert (seen.can_receive, seen.held) == (held is None, held)
    assert it.due == (99.0 + PAUSE_S if policy == "after_pause" and held else None)


def test_a_turn_holds_the_next_message() -> None:
    for now in (beside(in_turn=True), beside(reach="busy")):
        seen = view().seen(READY, now)
        assert (seen.activity, seen.can_receive, seen.held) == (Activity.BUSY, False, None)


def test_a_dialog_of_the_terminal_s_own_holds_it() -> None:
    it = view()
    assert it.seen(DIALOG, beside()).prompt is None  # the channel may be about to tell of it
    seen = it.seen(DIALOG, beside(now=100.0 + SAME_S))
    assert (seen.prompt, seen.can_receive) == (DIALOG.prompt, False)


def test_trust_is_asked_at_once() -> None:
    assert DIALOG.prompt is not None
    trust = LinkObserved(
        Activity.WAITING, "dialog", DIALOG.prompt.model_copy(update={"type": "trust"}), can_receive=False
    )
    assert view().seen(trust, beside()) == trust


def test_what_the_channel_asks_is_the_prompt_until_it_is_answered() -> None:
    it = view()
    it.asked(asked())
    for seen in (READY, BUSY, DIALOG):
        told = it.seen(seen, beside(reach="asking", in_turn=True))
        assert told.prompt is not None
        assert told.prompt.prompt == "Run it?\nls"
        assert [option.key for option in told.prompt.options] == ["once", "no"]
        assert (told.activity, told.can_receive) == (Activity.WAITING, False)
    it.over("r1", 100.0)
    # The dialog may stand for a moment longer: it is not asked again.
    told = it.seen(DIALOG, beside(now=100.5, reach="busy", in_turn=True))
    assert (told.activity, told.prompt) == (Activity.BUSY, None)


def test_two_questions_are_two_prompts_also_of_the_same_words() -> None:
    it = view()
    it.asked(asked("r1"))
    it.asked(asked("r1"))
    it.asked(asked("r2"))
    first = it.open
    assert first is not None
    it.over("r1", 100.0)
    second = it.open
    assert second is not None
    assert first.prompt.prompt_id != second.prompt.prompt_id
    assert it.find(first.prompt.prompt_id) is None
    assert it.find(None) is second


def test_questions_are_bounded() -> None:
    it = view()
    for number in range(ASKING_MAX + 5):
        it.asked(asked(f"r{number}"))
    it.forget(100.0)
    assert it.open is None


@pytest.mark.parametrize(
    ("text", "key"), [("once", "once"), ("YES", "once"), ("allow  once", "once"), ("no", "no"), ("No, stop\n", "no")]
)
def test_an_option_is_named_by_key_alias_or_label(text: str, key: str) -> None:
    it = view()
    it.asked(asked())
    assert it.open is not None
    assert chosen(it.open, text) == key


def test_what_is_no_option_is_refused_with_them() -> None:
    it = view()
    it.asked(asked())
    assert it.open is not None
    with pytest.raises(InvalidChoice, match="'maybe' is not among the options: once"):
        chosen(it.open, "maybe")
