"""What was learned of an agent's prompts, in a file of its directory: for its restarts, and the daemon's."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from synapsed.files import write_whole
from synapsed.terminal.line_prompts.learned import KEPT_MAX, LearnedPrompt, said

PROMPTS_FILE = "prompts.json"
"""In the agent's directory."""


class KeptPrompts:
    """Of one agent. What was learned of another command does not count; every error of the file is passed over: it is
    learned again. `told` is what a person said, and is not in the file."""

    def __init__(self, path: Path, command: Sequence[str], *, told: str | None = None, cwd: str | None = None) -> None:
        self._path = path
        self._command = hashlib.sha256("\0".join(command).encode("utf-8", "surrogateescape")).hexdigest()
        self._told = () if told is None else (said(told, cwd),)

    def load(self) -> tuple[LearnedPrompt, ...]:
        try:
            kept = json.loads(self._path.read_bytes())
            if kept["command"] != self._command:
                return self._told
            learned = tuple(
                LearnedPrompt(one["text"], one["pattern"], one["program"], one["mode"])
                for one in kept["prompts"][-KEPT_MAX:]
            )
        except (OSError, ValueError, KeyError, TypeError):
            return self._told
        return (*self._told, *learned)

    def save(self, known: Sequence[LearnedPrompt]) -> None:
        learned = [one for one in known if one not in self._told]
        told = [{"text": o.text, "pattern": o.pattern, "program": o.program, "mode": o.mode} for o in learned]
        try:
            write_whole(self._path, json.dumps({"command": self._command, "prompts": told}).encode(), durable=False)
        except OSError:
            return
