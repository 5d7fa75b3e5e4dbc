"""`[[rule]]`: the events that it matches, and its action.

Two limits end a loop of rules, in which a rule's message leads to the event that the rule matches, or two rules cause
each other's events.

- **depth**: a task that a rule has sent has the number of rules before it; from DEPTH_MAX on, rules only report on its
  events (`notify` and `webhook`);
- **rate**: a rule acts RATE_MAX times within RATE_S seconds, and not again before the first of these is over.
"""

import difflib
import re
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from synapsed.model.event_pattern import PATTERN_MAX, TEXT_MAX, fits
from synapsed.model.events import EventData
from synapsed.shared.regex import regex

OUR_EVENT = "ruleFired"
"""Event type of the rules' own reports; no rule matches it."""

RULES_MAX = 200
"""Most rules, and most webhooks."""

MESSAGE_MAX = 65_536
FILLED_MAX = 4000
"""Most characters of a field that are filled into a text."""

_NAME = regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_FIELD = regex(r"\{([a-z_]+(?:\.[a-z_]+)*)\}")
_EVENTS = frozenset(kind.model_fields["type"].default for kind in get_args(get_args(EventData)[0])) - {OUR_EVENT}


def _event(name: str) -> str:
    if name not in _EVENTS:
        near = difflib.get_close_matches(name, _EVENTS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f": there are {', '.join(sorted(_EVENTS))}"
        raise ValueError(f"{name!r} is not an event that a rule can be for{hint}")
    return name


def _checked_name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError("must be letters, digits, '_', '.' and '-', at most 64, beginning with a letter or digit")
    return text


def _variable(text: str) -> str:
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text) is None:
        raise ValueError("must be the name of a variable")
    return text


