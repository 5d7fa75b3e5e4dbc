"""A person's own hooks, in each program's own configuration: they send the model back to work, or refuse a prompt."""

import json
import shlex
import sys

from tests.real.programs import Prepared

__all__ = ["REASON", "install", "plug_in"]

REASON = "Not before the tests have passed."

_SCRIPT = """\
import json, sys, time
from pathlib import Path

times, seconds, how, count = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3], Path(sys.argv[4])
sys.stdin.buffer.read()
time.sleep(seconds)
number = len(count.read_text()) if count.exists() else 0
if number < times:
    with count.open("a") as file:
        file.write(".")
    reason = sys.argv[5].replace("NUMBER", str(number + 1))
    if how == "exit":
        print(reason, file=sys.stderr)
        sys.exit(2)
    print(json.dumps({"decision": "block", "reason": reason}))
"""

_PLUGIN = """\
import fs from "node:fs"

export const Veto = async ({ client }) => ({
  event: async ({ event }) => {
    if (event.type !== "session.idle") return
    const number = fs.existsSync(COUNT) ? fs.readFileSync(COUNT, "utf8").length : 0
    if (number >= TIMES) return
    fs.appendFileSync(COUNT, ".")
    await new Promise((resolve) => setTimeout(resolve, MS))
    const text = REASON.replace("NUMBER", String(number + 1))
    const path = { id: event.properties.sessionID }
    await client.session.promptAsync({ path, body: { parts: [{ type: "text", text }] } })
  },
})
"""

EVENTS = {
    "end": {"claude": "Stop", "codex": "Stop", "gemini": "AfterAgent"},
    "prompt": {"claude": "UserPromptSubmit", "codex": "UserPromptSubmit", "gemini": "BeforeAgent"},
}


def install(
    prepared: Prepared,
    at: str,
    *,
    reason: str = REASON,
    times: int = 1,
    seconds: float = 0,
    how: str = "block",
    hooks: int = 1,
) -> None:
    """Makes `hooks` of them, for the turn's `end` or its `prompt`: each blocks so many `times`, after `seconds`, with
    `reason` (`NUMBER` in it is which time that is). codex is told to trust them."""
    script = prepared.home / "veto.py"
    script.write_text(_SCRIPT)
    commands = [
        shlex.join(
            [sys.executable, str(script), str(times), str(seconds), how, str(prepared.home / f"count{number}"), reason]
        )
        for number in range(hooks)
    ]
    _WRITERS[prepared.cli](prepared, at, commands)


def _claude(prepared: Prepared, at: str, commands: list[str]) -> None:
    hooks = [{"type": "command", "command": command} for command in commands]
    file = prepared.home / ".claude" / "settings.json"
    file.parent.mkdir(mode=0o700, exist_ok=True)
    file.write_text(json.dumps({"hooks": {EVENTS[at]["claude"]: [{"hooks": hooks}]}}))


def _codex(prepared: Prepared, at: str, commands: list[str]) -> None:
    hooks = ",".join(f'{{type="command",command={json.dumps(command)},timeout=60}}' for command in commands)
    file = prepared.home / ".codex" / "config.toml"
    file.write_text(f"hooks.{EVENTS[at]['codex']}=[{{hooks=[{hooks}]}}]\n{file.read_text()}")


def _gemini(prepared: Prepared, at: str, commands: list[str]) -> None:
    file = prepared.home / ".gemini" / "settings.json"
    hooks = [{"name": f"mine{n}", "type": "command", "command": c, "timeout": 60_000} for n, c in enumerate(commands)]
    own = {"hooksConfig": {"enabled": True}, "hooks": {EVENTS[at]["gemini"]: [{"matcher": "*", "hooks": hooks}]}}
    file.write_text(json.dumps({**json.loads(file.read_text()), **own}))


def plug_in(prepared: Prepared, *, reason: str, times: int = 1, seconds: float = 0) -> None:
    """Makes opencode's plugin, which prompts again so many `times` once a session is idle, `seconds` later."""
    folder = prepared.home / ".config" / "opencode" / "plugin"
    folder.mkdir(mode=0o700)
    given = {"COUNT": str(prepared.home / "count"), "TIMES": times, "MS": seconds * 1000, "REASON": reason}
    head = "".join(f"const {name} = {json.dumps(value)}\n" for name, value in given.items())
    (folder / "veto.js").write_text(head + _PLUGIN)


_WRITERS = {"claude": _claude, "codex": _codex, "gemini": _gemini}
