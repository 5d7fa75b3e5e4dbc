"""Decides the change of a task of this host from its state on another host. Pure.

If an agent asks again in the same words after the first question was answered, it is another question: it has another
mark (the id of its message, the time of its status). Until an agent has taken up an answer it may still report that it
waits: for a while the same question counts as answered. `metadata.external.asked` keeps the facts for this decision.
"""

import hashlib
from typing import Any, Final

from synapsed.a2a_types.partial_answer import Snapshot, answer_of
from synapsed.interfaces import NewEvent
from synapsed.model.events import TaskStatusChanged
from synapsed.model.external import KEY
from synapsed.model.task import INTERRUPTED_STATES, Prompt, PromptOption, Task, TaskState
from synapsed.tasks import transitions

TEXT_MAX: Final = 16_000
"""Characters of a question, of its command, and of its edit."""
OPTIONS_MAX: Final = 50
LABEL_MAX: Final = 200
ID_MAX: Final = 256
"""Characters of a prompt's id, of an option's key and of the default."""
TAKEN_UP_S: Final = 60.0
"""Seconds within which an agent takes up an answer; until then it may still report the question that was answered."""
UNMARKED_S: Final = 5.0
"""The same for agents whose questions have no mark."""
_TO_BE_ALLOWED: Final = frozenset({"permission", "confirmation", "trust", "selection"})
"""Types of prompts that a person can answer with one press."""


def outcome(
    task: Task, there: Snapshot, *, by: str, now: float, answered: bool = False, told: str = ""
) -> transitions.Commit | None:
    """Returns the change of `task`, which is open; None if there is no change. `by` is the remote agent; `answered`:
    its question has just been answered; `told` is the part of the answer that this host's clients have already."""
    if answered:
        task = _keeping(task, {**_kept(task), "answered": now})
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
            return _asked(task, there, now)
        case TaskState.WORKING if task.status is TaskState.SUBMITTED:
            return transitions.working_again(task, now=now)
    if task.status in INTERRUPTED_STATES and (answered or there.state is TaskState.WORKING):
        return transitions.working_again(task, now=now)
    return None


def _asked(task: Task, there: Snapshot, now: float) -> transitions.Commit | None:
    """Returns the change where the agent waits: for the answer to a question, or still with the one answered."""
    own, words = _own_prompt(there), (there.said or "The agent waits for input.")[:TEXT_MAX]
    mark = _digest(own.prompt_id if own is not None else there.mark or words)
    asked = _kept(task)
    patience = TAKEN_UP_S if own is not None or there.mark else UNMARKED_S
    if asked.get("mark") == mark and 0 <= now - asked.get("answered", now + 1) < patience:
        return None if task.status is TaskState.WORKING else transitions.working_again(task, now=now)
    new = "answered" in asked or ("given" in asked and asked.get("mark") != mark)
    prompt = own or _in_words(task, there, words, new=new, now=now)
    if prompt == task.prompt:
        return None
    return transitions.waiting(_keeping(task, {"mark": mark}), prompt=prompt, now=now)


def _kept(task: Task) -> dict[str, Any]:
    kept: dict[str, Any] = task.metadata.get(KEY, {}).get("asked", {})
    return kept


def _keeping(task: Task, asked: dict[str, Any]) -> Task:
    external = {**task.metadata.get(KEY, {}), "asked": asked}
    return task.model_copy(update={"metadata": {**task.metadata, KEY: external}})


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


def _own_prompt(there: Snapshot) -> Prompt | None:
    """Returns the question that another synapsed reports; None if it reports none, or its version has another form."""
    try:
        prompt = Prompt.model_validate(there.own.get("prompt"))
    except ValueError:
        return None
    return bounded(prompt) if len(prompt.prompt_id) <= ID_MAX else None


def _in_words(task: Task, there: Snapshot, words: str, *, new: bool, now: float) -> Prompt:
    """Returns the agent's words as a question in its own words: the present question, unless this one is `new` or has
    other words."""
    kind = "login" if there.state is TaskState.AUTH_REQUIRED else "question"
    prompt_id = f"{there.id}:{_digest(f'{words}{now}')}"
    told = {"prompt_id": prompt_id, "type": kind, "prompt": words, "own_words": True}
    prompt, stands = Prompt.model_validate(told), task.prompt
    if stands is None or new or stands.model_copy(update={"prompt_id": prompt_id}) != prompt:
        return prompt
    return stands


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


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
