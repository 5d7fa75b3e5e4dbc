"""How the real programs are started so that they report, and how they look: as profiles say it, for tests."""

import hashlib
import json
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.real import hookdump
from tests.real.terminal import Terminal

__all__ = ["LAUNCHES", "LOOKS", "SERVER_PORT", "Look", "press_interrupt"]

SERVER_PORT = 4096  # of opencode, in its own namespace
CLAUDE_SESSION = "7b1e4f0a-5c7d-4a51-9f0e-2d6f3c1b8a90"

CLAUDE_EVENTS = [
    "SessionStart",
    "SessionEnd",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PermissionRequest",
    "PermissionDenied",
    "Notification",
    "Stop",
    "StopFailure",
]
CODEX_EVENTS = [
    "SessionStart",
    "SessionEnd",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PermissionRequest",
    "Stop",
    "Interrupt",
]
GEMINI_EVENTS = ["SessionStart", "SessionEnd", "BeforeAgent", "AfterAgent", "BeforeTool", "AfterTool", "Notification"]


def _dump(hooks: Path, event: str) -> str:
    return shlex.join([sys.executable, "-S", "-E", hookdump.__file__, str(hooks), event])


def _claude(hooks: Path, home: Path) -> tuple[list[str], dict[str, str]]:
    entries = {event: [{"hooks": [{"type": "command", "command": _dump(hooks, event)}]}] for event in CLAUDE_EVENTS}
    settings = json.dumps({"hooks": entries})
    return ["--permission-mode", "default", "--session-id", CLAUDE_SESSION, "--settings", settings], {}


def _codex(hooks: Path, home: Path) -> tuple[list[str], dict[str, str]]:
    args, trusted = ["--no-daemon"], []
    for event in CODEX_EVENTS:
        command = _dump(hooks, event)
        # It allows these two no more, and hashes what it allows.
        timeout = 3 if event in ("SessionEnd", "Interrupt") else 5
        # A JSON string is a TOML one.
        args += [
            "-c",
            f'hooks.{event}=[{{hooks=[{{type="command",command={json.dumps(command)},timeout={timeout}}}]}}]',
        ]
        label = re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()
        hook = {"async": False, "command": command, "timeout": timeout, "type": "command"}
        known = json.dumps({"event_name": label, "hooks": [hook]}, separators=(",", ":"), ensure_ascii=False)
        digest = hashlib.sha256(known.encode()).hexdigest()
        trusted.append(f'"/<session-flags>/config.toml:{label}:0:0"={{trusted_hash="sha256:{digest}"}}')
    args += ["-c", f"hooks.state={{{','.join(trusted)}}}"]
    return args, {}


def _gemini(hooks: Path, home: Path) -> tuple[list[str], dict[str, str]]:
    entries = {
        event: [
            {
                "matcher": "*",
                "hooks": [{"name": "dump", "type": "command", "command": _dump(hooks, event), "timeout": 5000}],
            }
        ]
        for event in GEMINI_EVENTS
    }
    settings = home / "system-settings.json"
    settings.write_text(json.dumps({"hooksConfig": {"enabled": True}, "hooks": entries}))
    return [], {"GEMINI_CLI_SYSTEM_SETTINGS_PATH": str(settings)}


def _opencode(hooks: Path, home: Path) -> tuple[list[str], dict[str, str]]:
    return ["--port", str(SERVER_PORT), "--hostname", "127.0.0.1"], {}


def _nothing(hooks: Path, home: Path) -> tuple[list[str], dict[str, str]]:
    return [], {}


# What a launch adds so that the program reports: arguments and environment, given the hooks' folder and the home.
LAUNCHES: Mapping[str, Callable[[Path, Path], tuple[list[str], dict[str, str]]]] = {
    "claude": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "opencode": _opencode,
    "pi": _nothing,
}


@dataclass(frozen=True, kw_only=True)
class Look:
    """How a program looks, as regular expressions on its screen, and the keys it takes."""

    ready: str
    busy: str
    dialog: str
    accept: str
    reject: str
    refuse_with_reason: Sequence[str] = ()
    interrupt: Sequence[str]
    again: str | None = None  # what asks for the second of them, which counts for some seconds only
    interrupted: str
    trust: str | None
    trust_keys: Sequence[str] = ("\r",)
    error: str
    retry: str
    leave: Sequence[str]
    menu: str | None = None
    sign_in: str = r"\A\Z"


LOOKS: Mapping[str, Look] = {
    "claude": Look(
        ready=r"❯\s*\n─+",
        busy=r"esc to interrupt",
        dialog=r"Do you want to proceed\?",
        accept="1",
        reject="\x1b",
        refuse_with_reason=["\x1b[A", "\t", "use another name", "\r"],
        interrupt=["\x1b"],
        interrupted=r"Interrupted",
        trust=r"Quick safety check",
        trust_keys=["\x1b[B", "\r"],
        error=r"API Error: 400",
        retry=r"attempt \d+/10",
        leave=["\x03", "\x03"],
        sign_in=r"Select login method",
        menu=r"Enter to continue · Esc to cancel",
    ),
    "codex": Look(
        ready=r"› Ask Codex to do anything",
        busy=r"esc to interrupt",
        dialog=r"Would you like to run the following command\?",
        accept="y",
        reject="\x1b",
        interrupt=["\x1b"],
        interrupted=r"Conversation interrupted",
        trust=r"Trust this folder\?",
        sign_in=r"Sign in with ChatGPT[\s\S]*Press enter to continue",
        error=r"scripted failure 400",
        retry=r"Reconnecting",
        leave=["\x03"],
    ),
    "gemini": Look(
        ready=r"Gemini CLI v[\s\S]*>   Type your message",
        busy=r"esc to cancel",
        dialog=r"Allow execution of",
        accept="1",
        reject="\x1b",
        interrupt=["\x1b"],
        interrupted=r"Request cancelled",
        trust=r"Do you trust",
        sign_in=r"How would you like to authenticate[\s\S]*3\. ",
        error=r"scripted failure 400",
        retry=r"Attempt|Retrying|Trying",
        leave=["\x03", "\x03"],
    ),
    "opencode": Look(
        ready=r"Ask anything",
        busy=r"esc interrupt",
        dialog=r"Permission required",
        accept="\r",
        reject="\x1b",
        interrupt=["\x1b", "\x1b"],
        again=r"esc again to interrupt",
        interrupted=r"interrupted",
        trust=None,
        error=r"scripted failure 400",
        retry=r"attempt|retry",
        leave=["\x03"],
    ),
    "pi": Look(
        ready=r"─{20}\n\s*\n─{20}[\s\S]*scripted",
        busy=r"── \S Working ─{20}|Working\.\.\.",
        dialog=r"\A\Z",  # it asks about nothing
        accept="",
        reject="",
        interrupt=["\x1b"],
        interrupted=r"Operation aborted",
        trust=None,
        error=r"scripted failure 400",
        retry=r"Retrying",
        leave=["\x04"],
    ),
}


def press_interrupt(person: Terminal, look: Look) -> None:
    """Presses what stops a turn, in a program that is at work: what it draws meanwhile never settles."""
    first, *others = look.interrupt
    person.send(first)
    for key in others:
        if look.again is not None:
            person.wait_screen(look.again)
        person.send(key)
