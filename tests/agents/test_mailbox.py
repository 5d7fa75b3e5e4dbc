"""The mailbox: its order and its bound."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.agents.mailbox import Mailbox
from synapsed.errors import QueueFull
from synapsed.model.task import Message, Task


def task(name: str, priority: int = 1) -> Task:
    return Task(id=name, agent_id="a", message=Message.of("x"), created_at="t", updated_at="t", priority=priority)


def ids(mailbox: Mailbox) -> list[str]:
    return [task.id for task in mailbox]


def test_priority_then_arrival() -> None:
    mailbox = Mailbox()
    for name, priority in [("a", 1), ("b", 4), ("c", 1), ("d", 4), ("e", 5)]:
        mailbox.push(task(name, priority))
    assert ids(mailbox) == ["e", "b", "d", "a", "c"]


def test_what_is_given_back_goes_first() -> None:
    mailbox = Mailbox()
    mailbox.push(task("a", 5))
    mailbox.give_back(task("b"))
    mailbox.give_back(task("c"))
    assert ids(mailbox) == ["c", "b", "a"]


def test_full_refuses_and_keeps_what_it_has() -> None:
    mailbox = Mailbox(capacity=2)
    mailbox.push(task("a"))
    mailbox.push(task("b"))
    with pytest.raises(QueueFull):
        mailbox.push(task("c", 5))
    mailbox.give_back(task("d"))
    mailbox.restore([task("e")])
    assert ids(mailbox) == ["d", "a", "b", "e"]


def test_remove() -> None:
    mailbox = Mailbox()
    mailbox.push(task("a"))
    assert "a" in mailbox
    removed = mailbox.remove("a")
    assert removed is not None
    assert mailbox.remove("a") is None
    assert mailbox.peek() is None


@given(st.lists(st.integers(1, 5), max_size=100))
def test_any_arrivals_come_out_sorted_and_complete(priorities: list[int]) -> None:
    mailbox = Mailbox()
    for number, priority in enumerate(priorities):
        mailbox.push(task(str(number), priority))
    expected = sorted(range(len(priorities)), key=lambda n: (-priorities[n], n))
    assert ids(mailbox) == [str(n) for n in expected]
