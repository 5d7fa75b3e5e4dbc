"""What is to be allowed, as the inbox, the task and A2A show it: the whole command, or the edit as a diff; on real
programs, with edits of several lines of which the longest is the one that goes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real.agents import RealAgent, nonce
from tests.real.conftest import CliHome
from tests.real.model import Model
from tests.real.programs import Prepared
from tests.real.test_pipes import started
from tests.support.daemon import Daemon, eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

GOES = "This line is the longest of all, and it is the one that is going to be removed: git status --short"
COMES = "new one\nnew two"
WRITTEN = "one\ntwo\n"
COMMANDS = (
    "rm edited.txt",
    "touch a-made\ntouch b-made && \\\n  touch c-made",
    "cat > made.txt <<'EOF'\nline one of it\nline two\nEOF",
    "printf 'a\\tb' > made.txt # \u200b\u202e x\ttab",
)
UNSEEN: dict[int, str | None] = dict.fromkeys(map(ord, "\u200b\u202e"))
CLEANED: dict[str, dict[int, str | None]] = {"claude": {**UNSEEN, ord("\t"): "    "}, "gemini": UNSEEN}
"""Changes that each makes to unseen characters itself, before it tells anybody."""
PATCH = "*** Begin Patch\n{}\n*** End Patch"
CODEX = {
    "edit": f"*** Update File: edited.txt\n@@\n short\n-{GOES}\n+new one\n+new two\n last",
    "write": "*** Add File: fresh.txt\n+one\n+two",
    "delete": "*** Delete File: edited.txt",
}
EDITS = {
    "claude": ("Edit", "Write", "file_path", "old_string", "new_string"),
    "gemini": ("replace", "write_file", "file_path", "old_string", "new_string"),
    "opencode": ("edit", "write", "filePath", "oldString", "newString"),
}
"""How each calls its tools, and what these are given."""
READS = {"claude": "Read", "opencode": "read"}
"""Those that want a file read before it is edited."""


def tool(name: str, given: dict[str, str]) -> str:
    return f"[[tool:{name}:{json.dumps(given)}]]"


def edits(cli: str, cwd: Path) -> Iterator[tuple[str, list[str]]]:
    """Messages that make the program edit, write and delete, with the lines of what each changes."""
    if cli == "codex":
        for name, lines in (
            ("edit", [f"-{GOES}", "+new one", "+new two"]),
            ("write", ["+one", "+two"]),
            ("delete", []),
        ):
            yield f"[[tool:shell:apply_patch <<'EOF'\n{PATCH.format(CODEX[name])}\nEOF]]", lines
        return
    edit, write, path, old, new = EDITS[cli]
    file, fresh = str(cwd / "edited.txt"), str(cwd / "fresh.txt")
    read = tool(READS[cli], {path: file}) if cli in READS else ""
    changed = tool(
        edit,
        {path: file, old: GOES, new: COMES, "instruction": "x"}
        if cli == "gemini"
        else {path: file, old: GOES, new: COMES},
    )
    yield read + changed, [f"-{GOES}", "+new one", "+new two"]
    yield tool(write, {path: fresh, "content": WRITTEN}), ["+one", "+two"]


def asked(agent: RealAgent, task: str) -> dict[str, Any]:
    """What the inbox has of it, which the task and A2A have likewise."""
    daemon = agent.daemon
    daemon.task_in(task, "input_required")

    def found() -> list[dict[str, Any]]:
        items = daemon.request("GET", "/inbox").json
        return [item for item in items if item["task"] == task and (item["command"] or item["diff"])]

    (item,) = eventually(found, "what it is about is told")
    prompt = daemon.task(task)["prompt"]
    assert (prompt["command"], prompt["diff"]) == (item["command"], item["diff"])
    shown = daemon.ctl("status", agent.name).out
    for line in (item["command"] or item["diff"]).splitlines():
        assert "".join(filter(str.isalnum, line)) in "".join(filter(str.isalnum, shown)), (line, shown)
    return dict(item)


def over(agent: RealAgent, task: str) -> None:
    agent.daemon.ctl("deny", task)
    agent.daemon.task_in(task, "completed", "failed", "canceled", "input_required")
    agent.daemon.ctl("cancel", task)
    agent.daemon.ended(task)
    agent.daemon.ready(agent.name)


def ask_for_edits(prepared: Prepared) -> None:
    """opencode edits without a question, unless its person wants one."""
    for file in prepared.home.rglob("opencode.json"):
        file.write_text(json.dumps({**json.loads(file.read_text()), "permission": {"edit": "ask", "bash": "ask"}}))


def shows(cli: str, agent: RealAgent) -> None:
    agent.file("edited.txt").write_text(f"short\n{GOES}\nlast\n")
    for message, lines in edits(cli, agent.prepared.cwd):
        task = agent.send(f"{nonce()} {message} say: Told.")
        item = asked(agent, task)
        assert item["command"] is None
        told = item["diff"].splitlines()
        assert [line for line in told if line in lines] == lines, item
        over(agent, task)


HOOKLESS = pytest.mark.skipif(Path("/").stat().st_mode & 0o022 != 0, reason="below such a folder gemini reads no hooks")


@pytest.mark.parametrize("cli", ["claude", "codex", pytest.param("gemini", marks=HOOKLESS), "opencode"])
def test_edits_and_commands(cli: str, daemon: Daemon, model: Model, cli_home: CliHome) -> None:
    prepared = cli_home(cli)
    if cli == "codex":
        config = prepared.home / ".codex" / "config.toml"
        config.write_text('sandbox_mode = "read-only"\n' + config.read_text())
    ask_for_edits(prepared)
    agent = RealAgent.start(cli, daemon, model, prepared)
    shows(cli, agent)
    for command in COMMANDS:
        task = agent.send(f"{nonce()} [[tool:shell-ask:{command}]] say: Told.")
        item = asked(agent, task)
        assert (item["command"], item["diff"]) == (command.translate(CLEANED.get(cli, {})), None), item
        over(agent, task)


@pytest.mark.parametrize("cli", ["gemini", "opencode"])
def test_writes_of_programs_on_pipes(cli: str, daemon: Daemon, model: Model, cli_home: CliHome) -> None:
    def asking(cli: str) -> Prepared:
        prepared = cli_home(cli)
        ask_for_edits(prepared)
        return prepared

    shows(cli, started(cli, daemon, model, asking))
