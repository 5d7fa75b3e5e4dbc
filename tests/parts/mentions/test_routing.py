"""`@agent` in attached terminals: what goes to the program, and what goes elsewhere."""

import asyncio

from synapsed.clock import iso
from synapsed.errors import AmbiguousAddress, QueueFull, SynapsedError
from synapsed.model.task import Artifact, Message, Task, TaskError, TaskState
from synapsed.parts.mentions.routing import ANSWERS_MAX, Addressee, MentionLine
from tests.fakes.link import IdleAttachment

ME = "synapse-claude-8100"


class Terminal(IdleAttachment):
    """A terminal whose program shows whatever was typed."""

    def __init__(self) -> None:
        self.typed = b""
        self.taken: list[str] = []
        self.notices: list[tuple[str, bool]] = []
        self.noticed = asyncio.Event()
        self.agrees = True
        self.draft = True

    async def write(self, data: bytes) -> None:
        await self.type(data)

    async def type(self, data: bytes) -> None:
        self.typed += data

    async def composes(self) -> bool:
        return self.draft

    async def take_line(self, line: str) -> bool:
        if self.agrees:
            self.taken.append(line)
        return self.agrees

    def notice(self, text: str, *, stays: bool) -> None:
        self.notices.append((text, stays))
        self.noticed.set()

    async def close(self) -> None:
        return None