Glob = Annotated[str, Field(min_length=1, max_length=PATTERN_MAX)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class On(_Section):
    """The events that a rule matches: events of this type, of agents whose name or id fits, with fields that fit."""

    event: Annotated[str, AfterValidator(_event)]
    agent: Glob = "*"
    match: dict[str, Glob | list[Glob]] = Field(default={}, max_length=20)
    """Fields of the event's data, with dots for inner fields; each must fit one of its globs."""


class Do(_Section):
    """Action of a rule: exactly one of these keys. Texts may have `{agent}`, `{event}`, `{task}` and fields of the
    event's data in braces."""

    notify: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    """Text that is shown to the person, on the desktop if there is one."""
    approve: Literal[True] | None = None
    deny: Literal[True] | None = None
    """Answers yes, or no, to the question of the event, and only to that one, by the option that certainly means so."""
    send: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    """Receiver of `message`: an address, or `{agent}`."""
    message: Annotated[str, Field(min_length=1, max_length=MESSAGE_MAX)] | None = None
    restart: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    """Agent to restart: an address, or `{agent}`."""
    webhook: str | None = None
    """Name of the receiver in `[webhooks.NAME]`."""

    @model_validator(mode="after")
    def _check_one_action(self) -> Self:
        chosen = [key for key in ACTIONS if getattr(self, key) is not None]
        if len(chosen) != 1:
            raise ValueError(f"must have one of {', '.join(ACTIONS)}, not {', '.join(chosen) or 'none'}")
        if (self.send is None) != (self.message is None):
            raise ValueError("send and message go together")
        return self

    @property
    def action(self) -> str:
        return next(key for key in ACTIONS if getattr(self, key) is not None)


ACTIONS = ("notify", "approve", "deny", "send", "restart", "webhook")
ANSWERING = ("approve", "deny")
"""Actions that answer a question."""
_ASKING = frozenset({"inputRequired", "taskStatus", "activity"})
"""Events that contain a question."""


class RuleConfig(_Section):
    """`[[rule]]`."""

    name: Annotated[str, AfterValidator(_checked_name)]
    on: On
    do: Do

    @model_validator(mode="after")
    def _check_asking_event(self) -> Self:
        if self.do.action in ANSWERING and self.on.event not in _ASKING:
            raise ValueError(
                f"do.{self.do.action} answers a question: on.event must be one of {', '.join(sorted(_ASKING))}"
            )
        return self


class WebhookConfig(_Section):
    """`[webhooks.NAME]`; `[a2a.push]` has the allowed networks, and the retries."""

    url: Annotated[str, Field(min_length=1, max_length=2048)]
    secret_file: str | None = None
    """A file with `whsec_…`, readable by its owner only; `~` is allowed, a relative path is relative to the
    configuration."""
    secret_env: Annotated[str, AfterValidator(_variable)] | None = None
    """A variable of the daemon's environment with the secret."""

    @model_validator(mode="after")
    def _one_secret(self) -> Self:
        if (self.secret_file is None) == (self.secret_env is None):
            raise ValueError("must have one of secret_file and secret_env: what is sent is signed")
        return self


def is_for(rule: RuleConfig, event: str, data: Mapping[str, Any], agent: Iterable[str]) -> bool:
    """Returns True if the rule matches this event; `agent` are the names of its agent, empty if it has none."""
    if event != rule.on.event:
        return False
    if rule.do.action == "approve" and not _knows_what(rule, data):
        return False
    return _is_of(rule, agent) and all(_fits_any(globs, field_of(data, path)) for path, globs in rule.on.match.items())


def _knows_what(rule: RuleConfig, data: Mapping[str, Any]) -> bool:
    """Returns True if a yes would answer what the rule means, not a word that happens to be in an edit; and if the
    compared fields are complete."""
    edits, named = field_of(data, "prompt.diff"), rule.on.match
    if edits is not None and "prompt.prompt" in named and "prompt.diff" not in named:
        return False
    return all(len(field_of(data, path) or "") <= TEXT_MAX for path in named)


def answers(rule: RuleConfig, agent: Iterable[str]) -> bool:
    """Returns True for a rule that may answer questions of this agent; `agent` as in `is_for`."""
    return rule.do.action in ANSWERING and _is_of(rule, agent)


def _is_of(rule: RuleConfig, agent: Iterable[str]) -> bool:
    return rule.on.agent == "*" or any(fits(rule.on.agent, name) for name in agent)


def _fits_any(globs: str | list[str], value: str | None) -> bool:
    given = [globs] if isinstance(globs, str) else globs
    return value is not None and any(fits(glob, value) for glob in given)


def field_of(data: Mapping[str, Any], path: str) -> str | None:
    """Returns the field as text, None if there is no such field, or it is no single value."""
    value: Any = data
    for step in path.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None


def fill(text: str, event: str, data: Mapping[str, Any], *, agent: str, task: str | None) -> tuple[str, bool]:
    """Returns the text with its fields filled in, and True if a field came from the event's data, which others may have
    written."""
    told = False

    def field(match: re.Match[str]) -> str:
        nonlocal told
        own = {"agent": agent, "event": event, "task": task or ""}
        if match[1] in own:
            return own[match[1]]
        told = True
        return (field_of(data, match[1]) or "")[:FILLED_MAX]

    return _FIELD.sub(field, text), told


FIRED = "fired"
"""Key of a task's metadata: the rule that has sent it, its event, and its depth. No client sets it."""

DEPTH_MAX = 3
RATE_MAX = 20
RATE_S = 60.0


def depth_of(metadata: dict[str, Any]) -> int:
    """Returns the number of rules in the chain before the task."""
    told = metadata.get(FIRED)
    depth = told.get("depth") if isinstance(told, dict) else None
    return depth if isinstance(depth, int) and not isinstance(depth, bool) else 0


class Rate:
    """Limits the rate of one rule; `now` is monotonic."""

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=RATE_MAX)
        self._told = False

    def allows(self, now: float) -> bool:
        """Returns True if the rule may act now, and counts the action."""
        if len(self._times) == RATE_MAX and now - self._times[0] < RATE_S:
            return False
        self._times.append(now)
        self._told = False
        return True

    def tell(self) -> bool:
        """Returns True if a report is due that the rule is held back: once, until it acts again."""
        told, self._told = self._told, True
        return not told
