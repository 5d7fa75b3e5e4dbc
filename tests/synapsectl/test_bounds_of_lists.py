"""Lists that end at a number say so, and how to see the rest."""

import argparse
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from synapsectl.client import Client, HttpReply
from synapsectl.commands import tasks
from synapsectl.commands.tasks import LIMIT, newest
from synapsectl.context import CommandContext
from synapsectl.output import CommandOutput
from synapsed.parts.history.ctl.history import _items


class Paged(Client):
    """A daemon with `rows`, which gives at most `most` of them at a time."""

    def __init__(self, rows: Sequence[int], most: int) -> None:
        super().__init__("/nowhere")
        self.rows, self.most = rows, most
        self.asked: list[dict[str, Any]] = []

    def request(self, method: str, path: str, query: Mapping[str, object] | None, **_: Any) -> HttpReply:
        asked = dict(query or {})
        self.asked.append(asked)
        begin = int(str(asked.get("before", 0)))
        end = begin + min(self.most, int(str(asked["limit"])))
        more = end < len(self.rows)
        page = self.rows[begin:end]
        if path == "/control/history":
            body: object = {"items": list(page), "next": end if more else None, "complete": True}
            return HttpReply(200, {}, json.dumps(body).encode())
        link = f'<{path}?agent=a%26b&before={end}>; rel="next"'
        return HttpReply(200, {"link": link} if more else {}, json.dumps(list(page)).encode())


class PagedTasks(Paged):
    """The same, of tasks of no agent that is listed."""

    def request(self, method: str, path: str, query: Mapping[str, object] | None = None, **more: Any) -> HttpReply:
        if path == "/agents":
            return HttpReply(200, {}, b"[]")
        reply = super().request(method, path, query, **more)
        rows = [_task(number) for number in json.loads(reply.body)]
        return HttpReply(reply.status, reply.headers, json.dumps(rows).encode())


def _task(number: int) -> dict[str, Any]:
    at = "2026-01-02T11:00:00.000Z"
    message = {"role": "user", "parts": [{"type": "text", "text": "hi"}]}
    return {
        "id": f"{number:08}-0000", "agent_id": "synapse-dummy-8190", "status": "completed", "message": message,
        "created_at": at, "updated_at": at, "priority": 3,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("there", "limit", "given", "more"), [(1201, 500, 500, True), (1201, 1100, 1100, True), (7, 9, 7, False)]
)
def test_tasks_are_read_page_by_page(there: int, limit: int, given: int, more: bool) -> None:
    """A page may end before its limit, where tasks are large."""
    daemon = Paged(range(there), 300)
    assert newest(daemon, "a&b", limit) == (list(range(given)), more)
    assert all(asked["agent"] == "a&b" for asked in daemon.asked)


@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize(
    ("there", "told"), [(501, "these are the newest 500, and there are more: see --limit"), (500, "")]
)
def test_tasks_say_where_they_end(there: int, told: str, monkeypatch: pytest.MonkeyPatch, *, as_json: bool) -> None:
    out, said = io.StringIO(), io.StringIO()
    ctx = CommandContext({}, CommandOutput(out, said, columns=None))
    monkeypatch.setattr(CommandContext, "client", PagedTasks(range(there), 300))
    asked = argparse.Namespace(agent=None, limit=LIMIT, json=as_json)
    assert tasks.run(asked, ctx) == 0
    assert said.getvalue().strip().removeprefix("synapsectl: ") == told
    assert len(json.loads(out.getvalue()) if as_json else out.getvalue().splitlines()) == 500


@pytest.mark.parametrize(("there", "told"), [(51, "these are the newest 50, and there may be more"), (50, "")])
def test_history_says_where_it_ends(there: int, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said = io.StringIO()
    ctx = CommandContext({}, CommandOutput(io.StringIO(), said, columns=None))
    monkeypatch.setattr(CommandContext, "client", Paged(range(there), 200))
    assert len(_items(ctx, {}, 50, whole=False)) == 50
    assert (told in said.getvalue(), bool(said.getvalue())) == (True, bool(told))
