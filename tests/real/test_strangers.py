"""Programs that nobody here wrote a profile for: what they ask is told, and approve, deny or input goes on.

They run under `generic`, as `synapsectl start generic -- program` starts any, or with a small profile of a user's
(`profiles`), which says where their composer is and nothing of their dialogs. Where they are not installed (`python -m
tests.real.strangers install`) they are skipped.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.real import strangers
from tests.real.agents import nonce, tasks_of
from tests.real.model import Model
from tests.real.programs import Prepared
from tests.support.daemon import PATIENCE_S, Daemon, eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

type Stranger = Callable[..., str]


@pytest.fixture
def stranger(request: pytest.FixtureRequest, daemon: Daemon, model: Model, private_dir: Path) -> Stranger:
    """`stranger("copilot")`: the program under `generic`, or another profile, started; its agent's name."""
    if (reason := strangers.missing()) is not None:
        request.config.get_terminal_writer().line(f"\n*** NOT TESTED: {reason} ***", red=True)
        pytest.skip(reason)

    own = daemon.home / "config" / "profiles"
    shutil.copytree(Path(__file__).with_name("profiles"), own, dirs_exist_ok=True)
    assert daemon.ctl("reload").code == 0

    def start(program: str, profile: str = "generic") -> str:
        prepared: Prepared = strangers.prepare(program, private_dir / "home", private_dir / "project", model.url)
        command = prepared.argv if profile == "generic" else prepared.argv[1:]
        env = {**daemon.env, **prepared.env}
        started = daemon.ctl("start", profile, "--name", "it", "--cwd", str(prepared.cwd), "--", *command, env=env)
        assert started.code == 0, started.err
        return "it"

    return start


def prompt_of(daemon: Daemon, name: str) -> dict[str, Any]:
    """What it asks, once it asks."""
    found = eventually(
        lambda: daemon.ctl("status", name, "--json").json.get("prompt"),
        f"a prompt of {name}",
    )
    return dict(found)


def shows(daemon: Daemon, name: str, words: str) -> None:
    eventually(lambda: words in daemon.ctl("screen", name).out or None, f"{words} on its screen")


ASKED = [
    ("ask-js clack-select", "Which template", ["Basic", "Blog", "Empty"], [("input", "Empty")], '"empty"'),
    ("ask-js clack-confirm", "Install the dependencies?", ["Yes", "No"], [("approve",)], "true"),
    ("ask-js clack-confirm", "Install the dependencies?", ["Yes", "No"], [("deny",)], "false"),
    ("ask-js clack-multi", "Pick your tools", None, [("input", "Tests"), ("input", "done")], '["tests"]'),
    ("ask-js inquirer-select", "Allow the tool", None, [("approve",)], '"Yes"'),
    ("ask-js inquirer-select", "Allow the tool", None, [("deny",)], '"No"'),
    ("ask-js inquirer-checkbox", "Select the features", None, [("input", "3"), ("input", "done")], '["Mail"]'),
    ("ask-js prompts-select", "Pick a colour", ["Red", "Blue"], [("input", "blue")], '"blue"'),
    ("ask-js prompts-toggle", "Can you confirm?", ["no", "yes"], [("approve",)], "true"),
    ("ask-js prompts-toggle", "Can you confirm?", ["no", "yes"], [("deny",)], "false"),
    ("ask-js enquirer-select", "Pick a flavor", ["apple", "grape"], [("input", "2")], '"grape"'),
    ("ask-py questionary-select", "What do you want to do?", None, [("input", "Ask")], "'Ask for hours'"),
    ("ask-py questionary-checkbox", "Select toppings", None, [("input", "ham"), ("input", "done")], "['ham']"),
    ("ask-py inquirerpy-select", "Select an action:", ["Upload", "Exit"], [("input", "2")], "'Exit'"),
    ("ask-py simple-term-menu", "Run the tool?", ["Allow", "Always allow", "Deny"], [("deny",)], "2"),
    ("ask-py simple-term-menu", "Run the tool?", ["Allow", "Always allow", "Deny"], [("approve",)], "0"),
    ("ask-py buttons", "Do you want to delete it?", ["Yes", "No"], [("deny",)], "False"),
    ("ask-py enter", "Press Enter to continue", ["Continue"], [("approve",)], "''"),
    ("ask-py letters", "Add it to the chat?", ["Yes", "No", "Don't ask again"], [("approve",)], "'y'"),
]


@pytest.mark.parametrize(("program", "words", "labels", "verbs", "answered"), ASKED)
def test_libraries_that_draw_menus(
    daemon: Daemon,
    stranger: Stranger,
    program: str,
    words: str,
    labels: list[str] | None,
    verbs: list[tuple[str, ...]],
    answered: str,
) -> None:
    name = stranger(program)
    prompt = prompt_of(daemon, name)
    assert words in prompt["prompt"]
    if labels is not None:
        assert [option["label"] for option in prompt["options"]] == labels
    for verb, *answer in verbs:
        told = daemon.ctl(verb, name, *answer)
        assert told.code == 0, told.err
    shows(daemon, name, f"answered {answered}")


