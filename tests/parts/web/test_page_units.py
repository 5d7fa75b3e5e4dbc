"""Units of the page's modules and its service worker, run by node without a browser. The rest is in `tests/web`."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

STATIC = Path(__file__).parents[3] / "synapsed" / "parts" / "web" / "static"
IMPORT = re.compile(r'^import \{([^}]*)\} from "[^"]+";$', re.MULTILINE)
TREE = """
const text = (node) => node === null || node === undefined || node === false ? ""
  : Array.isArray(node) ? node.map(text).join("") : typeof node === "object" ? text(node.children) : String(node);
const known = {
  h: (type, props, ...children) => ({ type, props, children }), may: () => false, useState: (one) => [one, () => {}],
};
const stubs = new Proxy(known, { get: (_, name) => known[name] ?? (() => ({})) });
"""
"""Stands in for Preact and for the other modules: a tree of nodes, and its text."""

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs node")


def node(script: str) -> Any:
    """What the script tells as JSON."""
    made = subprocess.run(["node", "-e", script], capture_output=True, text=True, timeout=120, check=False)
    assert made.returncode == 0, made.stderr
    return json.loads(made.stdout)


def flag(task: dict[str, Any]) -> str:
    """What stands below a task on the page about the beginning of its answer."""
    source = IMPORT.sub(r"const { \1 } = stubs;", (STATIC / "js" / "tasks.js").read_text("utf-8"))
    source = source.replace(" as ", ": ").replace("export ", "")
    answer = {"artifact_id": "answer", "parts": [{"type": "text", "text": "said"}]}
    whole = {
        "id": "t", "status": "completed", "artifacts": [answer], "updated_at": "2026-01-01T00:00:00Z",
        "message": {"parts": [{"type": "text", "text": "ask"}]}, "metadata": {}, "error": None, **task,
    }  # fmt: skip
    shown: str = node(
        f"{TREE}{source}\nconst made = TaskView({{ task: {json.dumps(whole)}, agent: 'a', when: 'now', tools: '' }});\n"
        "const foot = made.children.find((one) => one && one.type === 'footer');\n"
        "console.log(JSON.stringify(text(foot)));"
    )
    return shown.removeprefix("completed").removesuffix("now")


@pytest.mark.parametrize(
    ("task", "told"),
    [
        ({"truncated": True, "missing_lines": 22194}, "22194 lines are missing at its beginning"),
        ({"truncated": True, "missing_lines": 1}, "1 line is missing at its beginning"),
        ({"truncated": True, "missing_lines": None}, "its beginning is missing"),
        ({"truncated": True}, "its beginning is missing"),
        ({"truncated": False, "missing_lines": None}, ""),
        ({"truncated": False, "missing_lines": 0}, ""),
        ({}, ""),
        ({"truncated": True, "missing_lines": 5, "artifacts": []}, ""),
    ],
)
def test_where_lines_are_missing_the_page_says_so(task: dict[str, Any], told: str) -> None:
    assert flag(task) == told


WORKER = """
const handlers = {}, shown = [], posted = [], opened = [];
globalThis.self = {
  PAGE: { version: "0123456789abcdef", files: [] },
  addEventListener: (name, handler) => { handlers[name] = handler; },
  clients: { matchAll: async () => [], openWindow: async (to) => { opened.push(to); } },
  registration: {
    showNotification: async (title, options) => { shown.push({ title, ...options }); },
    getNotifications: async () => [],
  },
};
globalThis.location = { href: "https://box/web/sw.js", origin: "https://box" };
globalThis.Notification = { maxActions: 2 };
globalThis.fetch = async (path, options) => {
  posted.push({ path, ...JSON.parse(options.body) });
  return { ok: true };
};
let clock = 1_700_000_000_000;
Date.now = () => clock;
const done = [];
const push = async (told) => {
  handlers.push({ data: { json: () => told }, waitUntil: (one) => done.push(one) });
  await Promise.all(done);
};
const press = async (data, action) => {
  handlers.notificationclick({ notification: { data, close: () => {} }, action, waitUntil: (one) => done.push(one) });
  await Promise.all(done);
};
const told = (prompt) => ({
  id: "i", state: "opened", agent: "a", task: "t", prompt_id: prompt, title: "a asks", body: "Run it?",
  options: [{ key: "1", label: "Approve" }, { key: "2", label: "Deny" }],
});
"""


def worked(steps: str) -> dict[str, Any]:
    """What the service worker has shown, posted and opened."""
    source = (STATIC / "sw.js").read_text("utf-8")
    script = (
        f"{WORKER}{source}\n(async () => {{ {steps} console.log(JSON.stringify({{ shown, posted, opened }})); }})();"
    )
    found: dict[str, Any] = node(script)
    return found


def test_a_button_answers_what_its_notification_showed() -> None:
    found = worked("await push(told('p1')); clock += 1000; await press(shown[0].data, 'answer:1');")
    assert found["posted"] == [{"path": "/agents/a/tasks/t/input", "input": "1", "prompt_id": "p1"}]
    assert found["opened"] == []


def test_an_agent_elsewhere_is_answered_by_its_task() -> None:
    """Its name may be that of an agent here, which has another task, another page, or asks nothing."""
    found = worked(
        "await push({ ...told('p1'), elsewhere: true }); clock += 1000;"
        "await press(shown[0].data, 'answer:1'); await press(shown[0].data, '');"
    )
    assert found["posted"] == [{"path": "/control/tasks/t/input", "input": "1", "prompt_id": "p1"}]
    assert found["opened"] == ["/"]


@pytest.mark.parametrize("later", [0, 1, 500, 999, -999])
def test_another_question_under_the_finger_is_not_answered(later: int) -> None:
    """It takes the place of the one before, with the same tag, just as its button is pressed: the page is opened."""
    found = worked(
        "await push(told('p1')); clock += 60000; await push(told('p2'));"
        f"clock += {later}; await press(shown[1].data, 'answer:1');"
    )
    assert found["posted"] == []
    assert found["opened"] == ["/#/agent/a"]
    assert [one["tag"] for one in found["shown"]] == ["i", "i"]


def test_the_question_before_is_answered_by_its_own_id_if_at_all() -> None:
    found = worked(
        "await push(told('p1')); clock += 60000; await push(told('p2')); await press(shown[0].data, 'answer:1');"
    )
    assert found["posted"] == [{"path": "/agents/a/tasks/t/input", "input": "1", "prompt_id": "p1"}]


def test_a_text_that_a_notification_cuts_has_no_buttons() -> None:
    """Such a text comes without options and prompt; what is not a list of options makes none."""
    found = worked("await push({ ...told('p1'), prompt_id: undefined, body: 'x'.repeat(900) });")
    assert (found["shown"][0]["actions"], len(found["shown"][0]["body"])) == ([], 400)


STREAM = """
let state = { line: "live", inbox: null, gone: [], agents: null };
const asked = [];
const stubs = {
  ApiError: Error, get: () => new Promise((give) => asked.push(give)), socketUrl: String,
  now: () => state, onEvent: () => {}, put: (change) => { state = { ...state, ...change }; }, told: () => {},
};
"""
"""Stands in for the other modules of `stream.js`: each request waits until it is answered."""


@pytest.mark.parametrize(("read", "list_"), [("readInbox", "inbox"), ("readAgents", "agents")])
def test_a_list_that_was_asked_for_earlier_and_comes_later_is_not_shown(read: str, list_: str) -> None:
    source = IMPORT.sub(r"const {\1} = stubs;", (STATIC / "js" / "stream.js").read_text("utf-8"))
    shown = node(
        f"{STREAM}{source.replace('export ', '')}\n"
        f"const both = [{read}(), {read}()];\n"
        "asked[1]([{ id: 'new' }]);\n"
        "both[1].then(() => { asked[0]([{ id: 'old' }]); return both[0]; })"
        f".then(() => console.log(JSON.stringify(state.{list_})));"
    )
    assert shown == [{"id": "new"}]


FULL = """
globalThis.localStorage = { getItem: () => null, setItem: () => { throw new Error("QuotaExceededError"); } };
globalThis.document = { documentElement: { dataset: {} } };
const chosen = [];
known.useState = (one) => [one, (next) => chosen.push(next)];
known.useRef = () => ({ current: null });
known.useStore = () => null;
const find = (node, is) => Array.isArray(node) ? node.map((one) => find(one, is)).find(Boolean)
  : node && typeof node === "object" ? (is(node) ? node : find(node.children, is)) : undefined;
"""
"""A browser whose storage has no room, and a search in a tree of nodes."""


def test_colours_are_chosen_though_there_is_no_room_to_keep_them() -> None:
    source = IMPORT.sub(r"const {\1} = stubs;", (STATIC / "js" / "settings.js").read_text("utf-8"))
    theme = node(
        f"{TREE}{FULL}{source.replace('export default ', '')}\n"
        "find(Settings({}), (one) => one.props && one.props.value === 'dark').props.onChange();\n"
        "console.log(JSON.stringify(document.documentElement.dataset.theme));"
    )
    assert theme == "dark"


def test_the_size_of_a_screen_is_chosen_though_there_is_no_room_to_keep_it() -> None:
    source = IMPORT.sub(r"const {\1} = stubs;", (STATIC / "js" / "screen.js").read_text("utf-8"))
    chosen = node(
        f"{TREE}{FULL}{source.replace('export ', '')}\n"
        "find(Screen({ agent: 'a', desk: true }), (one) => one.props && one.props['aria-label'] === 'A+ larger')"
        ".props.onClick();\n"
        "console.log(JSON.stringify(chosen));"
    )
    assert chosen == [14]
