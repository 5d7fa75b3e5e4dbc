"""A client made with the protocol's own Python SDK: prompts one after the other, and what came of each.

    python sdk_client.py CWD COMMAND…      # on stdin a JSON array of {text | blocks, permission?: "allow" | "reject"}

Prints a JSON document: `{session, agent, commands, turns: [{stop, text, permissions, tools, error}], after}`. `text` is
the agent's messages joined, as the specification says; a permission without a word is left to others; `blocks` are
content blocks as they are. `after` has what became of the session: `{listed, loaded, resumed, closed, refused}`.
"""

import asyncio
import json
import os
import sys
from typing import Any

import acp
from acp.schema import AllowedOutcome, DeniedOutcome, PromptRequest, RequestPermissionResponse


class Editor(acp.Client):  # type: ignore[misc]
    def __init__(self) -> None:
        self.text: list[str] = []
        self.tools: list[str] = []
        self.asked: list[list[str]] = []
        self.permission: str | None = None
        self.commands: list[str] = []
        self.shown: list[str] = []

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        kind = update.session_update
        if kind == "agent_message_chunk":
            self.text.append(update.content.text)
        elif kind == "user_message_chunk":
            self.shown.append(update.content.text)
        elif kind == "available_commands_update":
            self.commands = [each.name for each in update.available_commands]
        elif kind == "tool_call":
            self.tools.append(f"{update.kind} {update.title}")

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **_: Any) -> Any:
        self.asked.append([option.kind for option in options])
        if self.permission is None:
            await asyncio.Event().wait()
        found = [option for option in options if option.kind == f"{self.permission}_once"]
        if not found:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=found[0].option_id))


async def main(cwd: str, command: list[str]) -> None:
    turns = json.loads(sys.stdin.read())
    editor = Editor()
    async with acp.spawn_agent_process(editor, *command, cwd=cwd, env=dict(os.environ)) as (agent, _):
        greeted = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        session = await agent.new_session(cwd=cwd, mcp_servers=[])
        told = []
        for turn in turns:
            editor.text, editor.tools, editor.asked = [], [], []
            editor.permission = turn.get("permission")
            stop = error = None
            try:
                stop = (await agent.prompt(session_id=session.session_id, prompt=prompt_of(turn))).stop_reason
            except acp.RequestError as refused:
                error = {"code": refused.code, "message": str(refused), "data": refused.data}
            told.append(
                {
                    "stop": stop,
                    "text": "".join(editor.text),
                    "permissions": editor.asked,
                    "tools": editor.tools,
                    "error": error,
                }
            )
        info = greeted.agent_info.name if greeted.agent_info else None
        after = await sessions(agent, editor, session.session_id, cwd)
        document = {"session": session.session_id, "agent": info, "commands": editor.commands, "turns": told}
        print(json.dumps({**document, "after": after}))


def prompt_of(turn: dict[str, Any]) -> Any:
    blocks = turn.get("blocks") or [{"type": "text", "text": turn["text"]}]
    return PromptRequest.model_validate({"sessionId": "s", "prompt": blocks}).prompt


async def sessions(agent: Any, editor: Editor, session: str, cwd: str) -> dict[str, Any]:
    """What the protocol has for sessions besides prompts, one after the other."""
    listed = await agent.list_sessions(cwd=cwd)
    editor.text, editor.shown = [], []
    await agent.load_session(cwd=cwd, session_id=session)
    loaded = {"asked": editor.shown, "said": editor.text}
    editor.text, editor.shown = [], []
    await agent.resume_session(session_id=session, cwd=cwd)
    resumed = [*editor.shown, *editor.text]
    refused = {
        "fork": await refusal(agent.fork_session(session_id=session, cwd=cwd)),
        "mode": await refusal(agent.set_session_mode(session_id=session, mode_id="ask")),
        "option": await refusal(agent.set_config_option(session_id=session, config_id="model", value="x")),
        "authenticate": await refusal(agent.authenticate(method_id="x")),
    }
    await agent.close_session(session_id=session)
    closed = await refusal(agent.close_session(session_id=session))
    return {
        "listed": [each.session_id for each in listed.sessions],
        "loaded": loaded,
        "resumed": resumed,
        "closed": closed,
        "refused": refused,
    }


async def refusal(call: Any) -> int | None:
    """The code with which a request is refused."""
    try:
        await call
    except acp.RequestError as refused:
        return int(refused.code)
    return None


asyncio.run(main(sys.argv[1], sys.argv[2:]))
