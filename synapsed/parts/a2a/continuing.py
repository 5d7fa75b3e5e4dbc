"""Search for the waiting task that a message without a `taskId` answers (specification 3.4.3). Pure.

A message that names a task answers it. One that names only the context usually is a new task there; while a task of the
context waits for input, many clients mean the answer. The message is taken for an answer only if all of this holds:

====================  ==============================================================================================
one waiting task      Exactly one task of that context waits for input at this agent.
same sender           The sender of the message has sent the task, and has the right to answer prompts.
fitting text          The text is the whole key or label of an option of the prompt; or it is free text, and the prompt
                      takes that: a question for text, or a question with options that takes other words too.
====================  ==============================================================================================

A message without a `taskId` never gives a password, and gives a permission only by the name of an option. Every other
message waits in the mailbox; its task names the task before it (`waitsBehind`).
"""

from collections.abc import Sequence

from synapsed.model.sender import sender_id_of
from synapsed.model.task import INTERRUPTED_STATES, Message, Prompt, Task, TextPart

_TAKE_WORDS = frozenset({"text", "question", "selection"})
"""Types of prompts that free words may answer."""


def answered_by(message: Message, sender: str | None, tasks: Sequence[Task]) -> Task | None:
    """Returns the one of `tasks` (of the message's context) that `message` of `sender` answers; None for a new task."""
    waiting = [task for task in tasks if task.status in INTERRUPTED_STATES and task.prompt is not None]
    if len(waiting) != 1 or sender_id_of(waiting[0]) != sender:
        return None
    prompt = waiting[0].prompt
    words = all(isinstance(part, TextPart) for part in message.parts)
    return waiting[0] if words and prompt is not None and _answers(message.text.strip(), prompt) else None


def _answers(text: str, prompt: Prompt) -> bool:
    named = {name.strip().casefold() for option in prompt.options for name in (option.key, option.label)}
    if text.casefold() in named:
        return True
    free = prompt.own_words or not prompt.options
    return bool(text) and free and prompt.type in _TAKE_WORDS
