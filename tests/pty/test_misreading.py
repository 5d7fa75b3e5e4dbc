"""A composer that is looked for in the wrong place: what has come elsewhere since a paste is not pasted again."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from synapsed.interfaces import Delivery
from synapsed.model.link import LinkTurnInterrupted, LinkTurnRecord, LinkUndelivered
from synapsed.model.records import TurnRecord
from synapsed.profiles.profile import Profile
from synapsed.profiles.screen_spec import Composer
from synapsed.pty.message_evidence import Misreading
from synapsed.pty.turn_types import MISREAD, Phase
from synapsed.terminal.composer import ComposerState
from tests.fakes.clock import until
from tests.pty.turn_terminal import PROFILE, Terminal

SPEC = Composer(line="^(?P<text>)$")
WRONG = PROFILE.model_copy(update={"composer": SPEC})
"""Any blank row."""
BEFORE = ("a tip", "> ", "12 tokens")
LONG = "a message that is long enough to be wrapped wherever the window is narrow"


def look(*rows: str, state: Any = "empty") -> Any:
    return SimpleNamespace(screen=SimpleNamespace(lines=rows), composer=ComposerState(state))


ROWS = Misreading(SPEC).before(look(*BEFORE))


@pytest.mark.parametrize(
    ("message", "rows", "new"),
    [
        ("hello", BEFORE, False),
        ("hello", ("a tip", "> ", "13 tokens"), False),
        ("hello", ("> ", "⠋ ──────"), False),
        ("hello", ("a tip", "> hello", "12 tokens"), True),
        ("a tip", ("a tip", "> a tip"), True),
        ("x\n" * 20, ("a tip", "> [Pasted text #1 +20 lines]", "12 tokens"), True),
        ("x " * 24_000, ("x x x x x", "x x x"), True),
        ("終わりまで", ("a tip", "> 終わりまで"), True),
        ("hello", ("a menu", "1. of another kind"), True),
    ],
    ids=["nothing", "a count", "no words", "the text", "a text that stood there", "name", "huge", "wide", "other"],
)
def test_new_rows_with_words_may_be_what_was_pasted(message: str, rows: tuple[str, ...], new: bool) -> None:
    misreading = Misreading(SPEC)
    assert misreading.found(look(*rows), message, ROWS) is new
    assert misreading.stands(look(*rows)) is new


@pytest.mark.parametrize(("row", "found"), [("started", False), ("> hello", True)])
def test_in_a_place_that_is_proven_only_the_text_itself_counts(row: str, found: bool) -> None:
    misreading = Misreading(SPEC)
    misreading.proven()
    assert misreading.found(look(*BEFORE, row), "hello", ROWS) is found
    assert misreading.stands(look(*BEFORE, row)) is found


@pytest.mark.parametrize(
    ("spec", "state"), [(SPEC, "absent"), (SPEC, "draft"), (Composer(line="> (?P<text>.*)", at_cursor=True), "empty")]
)
def test_only_a_composer_that_seems_to_be_empty_is_misread(spec: Composer, state: str) -> None:
    assert not Misreading(spec).found(look("> hello", state=state), "hello", ROWS)


def test_what_was_pasted_by_an_earlier_daemon_may_be_anything() -> None:
    """It is not pasted again; but what stood there before is not held for it."""
    misreading = Misreading(SPEC)
    assert misreading.found(look(*BEFORE), "hello", None)
    assert not misreading.stands(look(*BEFORE))
    assert misreading.found(look("a tip", "> hello"), "hello", None)
    assert not misreading.stands(look("a tip", "> "))


@pytest.mark.parametrize("kept", [None, {"no": "list"}, [1, None]])
def test_what_is_kept_is_known_again_and_nothing_else(kept: Any) -> None:
    assert not Misreading(SPEC, kept).stands(look(*BEFORE))
    before = Misreading(SPEC)
    before.found(look("> hello"), "hello", ROWS)
    after = Misreading(SPEC, before.left)
    assert (after.stands(look("> hello")), after.stands(look("> "))) == (True, False)
    after.proven()
    assert not after.stands(look("> hello"))


def test_a_row_that_another_width_wraps_stands_there_still() -> None:
    misreading = Misreading(SPEC)
    misreading.found(look(f"│ > {LONG} │"), LONG, ROWS)
    assert misreading.stands(look("a tip", f"│ > {LONG[:30]}│", f"│{LONG[30:]} │"))
    misreading.found(look("> hi"), "hi", ROWS)
    assert not misreading.stands(look("> ", "this is another row"))


# --- on a terminal ---


async def given(terminal: Terminal, *, restarted: str | None = None) -> asyncio.Task[None]:
    """The message is pasted; where another daemon goes on after that, the program shows what is `restarted`."""
    if restarted is None:
        worker = await terminal.begin()
        await until(terminal.driver.turn.idle.is_set)
        return worker
    terminal.draw("> ", "")
    await terminal.judge()
    state = terminal.session.prepared().model_copy(update={"phase": Phase.SETTLING})
    terminal.draw(restarted, "")
    await terminal.judge()
    terminal.known.add("t.1.paste")
    record = TurnRecord(task_id="t", launch_id="l", link=state.model_dump(mode="json"))
    worker = asyncio.create_task(terminal.driver.turn.run())
    delivery = Delivery(task_id="t", text="hello", command=False, record=record, fresh=False)
    terminal.driver.do(terminal.session.begin(delivery, terminal.clock.monotonic()))
    await until(terminal.driver.turn.idle.is_set)
    return worker


async def outcome(terminal: Terminal, worker: asyncio.Task[None]) -> Any:
    """What is told of the turn; then it is gone."""
    await until(lambda: terminal.session.turn is None)
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)
    (event,) = (event for event in terminal.events if not isinstance(event, LinkTurnRecord))
    return event


async def held(terminal: Terminal) -> str | None:
    found = terminal.session.obstacle(await terminal.look(), terminal.clock.monotonic())
    return found.held if found is not None else None


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("synapsed.pty.screen_looks.REST_AGAIN_S", 0.0)


@pytest.mark.parametrize("shown", ["> hello", "[Pasted text #1]"])
@pytest.mark.parametrize("restarted", [False, True])
async def test_it_is_pasted_once_and_holds_the_next_while_it_stands(shown: str, restarted: bool) -> None:
    terminal = Terminal(WRONG)
    worker = await given(terminal, restarted=shown if restarted else None)
    terminal.draw(shown, "")
    await terminal.judge(4.0)
    event = await outcome(terminal, worker)
    assert isinstance(event, LinkUndelivered)
    assert event.reason == MISREAD.format("p")
    assert terminal.typed == [b"hello"] * (not restarted)
    assert await held(terminal) == "unknown screen"
    terminal.draw("> ", "")
    assert await held(terminal) is None


async def test_one_that_is_canceled_before_it_is_shown_holds_the_next() -> None:
    terminal = Terminal(WRONG)
    worker = await given(terminal)
    terminal.draw("> hello", "")
    await terminal.judge()
    assert terminal.session.turn is not None
    terminal.driver.turn.add(terminal.session.turn.interrupt())
    assert isinstance(await outcome(terminal, worker), LinkTurnInterrupted)
    assert (terminal.typed, await held(terminal)) == ([b"hello"], "unknown screen")


@pytest.mark.parametrize("profile", [PROFILE, WRONG], ids=["right", "wrong"])
async def test_a_paste_that_is_shown_nowhere_is_typed_again(profile: Profile) -> None:
    terminal = Terminal(profile)
    worker = await given(terminal)
    await terminal.judge(4.0)
    await until(lambda: terminal.phase is Phase.PREPARED)
    await terminal.record()
    await terminal.judge()
    await terminal.record()
    assert terminal.typed == [b"hello", b"hello"]
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)


async def test_what_a_person_writes_where_it_is_looked_for_proves_the_place() -> None:
    terminal = Terminal()
    worker = await given(terminal)
    terminal.draw("a tip that came meanwhile", "> ")
    await terminal.judge(4.0)
    assert isinstance(await outcome(terminal, worker), LinkUndelivered)
    assert await held(terminal) == "unknown screen"
    terminal.session.pressed(terminal.clock.monotonic())
    terminal.draw("a tip that came meanwhile", "> h")
    await terminal.judge()
    terminal.draw("a tip that came meanwhile", "> ")
    await terminal.judge(10.0)
    assert await held(terminal) is None
