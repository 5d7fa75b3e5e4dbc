"""Moods on the log: told once over kills, of persons only, and not where it is switched off."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from synapsed.errors import StoreError
from synapsed.interfaces import NewEvent
from synapsed.model.events import (
    AgentReported,
    EmotionUpdate,
    RuleFired,
    StateChanged,
    TaskStatusChanged,
    TurnSeen,
    envelope,
)
from synapsed.model.records import FollowerState
from synapsed.model.sender import Sender, Tier
from synapsed.parts.loading import config_model
from synapsed.parts.moods.following import Moods
from synapsed.parts.rules.rule import RuleConfig, is_for
from synapsed.store.follower import SAVE_EVERY
from tests.fakes.clock import until
from tests.support.kernels import kernel_of
from tests.support.world import World

ANGRY = "wtf, this is useless!!"
ANGRIER = "You broke it, stupid. I TOLD YOU THAT"


class Killed(BaseException):
    """The daemon was killed here."""


class Home(World):
    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.followers: list[Moods] = []

    async def moods(self) -> Moods:
        self.kernel = kernel_of(
            control=self.manager,
            store=self.store,
            clock=self.clock,
            timers=self.clock,
            config=config_model()(),
            paths=self.paths,
        )
        moods = Moods(self.kernel)
        await moods.restore()
        moods.start()
        self.followers.append(moods)
        return moods

    async def seen(self) -> None:
        """All that has happened is taken."""
        moods = self.followers[-1]
        await until(lambda: moods.cursor == self.store.events.last_id, "the log is read")

    async def close(self) -> None:
        for moods in self.followers:
            await moods.close()
        await super().close()

    @property
    def levels(self) -> list[tuple[str, int]]:
        return [(told.emotion_type, told.level) for told in self.told(EmotionUpdate)]


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    home = Home(tmp_path)
    await home.daemon()
    yield home
    await home.close()


async def test_a_persons_message(home: Home) -> None:
    agent = await home.start()
    await home.moods()
    task = await home.send(agent.id, ANGRY)
    await until(lambda: home.levels == [("frustration", 2)])
    event = next(event for event in home.store.events.all if isinstance(event.data, EmotionUpdate))
    assert (event.agent_id, event.task_id, event.context_id) == (agent.id, task.id, task.context_id)
    assert isinstance(event.data, EmotionUpdate)
    assert (event.data.detected_from, event.data.reported_by) == ("text_analysis", None)
    assert "useless" not in event.model_dump_json()


@pytest.mark.parametrize(
    "sender",
    [
        Sender(id="synapse-codex-8120", tier=Tier.AGENT),
        Sender(id="somebody", tier=Tier.CLAIMED),
        Sender(id="codex@elsewhere", tier=Tier.EXTERNAL),
        Sender(id="schedule-standup", tier=Tier.PERSON, type="schedule"),
        Sender(id="rule-tests", tier=Tier.PERSON, type="rule"),
    ],
    ids=lambda sender: sender.id,
)
async def test_what_others_send_is_not_looked_at(home: Home, sender: Sender) -> None:
    agent = await home.start()
    await home.moods()
    for _ in range(3):
        await home.send(agent.id, ANGRY, metadata={"sender": sender.metadata()})
    await home.seen()
    assert home.levels == []


async def test_each_agent_has_its_own(home: Home) -> None:
    one, other = await home.start(), await home.start("talker", name="t")
    await home.moods()
    await home.send(one.id, ANGRY)
    await home.send(other.id, "hello")
    await home.seen()
    assert home.levels == [("frustration", 2)]


async def test_a_kill_at_every_commit(home: Home) -> None:
    """Each daemon dies at its next commit, just before it or just behind it: nothing is told twice, nor left out."""
    agent = await home.start()
    await home.moods()
    await home.followers[-1].close()
    keep = home.store.keep_follower
    for text, before in ((ANGRY, True), (ANGRIER, False), ("thanks, perfect!", True), ("lgtm, ship it", False)):
        moods = await home.moods()

        async def dies(*args: Any, before: bool = before, **kwargs: Any) -> None:
            if not before:
                await keep(*args, **kwargs)
            raise Killed

        home.store.keep_follower = dies  # type: ignore[method-assign]
        await home.send(agent.id, text)
        running = moods._running
        assert running is not None
        with pytest.raises(Killed):
            await running
        home.store.keep_follower = keep  # type: ignore[method-assign]
        home.followers.pop()
        await home.moods()
        await home.seen()
        await home.followers[-1].close()
    assert home.levels == [("frustration", 2), ("frustration", 4), ("joy", 2), ("confidence", 2)]


async def test_a_kill_before_the_state_is_kept(home: Home) -> None:
    """One word is not enough, and nothing is told: the next daemon goes over it again."""
    agent = await home.start()
    moods = await home.moods()
    await home.send(agent.id, "this is annoying")
    await home.seen()
    assert moods._running is not None
    moods._running.cancel()  # it is not closed
    home.followers.clear()
    await home.moods()
    await home.send(agent.id, "stupid")
    await until(lambda: home.levels == [("frustration", 2)])


async def test_closing_keeps_the_state(home: Home) -> None:
    agent = await home.start()
    moods = await home.moods()
    await home.send(agent.id, "this is annoying")
    await home.seen()
    await moods.close()
    kept = await home.store.follower(Moods.name)
    assert kept is not None
    assert kept.cursor == home.store.events.last_id
    await home.moods()
    await home.send(agent.id, "stupid")
    await until(lambda: home.levels == [("frustration", 2)])


async def test_the_cursor_moves_although_nothing_is_told(home: Home) -> None:
    agent = await home.start()
    await home.moods()
    await home.send(agent.id, "this is annoying")
    events = [NewEvent(agent.id, AgentReported(kind="k", message="m"))] * SAVE_EVERY
    await home.store.commit(events=[*events, NewEvent(agent.id, TurnSeen(text="hello"))])
    await home.seen()
    await until(lambda: home.store._followers[Moods.name].cursor >= SAVE_EVERY)
    assert home.store._followers[f"mood:{agent.id}"].secret


async def test_a_store_that_refuses(home: Home) -> None:
    agent = await home.start()
    await home.moods()
    keep = home.store.keep_follower
    refused = 0

    async def refuses(*args: Any, **kwargs: Any) -> None:
        nonlocal refused
        refused += 1
        raise StoreError("the disk is full", reason="full")

    home.store.keep_follower = refuses  # type: ignore[method-assign]
    await home.send(agent.id, ANGRY)
    await until(lambda: refused == 1)
    home.store.keep_follower = keep  # type: ignore[method-assign]
    await until(lambda: bool(home.clock.advance(5)) or home.levels == [("frustration", 2)])


@pytest.mark.parametrize("name", ["page", "said"])
async def test_whatever_goes_wrong_it_goes_on(home: Home, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    agent = await home.start()
    await home.moods()
    await home.send(agent.id, "this is annoying")
    await home.seen()
    failed = 0

    async def fails(*_: Any, **__: Any) -> None:
        nonlocal failed
        failed += 1
        raise RuntimeError("a fault")

    target, attribute = (home.store.events, "page") if name == "page" else (home.store, "said")
    with monkeypatch.context() as patched:
        patched.setattr(target, attribute, fails)
        await home.send(agent.id, "hello")
        await until(lambda: failed >= 1)
    await home.send(agent.id, ANGRY)
    await until(lambda: bool(home.clock.advance(5)) or bool(home.levels))
    assert home.levels == [("frustration", 3)], "what failed is looked at again, with what was known before it"


async def test_what_was_kept_and_cannot_be_read_is_dropped(home: Home) -> None:
    agent = await home.start()
    moods = await home.moods()
    await home.send(agent.id, ANGRY)
    await home.seen()
    await moods.close()
    name = f"mood:{agent.id}"
    home.store._followers[name] = home.store._followers[name].model_copy(update={"secret": "{"})
    await home.moods()
    await home.send(agent.id, ANGRY)
    await home.seen()
    assert home.levels == [("frustration", 2), ("frustration", 2)]


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "agent"])
async def test_switched_off_and_on_again(home: Home, whole: bool) -> None:
    agent = await home.start()
    said = {"moods": {"enabled": False}} if whole else {"agents": {agent.name: {"moods": False}}}
    other = await home.start("talker", name="t")
    await home.moods()
    await home.send(agent.id, ANGRY)
    await home.seen()
    home.kernel.config = config_model().model_validate(said)
    await home.send(agent.id, ANGRIER)
    await home.seen()
    assert home.levels == [("frustration", 2)]
    assert f"mood:{agent.id}" not in home.store._followers, "what was known is forgotten"
    await home.send(other.id, ANGRY)
    await home.seen()
    assert home.levels[1:] == ([] if whole else [("frustration", 2)])
    home.kernel.config = config_model()()
    told = len(home.levels)
    await home.send(agent.id, ANGRY)
    await home.seen()
    assert home.levels[told:] == [("frustration", 2)]


async def test_an_agent_that_is_removed_is_forgotten(home: Home) -> None:
    agent = await home.start()
    await home.moods()
    await home.send(agent.id, ANGRY)
    await home.seen()
    assert f"mood:{agent.id}" in home.store._followers
    await home.store.commit(events=[NewEvent(agent.id, StateChanged(state="removed"))])
    await home.seen()
    assert f"mood:{agent.id}" not in home.store._followers


async def test_what_was_said_to_a_removed_agent_moves_no_other_with_its_id(home: Home) -> None:
    """It is looked at late."""
    await home.store.keep_follower(Moods.name, FollowerState(cursor=0))
    first = await home.start()
    await home.send(first.id, ANGRY)
    await home.manager.stop(first.id, remove=True)
    assert (await home.start()).id == first.id
    await home.moods()
    await home.seen()
    assert home.levels == []
    await home.send(first.id, ANGRY)
    await home.seen()
    assert home.levels == [("frustration", 2)]


async def test_a_rule_can_be_for_it(home: Home) -> None:
    rule = RuleConfig.model_validate(
        {
            "name": "break",
            "on": {"event": "emotionUpdate", "match": {"emotion_type": "frustration", "level": ["4", "5"]}},
            "do": {"notify": "what about a break?"},
        }
    )
    agent = await home.start()
    await home.moods()
    for text in (ANGRY, ANGRIER):
        await home.send(agent.id, text)
    await until(lambda: len(home.levels) == 2)
    events = [event for event in home.store.events.all if isinstance(event.data, EmotionUpdate)]
    assert [is_for(rule, event.data.type, envelope(event)["data"], [agent.name]) for event in events] == [False, True]


async def test_what_is_reported_or_told_of_rules_is_not_looked_at(home: Home) -> None:
    agent = await home.start()
    await home.moods()
    reported = EmotionUpdate(emotion_type="joy", level=5, detected_from="voice_tone", reported_by="person")
    fired = RuleFired(rule="r", cause=1, cause_event="x", action="notify", outcome="done", text=ANGRY)
    await home.store.commit(events=[NewEvent(agent.id, reported), NewEvent(agent.id, fired)])
    await home.store.commit(events=[NewEvent(agent.id, TaskStatusChanged(state="submitted"), "no-such-task")])
    await home.seen()
    assert home.levels == [("joy", 5)]
