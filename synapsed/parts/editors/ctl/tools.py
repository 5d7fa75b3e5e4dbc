"""Turns tool calls of an agent's program into updates that an editor shows: by a call's input, for any program.

Pure.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from synapsed.parts.editors.ctl.content import id_for

TITLE_MAX = 200
"""Characters of a tool call's title."""

OPEN_MAX = 256
"""Most unfinished calls: beyond that the oldest is forgotten."""

OUTPUT_MAX = 8000
"""Characters of a call's output, as text."""

_KINDS = (
    ("execute", ("bash", "shell", "exec", "command", "terminal")),
    ("edit", ("edit", "write", "patch", "replace")),
    ("delete", ("delete", "remove")),
    ("move", ("move", "rename")),
    ("fetch", ("fetch", "http", "browse")),
    ("search", ("search", "grep", "glob", "find", "list")),
    ("read", ("read", "view", "open")),
    ("think", ("think", "plan", "todo", "task")),
)
"""Kind of a tool, by words in its name: the protocol's kinds, the first that fits."""

_ABOUT = ("command", "cmd", "file_path", "filePath", "absolute_path", "path", "pattern", "query", "url", "description")
"""Subject of a call, by programs' names of fields, the most useful first."""

_PATHS = ("file_path", "filePath", "absolute_path", "path", "filename")
_OLD = ("old_string", "oldString", "old_str", "old_text")
_NEW = ("new_string", "newString", "new_str", "new_text", "content")
_STEPS = ("todos", "plan")
_STEP = ("content", "step", "description")
_STATES = {"in_progress": "in_progress", "active": "in_progress", "completed": "completed", "done": "completed"}
_PRIORITIES = frozenset({"high", "medium", "low"})


class EditorCalls:
    """The calls of one agent. `cwd` is its folder, for paths that are not absolute."""

    def __init__(self, cwd: str) -> None:
        self._cwd = cwd
        self._open: dict[str, str] = {}
        """Unfinished calls: the task, by the call's id."""
        self._diffs: set[str] = set()
        """Changes of the newest turn, if they were sent."""

    def only_open(self, task: str | None) -> str | None:
        """Returns the unfinished call of `task`, if it is the only one: its program's question is about it."""
        found = [call for call, of in self._open.items() if of == (task or "")]
        return found[0] if len(found) == 1 else None

    def end(self, task: str) -> None:
        """Drops the unfinished calls of a task that is over."""
        self._open = {call: of for call, of in self._open.items() if of != task}

    def updates(self, event: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yields the updates for a `toolExecution`."""
        data, task = event["data"], event.get("task") or ""
        call = str(data.get("call_id") or id_for("call", event.get("id"), task))
        given = data.get("input")
        given = given if isinstance(given, dict) and not given.get("truncated") else {}
        if data["status"] == "started":
            self._open[call] = task
            if len(self._open) > OPEN_MAX:
                del self._open[next(iter(self._open))]
            yield {"sessionUpdate": "tool_call", **self._begun(call, data, given), "status": "in_progress"}
            if plan := plan_of(given):
                yield {"sessionUpdate": "plan", "entries": plan}
            return
        done = {"status": data["status"], **_output(data)}
        if self._open.pop(call, None) is None:
            yield {"sessionUpdate": "tool_call", **self._begun(call, data, given), **done}
        else:
            yield {"sessionUpdate": "tool_call_update", "toolCallId": call, **done}

    def told(self, event: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yields the updates for a `plan`, or for the `diff` of a turn."""
        data = event["data"]
        if event["event"] == "plan" and isinstance(data.get("steps"), list):
            steps = [step for step in data["steps"] if step.get("text")]
            entries = [{"content": s["text"], "status": s["status"], "priority": "medium"} for s in steps]
            yield {"sessionUpdate": "plan", "entries": entries}
        elif event["event"] == "diff" and isinstance(data.get("diff"), str) and data["diff"]:
            call = id_for("diff", event.get("agent"), event.get("task") or "", data.get("turn_id"))
            cut = data["diff"] if len(data["diff"]) <= OUTPUT_MAX else f"{data['diff'][:OUTPUT_MAX]}…"
            words = {"type": "text", "text": f"```diff\n{cut}\n```"}
            content = [{"type": "content", "content": words}]
            kind = "tool_call_update" if call in self._diffs else "tool_call"
            self._diffs = {call}
            about = {"title": "what this turn has changed", "kind": "edit", "status": "completed", "content": content}
            yield {"sessionUpdate": kind, "toolCallId": call, **about}

    def _begun(self, call: str, data: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        name = str(data.get("tool_name") or "tool")
        told: dict[str, Any] = {"toolCallId": call, "title": title(name, given), "kind": kind_of(name)}
        if given:
            told["rawInput"] = given
        path = _first(given, _PATHS)
        if path is not None:
            path = path if path.startswith("/") else f"{self._cwd.rstrip('/')}/{path}"
            told["locations"] = [{"path": path}]
            new = _first(given, _NEW, empty=True)
            if new is not None and told["kind"] == "edit":
                old = _first(given, _OLD, empty=True)
                told["content"] = [{"type": "diff", "path": path, "oldText": old, "newText": new}]
        return told


def kind_of(name: str) -> str:
    """Returns the protocol's kind of a tool of this name."""
    lowered = name.lower()
    return next((kind for kind, words in _KINDS if any(word in lowered for word in words)), "other")


def title(name: str, given: Mapping[str, Any]) -> str:
    about = _first(given, _ABOUT)
    told = f"{name}: {' '.join(about.split())}" if about else name
    return told if len(told) <= TITLE_MAX else f"{told[: TITLE_MAX - 1]}…"


def plan_of(given: Mapping[str, Any]) -> list[dict[str, str]]:
    """Returns the steps of a plan that a call keeps; empty for any other call."""
    steps: list[Any] = next((given[name] for name in _STEPS if isinstance(given.get(name), list)), [])
    found = []
    for step in steps:
        words = _first(step, _STEP) if isinstance(step, dict) else None
        if words is None:
            return []
        priority = step.get("priority")
        found.append(
            {
                "content": words,
                "status": _STATES.get(str(step.get("status")), "pending"),
                "priority": priority if priority in _PRIORITIES else "medium",
            }
        )
    return found


def _output(data: Mapping[str, Any]) -> dict[str, Any]:
    output = data.get("output")
    told = data.get("error") if data["status"] == "failed" and data.get("error") else output
    words = told.get("text") if isinstance(told, dict) else told
    found: dict[str, Any] = {}
    if isinstance(words, str) and words:
        cut = words if len(words) <= OUTPUT_MAX else f"{words[:OUTPUT_MAX]}…"
        found["content"] = [{"type": "content", "content": {"type": "text", "text": cut}}]
    elif isinstance(output, dict) and not output.get("truncated"):
        found["rawOutput"] = output
    return found


def _first(given: Mapping[str, Any], names: tuple[str, ...], *, empty: bool = False) -> str | None:
    values = (given.get(name) for name in names)
    return next((value for value in values if isinstance(value, str) and (value or empty)), None)
