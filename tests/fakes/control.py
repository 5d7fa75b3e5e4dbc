"""A `Control` in memory: agents are rows, tasks end when the test says so, the log is the fake store's.

`script` decides what becomes of a message: by default the agent answers `echo: <text>` at once. Every call that changes
something is written to `calls` as `(verb, agent or task, …)`.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from synapsed.clock import iso
from synapsed.documents.budget import Large
from synapsed.errors import (
    Forbidden,
    InvalidRequest,
    NameTaken,
    NotReady,
    NotWaiting,
    PromptChanged,
    QueueFull,
    SynapsedError,
    TaskNotCancelable,
    UnknownAgent,
    UnknownProfile,
)
from synapsed.interfaces import (
    PERSON,
    Bringing,
    Carrier,
    ConfigChange,
    NewEvent,
    OutputPiece,
    SendRequest,
    StartRequest,
    TaskFilter,
    TypedLine,
)
from synapsed.model.agent import (
    Activity,
    AgentDetail,
    AgentRef,
    AgentView,
    ConversationAnswer,
    ProcessState,
    ProfileAnswer,
    RegistryEntry,
    StartedAgent,
    Testimony,
    agent_id,
    resolve,
)
from synapsed.model.events import (
    REMOVED,
    EventData,
    InputAnswered,
    Origin,
    StateChanged,
    TaskArtifactAdded,
    TaskStatusChanged,
)
from synapsed.model.external import alias_of
from synapsed.model.outer_terminal import OuterTerminal
from synapsed.model.picture import Glyph, Ink, Picture, Rows, ScreenForm, Shown
from synapsed.model.records import Checkpoint
from synapsed.model.task import Artifact, Message, Prompt, Task, TaskError, TaskState
from synapsed.pty.viewers import Watch, Watches
from synapsed.store.lookup import find_id, find_task, told_before
from synapsed.tasks import transitions
from tests.fakes.store import MemoryEventLog, MemoryStore

__all__ = ["FakeAttachment", "FakeControl", "echo", "hold"]

type Script = Callable[["FakeControl", Task], Awaitable[None]]


async def echo(control: "FakeControl", task: Task) -> None:
    await control.work(task.id)
    await control.complete(task.id, f"echo: {task.message.text}")


async def hold(control: "FakeControl", task: Task) -> None:
    """The task stays submitted until the test moves it."""


class FakeAttachment:
    """A terminal that gives back what is typed."""

    def __init__(self, *, cols: int, rows: int, read_only: bool, reach: frozenset[str] | None = None) -> None:
        self.size = (cols, rows)
        self.read_only = read_only
        self.reach = reach
        self.written: list[bytes] = []
        self.closed = False
        self.changed = asyncio.Event()
        self.outer: OuterTerminal | None = None
        self.one_screen = False
        self.keep_size = False
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def redraw(self) -> bytes:
        return b"\x1b[H\x1b[2Jscreen"

    async def output(self) -> AsyncGenerator[bytes]:
        while (data := await self._queue.get()) is not None:
            yield data

    def show(self, data: bytes) -> None:
        self._queue.put_nowait(data)

    def end(self) -> None:
        self._queue.put_nowait(None)

    async def earlier(self) -> Checkpoint:
        return Checkpoint(offset=3, cols=self.size[0], rows=self.size[1], redraw=b"above and here")

    def pass_to(self, take: Callable[[bytes], None], ready: Callable[[], bool]) -> None:
        """All goes through `output`."""

    def keep_one_screen(self) -> None:
        self.one_screen = True

    def keep_clipboard(self, told: str | None) -> None:
        """Nothing is set."""

    def type_now(self, data: bytes) -> bool:
        return False

    def follow(self, line: TypedLine) -> None:
        """Nobody is written to from here."""

    async def type(self, data: bytes) -> None:
        await self.write(data)

    async def write(self, data: bytes) -> None:
        if self.read_only:
            raise Forbidden("this attachment is read-only")
        self.written.append(data)
        self.show(data)

    async def resize(self, cols: int, rows: int) -> None:
        self.size = (cols, rows)
        self.changed.set()

    def seen_in(self, outer: OuterTerminal) -> None:
        self.outer = outer
        self.changed.set()

    async def composes(self) -> bool:
        return False

    async def take_line(self, line: str) -> bool:
        return False

    def notice(self, text: str, *, stays: bool) -> None:
        self.show(text.encode())

    async def close(self) -> None:
        self.closed = True
        self.end()


class FakeControl:
    """See the module."""

    def __init__(self, script: Script = echo) -> None:
        self.store = MemoryStore()
        self.script = script
        self.after_input: Script | None = None
        """What becomes of a task that got its input; by default it is completed."""
        self.views: dict[str, AgentView] = {}
        self.calls: list[tuple[Any, ...]] = []
        self.gone: list[str] = []
        self.ports: dict[int, str] = {}
        self.pids: dict[int, str] = {}
        self.tokens: dict[str, str] = {}
        self.skills: list[dict[str, Any]] = []
        """Of the profile `dummy`."""
        self.prompts: dict[str, Prompt] = {}
        self.attachments: list[FakeAttachment] = []
        self.cols, self.rows = 20, ['[[10,"the screen"]]']
        """What pages are shown."""
        self.drawn = 0
        """How often they were drawn."""
        self.watches = Watches()
        self.rights: dict[str, frozenset[str]] = {}
        self.raises: SynapsedError | Exception | None = None
        """Raised by `agents` while it is set."""
        self.queue_max = 100
        self.shut_down = asyncio.Event()
        self.elsewhere: Carrier | None = None
        self.time = 1_700_000_000.0
        self.directory = FakeDirectory(self)
        self.processes = FakeProcesses(self)
        self.tasks = FakeTasks(self)
        self.terminals = FakeTerminals(self)

    @property
    def events(self) -> MemoryEventLog:
        return self.store.events

    def add(self, name: str, kind: str = "dummy", port: int = 8190, **changes: Any) -> AgentView:
        view = AgentView(
            name=name, id=agent_id(kind, port, name), type=kind, port=port, pid=4242, state=ProcessState.RUNNING,
            activity=Activity.READY, since=iso(self.time), evidence="screen: prompt", held=None, queue=0, task=None,
            restarts=0, cwd="/tmp", endpoint=f"http://localhost:{port}",
        )  # fmt: skip
        self.views[view.id] = view.model_copy(update=changes)
        self.ports[port] = view.id
        return self.views[view.id]

    # --- what tests do to tasks

    async def work(self, task_id: str) -> Task:
        return await self.change(task_id, TaskState.WORKING)

    async def complete(self, task_id: str, answer: str, *, exact: bool = True, blocks: Sequence[Artifact] = ()) -> Task:
        task = await self.tasks.find(task_id)
        told = await told_before(self.events, task_id)
        commit = transitions.completed(task, answer=answer, exact=exact, now=self.time, blocks=blocks, told=told)
        added = [event.data for event in commit.events if isinstance(event.data, TaskArtifactAdded)]
        return await self._put(commit.task, TaskState.COMPLETED, added)

    async def say(self, task_id: str, text: str, *, append: bool) -> Task:
        """A piece of the answer while the turn runs."""
        task = await self.tasks.find(task_id)
        piece = TaskArtifactAdded(artifact=Artifact.answer(text), append=append, last_chunk=False)
        return await self._put(task, None, [piece])

    async def progress(self, task_id: str, text: str) -> Task:
        task = await self.tasks.find(task_id)
        artifact = Artifact.answer(text).model_copy(
            update={"artifact_id": f"p{len(task.artifacts)}", "name": "progress"}
        )
        task = task.model_copy(update={"artifacts": [*task.artifacts, artifact]})
        return await self._put(task, None, [TaskArtifactAdded(artifact=artifact)])

    async def fail(self, task_id: str, code: str = "AGENT_EXITED", message: str = "exit code 7") -> Task:
        error = TaskError(code=code, message=message)
        task = (await self.tasks.find(task_id)).model_copy(update={"error": error})
        return await self._put(task, TaskState.FAILED, [], error=error)

    async def ask(self, task_id: str, prompt: Prompt) -> Task:
        task = (await self.tasks.find(task_id)).model_copy(update={"prompt": prompt})
        return await self._put(task, TaskState.INPUT_REQUIRED, [], prompt=prompt)

    async def change(self, task_id: str, state: TaskState, reason: str | None = None) -> Task:
        task = (await self.tasks.find(task_id)).model_copy(update={"prompt": None})
        return await self._put(task, state, [], reason=reason)

    async def _put(self, task: Task, state: TaskState | None, data: list[EventData], **status: Any) -> Task:
        self.time += 0.25
        changes: dict[str, Any] = {"updated_at": iso(self.time)}
        if state is not None:
            changes["status"] = state
            data = [*data, TaskStatusChanged(state=state, **status)]
        task = task.model_copy(update=changes)
        new = [NewEvent.of(task, item) for item in data]
        await self.store.commit(events=new, tasks=[task])
        return task

    async def tell(self, agent_id_: str, data: EventData, task_id: str | None = None) -> int:
        """Append an event; its id."""
        (event,) = await self.store.commit(events=[NewEvent(agent_id=agent_id_, data=data, task_id=task_id)])
        return event.id


class FakeDirectory:
    """See `interfaces.Directory`."""

    def __init__(self, fake: "FakeControl") -> None:
        self._fake = fake

    def agents(self) -> list[AgentView]:
        if self._fake.raises is not None:
            raise self._fake.raises
        return list(self._fake.views.values())

    def entries(self, agent_ids: Collection[str] | None = None) -> dict[str, RegistryEntry | None]:
        """Nobody looks for agents of a fake."""
        return {}

    async def believed(self, agent_ids: Iterable[str]) -> None: ...

    def resolve(self, address: str, *, folders: bool = True) -> str:
        refs = [
            AgentRef(v.name, v.id, v.type, v.port, v.state is ProcessState.RUNNING) for v in self._fake.views.values()
        ]
        try:
            return resolve(address, refs).id
        except UnknownAgent:
            if self._fake.elsewhere is not None and (found := self._fake.elsewhere.find(address)) is not None:
                return found
            raise

    def teams(self) -> dict[str, list[str]]:
        return {"review": [view.name for view in self._fake.views.values()]}

    def agent_on_port(self, port: int) -> str | None:
        return self._fake.ports.get(port)

    def view(self, agent_id_: str) -> AgentView:
        try:
            return self._fake.views[agent_id_]
        except KeyError:
            raise UnknownAgent(f"no agent {agent_id_}", address=agent_id_) from None

    async def gone(self, agent_id_: str) -> list[str]:
        return self._fake.gone

    def detail(self, agent_id_: str) -> AgentDetail:
        view = self.view(agent_id_)
        return AgentDetail(**view.model_dump(), prompt=self._fake.prompts.get(agent_id_))

    async def explain(self, agent_id_: str) -> list[Testimony]:
        view = self.view(agent_id_)
        return [
            Testimony(channel="process", says="running, pid 1", since=view.since, decides=False),
            Testimony(channel="composer", says="empty", since=None, decides=True),
        ]

    def profiles(self, names: Collection[str] | None = None) -> list[ProfileAnswer]:
        return [
            ProfileAnswer(name="dummy", description="", command="dummy", ports=[8190, 8199], verified=None,
                          model=True, skills=self._fake.skills, source="built-in"),
        ]  # fmt: skip

    async def conversations(
        self, home: str | None, *, profile: str | None, cwd: str | None, env: Mapping[str, str]
    ) -> list[ConversationAnswer]:
        self._fake.calls.append(("conversations", home, profile, cwd, dict(env)))
        return [
            ConversationAnswer(profile=profile or "claude", id="c1", cwd=cwd, updated_at="", prompt="hi", agent=None)
        ]

    async def process_of(self, pid: int) -> str | None:
        return self._fake.pids.get(pid)

    def granted(self, agent_id: str) -> frozenset[str]:
        return self._fake.rights.get(agent_id, frozenset())

    def token_owner(self, token: str) -> str | None:
        return self._fake.tokens.get(token)


class FakeProcesses:
    """See `interfaces.Processes`."""

    def __init__(self, fake: "FakeControl") -> None:
        self._fake = fake

    async def start(self, request: StartRequest) -> StartedAgent:
        self._fake.calls.append(("start", request))
        if request.profile != "dummy":
            raise UnknownProfile(f"no profile {request.profile!r}", profile=request.profile)
        if request.name is not None and request.name in {view.name for view in self._fake.views.values()}:
            raise NameTaken(f"{request.name!r} is in use", name=request.name)
        port = request.port or 8190 + len(self._fake.views)
        view = self._fake.add(request.name or f"dummy-{port}", port=port, cwd=request.cwd or "/tmp")
        return StartedAgent.model_construct(**view.__dict__)

    async def stop(self, agent_id_: str, *, remove: bool = False) -> AgentView:
        self._fake.calls.append(("stop", agent_id_, remove))
        view = self._fake.directory.view(agent_id_).model_copy(update={"state": ProcessState.STOPPED, "pid": None})
        self._fake.views[agent_id_] = view
        if remove:
            del self._fake.views[agent_id_]
            await self._fake.tell(agent_id_, StateChanged(state=REMOVED))
        return view

    async def restart(self, agent_id_: str, *, when_idle: bool = False, without_approval: bool = False) -> AgentView:
        self._fake.calls.append(("restart", agent_id_, "idle") if when_idle else ("restart", agent_id_))
        self._fake.views[agent_id_] = self._fake.directory.view(agent_id_).model_copy(
            update={"state": ProcessState.RUNNING, "pid": 4243}
        )
        return self._fake.views[agent_id_]

    async def bring(self, agent_id_: str, env: dict[str, str], bringing: Bringing) -> list[str]:
        self._fake.calls.append(("bring", agent_id_, env, bringing))
        return sorted(env)

    async def park(self, agent_id_: str) -> AgentView:
        self._fake.calls.append(("park", agent_id_))
        self._fake.views[agent_id_] = self._fake.directory.view(agent_id_).model_copy(
            update={"state": ProcessState.PARKED, "pid": None}
        )
        return self._fake.views[agent_id_]

    async def kill(self, agent_id_: str) -> AgentView:
        self._fake.calls.append(("kill", agent_id_))
        await self._fake.tell(agent_id_, StateChanged(state=ProcessState.EXITED, exit_code=-9))
        return self._fake.directory.view(agent_id_)

    async def reload(self, *, dry_run: bool = False) -> list[ConfigChange]:
        self._fake.calls.append(("reload", dry_run))
        return [ConfigChange("codex", "restart", "args changed")]

    async def shutdown(self, *, keep_agents: bool) -> None:
        self._fake.calls.append(("shutdown", keep_agents))
        self._fake.shut_down.set()


class FakeTasks:
    """See `interfaces.Tasks`."""

    def __init__(self, fake: "FakeControl") -> None:
        self._fake = fake

    async def sent_before(self, address: str, request: SendRequest) -> Task | None:
        return None

    async def send(self, agent_id_: str, request: SendRequest) -> Task:
        if self._fake.elsewhere is not None and (alias := alias_of(agent_id_)) is not None:
            return await self._fake.elsewhere.send(alias, request, self.asking)
        self._fake.calls.append(("send", agent_id_, request))
        view = self._fake.directory.view(agent_id_)
        if request.task_id is not None:
            text = request.message.text
            return await self.provide_input(request.task_id, text, request.prompt_id, said=request.message)
        if view.queue >= self._fake.queue_max:
            raise QueueFull(f"{view.name} has {view.queue} messages waiting", retry_after=7)
        self._fake.time += 0.25
        extra = {} if request.context_id is None else {"context_id": request.context_id}
        task = Task(
            agent_id=agent_id_, message=request.message, metadata=request.metadata, priority=request.priority,
            created_at=iso(self._fake.time), updated_at=iso(self._fake.time), **extra,
        )  # fmt: skip
        await self._fake._put(task, TaskState.SUBMITTED, [])
        await self._fake.script(self._fake, task)
        return await self.find(task.id)

    async def expect_reply(self, agent_id_: str, request: SendRequest, limit: float | None) -> Task:
        self._fake.calls.append(("expect", agent_id_, request, limit))
        self._fake.directory.view(agent_id_)
        self._fake.time += 0.25
        task = Task(
            agent_id=agent_id_, message=request.message, metadata=request.metadata,
            created_at=iso(self._fake.time), updated_at=iso(self._fake.time),
        )  # fmt: skip
        return await self._fake._put(task, TaskState.WORKING, [])

    async def reply(self, agent_id_: str, request: SendRequest) -> Task:
        self._fake.calls.append(("reply", agent_id_, request))
        named = request.metadata.get("in_reply_to")
        if named is None:
            raise NotWaiting(f"nobody waits for a reply of {agent_id_}")
        return await self._fake.complete((await self.find(named)).id, request.message.text)

    def asking(self, task: Task, *, wait: bool) -> AbstractContextManager[None]:
        return nullcontext()

    async def collected(self, task_id: str) -> None:
        self._fake.calls.append(("collected", task_id))

    def waiting(self, waiter: str | None, task: Task) -> AbstractContextManager[None]:
        self._fake.calls.append(("waiting", waiter, task.id))
        return nullcontext()

    async def find(self, task_id: str, agent_id: str | None = None, visible_to: str | None = None) -> Task:
        return await find_task(self._fake.store, task_id, agent_id, visible_to)

    async def find_id(self, named: str, agent_id: str | None = None, visible_to: str | None = None) -> str:
        return await find_id(self._fake.store, named, agent_id, visible_to)

    async def page(self, which: TaskFilter) -> tuple[list[Task], int]:
        return await self._fake.store.tasks(which)

    async def weigh(self, which: str | TaskFilter) -> list[Large]:
        return await self._fake.store.weigh(which)

    async def has_any(self, which: TaskFilter) -> bool:
        return await self._fake.store.has_tasks(which)

    async def cancel(self, task_id: str) -> Task:
        task = await self.find(task_id)
        if self._fake.elsewhere is not None and alias_of(task) is not None:
            return await self._fake.elsewhere.cancel(task)
        self._fake.calls.append(("cancel", task.id))
        if task.terminal:
            raise TaskNotCancelable(f"task {task.id} is {task.status}", task_id=task.id)
        return await self._fake.change(task.id, TaskState.CANCELED, "canceled")

    async def provide_input(
        self,
        task_id: str,
        text: str,
        prompt_id: str | None = None,
        origin: Origin = PERSON,
        *,
        said: Message | None = None,
    ) -> Task:
        task = await self.find(task_id)
        if self._fake.elsewhere is not None and alias_of(task) is not None:
            return await self._fake.elsewhere.answer(task, Message.of(text), prompt_id)
        self._fake.calls.append(("input", task.id, text, prompt_id))
        if task.status is not TaskState.INPUT_REQUIRED or task.prompt is None:
            raise NotWaiting(f"task {task.id} is {task.status}", task_id=task.id)
        if prompt_id not in (None, task.prompt.prompt_id):
            raise PromptChanged("another prompt is on the screen", prompt_id=task.prompt.prompt_id)
        data = InputAnswered(
            prompt_id=task.prompt.prompt_id, answer=text, by=origin.by, who=origin.who, where=origin.where
        )
        await self._fake.tell(task.agent_id, data, task.id)
        task = transitions.answered(task, prompt=task.prompt, answer=said or Message.of(text))
        await self._fake.store.commit(tasks=[task])
        if self._fake.after_input is not None:
            await self._fake.after_input(self._fake, task)
            return await self.find(task.id)
        await self._fake.work(task.id)
        return await self._fake.complete(task.id, f"answered: {text}")

    async def hand_over(self, task_id: str, artifact: Artifact, *, append: bool, last_chunk: bool) -> Task:
        task = await self.find(task_id)
        self._fake.calls.append(("hand_over", task.id, artifact, append, last_chunk))
        if task.terminal:
            raise NotWaiting(f"task {task.id} is {task.status}", task_id=task.id)
        task = task.model_copy(update={"artifacts": [*task.artifacts, artifact]})
        return await self._fake._put(task, None, [TaskArtifactAdded(artifact=artifact)])

    async def report(self, agent_id: str, told: EventData, task: Task | None = None) -> None:
        self._fake.calls.append(("report", agent_id, told))
        await self._fake.tell(agent_id, told, task.id if task is not None else None)


class FakeTerminals:
    """See `interfaces.Terminals`."""

    def __init__(self, fake: "FakeControl") -> None:
        self._fake = fake

    def hands_at(self) -> float | None:
        return None

    def settings(self) -> dict[str, Any]:
        return {"status": True}

    def looked_at(self, agent_id_: str) -> bool:
        return any(not known.read_only and not known.closed for known in self._fake.attachments)

    async def screen(self, agent_id_: str, fmt: ScreenForm) -> Shown:
        self._fake.directory.view(agent_id_)
        self._fake.drawn += fmt == "rows"
        ink = Ink((255, 255, 255))
        line = tuple(Glyph(char, col, 1, ink) for col, char in enumerate("the screen"))
        shown: dict[str, Shown] = {
            "text": "the screen",
            "coloured": b"the \x1b[0;1mscreen\x1b[m\n",
            "ansi": b"\x1b[1mthe screen", "json": {"lines": ["the screen"]},
            "rows": Rows(
                self._fake.cols, len(self._fake.rows), "", "#ffffff", "#000000", (0, 10), tuple(self._fake.rows)
            ),
            "picture": Picture(20, 1, "", (255, 255, 255), (0, 0, 0), (0, 10), (line,)),
        }  # fmt: skip
        return shown[fmt]

    async def visible(self, agent_id_: str) -> str:
        return await self.context(agent_id_)

    async def context(self, agent_id_: str, limit: int = 2000) -> str:
        self._fake.directory.view(agent_id_)
        return "the screen"[-limit:]

    async def output(self, agent_id_: str, start: int | None, limit: int) -> OutputPiece:
        self._fake.directory.view(agent_id_)
        whole = b"raw \x1b[0m\xff output"
        begin = max(0, len(whole) - limit) if start is None else min(start, len(whole))
        return OutputPiece(begin, whole[begin : begin + limit], ended=begin == len(whole))

    async def recording(self, agent_id_: str, limit: int) -> str:
        self._fake.directory.view(agent_id_)
        return '{"version": 3}\n'

    async def attach(
        self,
        agent_id_: str,
        *,
        cols: int,
        rows: int,
        read_only: bool,
        keep_size: bool = False,
        reach: frozenset[str] | None = None,
    ) -> FakeAttachment:
        self._fake.directory.view(agent_id_)
        attached = FakeAttachment(cols=cols, rows=rows, read_only=read_only, reach=reach)
        attached.keep_size = keep_size
        self._fake.attachments.append(attached)
        return self._fake.attachments[-1]

    def watch(self, agent_id_: str) -> Watch:
        if self._fake.directory.view(agent_id_).state is not ProcessState.RUNNING:
            raise NotReady("no program runs")
        return self._fake.watches.join()

    async def press(self, agent_id_: str, keys: Sequence[str]) -> None:
        self._fake.calls.append(("press", agent_id_, *keys))
        self._fake.directory.view(agent_id_)

    async def answer(self, agent_id_: str, text: str, prompt_id: str | None = None, origin: Origin = PERSON) -> None:
        self._fake.calls.append(("answer", agent_id_, text, prompt_id))
        if agent_id_ not in self._fake.prompts:
            raise NotWaiting(f"{agent_id_} waits for nothing")
        if not text:
            raise InvalidRequest("input: is empty", field="input")

    async def interrupt(self, agent_id_: str, *, background: bool = False) -> bool:
        self._fake.calls.append(("interrupt", agent_id_, *(["background"] if background else [])))
        return self._fake.directory.view(agent_id_).activity is Activity.BUSY

    async def decide(self, agent_id: str, event: str, told: dict[str, Any]) -> dict[str, Any] | None:
        self._fake.calls.append(("decide", agent_id, event, told))
        return None
