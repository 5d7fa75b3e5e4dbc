"""Decides if a person is notified of an item now, and writes the words for it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from synapsed.clock import iso
from synapsed.model.event_pattern import fits
from synapsed.model.events import AttentionItem, AttentionKind
from synapsed.model.external import is_aliased
from synapsed.model.masking import visible
from synapsed.parts.attention.notify import Content, SinkRule, is_quiet
from synapsed.shared.choices import choice

HOLD_S = 1.0
"""Seconds for which an item is open before a person is notified: a rule may answer it, or it closes by itself."""

QUESTION_MAX = 1500
"""Most characters of a question, and of a command, in a notice."""

WORDS: Final[dict[AttentionKind, str]] = {
    "permission": "asks for a permission",
    "question": "asks a question",
    "plan": "has a plan to be approved",
    "sign_in": "wants a sign-in",
    "limit": "has reached a usage limit",
    "account": "cannot use its account",
    "failure": "has failed",
    "crash_loop": "crashes again and again",
    "unreadable": "shows a screen that is not understood",
    "finished": "has finished",
    "alert": "needs something mended",
}

type Verdict = Literal["tell", "wait", "never"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """The moment of a decision."""

    open_s: float
    """Seconds for which the item is open; negative after the clock was set back."""
    idle_s: float
    """Seconds since the person did something."""
    local: datetime
    """The machine's local time."""


def verdict(item: AttentionItem, rule: SinkRule, now: Now) -> Verdict:
    """Returns `tell` if the sink with that rule is notified now, `wait` if later (while the item is open), or
    `never`."""
    if item.kind not in rule.kinds:
        return "never"
    if not any(fits(glob, name) for glob in rule.agents for name in (item.agent, item.agent_id)):
        return "never"
    waits = item.looked_at or abs(now.open_s) < HOLD_S or now.idle_s < rule.idle or is_quiet(rule.quiet, now.local)
    return "wait" if waits else "tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Message for a sink. `data` is for programs. `answers`: the keys for yes and no to the prompt `prompt_id`, of
    `task` if it has one, provided that the notice shows the whole question. `elsewhere`: it is about an agent
    elsewhere, whose name an agent here may have, too."""

    id: str
    kind: AttentionKind
    title: str
    body: str
    data: Mapping[str, Any]
    answers: tuple[str, str] | None = None
    prompt_id: str | None = None
    task: str | None = None
    elsewhere: bool = False


def notice(item: AttentionItem, content: Content) -> Notice:
    """Returns the notice about `item`, with no more of it than `content` allows; invisible characters are made
    visible."""
    answers, item = _answers(item), _visible(item)
    title = f"{item.agent} {WORDS[item.kind]}"
    data: dict[str, Any] = {"id": item.id, "agent": item.agent, "kind": item.kind, "since": item.since}
    lines = [f"until {item.until}"] if item.until is not None else []
    whole = True
    if content != "kind":
        question, command, diff = told = [_cut(text or "") for text in (item.question, item.command, item.diff)]
        asked = (item.question, item.command, item.diff)
        whole = all(len(cut) == len((text or "").strip()) for cut, text in zip(told, asked, strict=True))
        if content == "question":  # text beside the question is left out
            whole = whole and command in question and diff in question
        lines.append(question)
        data["question"] = question
        if content == "full":
            lines += [line for line in (command and f"$ {command}", diff, f"in {item.cwd}") if line]
            lines += [f"{option.key}: {option.label}" for option in item.options]
            data |= item.model_dump(mode="json") | {
                "question": question,
                "command": command or None,
                "diff": diff or None,
            }
    answers = answers if content != "kind" and whole else None
    return Notice(
        id=item.id,
        kind=item.kind,
        title=title,
        body="\n".join(lines),
        data=data,
        answers=answers,
        prompt_id=item.prompt_id,
        task=item.task,
        elsewhere=is_aliased(item.agent_id),
    )


def trial(now: float) -> Notice:
    """Returns the notice of `notify test`."""
    data = {"id": "test", "agent": None, "kind": "alert", "since": iso(now)}
    body = "This is a test: what waits for you will be told here."
    return Notice(id=f"test-{int(now * 1000)}", kind="alert", title="synapsed", body=body, data=data)


def _answers(item: AttentionItem) -> tuple[str, str] | None:
    if item.prompt_id is None or item.kind not in ("permission", "plan"):
        return None
    prompt = {"type": item.prompt_type, "options": [option.model_dump() for option in item.options]}
    try:
        return choice(prompt, accept=True), choice(prompt, accept=False)
    except ValueError:
        return None


def _visible(item: AttentionItem) -> AttentionItem:
    options = [option.model_copy(update={"label": visible(option.label)}) for option in item.options]
    command = visible(item.command) if item.command is not None else None
    diff = visible(item.diff) if item.diff is not None else None
    told = {"question": visible(item.question), "cwd": visible(item.cwd)}
    return item.model_copy(update={**told, "command": command, "diff": diff, "options": options})


def _cut(text: str) -> str:
    text = text.strip()
    return text if len(text) <= QUESTION_MAX else f"{text[: QUESTION_MAX - 1]}…"
