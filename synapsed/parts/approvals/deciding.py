"""Applies an agent's approval policy: takes the program's question, returns the program's own answer, and records each
decision.

A decision that cannot be recorded does not count: the person is asked, as without a policy.
"""

from collections import deque
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import structlog

from synapsed.channels import DecisionSpec, texts_at, tool_of
from synapsed.errors import StoreError
from synapsed.interfaces import Answer, Decider, Deciding, NewEvent, RuleOwner, Store, Wait
from synapsed.kernel import Kernel, Running
from synapsed.model.events import PermissionDecided
from synapsed.model.masking import mask
from synapsed.model.task import Prompt
from synapsed.parts.approvals.policy import Decision, ToolCall, Verdict

COMMAND_MAX = 100_000
"""Most characters of a command and subjects to which rules are applied; a person is asked about longer ones."""

REMEMBERED = 32
"""Number of last decisions with which a dialog is compared."""

TOLD_MAX = 2000
"""Characters of one text of a call's input in the log of events."""

MASKED_MAX = 10_000
"""Most characters of a text in which secrets are searched."""

LISTED_MAX = 20
"""Most texts of a list in the log of events."""


@dataclass(frozen=True, slots=True)
class _Remembered:
    text: str
    """Command or subject, without white space, because a dialog wraps it."""
    verdict: Verdict
    answer: str | None
    """The answer to the dialog; None: synapsed does not answer it."""
    rule: str | None
    is_command: bool = True

    def is_in(self, prompt: Prompt) -> bool:
        """Returns True if the dialog asks about this call. A command must be one that a channel has reported with the
        dialog: a row of the dialog that looks like it may be a line of an edit."""
        if self.is_command:
            return prompt.command is not None and _dense(prompt.command) == self.text
        return prompt.command is None and _is_shown(self.text, prompt.prompt)


class Approvals:
    """Applies the policy, which is looked up for each decision, so that a changed configuration applies at once."""

    def __init__(self, owner: RuleOwner, *, store: Store) -> None:
        self._owner = owner
        self._store = store
        self._log = structlog.stdlib.get_logger("synapsed.approval").bind(
            agent=owner.record.name, agent_id=owner.record.id
        )
        self._recent: deque[_Remembered] = deque(maxlen=REMEMBERED)

    async def decide(self, spec: DecisionSpec, told: dict[str, Any], task_id: str | None) -> dict[str, Any] | None:
        """Implements `Decider`."""
        policy = self._owner.config.approval.policy
        if policy.silent:
            return None
        call = read_call(spec, told, self._owner.record.cwd)
        decision = Decision("escalate") if _too_long(call) else policy.decide(call)
        if spec.rules_only and (decision.verdict != "deny" or decision.rule is None):
            return None
        if not await self._tell(call, decision, task_id):
            decision = Decision("escalate")
        self._remember(spec, call, decision)
        answer = spec.answer(decision.verdict, decision.reason)
        if decision.verdict == "deny" and answer is not None:
            texts = (call.command,) if call.command is not None else call.subjects
            self._owner.denied(call.tool, texts, decision.reason)
        return answer

    def judge(self, prompt: Prompt | None) -> Answer | Wait | None:
        """Returns the decision about the dialog on the screen; None: a person answers it. A dialog is answered only if
        it is about the command, or the subject, of an allowed call, it shows no command that a person must decide
        about, and the program has not asked about such a command since."""
        if prompt is None or prompt.type != "permission" or self._owner.config.approval.policy.silent:
            return None
        shown = _dense(f"{prompt.prompt}\n{prompt.command or ''}")
        if any(decided.verdict == "escalate" and decided.text and decided.text in shown for decided in self._recent):
            return None
        since = list(takewhile(lambda decided: decided.verdict != "escalate", reversed(self._recent)))
        if self._recent and not since:
            return None  # the dialog may belong to that call, and show only a part of it
        answers = (
            Answer(decided.answer, decided.rule)
            for decided in since
            if decided.answer is not None and decided.is_in(prompt)
        )
        return next(answers, Wait())

    def answered(self, prompt: Prompt) -> None:
        """Notes that the dialog is over: if the same dialog comes again, it belongs to another call."""
        shown = _dense(prompt.prompt)
        self._forget(lambda known: bool(known.text) and known.text in shown)

    def _forget(self, unwanted: Callable[[_Remembered], bool]) -> None:
        kept = [known for known in self._recent if not unwanted(known)]
        self._recent = deque(kept, maxlen=REMEMBERED)

    def _remember(self, spec: DecisionSpec, call: ToolCall, decision: Decision) -> None:
        text = _dense(call.command or (call.subjects[0] if len(call.subjects) == 1 else ""))
        answer = spec.dialog if decision.verdict == "allow" and text else None
        self._forget(lambda known: known.text == text)
        self._recent.append(_Remembered(text, decision.verdict, answer, decision.rule, call.command is not None))

    async def _tell(self, call: ToolCall, decision: Decision, task_id: str | None) -> bool:
        told = PermissionDecided(
            verdict=decision.verdict, rule=decision.rule, tool=call.tool, input=_masked(call.input)
        )
        try:
            await self._store.commit(events=[NewEvent(self._owner.record.id, told, task_id)])
        except StoreError as error:
            self._log.warning("a decision could not be recorded: the person is asked", error=error.message)
            return False
        self._log.info(
            "permission", verdict=told.verdict, rule=told.rule, tool=told.tool, input=told.input, task=task_id
        )
        return True


