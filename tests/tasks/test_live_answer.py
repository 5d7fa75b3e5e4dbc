"""What was told of an answer, and what is left to tell at its end."""

from hypothesis import given
from hypothesis import strategies as st

from synapsed.model.events import TaskArtifactAdded
from synapsed.model.link import LinkTurnSaid
from synapsed.model.task import Task
from synapsed.store.lookup import told_before
from synapsed.tasks import transitions
from synapsed.tasks.live_answer import Told
from tests.fakes.store import MemoryStore
from tests.store.samples import a_task

SAID = st.lists(st.tuples(st.text("ab", max_size=3), st.booleans()), max_size=8)


def joined(pieces: list[tuple[str, bool]]) -> str:
    text = ""
    for piece, append in pieces:
        text = text + piece if append else piece
    return text


def the_end(task: Task, answer: str, told: str) -> tuple[str, bool]:
    commit = transitions.completed(task, answer=answer, exact=True, now=1.0, told=told)
    data = commit.events[0].data
    assert isinstance(data, TaskArtifactAdded)
    assert data.last_chunk
    assert commit.task.answer == answer
    return data.artifact.text, data.append


@given(SAID, st.text("ab", max_size=12), st.text("ab", max_size=6), st.booleans())
def test_the_pieces_and_the_end_are_the_answer(
    said: list[tuple[str, bool]], answer: str, before: str, again: bool
) -> None:
    """Whatever is said, and whatever comes of it; taken back is only what is no beginning of it."""
    told = Told(before if again else "", again=again)
    pieces = [(told.text, True)]
    for text, append in said:
        piece = told.piece(LinkTurnSaid("t", text, append))
        if piece is not None:
            pieces.append(piece)
        assert joined(pieces) == told.text
    end = the_end(a_task(), answer, told.text)
    assert joined([*pieces, end]) == answer
    assert end[1] == (bool(told.text) and answer.startswith(told.text))


def test_what_an_earlier_daemon_told_is_not_told_twice() -> None:
    told = Told("Hello", again=True)
    said = [("Hel", False), ("lo", True), (" you", True)]
    assert [told.piece(LinkTurnSaid("t", text, append)) for text, append in said] == [None, None, (" you", True)]


def test_text_from_the_middle_is_left_to_the_end() -> None:
    """After a restart the screen has only the end of what was said."""
    told = Told("line 1\nline 2", again=True)
    assert told.piece(LinkTurnSaid("t", "line 7", append=False)) is None
    assert told.piece(LinkTurnSaid("t", "\nline 8", append=True)) is None
    assert told.piece(LinkTurnSaid("t", "Another message.", append=False)) == ("Another message.", False)


async def test_the_log_knows_what_was_told() -> None:
    store = MemoryStore()
    task, other = a_task(1), a_task(2)
    for text, append in (("Hal", True), ("Hel", False), ("lo", True)):
        await store.commit(events=[transitions.said(task, text=text, append=append)], tasks=[task])
        await store.commit(events=[transitions.said(other, text="no", append=True)], tasks=[other])
    assert await told_before(store.events, task.id) == "Hello"
