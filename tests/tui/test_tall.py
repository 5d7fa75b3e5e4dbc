"""Answers that are longer than a screen, of a full-screen program that no channel tells of."""

from typing import Any

import pytest

from tests.support.daemon import eventually
from tests.synapsectl.pty_tool import PtyTool
from tests.tui.conftest import Tui

TALL = 200


def height(tui: Tui) -> int:
    shown: dict[str, Any] = tui.daemon.get(f"/agents/{tui.name}/screen?format=json").json
    return int(shown.get("rows", 0))


def becomes_high(tui: Tui, rows: int) -> None:
    eventually(lambda: height(tui) == rows, f"its window has {rows} rows")


@pytest.fixture
def full(tui: Tui) -> Tui:
    tui.start(alternate=True).ready()
    becomes_high(tui, TALL)
    return tui


@pytest.mark.night
def test_a_long_answer_is_whole(full: Tui) -> None:
    task = full.ended(full.send("lines=90"))
    assert full.answer(task).splitlines() == ["You said: lines=90", *(f"  line {n}" for n in range(2, 91))]
    assert (task["exact"], task["truncated"]) == (False, False)
    assert full.ask("and then") == "You said: and then"


@pytest.mark.night
def test_one_that_is_longer_still_is_said_to_be_cut(full: Tui) -> None:
    task = full.ended(full.send("delay=0.5 lines=300"))
    assert full.answer(task).splitlines()[-1] == "  line 300"
    assert task["truncated"]
    assert task["artifacts"][-1]["metadata"] == {"truncated": True, "missing_lines": None}
    a2a = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": task["id"]}}
    told = full.daemon.request("POST", f"/agents/{full.name}/a2a", a2a, {"A2A-Version": "1.0"}).json["result"]
    assert told["metadata"]["synapsed"]["truncated"] is True
    waited = full.daemon.ctl("send", full.name, "delay=0.5 lines=300", "--wait")
    assert waited.out.endswith("  line 300\n")
    assert "this answer is cut" in waited.err
    assert full.daemon.ctl("task", task["id"], "--json").json["task"]["truncated"] is True


@pytest.mark.night
def test_an_answer_that_pushes_its_message_away_at_once_is_one(full: Tui) -> None:
    task = full.ended(full.send("lines=300"))
    assert full.answer(task).splitlines()[-1] == "  line 300"
    assert task["truncated"]
    assert full.ask("and then") == "You said: and then"


@pytest.mark.night
@pytest.mark.parametrize("read_only", [False, True])
def test_who_attaches_has_a_window_of_the_own_size(full: Tui, *, read_only: bool) -> None:
    options = ["--read-only"] if read_only else []
    person = PtyTool("attach", full.name, *options, env=full.daemon.env, rows=30, cols=100)
    becomes_high(full, 30)
    person.close()
    becomes_high(full, TALL)
    assert full.ask("again lines=90").splitlines()[-1] == "  line 90"


def test_a_restart_of_the_daemon_leaves_it_tall(full: Tui) -> None:
    full.daemon.kill9()
    full.daemon.start()
    full.ready()
    becomes_high(full, TALL)
    person = PtyTool("attach", full.name, "--read-only", env=full.daemon.env, rows=30, cols=100)
    becomes_high(full, 30)
    person.close()


@pytest.mark.night
def test_what_keeps_its_lines_keeps_its_size(tui: Tui) -> None:
    tui.start().ready()
    assert tui.ask("short") == "You said: short"
    assert height(tui) == 40
