"""A removed agent's port, and so its id, go to another: whoever asks by these sees nothing of the first."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.test_agents_and_shells import token_of
from tests.support.daemon import ANY_PORTS, Answer
from tests.support.ports import free_port
from tests.support.threaded import ThreadedDaemon

SECRET = "the words of the first"
LATER = "the words of the second"


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[ThreadedDaemon]:
    daemon = ThreadedDaemon(tmp_path, config=ANY_PORTS).start()
    yield daemon
    daemon.end()


class Caller:
    """A person, or whoever has the agent's token."""

    def __init__(self, daemon: ThreadedDaemon, agent: dict[str, Any], *, is_agent: bool) -> None:
        self._daemon = daemon
        self._headers = {"A2A-Version": "1.0"}
        self._headers |= {"Authorization": f"Bearer {token_of(daemon, agent)}"} if is_agent else {}

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        return self._daemon.request(method, path, body, {**self._headers, **headers})

    def a2a(self, method: str, **params: Any) -> Answer:
        return self.ask("POST", "/agents/dummy/a2a", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})

    def events(self, path: str, more: str = "") -> Answer:
        return self.ask("GET", f"{path}?until=newest&stream=sse{more}", **{"Last-Event-ID": "0"})

    def told(self, kind: str) -> list[tuple[str, str]]:
        """Ids and data of the events of a kind."""
        found = self.events("/events", f"&types={kind}").body.decode()
        return re.findall(r"id: (\d+)\nevent: .*\ndata: (.*)", found)

    def send(self, to: str, text: str) -> dict[str, Any]:
        body = {"message": {"role": "user", "parts": [{"type": "text", "text": f"echo {text}"}]}}
        answer = self.ask("POST", f"/agents/{to}/tasks/send", body, **{"Idempotency-Key": "k"})
        assert answer.status == 200, answer
        task: dict[str, Any] = answer.json["task"]
        return task


def lives(daemon: ThreadedDaemon, text: str, **wanted: Any) -> dict[str, Any]:
    """An agent is started, works, is asked and answered, asks another, calls a tool."""
    agent = daemon.start_agent(**wanted)
    itself = Caller(daemon, agent, is_agent=True)
    done = daemon.ended(daemon.send(f"echo {text}"))
    asked = daemon.send(f"echo {text}\nask y/n")
    daemon.task_in(asked, "input_required")
    answer = daemon.request("POST", "/control/agents/dummy/input", {"input": "y"}, {"Idempotency-Key": "k"})
    assert answer.status == 200, answer
    daemon.ended(asked)
    sent = itself.send("other", text)
    daemon.ended(sent["id"])
    tool = {"event": "toolExecution", "data": {"tool_name": "shell", "status": "completed", "input": {"x": text}}}
    assert itself.ask("POST", "/agents/dummy/events", tool).status == 200
    return {"agent": agent, "done": done["id"], "sent": sent["id"], "context": done["context_id"]}


READERS: dict[str, Callable[[Caller, Caller], Answer]] = {
    "tasks": lambda person, _: person.ask("GET", "/agents/dummy/tasks"),
    "tasks for itself": lambda _, itself: itself.ask("GET", "/control/tasks"),
    "A2A": lambda person, _: person.a2a("ListTasks", includeArtifacts=True),
    "events": lambda person, _: person.events("/agents/dummy/events"),
    "events for itself": lambda _, itself: itself.events("/agents/dummy/events"),
    "events by agent": lambda person, _: person.events("/events", "&agents=dummy"),
    "history": lambda person, _: person.ask("GET", "/control/history?agent=dummy&text=true"),
    "history for itself": lambda _, itself: itself.ask("GET", "/control/history?text=true"),
}
"""All that is shown of `dummy`, or to it."""


@pytest.mark.slow
def test_nothing_of_the_first_is_shown_of_the_second(daemon: ThreadedDaemon) -> None:
    def shows(text: str) -> list[str]:
        return [name for name, read in READERS.items() if text.encode() in read(person, itself).body]

    daemon.start_agent(name="other")
    first = lives(daemon, SECRET, port=free_port())  # of its profile's, another daemon might get it in between
    person, itself = (Caller(daemon, first["agent"], is_agent=each) for each in (False, True))
    assert shows(SECRET) == list(READERS)
    ((event_id, _),) = person.told("toolExecution")
    assert daemon.ctl("stop", "dummy", "--remove").code == 0
    before, second = itself, lives(daemon, LATER, port=first["agent"]["port"])
    assert before.ask("GET", "/control/tasks").status == 401, "what the first has left running is not the second"
    itself = Caller(daemon, second["agent"], is_agent=True)
    assert second["agent"]["id"] == first["agent"]["id"]
    assert second["sent"] != first["sent"], "its keys are its own"
    assert (shows(SECRET), shows(LATER)) == ([], list(READERS))
    assert person.ask("GET", f"/agents/dummy/tasks/{first['done']}").status == 404
    assert person.a2a("GetTask", id=first["done"]).json["error"]["code"] == -32001
    assert person.a2a("ListTasks", contextId=first["context"]).json["result"]["tasks"] == []
    for task in (first["done"], first["sent"]):
        assert itself.ask("GET", f"/control/tasks/{task}").status == 404
    assert itself.ask("GET", f"/events/{event_id}").status in (403, 404)
    # A person who looks at everything sees both.
    of_all, of_one = (person.ask("GET", f"/control/history/stats{of}").json for of in ("", "?agent=dummy"))
    assert of_all["by_agent"][second["agent"]["id"]] == 2 * of_one["by_agent"][second["agent"]["id"]]
    assert person.ask("GET", f"/control/tasks/{first['done']}").status == 200
    assert person.ask("GET", f"/events/{event_id}").status == 200
    assert SECRET.encode() in person.events("/events").body
