"""`/control/…`: the person's verbs, on the Unix socket or with the control token."""

import asyncio
import json
from typing import Annotated

from aiohttp import web
from pydantic import Field

from synapsed.api.context import ApiContext, agent_id_of, origin_of, rights_of, task_of, to_the_end
from synapsed.api.describe import Response, Streamed
from synapsed.api.idempotency_key import once
from synapsed.api.managing import check_restart, check_start, check_stop
from synapsed.api.memory_reservation import release
from synapsed.api.operation import WithHeaders, granted, operation, person
from synapsed.api.query import Query, Resumed, Text, between
from synapsed.api.request_models import (
    EnvironmentBody,
    InputBody,
    InterruptBody,
    KeysBody,
    ReloadBody,
    RestartBody,
    ShutdownBody,
    StartBody,
    StopBody,
)
from synapsed.api.response_models import (
    ChangesAnswer,
    DaemonPaths,
    DaemonStatus,
    EnvironmentAnswer,
    InputProvided,
    InterruptedAnswer,
    Pressed,
    ShuttingDown,
    TaskAnswer,
)
from synapsed.api.routes.tasks import TasksQuery, cancel, list_tasks, provide_input
from synapsed.api.sse import serve
from synapsed.api.task_stream import frames_until_settled
from synapsed.errors import (
    AmbiguousAddress,
    Busy,
    ConfigError,
    ConversationTaken,
    InvalidChoice,
    InvalidRequest,
    LaunchError,
    NameTaken,
    NotEnforced,
    NotReady,
    NotTaken,
    NotWaiting,
    OutcomeUnknown,
    PortsExhausted,
    ProgramNotFound,
    PromptChanged,
    QueueFull,
    SynapsedError,
    UnknownAgent,
    UnknownProfile,
    WouldDeadlock,
)
from synapsed.interfaces import Control
from synapsed.kernel import Automated
from synapsed.model.agent import AgentView, ConversationAnswer, ProfileAnswer, StartedAgent
from synapsed.model.task import Task

HISTORY_DEFAULT = 64 * 1024
HISTORY_MAX = 64 * 1024 * 1024
"""Bytes of raw output given at once: as many as a spool keeps."""
OFFSET_MAX = 2**63 - 1
WAIT_MAX = 30
"""Seconds that a request waits for output at the most."""
FOLLOW_S = 0.1
"""Seconds between two reads of a spool that a client follows."""
OUTPUT = Response(
    "raw output",
    media=("application/octet-stream",),
    headers={
        "Synapsed-Offset": "where it begins: later than asked for where the rest is not kept",
        "Synapsed-Ended": "1: the program has ended for good and nothing is left",
    },
)
LAUNCHING: tuple[type[SynapsedError], ...] = (ProgramNotFound, LaunchError, NotEnforced, NotReady)


class OutputQuery(Query):
    bytes: Annotated[int, between(0, HISTORY_MAX)] = Field(HISTORY_DEFAULT, description="how many at the most")
    after: Annotated[int | None, between(0, OFFSET_MAX)] = Field(
        None, description="from this offset on, instead of the last"
    )
    wait: Annotated[int, between(0, WAIT_MAX)] = Field(0, description="seconds to wait for output")


class RecordingQuery(Query):
    bytes: Annotated[int, between(0, HISTORY_MAX)] = Field(HISTORY_MAX, description="how many at the most")


class ConversationsQuery(Query):
    home: Text = Field(None, description="where to look, instead of the daemon's home")
    profile: Text = Field(None, description="only those of this profile")
    cwd: Text = Field(None, description="only those of this directory")
    env: Text = Field(None, description="variables that say where programs keep theirs instead: a JSON object of texts")


class _OfAgent(Query):
    agent: Text = Field(None, description="only this agent's: any address")


class AllTasksQuery(TasksQuery, _OfAgent):
    """The query for one agent's tasks, for all agents."""


def routes() -> list[web.RouteDef]:
    agent, task = "/control/agents/{agent}", "/control/tasks/{task}"
    return [
        web.post("/control/start", start),
        web.post(f"{agent}/stop", stop),
        web.post(f"{agent}/restart", restart),
        web.post(f"{agent}/environment", environment),
        web.post(f"{agent}/park", park),
        web.post(f"{agent}/kill", kill),
        web.post(f"{agent}/interrupt", interrupt),
        web.post(f"{agent}/input", answer_agent),
        web.post(f"{agent}/keys", press),
        web.get(f"{agent}/history", history),
        web.get(f"{agent}/recording", recording),
        web.get("/control/profiles", profiles),
        web.get("/control/conversations", conversations),
        web.get("/control/tasks", get_tasks),
        web.get(task, get_task),
        web.post(f"{task}/cancel", cancel),
        web.post(f"{task}/input", provide_input),
        web.get(f"{task}/wait", wait),
        web.post(f"{task}/collected", collected),
        web.get("/control/status", status),
        web.get("/control/automation", automation),
        web.post("/control/reload", reload),
        web.post("/control/shutdown", shutdown),
    ]


