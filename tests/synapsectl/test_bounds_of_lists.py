"""Lists that end at a number say so, and how to see the rest."""

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from synapsectl.client import Client, HttpReply
from synapsectl.commands.tasks import newest
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


@pytest.mark.parametrize(
    ("there", "limit", "given", "more"), [(1201, 500, 500, True), (1201, 1100, 1100, True), (7, 9, 7, False)]
)
def test_tasks_are_read_page_by_page(there: int, limit: int, given: int, more: bool) -> None:
    """A page may end before its limit, where tasks are large."""
    daemon = Paged(range(there), 300)
    assert newest(daemon, "a&b", limit) == (list(range(given)), more)
    assert all(asked["agent"] == "a&b" for asked in daemon.asked)


@pytest.mark.parametrize(("there", "told"), [(51, "these are the newest 50, and there may be more"), (50, "")])
def test_history_says_where_it_ends(there: int, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said = io.StringIO()
    ctx = CommandContext({}, CommandOutput(io.StringIO(), said, columns=None))
    monkeypatch.setattr(CommandContext, "client", Paged(range(there), 200))
    assert len(_items(ctx, {}, 50, whole=False)) == 50
    assert (told in said.getvalue(), bool(said.getvalue())) == (True, bool(told))
