"""What an agent elsewhere asks: in the inbox of whoever sent to it, with verbs that work, until it is answered."""

import pytest

from tests.parts.elsewhere.test_externals_of_daemons import here, there
from tests.support.daemon import Daemon, eventually
from tests.support.threaded import real_one

__all__ = ["here", "there"]


def waiting(daemon: Daemon) -> dict:
    """The one item of the inbox, which is about an agent elsewhere."""
    return eventually(lambda: next(iter(daemon.get("/inbox").json), None), "something waits")


def test_it_stands_in_the_inbox_and_is_answered_by_its_name(here: Daemon, there: Daemon):
    waits = here.ctl("send", "far", "--wait", "ask y/n")
    assert waits.code == 7, waits.err
    assert "attach" not in waits.err
    item = waiting(here)
    assert (item["agent"], item["agent_id"], item["terminal"]) == ("far", "external:far", False)
    assert here.ctl("inbox", "--json").json[0]["id"] == item["id"]
    (row,) = here.ctl("list", "--json").json
    assert (row["name"], row["activity"], row["task"]) == ("far", "waiting", item["task"])
    assert row["asks"].split()[0] in item["question"]
    answered = here.ctl("input", "far", "y")
    assert answered.code == 0, answered.err
    here.task_in(item["task"], "completed")
    eventually(lambda: not here.get("/inbox").json, "nobody waits any more")
    assert here.ctl("list", "--json").json == []
    again = here.ctl("input", "far", "y")
    assert (again.code, "far asks nothing" in again.err) == (6, True), again


@pytest.mark.night
@real_one
def test_the_next_daemon_has_it(here: Daemon, there: Daemon):
    here.ctl("send", "far", "ask y/n")
    item = waiting(here)
    here.kill9()
    here.start()
    assert waiting(here)["id"] == item["id"]
    assert here.ctl("approve", "far").code == 0
    here.task_in(item["task"], "completed")
    eventually(lambda: not here.get("/inbox").json, "nobody waits any more")


@pytest.mark.night
def test_it_goes_when_it_is_answered_over_there(here: Daemon, there: Daemon):
    here.ctl("send", "far", "ask y/n")
    waiting(here)
    assert there.ctl("approve", "dummy").code == 0
    eventually(lambda: not here.get("/inbox").json, "nobody waits any more")


def test_it_is_among_all_that_is_approved(here: Daemon, there: Daemon):
    first = here.ctl("send", "far", "ask y/n").out.strip()
    waiting(here)
    approved = here.ctl("approve", "--all")
    assert approved.code == 0, approved.err
    here.task_in(first, "completed")