@operation(
    "Start an agent",
    "the agent",
    allowed=person("start agents"),
    errors=(*LAUNCHING, ConfigError, UnknownProfile, NameTaken, ConversationTaken, PortsExhausted),
)
async def start(request: web.Request, body: StartBody, control: Control) -> StartedAgent:
    check_start(rights_of(request), body, [one.cwd for one in control.directory.agents()])
    return await to_the_end(control.processes.start(body.request()))


@operation("Stop an agent", "the agent", allowed=granted("stop_agents", "stop agents"), errors=(NotReady,))
async def stop(request: web.Request, body: StopBody, control: Control) -> AgentView:
    check_stop(rights_of(request), body)
    return (await to_the_end(control.processes.stop(agent_id_of(request), remove=body.remove))).unseen()


@operation("Restart an agent", "the agent", allowed=granted("stop_agents", "restart agents"), errors=LAUNCHING)
async def restart(request: web.Request, body: RestartBody, control: Control) -> AgentView:
    check_restart(rights_of(request), body)
    asked = control.processes.restart(
        agent_id_of(request), when_idle=body.when_idle, without_approval=body.without_approval
    )
    return (await to_the_end(asked)).unseen()


@operation(
    "Keep a shell's environment for the agent's next start",
    "names of variables",
    allowed=person("give agents an environment"),
    errors=(NotReady,),
)
async def environment(request: web.Request, body: EnvironmentBody, control: Control) -> EnvironmentAnswer:
    names = await to_the_end(control.processes.bring(agent_id_of(request), body.env, body.bring))
    return EnvironmentAnswer(names=names)


@operation(
    "Read the configuration again", "what changed", allowed=person("reload the configuration"), errors=(ConfigError,)
)
async def reload(request: web.Request, body: ReloadBody, control: Control) -> ChangesAnswer:
    changes = await to_the_end(control.processes.reload(dry_run=body.dry_run))
    return ChangesAnswer(dry_run=body.dry_run, changes=changes)


@operation(
    "End the idle agent's program until the next message",
    "the agent",
    allowed=person("park agents"),
    errors=(NotReady, InvalidRequest),
)
async def park(request: web.Request, control: Control) -> AgentView:
    return await to_the_end(control.processes.park(agent_id_of(request)))


@operation(
    "Kill the agent's program; its restart policy applies",
    "the agent",
    allowed=granted("stop_agents", "kill agents"),
    errors=(NotReady,),
)
async def kill(request: web.Request, control: Control) -> AgentView:
    return (await to_the_end(control.processes.kill(agent_id_of(request)))).unseen()


@operation(
    "Interrupt the turn that runs, or stop what runs in the background",
    "whether that is so",
    allowed=granted("stop_agents", "interrupt agents"),
    errors=(NotReady,),
)
async def interrupt(request: web.Request, body: InterruptBody, control: Control) -> InterruptedAnswer:
    done = await to_the_end(control.terminals.interrupt(agent_id_of(request), background=body.background))
    return InterruptedAnswer(interrupted=done)


@operation(
    "Answer a prompt outside any task",
    "the program took it",
    allowed=granted("answer_prompts", "answer prompts"),
    errors=(NotWaiting, InvalidChoice, PromptChanged, NotTaken, NotReady, OutcomeUnknown),
)
async def answer_agent(request: web.Request, body: InputBody, control: Control) -> InputProvided:
    """Answers a prompt outside of tasks; under the same `Idempotency-Key` only once."""
    agent_id, origin = agent_id_of(request), origin_of(request)

    async def give() -> InputProvided:
        await control.terminals.answer(agent_id, body.input, body.prompt_id, origin=origin)
        return InputProvided(status="input_provided")

    return await once(request, f"input {agent_id}", body, give, InputProvided, agent_id=agent_id)


@operation(
    "Press keys at the agent's terminal",
    "they are typed",
    allowed=person("press keys at an agent's terminal"),
    errors=(NotReady, OutcomeUnknown),
)
async def press(request: web.Request, body: KeysBody, control: Control) -> Pressed:
    """Presses keys like a person at an attached terminal: refused while a message is being typed there. Under the same
    `Idempotency-Key`, they are pressed only once."""
    agent_id = agent_id_of(request)

    async def type_them() -> Pressed:
        await control.terminals.press(agent_id, body.keys)
        return Pressed(status="pressed")

    return await once(request, f"keys {agent_id}", body, type_them, Pressed, agent_id=agent_id)


