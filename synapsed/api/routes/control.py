"""`/control/…`: the person's verbs, on the Unix socket or with the control token."""

import asyncio
from dataclasses import asdict

from aiohttp import web
from pydantic import TypeAdapter

from synapsed.api.answers import (
    ChangesAnswer,
    ConversationAnswer,
    DaemonStatus,
    InputProvided,
    InterruptedAnswer,
    Pressed,
    ProfileAnswer,
    ShuttingDown,
)
from synapsed.api.body import json_response, model_response, read_model
from synapsed.api.context import CONTEXT, agent_id_of, rights_of, task_of, to_the_end
from synapsed.api.describe import Response, Streamed, describe
from synapsed.api.origin import origin_of
from synapsed.api.outgoing import respond_task
from synapsed.api.query import CURSOR, Integer, Text
from synapsed.api.reserving import release
from synapsed.api.routes.tasks import FILTERS, TASK, cancel, list_tasks, provide_input
from synapsed.api.schemas import InputBody, KeysBody, ReloadBody, RestartBody, ShutdownBody, StartBody, StopBody
from synapsed.api.sse import cursor_of, serve
from synapsed.api.taskstream import frames_until_settled
from synapsed.errors import (
    AmbiguousAddress,
    Busy,
    ConfigError,
    ConversationTaken,
    InvalidChoice,
    InvalidRequest,
    LaunchError,
    NameTaken,
    NotReady,
    NotTaken,
    NotWaiting,
    PortsExhausted,
    ProgramNotFound,
    PromptChanged,
    QueueFull,
    SynapsedError,
    UnknownAgent,
    UnknownProfile,
    WouldDeadlock,
)
from synapsed.model.agent import AgentView
from synapsed.model.automated import Automated
from synapsed.model.task import Task

HISTORY_DEFAULT = 64 * 1024
HISTORY_MAX = 64 * 1024 * 1024
"""Bytes of raw output given at once: as many as a spool keeps."""
OFFSET_MAX = 2**63 - 1
WAIT_MAX = 30
"""Seconds that a request waits for output at the most."""
FOLLOW_S = 0.1
"""Between two looks at a spool that somebody follows."""
AGENT = Response("the agent", AgentView)
HISTORY_BYTES = Integer("bytes", "how many at the most", HISTORY_DEFAULT, 0, HISTORY_MAX)
AFTER = Integer("after", "from this offset on, instead of the last", None, 0, OFFSET_MAX)
WAIT = Integer("wait", "seconds to wait for output", 0, 0, WAIT_MAX)
RECORDING_BYTES = Integer("bytes", "how many at the most", HISTORY_MAX, 0, HISTORY_MAX)
OF_AGENT = Text("agent", "only this agent's: any address")
HOME = Text("home", "where to look, instead of the daemon's home")
PROFILE = Text("profile", "only those of this profile")
CWD = Text("cwd", "only those of this directory")
OUTPUT = Response(
    "raw output",
    media=("application/octet-stream",),
    headers={
        "Synapsed-Offset": "where it begins: later than asked for where the rest is not kept",
        "Synapsed-Ended": "1: the program has ended for good and nothing is left",
    },
)
LAUNCHING: tuple[type[SynapsedError], ...] = (ProgramNotFound, LaunchError, NotReady)
_VIEW = TypeAdapter(AgentView)
_AUTOMATED = TypeAdapter(list[Automated])