def read_call(spec: DecisionSpec, told: dict[str, Any], folder: str) -> ToolCall:
    """Returns the call that the program asks about, by the profile's paths; `folder` is the agent's."""
    tool = tool_of(spec, told)
    command = next((text for path in spec.command for text in texts_at(told, path)), None)
    only = command is not None and (spec.shell is None or tool.casefold() in (name.casefold() for name in spec.shell))
    groups = [[entry] if isinstance(entry, str) else entry for entry in spec.subject]
    found = ([text for path in group for text in texts_at(told, path)] for group in groups)
    subjects = () if only else tuple(next(filter(None, found), ()))
    given: dict[str, Any] = {"command": command} if command is not None else {}
    if subjects:
        given["subject"] = subjects[0] if len(subjects) == 1 else list(subjects)
    return ToolCall(tool=tool, command=command, subjects=subjects, folder=folder, home=str(Path.home()), input=given)


def _too_long(call: ToolCall) -> bool:
    return sum(map(len, (call.command or "", *call.subjects))) > COMMAND_MAX


def _dense(text: str) -> str:
    return "".join(text.split())


def _is_shown(text: str, dialog: str) -> bool:
    """Returns True if complete rows of `dialog`, one below the other, are `text` (which has no white space)."""
    rows = [row for row in map(_dense, dialog.split("\n")) if row]
    for first in range(len(rows)):
        seen = ""
        for row in rows[first:]:
            seen += row
            if seen == text:
                return True
            if not text.startswith(seen):
                break
    return False


def _masked(given: dict[str, Any]) -> dict[str, Any]:
    """Returns a call's input for events, without secrets, and shortened."""
    return {key: _cut(mask(_cut(value, MASKED_MAX), key=key), TOLD_MAX) for key, value in given.items()}


def _cut(value: Any, size: int) -> Any:
    if isinstance(value, list):
        return [_cut(item, size) for item in value[:LISTED_MAX]]
    return f"{value[:size]}…" if isinstance(value, str) and len(value) > size else value


class DecidingByRules(Running):
    def __init__(self, store: Store) -> None:
        self._store = store
        self.provides = {Deciding: self}

    def decider(self, owner: RuleOwner) -> Decider:
        """Implements `Deciding`."""
        return Approvals(owner, store=self._store)

    def refusing(self, config: Any) -> Collection[str]:
        """Implements `Deciding`."""
        refusing: frozenset[str] = config.approval.policy.refusing
        return refusing


@asynccontextmanager
async def opened(kernel: Kernel) -> AsyncIterator[Running]:
    yield DecidingByRules(kernel.store)
