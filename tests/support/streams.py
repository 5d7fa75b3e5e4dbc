"""Streams of a task whose subscriber leaves and comes back, while the daemon is killed: what it got, and how often."""

from contextlib import ExitStack
from typing import Any

from tests.support.daemon import Daemon

__all__ = ["hand_over", "jsonrpc_events", "until"]


def hand_over(daemon: Daemon, task_id: str, agent: str, numbers: range) -> None:
    """An artifact for each number, named by it."""
    for number in numbers:
        body = {"parts": [{"type": "text", "text": str(number)}], "artifact_id": f"made-{number}"}
        answer = daemon.post(f"/agents/{agent}/tasks/{task_id}/artifacts", body)
        assert answer.status == 200, answer.json


def until(daemon: Daemon, path: str, last_id: int | None, enough: int | None) -> list[dict[str, Any]]:
    """The first `enough` events of the stream after `last_id`, or all to its end; then the subscriber leaves."""
    with daemon.sse(path, last_id=last_id) as events:
        if enough is None:
            return list(events)
        return [next(events) for _ in range(enough)]


def jsonrpc_events(daemon: Daemon, agent: str, method: str, task_id: str, stack: ExitStack, **headers: str) -> Any:
    """The results of a JSON-RPC stream on a task, one by one; it is closed with `stack`."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"id": task_id}}
    path = f"/agents/{agent}/a2a"
    events = stack.enter_context(daemon.sse(path, method="POST", body=body, headers=headers))
    return (event["data"]["result"] for event in events)