def routes() -> list[web.RouteDef]:
    agent, task = "/control/agents/{agent}", "/control/tasks/{task}"
    return [
        web.post("/control/start", start),
        web.post(f"{agent}/stop", stop),
        web.post(f"{agent}/restart", restart),
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


@describe(
    "Start an agent",
    AGENT,
    body=StartBody,
    errors=(*LAUNCHING, ConfigError, UnknownProfile, NameTaken, ConversationTaken, PortsExhausted),
)
async def start(request: web.Request) -> web.Response:
    rights_of(request).require_person("start agents")
    body = await read_model(request, StartBody)
    return model_response(_VIEW, await to_the_end(request.app[CONTEXT].control.processes.start(body.request())))


@describe("Stop an agent", AGENT, body=StopBody, errors=(NotReady,))
async def stop(request: web.Request) -> web.Response:
    rights_of(request).require("stop_agents", "stop agents", of=agent_id_of(request))
    body = await read_model(request, StopBody)
    control = request.app[CONTEXT].control
    view = await to_the_end(control.processes.stop(agent_id_of(request), remove=body.remove))
    return model_response(_VIEW, view.unseen())


@describe("Restart an agent", AGENT, body=RestartBody, errors=LAUNCHING)
async def restart(request: web.Request) -> web.Response:
    rights_of(request).require("stop_agents", "restart agents", of=agent_id_of(request))
    body = await read_model(request, RestartBody)
    control = request.app[CONTEXT].control
    view = await to_the_end(control.processes.restart(agent_id_of(request), when_idle=body.when_idle))
    return model_response(_VIEW, view.unseen())


@describe(
    "Read the configuration again", Response("what changed", ChangesAnswer), body=ReloadBody, errors=(ConfigError,)
)
async def reload(request: web.Request) -> web.Response:
    rights_of(request).require_person("reload the configuration")
    body = await read_model(request, ReloadBody)
    changes = await to_the_end(request.app[CONTEXT].control.processes.reload(dry_run=body.dry_run))
    return json_response({"dry_run": body.dry_run, "changes": [asdict(change) for change in changes]})


@describe("End the idle agent's program until the next message", AGENT, errors=(NotReady, InvalidRequest))
async def park(request: web.Request) -> web.Response:
    rights_of(request).require_person("park agents")
    return model_response(_VIEW, await to_the_end(request.app[CONTEXT].control.processes.park(agent_id_of(request))))


@describe("Kill the agent's program; its restart policy applies", AGENT, errors=(NotReady,))
async def kill(request: web.Request) -> web.Response:
    rights_of(request).require("stop_agents", "kill agents", of=agent_id_of(request))
    view = await to_the_end(request.app[CONTEXT].control.processes.kill(agent_id_of(request)))
    return model_response(_VIEW, view.unseen())


@describe("Interrupt the turn that runs", Response("whether there was one", InterruptedAnswer), errors=(NotReady,))
async def interrupt(request: web.Request) -> web.Response:
    rights_of(request).require("stop_agents", "interrupt agents", of=agent_id_of(request))
    done = await to_the_end(request.app[CONTEXT].control.terminals.interrupt(agent_id_of(request)))
    return json_response({"interrupted": done})


@describe(
    "Answer a prompt outside any task",
    Response("the program took it", InputProvided),
    body=InputBody,
    errors=(NotWaiting, InvalidChoice, PromptChanged, NotTaken, NotReady),
)
async def answer_agent(request: web.Request) -> web.Response:
    """A prompt outside any task."""
    rights_of(request).require("answer_prompts", "answer prompts", of=agent_id_of(request))
    body = await read_model(request, InputBody)
    control = request.app[CONTEXT].control
    await to_the_end(
        control.terminals.answer(agent_id_of(request), body.input, body.prompt_id, origin=origin_of(request))
    )
    return json_response({"status": "input_provided"})


@describe("Press keys at the agent's terminal", Response("they are typed", Pressed), body=KeysBody, errors=(NotReady,))
async def press(request: web.Request) -> web.Response:
    """A person's hands, as with an attached terminal: refused while a message is being typed there."""
    rights_of(request).require_person("press keys at an agent's terminal")
    body = await read_model(request, KeysBody)
    await to_the_end(request.app[CONTEXT].control.terminals.press(agent_id_of(request), body.keys))
    return json_response({"status": "pressed"})


@describe("Raw output", OUTPUT, query=(HISTORY_BYTES, AFTER, WAIT))
async def history(request: web.Request) -> web.Response:
    rights_of(request).require_person("read an agent's raw output")
    limit = HISTORY_BYTES.of(request)
    after = AFTER.of(request)
    patience = WAIT.of(request)
    control, agent = request.app[CONTEXT].control, agent_id_of(request)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + patience
    while True:
        piece = await control.terminals.output(agent, after, limit)
        if piece.data or piece.ended or loop.time() >= deadline:
            break
        await asyncio.sleep(FOLLOW_S)
    place = {"Synapsed-Offset": str(piece.start), "Synapsed-Ended": str(int(piece.ended))}
    return web.Response(body=piece.data, content_type="application/octet-stream", headers=place)


@describe(
    "Output as an asciicast, version 3",
    Response("a recording", media=("application/x-asciicast",)),
    query=(RECORDING_BYTES,),
)
async def recording(request: web.Request) -> web.Response:
    rights_of(request).require_person("read an agent's raw output")
    limit = RECORDING_BYTES.of(request)
    text = await request.app[CONTEXT].control.terminals.recording(agent_id_of(request), limit)
    return web.Response(text=text, content_type="application/x-asciicast")


@describe("The profiles", Response("profiles", list[ProfileAnswer]))
async def profiles(request: web.Request) -> web.Response:
    return json_response(request.app[CONTEXT].control.directory.profiles())


@describe(
    "What programs keep of earlier conversations",
    Response("newest first", list[ConversationAnswer]),
    query=(HOME, PROFILE, CWD),
    errors=(UnknownProfile,),
)
async def conversations(request: web.Request) -> web.Response:
    """What programs keep of earlier conversations, in a person's home."""
    rights_of(request).require_person("look for conversations")
    control = request.app[CONTEXT].control
    found = await control.directory.conversations(HOME.of(request), profile=PROFILE.of(request), cwd=CWD.of(request))
    return json_response(found)


@describe(
    "Tasks of all agents, newest first",
    Response("tasks", list[Task]),
    query=(OF_AGENT, *FILTERS),
    errors=(UnknownAgent, AmbiguousAddress, Busy),
)
async def get_tasks(request: web.Request) -> web.StreamResponse:
    control = request.app[CONTEXT].control
    address = OF_AGENT.of(request)
    return await list_tasks(request, control, control.directory.resolve(address) if address else None)


@describe("A task of any agent", TASK)
async def get_task(request: web.Request) -> web.StreamResponse:
    return await respond_task(request, await task_of(request))


@describe(
    "Follow a task until it is over or waits for a person",
    Streamed("the task's events"),
    query=(CURSOR,),
    errors=(QueueFull, WouldDeadlock),
)
async def wait(request: web.Request) -> web.StreamResponse:
    """An agent that asks for this does nothing else meanwhile."""
    control = request.app[CONTEXT].control
    task = await task_of(request)
    frames = frames_until_settled(control.tasks, control.events, task, cursor_of(request, control.events, 0))
    with control.tasks.waiting(rights_of(request).agent_id, task):
        del task  # it may be large, and the stream long
        release(request)
        return await serve(request, frames)


@describe("The caller that waited has the reply", TASK)
async def collected(request: web.Request) -> web.StreamResponse:
    """So that the agent that asked need not be told of it."""
    task = await task_of(request)
    await to_the_end(request.app[CONTEXT].control.tasks.collected(task.id))
    return await respond_task(request, task)


@describe("The daemon itself", Response("its status", DaemonStatus))
async def status(request: web.Request) -> web.Response:
    context = request.app[CONTEXT]
    paths = context.paths
    return json_response(
        {
            "version": context.version,
            "pid": context.pid,
            "uptime": round(context.clock.monotonic() - context.started, 3),
            "listen": context.listening,
            "agents": len(context.control.directory.agents()),
            "alerts": context.alerts,
            "paths": {
                "config": str(paths.config),
                "state": str(paths.state),
                "run": str(paths.run),
                "a2a": str(paths.a2a),
                "control_socket": str(paths.control_socket),
                "database": str(paths.database),
            },
        }
    )


@describe("What keeps schedules, rules and webhooks from their work", Response("each of them", list[Automated]))
async def automation(request: web.Request) -> web.Response:
    rights_of(request).require_person("see what is done by itself")
    return model_response(_AUTOMATED, await request.app[CONTEXT].health.look())


@describe("End the daemon", Response("it will", ShuttingDown), body=ShutdownBody)
async def shutdown(request: web.Request) -> web.Response:
    """Answers first: `Control.shutdown` says that the daemon shall end, and does not wait for it."""
    rights_of(request).require_person("shut the daemon down")
    body = await read_model(request, ShutdownBody)
    await to_the_end(request.app[CONTEXT].control.processes.shutdown(keep_agents=body.keep_agents))
    return json_response({"status": "shutting_down", "keep_agents": body.keep_agents})
