"""Synapsed's own instructions to an agent in lists for people: one grey line, never first."""

import io
from types import SimpleNamespace
from typing import Any, cast

import pytest

from synapsectl.colours import DIM
from synapsectl.commands import task as task_verb
from synapsectl.commands.tasks import by_need, row
from synapsectl.context import CommandContext
from synapsectl.output import CommandOutput, TableCell


def one(id_: str, text: str, *, sender: Any = None, status: str = "completed", **more: Any) -> dict[str, Any]:
    facts = {
        "id": id_, "agent_id": "a", "status": status, "priority": 3, "updated_at": "2026-01-02T20:00:00.000Z",
        "message": {"parts": [{"type": "text", "text": text}]}, "artifacts": [],
        "metadata": {"sender": sender} if sender is not None else {},
    }  # fmt: skip
    return facts | more


SYSTEM = {"sender_id": "synapse-system", "sender_type": "system"}


def test_they_are_last_when_they_are_done() -> None:
    told, first, second = one("1", "You are ann", sender=SYSTEM), one("2", "hello"), one("3", "again")
    assert by_need([second, told, first]) == [second, first, told]
    waiting = one("4", "You are ann", sender=SYSTEM, status="working")
    assert by_need([first, waiting]) == [waiting, first]


def test_a_row_has_words_for_them() -> None:
    cell = row(one("1", "You are ann", sender=SYSTEM), {}, 20)[-1]
    assert cell == TableCell("instructions from synapsed", DIM)
    failed = one("1", "You are ann", sender=SYSTEM, status="failed", error={"code": "X", "message": "it ended"})
    assert cast("TableCell", row(failed, {}, 20)[-1]).text == "X: it ended · instructions from synapsed"
    assert cast("TableCell", row(one("2", "hello", sender="synapse-system"), {}, 20)[-1]).text == "hello"


@pytest.mark.parametrize(("columns", "whole"), [(80, False), (None, True)])
def test_one_task_is_whole_in_a_pipe(columns: int | None, *, whole: bool) -> None:
    out = CommandOutput(io.StringIO(), io.StringIO(), columns=columns)
    client = SimpleNamespace(get=lambda _path: [{"id": "a", "name": "ann"}])
    task = one("1", "You are ann\nand this is all", sender=SYSTEM)
    task_verb._show(task, cast("CommandContext", SimpleNamespace(out=out, client=client)))
    shown = cast("io.StringIO", out.stdout).getvalue()
    assert ("  > and this is all" in shown) is whole
    assert ("instructions from synapsed, 2 lines" in shown) is not whole
