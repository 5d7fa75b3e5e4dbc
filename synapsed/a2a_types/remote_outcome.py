"""Decides the change of a task of this host from its state on another host. Pure."""

import hashlib
from typing import Final

from synapsed.a2a_types.partial_answer import Snapshot, answer_of
from synapsed.interfaces import NewEvent
from synapsed.model.events import TaskStatusChanged
from synapsed.model.task import INTERRUPTED_STATES, Prompt, PromptOption, Task, TaskState
from synapsed.tasks import transitions

TEXT_MAX: Final = 16_000
"""Characters of a question, of its command, and of its edit."""
OPTIONS_MAX: Final = 50
LABEL_MAX: Final = 200
ID_MAX: Final = 256
"""Characters of a prompt's id, of an option's key and of the default."""
_TO_BE_ALLOWED: Final = frozenset({"permission", "confirmation", "trust", "selection"})
"""Types of prompts that a person can answer with one press."""


def outcome(
    task: Task, there: Snapshot, *, by: str, now: float, answered: bool = False, told: str = ""
) -> transitions.Commit | None:
    """Returns the change of `task`, which is open; None if there is no change. `by` is the remote agent; `answered`:
    its question has just been answered; `told` is the part of the answer that this host's clients have already."""
    match there.state:
        case TaskState.COMPLETED:
            answer, blocks = answer_of(there)
            exact = there.own.get("exact") is not False
            cut = there.own.get("truncated") is True
            lost = there.own.get("missing_lines")
            missing = lost if isinstance(lost, int) and not isinstance(lost, bool) and lost >= 0 else None
            return transitions.completed(
                task, answer=answer, exact=exact, truncated=cut, missing=missing, blocks=blocks, now=now, told=told
            )
        case TaskState.FAILED | TaskState.REJECTED:
            return _refusal(task, there, by, now)
        case TaskState.CANCELED:
            return transitions.canceled(task, reason=f"canceled by {by}", now=now)
        case TaskState.INPUT_REQUIRED | TaskState.AUTH_REQUIRED:
            prompt = _prompt(there)
            return transitions.waiting(task, prompt=prompt, now=now) if prompt != task.prompt else None
        case TaskState.WORKING if task.status is TaskState.SUBMITTED:
            return transitions.working_again(task, now=now)
    if task.status in INTERRUPTED_STATES and (answered or there.state is TaskState.WORKING):
        return transitions.working_again(task, now=now)
    return None


def _refusal(task: Task, there: Snapshot, by: str, now: float) -> transitions.Commit:
    told = there.own.get("error")
    code = told.get("code") if isinstance(told, dict) else None
    failed = transitions.failed(
        task,
        code=code if isinstance(code, str) else "MODEL_ERROR",
        message=there.said or f"{by} says no more than that it is {there.state.value}",
        now=now,
    )
    if there.state is TaskState.FAILED:
        return failed
    task = failed.task.model_copy(update={"status": TaskState.REJECTED})
    event = NewEvent.of(task, TaskStatusChanged(state=TaskState.REJECTED, error=task.error))
    return transitions.Commit(task=task, events=(event,), turn_ended=task.id)


def _prompt(there: Snapshot) -> Prompt:
    """Returns the question of another synapsed, else the agent's words as a question of its own."""
    told = there.own.get("prompt")
    if isinstance(told, dict):
        try:
            prompt = Prompt.model_validate(told)
        except ValueError:
            pass  # a prompt of another version: the words are enough
        else:
            if len(prompt.prompt_id) <= ID_MAX:
                return bounded(prompt)
    kind = "login" if there.state is TaskState.AUTH_REQUIRED else "question"
    text = (there.said or "The agent waits for input.")[:TEXT_MAX]
    mark = hashlib.sha256(text.encode()).hexdigest()[:16]
    told = {"prompt_id": f"{there.id}:{mark}", "type": kind, "prompt": text, "own_words": True}
    return Prompt.model_validate(told)


def bounded(prompt: Prompt) -> Prompt:
    """Returns the question, cut to the size that is kept and shown. A question that was cut has no options: a person
    must not allow with one press an action that is not shown whole."""
    default = prompt.default if prompt.default is not None and len(prompt.default) <= ID_MAX else None
    text, command, diff = prompt.prompt[:TEXT_MAX], _cut(prompt.command), _cut(prompt.diff)
    kept = {"prompt": text, "command": command, "diff": diff, "default": default}
    if (text, command, diff) != (prompt.prompt, prompt.command, prompt.diff):
        kind = "question" if prompt.type in _TO_BE_ALLOWED else prompt.type
        return prompt.model_copy(update={**kept, "type": kind, "options": [], "default": None})
    options = [
        PromptOption(key=one.key, label=one.label[:LABEL_MAX])
        for one in prompt.options[:OPTIONS_MAX]
        if len(one.key) <= ID_MAX
    ]
    return prompt.model_copy(update={**kept, "options": options})


def _cut(text: str | None) -> str | None:
    return text if text is None else text[:TEXT_MAX]
