"""`synapsectl mcp`: an MCP server on stdin and stdout, with tools by which an agent's model uses the other agents.

The agent's program starts it, so it is a process of the agent: by this the daemon recognises it and gives it the
agent's rights. There is one table of tools; a tool makes one or two requests to the daemon, in a thread, because some
wait.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import anyio
import anyio.to_thread
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams, TextContent
from mcp_types import Tool as ToolSpec

from synapsectl.client import Client, agent_path, task_path
from synapsectl.errors import ApiError, CtlError
from synapsectl.sending import ask
from synapsectl.verbs import is_installed
from synapsectl.waiting import TERMINAL, Waiter, answer_of
from synapsed import __version__

INSTRUCTIONS: Final = (
    "Other agents of the same user run beside you; these tools reach them. Messages from them begin with "
    "[A2A:<task>:<sender>]."
)
AT_ONCE: Final = 32
"""Most calls under way at a time; further ones wait."""


type Args = Mapping[str, Any]


class Refused(CtlError):
    """The model's request is not possible in that form."""


class Colleagues:
    """The daemon, as one agent sees it."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def who(self) -> dict[str, Any]:
        """Returns the agent whose process this is, with its rights. Raises Refused if the daemon takes us for no
        agent."""
        told: dict[str, Any] = self._client.get("/whoami")
        if told["agent"] is None:
            raise Refused("the daemon does not recognise this process as an agent's: an agent's program must start it")
        return told

    def list_agents(self, _: Args) -> Any:
        own = self.who()["agent"]
        here = [
            {key: agent[key] for key in ("name", "id", "type", "state", "activity", "queue")}
            | ({"you": True} if agent["id"] == own else {})
            for agent in self._client.get("/agents", {"hosts": 1})
        ]
        elsewhere = [
            {"name": agent["alias"], "type": "external", "description": agent["description"]}
            for agent in (self._client.get("/external/agents") if is_installed("elsewhere") else ())
        ]
        return here + elsewhere

    def send_message(self, args: Args) -> Any:
        wait = args.get("wait", True)
        sent = ask(
            self._client,
            args["to"],
            {"message": _message(args["message"]), "priority": args.get("priority", 1), "metadata": {}},
            sender=self.who()["agent"],
            response=args.get("response", not wait),
            wait=wait,
        )
        if not wait:
            told = {"task_id": sent.task["id"], "status": sent.task["status"]}
            return told | ({"reply": "it will come as a message to you"} if sent.awaited is not sent.task else {})
        task = Waiter(self._client).wait(sent.awaited)
        if sent.awaited is not sent.task:
            self._client.post(task_path(task["id"], "collected"))
        return _outcome(task)

    def reply(self, args: Args) -> Any:
        body: dict[str, Any] = {"message": {**_message(args["message"]), "role": "agent"}}
        if "to" in args:
            body["metadata"] = {"in_reply_to": args["to"]}
        task = self._client.post(agent_path(self.who()["agent"], "tasks/reply"), body)["task"]
        return {"task_id": task["id"], "status": task["status"]}

    def get_task(self, args: Args) -> Any:
        task = self._client.get(task_path(args["task_id"]))["task"]
        return _outcome(task) if task["status"] in TERMINAL else _brief(task)

    def cancel_task(self, args: Args) -> Any:
        return _brief(self._client.post(task_path(args["task_id"], "cancel"))["task"])

    def search_history(self, args: Args) -> Any:
        asked = {"q": args["query"], "limit": args.get("limit", 20)}
        page = self._client.get("/control/history", asked | ({"context": args["context"]} if "context" in args else {}))
        return [{name: item[name] for name in _FOUND if item[name] is not None} for item in page["items"]]

    def report_event(self, args: Args) -> Any:
        said, typed = {"kind", "message"} & args.keys(), {"event", "data"} & args.keys()
        if len(said) != 2 * (not typed) or len(typed) != 2 * (not said):
            raise Refused("give kind and message, or event and data")
        self._client.post(agent_path(self.who()["agent"], "events"), dict(args))
        return {"status": "reported"}

    def answer_prompt(self, args: Args) -> Any:
        body = {"input": args["answer"], "prompt_id": args["prompt_id"]}
        self._client.post(agent_path(args["agent"], "input", control=True), body)
        return {"status": "answered"}

    def read_screen(self, args: Args) -> Any:
        return self._client.get_bytes(agent_path(args["agent"], "screen"), {"format": "text"}).decode()


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `properties` are JSON Schema; `right` is the right that the agent's profile must grant for it to be
    listed."""

    name: str
    description: str
    run: Callable[[Colleagues, Args], Any]
    properties: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()
    right: str | None = None

    @property
    def schema(self) -> dict[str, Any]:
        required = [name for name in self.properties if name not in self.optional]
        return {
            "type": "object",
            "properties": {name: dict(schema) for name, schema in self.properties.items()},
            "required": required,
            "additionalProperties": False,
        }

    @property
    def checker(self) -> Draft202012Validator:
        return Draft202012Validator(self.schema)


_FOUND: Final = ("time", "kind", "by", "to", "task", "context", "tool", "state", "snippet")
_TEXT: Final = {"type": "string", "minLength": 1}
_AGENT: Final = {**_TEXT, "description": "an agent's name or id, as list_agents tells"}
_TASK: Final = {**_TEXT, "description": "a task's id, or its first 8 characters"}