class People:
    """A directory of codex, an alias elsewhere, and two that share a type."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []
        self.refuses: SynapsedError | None = None
        self.settles: asyncio.Future[Task] = asyncio.get_running_loop().create_future()

    def find(self, name: str, only: frozenset[str] | None = None) -> Addressee | None:
        if only is not None and name not in only:
            return None
        if name == "both":
            raise AmbiguousAddress("'both' may be both-1 or both-2")
        known = {"codex": ("c", "local"), "far": ("far", "external"), "claude": (ME, "local")}
        if name not in known:
            return None
        identity, kind = known[name]
        return Addressee(identity, name, "external" if kind == "external" else "local")

    async def send(self, to: Addressee, text: str) -> Task:
        if self.refuses is not None:
            raise self.refuses
        self.sent.append((to.id, text))
        return task(TaskState.SUBMITTED)

    async def settled(self, task: Task) -> Task:
        return await asyncio.shield(self.settles)


def task(status: TaskState, answer: str | None = None, error: str | None = None) -> Task:
    return Task(
        agent_id="c",
        context_id="x",
        status=status,
        message=Message.of("?"),
        artifacts=[] if answer is None else [Artifact.answer(answer)],
        error=None if error is None else TaskError(code="MODEL_ERROR", message=error),
        created_at=iso(0),
        updated_at=iso(0),
    )


def attached(only: frozenset[str] | None = None) -> tuple[MentionLine, Terminal, People]:
    terminal, people = Terminal(), People()
    return MentionLine(terminal, ME, people, only), terminal, people


async def test_a_line_for_a_known_agent_goes_there_and_not_to_the_program() -> None:
    line, terminal, people = attached()
    for key in "@codex look at this\r":
        await line.write(key.encode())
    assert terminal.typed == b"@codex look at this", "the Enter was kept"
    assert terminal.taken == ["@codex look at this"]
    assert people.sent == [("c", "look at this")]
    assert terminal.notices == [("[→ codex (local)]", False)]
    await line.write(b"and now for you\r")
    assert terminal.typed.endswith(b"and now for you\r")


async def test_an_external_agent_is_named_so() -> None:
    line, terminal, people = attached()
    await line.write(b"@far hello\r")
    assert people.sent == [("far", "hello")]
    assert terminal.notices == [("[→ far (external)]", False)]


async def test_what_is_not_for_another_agent_is_left_alone() -> None:
    for typed in (b"@README.md explain\r", b"@claude hello\r", b"@codex\r", b"ask @codex hello\r", b"\r"):
        line, terminal, people = attached()
        await line.write(typed)
        assert (terminal.typed, people.sent, terminal.taken) == (typed, [], [])


async def test_a_composer_that_shows_something_else_gets_its_enter() -> None:
    line, terminal, people = attached()
    terminal.agrees = False
    await line.write(b"@codex hello\r")
    assert (terminal.typed, people.sent) == (b"@codex hello\r", [])


async def test_who_may_write_to_some_only_has_no_way_to_others() -> None:
    for typed in (b"@far hello\r", b"@both hello\r"):
        line, terminal, people = attached(frozenset({"codex"}))
        await line.write(typed)
        assert (terminal.typed, people.sent, terminal.notices) == (typed, [], [])
    line, terminal, people = attached(frozenset({"codex"}))
    await line.write(b"@codex hello\r")
    assert people.sent == [("c", "hello")]


async def test_an_ambiguous_name_is_not_sent_anywhere() -> None:
    line, terminal, people = attached()
    await line.write(b"@both hello\r")
    assert (terminal.typed, people.sent, terminal.taken) == (b"@both hello", [], [])
    assert "both-1 or both-2" in terminal.notices[0][0]


async def test_a_line_that_cannot_be_sent_is_given_back() -> None:
    line, terminal, people = attached()
    people.refuses = QueueFull("its mailbox is full")
    await line.write(b"@codex hello\r")
    assert terminal.notices == [("[→ codex: not sent: its mailbox is full]", True)]
    assert terminal.typed == b"@codex hello" * 2, "typed, taken back, given back"
    people.refuses = None
    await line.write(b"\r")
    assert people.sent == [("c", "hello")], "and may be sent again"


async def test_an_unknown_line_is_known_again_when_the_composer_is_empty() -> None:
    line, terminal, people = attached()
    await line.write(b"\x1b[Aold\x1b\x1b")
    await line.write(b"@codex hello\r")
    assert people.sent == []
    await line.write(b"\x1b[A")
    terminal.draft = False
    await line.write(b"@codex hello\r")
    assert people.sent == [("c", "hello")]


async def test_the_answer_is_shown_when_it_is_asked_for() -> None:
    line, terminal, people = attached()
    await line.write(b'@codex --response "what is it"\r')
    assert people.sent == [("c", "what is it")]
    terminal.noticed.clear()
    people.settles.set_result(task(TaskState.COMPLETED, "It is 42."))
    await terminal.noticed.wait()
    assert terminal.notices[-1] == ("[← codex] It is 42.", True)


async def test_a_failure_is_an_answer_too() -> None:
    line, terminal, people = attached()
    people.settles.set_result(task(TaskState.FAILED, error="the model is gone"))
    await line.write(b"@codex --response hello\r")
    while len(terminal.notices) < 2:
        terminal.noticed.clear()
        await terminal.noticed.wait()
    assert terminal.notices[-1] == ("[← codex] (failed: the model is gone)", True)


async def test_answers_that_are_awaited_are_bounded_and_end_with_the_attachment() -> None:
    line, terminal, people = attached()
    for _ in range(ANSWERS_MAX + 1):
        await line.write(b"@codex --response hello\r")
    assert len(people.sent) == ANSWERS_MAX + 1
    assert "too many answers" in terminal.notices[-1][0]
    await line.close()
    people.settles.set_result(task(TaskState.COMPLETED, "late"))
    await asyncio.sleep(0)
    assert "late" not in terminal.notices[-1][0]


async def test_a_line_that_was_typed_past_it_is_known_too() -> None:
    line, _, people = attached()
    for key in "@codex look":
        assert line.passes(key.encode())
        line.passed(key.encode())
    assert not line.passes(b"\r"), "it would end a line for another agent"
    await line.write(b"\r")
    assert people.sent == [("c", "look")]
    line.passed(b"\t")  # what a program makes of that is not known
    assert not line.passes(b"x")
    await line.write(b"\r")
    assert line.passes(b"x")