@operation("Raw output", OUTPUT, allowed=person("read an agent's raw output"))
async def history(request: web.Request, query: OutputQuery, control: Control) -> web.Response:
    agent = agent_id_of(request)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + query.wait
    while True:
        piece = await control.terminals.output(agent, query.after, query.bytes)
        if piece.data or piece.ended or loop.time() >= deadline:
            break
        await asyncio.sleep(FOLLOW_S)
    place = {"Synapsed-Offset": str(piece.start), "Synapsed-Ended": str(int(piece.ended))}
    return web.Response(body=piece.data, content_type="application/octet-stream", headers=place)


@operation(
    "Output as an asciicast, version 3",
    Response("a recording", media=("application/x-asciicast",)),
    allowed=person("read an agent's raw output"),
)
async def recording(request: web.Request, query: RecordingQuery, control: Control) -> web.Response:
    text = await control.terminals.recording(agent_id_of(request), query.bytes)
    return web.Response(text=text, content_type="application/x-asciicast")


@operation("The profiles", "profiles")
async def profiles(request: web.Request, control: Control) -> list[ProfileAnswer]:
    return await asyncio.to_thread(control.directory.profiles)


@operation(
    "What programs keep of earlier conversations",
    "newest first",
    allowed=person("look for conversations"),
    errors=(UnknownProfile, InvalidRequest),
)
async def conversations(request: web.Request, query: ConversationsQuery, control: Control) -> list[ConversationAnswer]:
    """Lists the earlier conversations that programs keep in a person's home."""
    env = _texts("env", query.env) if query.env is not None else {}
    return await control.directory.conversations(query.home, profile=query.profile, cwd=query.cwd, env=env)


def _texts(name: str, given: str) -> dict[str, str]:
    """Returns the texts. Raises InvalidRequest."""
    try:
        found = json.loads(given)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(isinstance(value, str) and "\0" not in value for value in found.values()):
        raise InvalidRequest(f"{name} must be a JSON object whose values are texts", field=name)
    return found


@operation("Tasks of all agents, newest first", "tasks", errors=(UnknownAgent, AmbiguousAddress, Busy))
async def get_tasks(request: web.Request, query: AllTasksQuery, control: Control) -> WithHeaders[list[Task]]:
    return await list_tasks(request, query, control.directory.resolve(query.agent) if query.agent else None)


@operation("A task of any agent", "the task")
async def get_task(request: web.Request) -> TaskAnswer:
    return TaskAnswer.of(await task_of(request))


@operation(
    "Follow a task until it is over or waits for a person",
    Streamed("the task's events"),
    errors=(QueueFull, WouldDeadlock),
)
async def wait(request: web.Request, query: Resumed, context: ApiContext) -> web.StreamResponse:
    """Waits for a task; an agent that asks does nothing else. A question that a rule answers needs no person."""
    task, control = await task_of(request), context.control
    after = query.cursor(control.events, 0)
    frames = frames_until_settled(control.tasks, control.events, task, after, context.parts)
    with control.tasks.waiting(rights_of(request).agent_id, task):
        del task  # it may be large, and the stream long
        release(request)
        return await serve(request, frames)


@operation("The caller that waited has the reply", "the task")
async def collected(request: web.Request, control: Control) -> TaskAnswer:
    """Confirms that the caller has the reply, so that the agent need not be notified."""
    task = await task_of(request)
    await to_the_end(control.tasks.collected(task.id))
    return TaskAnswer.of(task)


@operation("The daemon itself", "its status")
async def status(request: web.Request, context: ApiContext) -> DaemonStatus:
    return DaemonStatus(
        version=context.version,
        commit=context.commit,
        pid=context.pid,
        uptime=round(context.clock.monotonic() - context.started, 3),
        listen=context.listening,
        secure=context.parts.addresses,
        agents=len(context.control.directory.agents()),
        alerts=context.alerts,
        unused_proxies=context.proxies,
        paths=DaemonPaths(**{name: str(getattr(context.paths, name)) for name in DaemonPaths.model_fields}),
    )


@operation(
    "What keeps schedules, rules and webhooks from their work",
    "each of them",
    allowed=person("see what is done by itself"),
)
async def automation(request: web.Request, context: ApiContext) -> list[Automated]:
    return await context.parts.automated()


@operation("End the daemon", "it will", allowed=person("shut the daemon down"))
async def shutdown(request: web.Request, body: ShutdownBody, control: Control) -> ShuttingDown:
    """Shuts down after the answer: `Control.shutdown` only requests the daemon's end, and does not wait for it."""
    await to_the_end(control.processes.shutdown(keep_agents=body.keep_agents))
    return ShuttingDown(status="shutting_down", keep_agents=body.keep_agents)