def waits(daemon: Daemon, message: str, *words: str) -> None:
    """`send --wait` ends with 7, and has `words` of what is asked."""
    told = daemon.ctl("send", "it", "--wait", "--timeout", str(PATIENCE_S), "--", message)
    assert told.code == 7, f"{told.err}\n{daemon.ctl('screen', 'it').out}"
    for each in words:
        assert each in told.err


def answered(daemon: Daemon, verb: str, *answer: str) -> None:
    told = daemon.ctl(verb, "it", *answer)
    assert told.code == 0, told.err


def test_a_first_question_holds_the_message_and_is_told(daemon: Daemon, stranger: Stranger) -> None:
    stranger("copilot")
    prompt_of(daemon, "it")
    waits(daemon, "a message", "Do you trust the files in this folder?", "Yes, and remember this folder")
    answered(daemon, "approve")
    shows(daemon, "it", "MCP Servers reloaded")


def test_questions_one_after_the_other(daemon: Daemon, stranger: Stranger) -> None:
    """Enter right behind an arrow is lost there."""
    stranger("qwen unconfigured")
    first = prompt_of(daemon, "it")
    assert (first["type"], first["prompt"]) == ("login", "Select Authentication Method")
    assert [option["label"] for option in first["options"]][1:3] == ["Third-party Providers", "OAuth"]
    answered(daemon, "input", "Third-party Providers")
    second = eventually(
        lambda: (found := prompt_of(daemon, "it"))["prompt_id"] != first["prompt_id"] and found,
        "another prompt",
    )
    assert second


@pytest.mark.parametrize(
    ("program", "words"),
    [("qwen", "Allow execution of: 'touch'?"), ("cn", "Would you like to continue?")],
)
def test_a_permission_in_mid_turn(
    daemon: Daemon, model: Model, stranger: Stranger, private_dir: Path, program: str, words: str
) -> None:
    stranger(program, program)
    first, second = nonce(), nonce()
    waits(daemon, f"{first} [[tool:shell:touch made]]", words, "touch made")
    answered(daemon, "approve")
    task = tasks_of("it", daemon)[0]
    assert daemon.task_in(task["id"], "completed", "failed")["status"] == "completed"
    assert (private_dir / "project" / "made").exists()
    assert [request.reply for request in model.turns(first)] == ["tool", "text"]
    waits(daemon, f"{second} [[tool:shell:touch refused]]", words, "touch refused")
    answered(daemon, "deny")
    assert not (private_dir / "project" / "refused").exists()


@pytest.mark.parametrize("program", ["qwen"])
def test_its_tool_calls_are_read_off_the_screen(daemon: Daemon, model: Model, stranger: Stranger, program: str) -> None:
    """One that runs for a while, one that is over at once, and one that the person refuses."""
    stranger(program, program)
    word = nonce()
    slow, quick, refused = f"sleep 1.5; echo slow-{word}", f"echo quick-{word}", f"touch refused-{word}"
    waiting = daemon.send(
        f"{word} [[tool:shell:{slow}]] [[tool:shell:{quick}]] [[tool:shell:{refused}]] say: All.", "it"
    )
    while daemon.task_in(waiting, "input_required", "completed", "failed")["status"] == "input_required":
        asks = eventually(lambda: daemon.ctl("status", "it", "--json").json["prompt"], "what it asks")
        refuses = refused in asks["prompt"]
        answered(daemon, "deny" if refuses else "approve")
        if refuses:
            break
    daemon.ended(waiting)
    told = calls_of(daemon, waiting)
    screen = daemon.ctl("screen", "it").out
    assert set(told) == {slow, quick, refused}, (told, screen)
    assert [data["status"] for data in told[refused]] == ["started", "failed"], (told, screen)
    for command in (slow, quick):
        assert [data["status"] for data in told[command]] == ["started", "completed"], (told, screen)
        assert len({data["call_id"] for data in told[command]}) == 1, told
    assert told[slow][1]["duration_ms"] >= 1000, told
    assert f"slow-{word}" in json.dumps(told[slow][1]["output"]), (told, screen)
    assert {data["exact"] for each in told.values() for data in each} == {False}


def calls_of(daemon: Daemon, task: str) -> dict[str, list[dict[str, Any]]]:
    """What is told of the task's calls, by command."""
    told = daemon.ctl("events", "--json", "--after", "0", "--types", "toolExecution", "--tasks", task)
    found: dict[str, list[dict[str, Any]]] = {}
    for line in told.out.splitlines():
        data = json.loads(line)["data"]
        found.setdefault(data["input"]["command"], []).append(data)
    return found
