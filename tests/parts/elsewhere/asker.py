"""An agent elsewhere that asks before it answers, of A2A 1.0: every task goes through the same questions."""

import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

from tests.parts.elsewhere.elsewhere import card_10
from tests.parts.elsewhere.rpc_agent import RpcAgent, rpc_agent

__all__ = ["Asker", "asker"]

UNKNOWN = {"code": -32001, "message": "Task not found"}


@dataclass
class Asker:
    """`said` are the messages that came, `late` the looks at a task, after an answer, that still show the question that
    was answered. Each question has an id and a time of its own."""

    agent: RpcAgent
    questions: list[str]
    late: int = 0
    said: list[str] = field(default_factory=list)
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    _stale: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.agent.card = card_10(f"{self.agent.url}/", capabilities={"streaming": False})
        self.agent.methods = {"SendMessage": self._send, "GetTask": self._get, "ListTasks": self._list}

    def next(self, task_id: str) -> None:
        """Lets the task go on, as somebody over there would who answers it."""
        task = self.tasks[task_id]
        task["asked"] += 1
        asked = task["asked"]
        text = self.questions[asked] if asked < len(self.questions) else ""
        state = "TASK_STATE_INPUT_REQUIRED" if text else "TASK_STATE_COMPLETED"
        task["status"] = {"state": state}
        if text:
            message = {"messageId": f"q-{asked}", "role": "ROLE_AGENT", "parts": [{"text": text}]}
            task["status"] |= {"message": message, "timestamp": f"2026-01-01T00:00:{asked:02}Z"}
        else:
            task["artifacts"] = [{"artifactId": "a", "parts": [{"text": f"done: {', '.join(self.said)}"}]}]

    def _send(self, params: dict[str, Any]) -> Any:
        message = params["message"]
        if (task_id := message.get("taskId")) and task_id not in self.tasks:
            return UNKNOWN
        task_id = task_id or f"task-{len(self.tasks) + 1}"
        self.said.append(message["parts"][0]["text"])
        known = self.tasks.setdefault(task_id, {"id": task_id, "contextId": "c", "asked": -1, "history": []})
        known["history"] = [*known["history"], message]
        before = {**known}
        self.next(task_id)
        if known["asked"] > 0:
            self._stale[task_id] = [before] * self.late
        return {"task": self._shown(task_id)}

    def _get(self, params: dict[str, Any]) -> Any:
        return self._shown(params["id"]) if params["id"] in self.tasks else UNKNOWN

    def _shown(self, task_id: str) -> dict[str, Any]:
        stale = self._stale.get(task_id)
        task = stale.pop() if stale else self.tasks[task_id]
        return {name: value for name, value in task.items() if name != "asked"}

    def _list(self, params: dict[str, Any]) -> Any:
        return {"tasks": [self._shown(task_id) for task_id in self.tasks], "nextPageToken": ""}


@contextlib.asynccontextmanager
async def asker(*questions: str, **options: Any) -> AsyncGenerator[Asker]:
    async with rpc_agent({}) as agent:
        yield Asker(agent, list(questions), **options)