TOOLS: Final[Sequence[Tool]] = (
    Tool("list_agents", "The agents beside you, and what each is doing; then those elsewhere.", Colleagues.list_agents),
    Tool(
        "send_message",
        "Send a message to another agent. By default this waits and gives its answer.",
        Colleagues.send_message,
        {
            "to": _AGENT,
            "message": {**_TEXT, "description": "what to say"},
            "wait": {"type": "boolean", "description": "wait for the answer (default); else only send"},
            "priority": {
                "type": "integer",
                "minimum": 1,
                "maximum": 5,
                "description": "4 goes before 1; 5 interrupts what the agent is doing: only with that right",
            },
            "response": {
                "type": "boolean",
                "description": "the agent is told that a reply is expected; without wait it comes to you as a message",
            },
        },
        frozenset({"wait", "priority", "response"}),
    ),
    Tool(
        "reply",
        "Reply to the agent that asked you. Without `to`: to what you were asked last.",
        Colleagues.reply,
        {"message": {**_TEXT, "description": "the reply"}, "to": {**_TASK, "description": "the id in [A2A:<id>:…]"}},
        frozenset({"to"}),
    ),
    Tool("get_task", "What became of a message that you sent.", Colleagues.get_task, {"task_id": _TASK}),
    Tool("cancel_task", "Withdraw a message that you sent.", Colleagues.cancel_task, {"task_id": _TASK}),
    Tool(
        "search_history",
        "Search what you said or did before, and what was said to you; newest first.",
        Colleagues.search_history,
        {
            "query": {
                **_TEXT,
                "maxLength": 1000,
                "description": "words that all stand in it, a phrase in double quotes",
            },
            "context": {**_TEXT, "description": "only of this context"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 100, "description": "20 where it is not given"},
        },
        frozenset({"context", "limit"}),
    ),
    Tool(
        "report_event",
        "Tell the person who watches your agents of something: a milestone, a problem, a decision.",
        Colleagues.report_event,
        {
            "kind": {"type": "string", "pattern": "^[a-z][a-z0-9_.-]{0,63}$", "description": "such as milestone"},
            "message": {**_TEXT, "maxLength": 4000},
            "event": {"enum": ["toolExecution", "agentTransition", "emotionUpdate"], "description": "instead of kind"},
            "data": {"type": "object", "description": "the event's fields, as GET /events/schema has them"},
        },
        frozenset({"kind", "message", "event", "data"}),
    ),
    Tool(
        "answer_prompt",
        "Answer what another agent asks a person.",
        Colleagues.answer_prompt,
        {
            "agent": _AGENT,
            "prompt_id": {**_TEXT, "description": "the prompt that the answer is for"},
            "answer": {**_TEXT, "description": "one of the prompt's options, or words where it takes own_words"},
        },
        right="answer_prompts",
    ),
    Tool(
        "read_screen",
        "What is on another agent's screen.",
        Colleagues.read_screen,
        {"agent": _AGENT},
        right="read_screens",
    ),
)


def _message(text: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"type": "text", "text": text}]}


def _brief(task: Mapping[str, Any]) -> dict[str, Any]:
    return {"task_id": task["id"], "agent": task["agent_id"], "status": task["status"]}


def _outcome(task: Mapping[str, Any]) -> Any:
    """Returns the answer's text alone, or another result of the task. Raises Refused for a failed one."""
    if task["status"] == "completed":
        return answer_of(dict(task)) or ""
    if task["status"] in TERMINAL:
        error = task.get("error") or {}
        raise Refused(f"the task ended {task['status']}: {error.get('message') or 'no answer'}")
    return _brief(task) | {"waits_for": "a person, who has to answer what the agent asks"}


class McpTools:
    """Answers the server's two requests: lists the tools, and calls one."""

    def __init__(self, colleagues: Colleagues) -> None:
        self._colleagues = colleagues
        self._limiter = anyio.CapacityLimiter(AT_ONCE)
        self._tools = {tool.name: tool for tool in TOOLS}

    async def list(self, _context: Any, _params: PaginatedRequestParams | None) -> ListToolsResult:
        granted = await self._in_thread(self._granted)
        return ListToolsResult(
            tools=[
                ToolSpec(name=tool.name, description=tool.description, input_schema=tool.schema)
                for tool in TOOLS
                if tool.right is None or tool.right in granted
            ]
        )

    async def call(self, _context: Any, params: CallToolRequestParams) -> CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            return _text_result(f"there is no tool {params.name!r}: {', '.join(self._tools)}", wrong=True)
        if (wrong := best_match(tool.checker.iter_errors(params.arguments or {}))) is not None:
            return _text_result(f"{tool.name}: {wrong.json_path}: {wrong.message}", wrong=True)
        try:
            found = await self._in_thread(partial(tool.run, self._colleagues, params.arguments or {}))
        except CtlError as error:
            return _text_result(_error_text(error), wrong=True)
        return _text_result(found if isinstance(found, str) else json.dumps(found, ensure_ascii=False))

    def _granted(self) -> frozenset[str]:
        """Returns the agent's rights; none if they are unknown, since tools that need a right would be refused."""
        try:
            return frozenset(self._colleagues.who()["rights"])
        except CtlError:
            return frozenset()

    async def _in_thread[T](self, run: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(run, abandon_on_cancel=True, limiter=self._limiter)


def _text_result(text: str, *, wrong: bool = False) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=wrong)


def _error_text(error: CtlError) -> str:
    return f"{error.code}: {error}" if isinstance(error, ApiError) else str(error)


def server_of(client: Client) -> Server[Any]:
    """Returns the server of the agent whose requests `client` makes."""
    tools = McpTools(Colleagues(client))
    return Server(
        "synapsed",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=tools.list,
        on_call_tool=tools.call,
    )


async def serve(client: Client) -> None:
    """Serves until the program closes stdin."""
    server = server_of(client)
    async with stdio_server() as (received, sent):
        await server.run(received, sent, server.create_initialization_options())
