"""Learns the prompt of a program that no profile describes, from a message of ours or from a person's line, and keeps
it for the agent's restarts and the next daemon.

A message teaches the prompt at which it was typed, when the screen shows the message after that prompt. A person's line
teaches the text before it, when that comes again: a question would not. Pure; `KeptPrompts` has the file.
"""

import contextlib
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from synapsed.keepers.heartbeat import SILENT
from synapsed.profiles.screen_spec import Composer
from synapsed.shared.files import write_whole
from synapsed.terminal.line_prompts.evidence import TerminalFacts
from synapsed.terminal.line_prompts.judgement import asks, before_cursor, echoes
from synapsed.terminal.line_prompts.learned import (
    FOLDER,
    FOLDERS_MAX,
    KEPT_MAX,
    TEXT_MAX,
    LearnedPrompt,
    add,
    compiled,
    learn,
    said,
)
from synapsed.terminal.look import Look

__all__ = ["PROMPTS_FILE", "KeptPrompts", "PromptLearning"]

PROMPTS_FILE = "prompts.json"
"""File in the agent's directory."""


class KeptPrompts:
    """Kept prompts of one agent. Prompts of another command, or of another file at its place (`program`; empty if it is
    not known), do not count. Errors of the file are ignored: prompts are learned again. `told` is a prompt that a
    person has given; it is not in the file."""

    def __init__(
        self, path: Path, command: Sequence[str], *, program: str = "", told: str | None = None, cwd: str | None = None
    ) -> None:
        self._path = path
        self._program = program
        self._command = hashlib.sha256("\0".join(command).encode("utf-8", "surrogateescape")).hexdigest()
        self._told = () if told is None else (said(told, cwd),)

    def load(self) -> tuple[LearnedPrompt, ...]:
        try:
            kept = json.loads(self._path.read_bytes())
            if kept["command"] != self._command:
                return self._told
            if self._program and kept.get("program", self._program) != self._program:
                return self._told
            learned = tuple(
                LearnedPrompt(one["text"], one["pattern"], one["program"], one["mode"])
                for one in kept["prompts"][-KEPT_MAX:]
                if one["pattern"].count(FOLDER) <= FOLDERS_MAX  # it was learned by an older daemon otherwise
            )
        except (OSError, ValueError, KeyError, TypeError):
            return self._told
        return (*self._told, *learned)

    def save(self, known: Sequence[LearnedPrompt]) -> None:
        learned = [one for one in known if one not in self._told]
        told = [{"text": o.text, "pattern": o.pattern, "program": o.program, "mode": o.mode} for o in learned]
        kept = {"command": self._command, "program": self._program, "prompts": told}
        with contextlib.suppress(OSError):
            write_whole(self._path, json.dumps(kept).encode(), durable=False)


GROUPS_MAX = 64
"""Number of process groups for which it is kept when they were first seen."""


class PromptLearning:
    """Learns the prompts of one program. `known` are the prompts known so far."""

    def __init__(self, spec: Composer, known: tuple[LearnedPrompt, ...] = ()) -> None:
        self._spec = spec
        self.known = known
        self._since: dict[int, int] = {}
        """The process groups that were seen in the foreground, each with the end of the output before it was there."""
        self.facts: TerminalFacts | None = None
        """Facts about the readers of the terminal, at the last check."""
        self._offered: LearnedPrompt | None = None
        """Text at the cursor that may be a prompt, at which no message was typed yet."""
        self._stood: str | None = None
        """Text before the cursor, from when no person had typed after it."""
        self._line = b""
        """Keys that a person has pressed since then: a busy machine may not have drawn them yet."""
        self._entered: tuple[LearnedPrompt, int] | None = None
        """Text before a person's line, and the end of the output when the line was submitted."""

    @property
    def edited(self) -> bool:
        """Returns True if the turn's program is known to read keys itself, as line editors do."""
        return self.facts is not None and self.facts.line_mode is False and not self.facts.foreign

    def inform(self, facts: TerminalFacts, *, own: bool) -> None:
        """Takes the present facts about the terminal. `own`: the group in its foreground is the launched program's,
        which has been there from the beginning."""
        last = self.facts.offset if self.facts is not None else 0
        if facts.group is not None and facts.group not in self._since:
            while len(self._since) >= GROUPS_MAX:
                self._since.pop(next(iter(self._since)))
            self._since[facts.group] = 0 if own else last
        self.facts = facts._replace(since=self._since.get(facts.group or 0, last))

    def is_due(self, look: Look) -> bool:
        """Returns True if `look` makes a check of the terminal's readers necessary."""
        return self._spec.usual and (self.facts is None or self.facts.offset < look.offset)

    def with_offered(self, prompt: str | None) -> tuple[LearnedPrompt, ...]:
        """Returns all prompts for a look: the known ones, and the one that may be a prompt: the `prompt` at which a
        message is being typed, or else the text at the cursor."""
        if not self._spec.usual or self.facts is None:
            return self.known
        offered = self._offered if prompt is None else learn(prompt, self.facts, confirmed=False)
        return (*self.known, *([offered] if offered is not None else []))

    def looked(self, look: Look) -> bool:
        """Takes a look. Returns True if a prompt was learned from it."""
        if not self._spec.usual or self.facts is None or look.verdict.evidence == SILENT:
            return False
        composer = look.composer
        if composer.state == "empty" and not composer.learned:
            self._offered = learn(composer.prompt, self.facts, confirmed=False)
        if not self._line:
            self._stood = before_cursor(look.screen)
        return self._came_back(look)

    def confirm(self, prompt: str, message: str, look: Look) -> bool:
        """Returns True if `message` is shown after `prompt`; then `prompt` is known from now on."""
        if self.facts is None or not echoes(look.screen, prompt, message):
            return False
        self.known = add(self.known, learn(prompt, self.facts))
        return True

    def typed(self, data: bytes, look: Look | None) -> None:
        """Notes that a person typed `data` when the screen was that of `look`."""
        facts, stood = self.facts, self._stood
        head, ends, _ = data.partition(b"\r")
        begun, line = self._line, self._line + head
        self._line = b"" if ends else line[-TEXT_MAX:]
        if not ends or look is None or facts is None or stood is None or not self._spec.usual:
            return
        asked = look.verdict.asked
        shown = line.decode(errors="replace").isprintable() or before_cursor(look.screen) != stood
        said = head.strip() or (begun.strip() and shown)
        hidden = facts.line_mode and facts.echo is False
        question = (asked is not None and asked.prompt.type != "screen") or asks(self._spec, stood) is not None
        odd = look.screen.alternate or not look.screen.cursor_visible or len(stood) > TEXT_MAX
        if said and not (hidden or question or odd):
            self._entered = learn(stood, facts), look.offset

    def _came_back(self, look: Look) -> bool:
        """Returns True, and learns it as a prompt, if the text before a person's line is at the cursor again and the
        program waits there."""
        if self._entered is None or self.facts is None or self._line:
            return False
        prompt, offset = self._entered
        settled = look.offset > offset and self.facts.offset == look.offset
        if not settled or not prompt.of(self.facts) or self.facts.mode != prompt.mode or self.facts.reads == "no":
            return False
        found = compiled(prompt.pattern).fullmatch(before_cursor(look.screen))
        if found is None or look.screen.alternate or not look.screen.cursor_visible:
            return False
        self._entered = None
        if any(one[:4] == prompt[:4] for one in self.known):
            return False
        self.known = add(self.known, prompt)
        return True
