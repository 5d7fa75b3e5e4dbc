"""A client made with the protocol's own Python SDK: prompts one after the other, and what came of each.

    python sdk_client.py CWD COMMAND…      # on stdin a JSON array of {text, permission?: "allow" | "reject" | null}

Prints a JSON document: `{session, agent, turns: [{stop, text, permissions, tools, error}]}`. `text` is the agent's
messages joined, as the specification says; a permission that is null is left to others.
"""

import asyncio
import json
import os
import sys
from typing import Any

import acp
from acp.schema import AllowedOutcome, DeniedOutcome, RequestPermissionResponse


class Editor(acp.Client):  # type: ignore[misc]
    def __init__(self) -> None:
        self.text: list[str] = []
        self.tools: list[str] = []
        self.asked: list[list[str]] = []
        self.permission: str | None = None

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        kind = update.session_update
        if kind == "agent_message_chunk":
            self.text.append(update.content.text)
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
                block = acp.text_block(turn["text"])
                stop = (await agent.prompt(session_id=session.session_id, prompt=[block])).stop_reason
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
        print(json.dumps({"session": session.session_id, "agent": info, "turns": told}))


asyncio.run(main(sys.argv[1], sys.argv[2:]))
