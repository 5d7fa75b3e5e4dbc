"""What waits on other hosts, of those that several know."""

from dataclasses import dataclass

from synapsed.interfaces import HostSaid
from synapsed.model.attention import AttentionItem, HostState
from synapsed.parts.attention.routes.inbox import elsewhere


def item(name: str, host: str) -> AttentionItem:
    return AttentionItem(
        id=f"{name}@{host}", agent=name, agent_id=name, host=host, cwd="", kind="question", question="?", since="2026"
    )


def said(host: str, error: str | None = None) -> HostSaid:
    return HostSaid(name=host, state=HostState.UP if error is None else HostState.DOWN, error=error)


@dataclass
class Source:
    items: list[AttentionItem]
    hosts: list[HostSaid]

    async def inboxes(self) -> tuple[list[AttentionItem], list[HostSaid]]:
        return self.items, self.hosts


async def test_the_first_that_has_an_answer_counts() -> None:
    first = Source([item("a", "both"), item("b", "one")], [said("both"), said("one"), said("mute", "no way")])
    second = Source([item("c", "both"), item("d", "mute")], [said("both"), said("mute")])
    items, hosts = await elsewhere([first, second])
    assert [one.id for one in items] == ["a@both", "b@one", "d@mute"]
    assert {one.name: one.error for one in hosts} == {"both": None, "one": None, "mute": None}


async def test_where_none_has_one_the_last_says_why() -> None:
    items, hosts = await elsewhere([Source([], [said("h", "no way")]), Source([], [said("h", "away")])])
    assert (items, [one.error for one in hosts]) == ([], ["away"])


async def test_nobody_knows_another_host() -> None:
    assert await elsewhere([]) == ([], [])
