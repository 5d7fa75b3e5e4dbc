"""`/schedules`: shapes, rights, and what is wrong in a body."""

import pytest

from synapsed.api.rights import Standing
from tests.api.serving import Api

BODY = {"name": "standup", "at": "Mon..Fri 08:00", "agent": "claude", "message": "What is new?"}


async def test_add_list_run_remove(api: Api) -> None:
    status, made = await api.json(api.http, "POST", "/schedules", json=BODY | {"missed": "once"})
    assert status == 200, made
    assert (made["id"], made["source"], made["by"], made["missed"], made["zone"]) == (
        "standup",
        "verb",
        None,
        "once",
        None,
    )
    assert len(made["next"]) == 5
    assert made["next"][0].endswith(("T08:00:00+01:00", "T08:00:00+02:00")), "in the machine's zone"
    assert await api.json(api.http, "GET", "/schedules") == (200, [made])
    status, answer = await api.json(
        api.http, "POST", "/schedules/standup/run", headers={"Content-Type": "application/json"}
    )
    assert status == 200, answer
    assert answer["task"]["message"]["parts"][0]["text"] == "What is new?"
    assert await api.json(api.http, "DELETE", "/schedules/standup") == (200, {"status": "removed", "name": "standup"})
    status, answer = await api.json(api.http, "DELETE", "/schedules/standup")
    assert (status, answer["error"]["code"]) == (404, "UNKNOWN_SCHEDULE")


@pytest.mark.parametrize(
    ("wrong", "field", "why"),
    [
        ({"at": "tomorrow"}, "at", "'tomorrow' is not a weekday"),
        ({"at": "* * * * * *"}, "at", "5 fields"),
        ({"at": "2020-01-01 08:00"}, "at", "never come"),
        ({"zone": "Mars/Olympus"}, "zone", "not a time zone"),
        ({"at": "08:00 UTC", "zone": "Europe/Berlin"}, "zone", "names a zone itself"),
        ({"missed": "twice"}, "missed", "'skip' or 'once'"),
        ({"priority": 6}, "priority", "5"),
        ({"message": " \n"}, "message", "blank"),
        ({"name": "a b"}, "name", "pattern"),
        ({"when": "08:00"}, "when", "no such key"),
    ],
)
async def test_what_is_refused(api: Api, wrong: dict, field: str, why: str) -> None:
    status, answer = await api.json(api.http, "POST", "/schedules", json=BODY | wrong)
    assert (status, answer["error"]["code"]) == (400, "INVALID_REQUEST")
    assert answer["error"]["details"]["field"] == field
    assert why in answer["error"]["message"]


async def test_an_agent_may_not_unless_its_profile_says_so(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    from synapsed.api import security
    from synapsed.api.rights import Rights

    rights = Rights(Standing.AGENT, "synapse-claude-8100")
    monkeypatch.setattr(security, "decide", lambda *_, **__: rights)
    for method, path in (("GET", ""), ("POST", ""), ("DELETE", "/standup"), ("POST", "/standup/run")):
        status, answer = await api.json(api.http, method, f"/schedules{path}", json=BODY)
        assert (status, answer["error"]["code"]) == (403, "FORBIDDEN"), (method, path)
    monkeypatch.setattr(api.control.directory, "granted", lambda agent: frozenset({"make_schedules"}))
    status, made = await api.json(api.http, "POST", "/schedules", json=BODY)
    assert (status, made["by"]) == (200, "synapse-claude-8100")
