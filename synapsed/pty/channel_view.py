"""Combines observations of the terminal and reports of the channel to the activity and the questions of one agent,
whose program takes messages over a channel. Pure; times are monotonic seconds.

The channel decides if a message can be given: a person's half-written draft is no obstacle, because no text is typed.
If the channel reports a question, this question with its options is the agent's prompt, and the dialog for it on the
terminal is left out. Dialogs that the channel does not know (about trust, menus of the program's own) stay.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace

from synapsed.errors import InvalidChoice
from synapsed.interfaces import Reach
from synapsed.model.agent import Activity
from synapsed.model.facts import PermissionAsked
from synapsed.model.link import LinkObserved
from synapsed.model.task import Prompt, PromptOption
from synapsed.profiles.profile import Profile

PAUSE_S = 10.0
"""Seconds without a key after which a person counts as pausing, so that a message does not interrupt their writing."""

SAME_S = 1.0
"""Seconds for which a dialog may be on the terminal before the channel reports its question, and after its answer."""

COMING_S = 1.0
"""Seconds, after the terminal is ready, to wait for the channel. Until then the agent takes no messages: a message
typed at the terminal would have to wait for a person's draft, and less would be reported about it."""

COMES_S = 10.0
"""The same while the connection to the channel is being made."""

ASKING_MAX = 50
"""Largest number of open questions kept; the oldest are forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Facts besides an observation of the terminal."""

    now: float
    reach: Reach
    coming: bool
    """The same as in `Delivering`."""
    channel: str
    in_turn: bool
    """True if a message's turn runs."""
    draft: bool
    """True if the composer (the program's input line) has text of a person."""
    hands_at: float
    """Time at which a person last pressed a key."""


@dataclass(frozen=True, slots=True)
class ChannelQuestion:
    """An open question: the fact that reported it, and the prompt made from it."""

    asked: PermissionAsked
    prompt: Prompt


class ChannelView:
    """The view of one program. `coming`: the program has just been started, and its channel may come soon."""

    def __init__(self, profile: Profile, *, coming: bool) -> None:
        self._policy = profile.delivery.while_typing
        self._coming = coming
        """True if the channel was not reached yet, but may be soon."""
        self._ready_since: float | None = None
        self._open: dict[str, ChannelQuestion] = {}
        self._closed_at = float("-inf")
        self._dialog: tuple[str, float] | None = None
        """The id of the permission dialog on the terminal that the channel has not reported, and since when."""
        self.due: float | None = None
        """Time at which the view may change without a new observation or report."""

    # --- questions ---

    @property
    def open(self) -> ChannelQuestion | None:
        return next(iter(self._open.values()), None)

    def asked(self, fact: PermissionAsked) -> None:
        if fact.request is None or not fact.options or fact.request in self._open:
            return
        self._open[fact.request] = ChannelQuestion(fact, _prompt(fact))
        while len(self._open) > ASKING_MAX:
            del self._open[next(iter(self._open))]

    def over(self, request: str, now: float) -> None:
        """Closes a question that was answered or withdrawn."""
        if self._open.pop(request, None) is not None:
            self._closed_at = now

    def forget(self, now: float) -> None:
        """Drops the questions, because their turn is over."""
        for request in list(self._open):
            self.over(request, now)

    def find(self, prompt_id: str | None) -> ChannelQuestion | None:
        """Returns the open question with that prompt id; with None, the oldest open question."""
        if prompt_id is None:
            return self.open
        return next((each for each in self._open.values() if each.prompt.prompt_id == prompt_id), None)

    # --- activity ---

    def seen(self, seen: LinkObserved, beside: Beside) -> LinkObserved:
        """Returns the observation to report, from an observation of the terminal and the facts beside it."""
        self.due = None
        if beside.reach == "away" and not beside.in_turn:
            return self._not_reached(seen, beside)
        self._coming = False
        if (asks := self.open) is not None:
            evidence = f"{beside.channel}: it asks"
            return replace(
                seen,
                activity=Activity.WAITING,
                evidence=evidence,
                prompt=asks.prompt,
                can_receive=False,
                held="dialog",
                asking=0,
                whole=True,
            )
        seen = self._without_the_same(seen, beside)
        if seen.prompt is not None or seen.activity in (Activity.STARTING, Activity.WAITING):
            return replace(seen, can_receive=False)
        if beside.in_turn or beside.reach != "idle":
            works = seen.activity is Activity.READY
            evidence = f"{beside.channel}: a turn runs" if works else seen.evidence
            activity = Activity.BUSY if works else seen.activity
            return replace(seen, activity=activity, evidence=evidence, can_receive=False, held=None)
        held = self._held(beside)
        return replace(seen, can_receive=held is None, held=held)

    def _not_reached(self, seen: LinkObserved, beside: Beside) -> LinkObserved:
        if not self._coming or seen.activity is not Activity.READY:
            return seen
        self._ready_since = beside.now if self._ready_since is None else self._ready_since
        until = self._ready_since + (COMES_S if beside.coming else COMING_S)
        if beside.now >= until:
            self._coming = False
            return seen
        self.due = min(until, beside.now + COMING_S)  # no event says that the channel does not come any more
        evidence = f"{beside.channel}: not reached yet"
        return replace(seen, activity=Activity.STARTING, evidence=evidence, can_receive=False)

    def _without_the_same(self, seen: LinkObserved, beside: Beside) -> LinkObserved:
        """Returns the observation without a permission dialog that has just appeared (the channel may be about to
        report its question), or whose question has just been closed."""
        if seen.prompt is None or seen.prompt.type != "permission":
            self._dialog = None
            return seen
        if self._dialog is None or self._dialog[0] != seen.prompt.prompt_id:
            self._dialog = (seen.prompt.prompt_id, beside.now)
        until = max(self._dialog[1], self._closed_at) + SAME_S
        if beside.now >= until:
            return seen
        self.due = until
        return replace(
            seen, activity=Activity.BUSY, evidence=f"{beside.channel}: a turn runs", prompt=None, can_receive=False
        )

    def _held(self, beside: Beside) -> str | None:
        if not beside.draft or self._policy == "deliver":
            return None
        if self._policy == "hold":
            return "typing"
        until = beside.hands_at + PAUSE_S
        if beside.now >= until:
            return None
        self.due = until
        return "typing"


def chosen(asks: ChannelQuestion, text: str) -> str:
    """Returns the key of the option that `text` names, by its key, an alias or its label. Raises InvalidChoice."""
    wanted = " ".join(text.split()).casefold()
    ways: tuple[Callable[[PermissionAsked], dict[str, str]], ...] = (
        lambda asked: {option.key.casefold(): option.key for option in asked.options},
        lambda asked: {alias.casefold(): option.key for option in asked.options for alias in option.aliases},
        lambda asked: {" ".join(option.label.split()).casefold(): option.key for option in asked.options},
    )
    for way in ways:
        if (key := way(asks.asked).get(wanted)) is not None:
            return key
    offered = ", ".join(f"{option.key} ({option.label})" for option in asks.prompt.options)
    raise InvalidChoice(
        f"{text[:80]!r} is not among the options: {offered}",
        options=[option.model_dump() for option in asks.prompt.options],
        prompt_id=asks.prompt.prompt_id,
    )


def _prompt(asked: PermissionAsked) -> Prompt:
    options = [PromptOption(key=option.key, label=option.label) for option in asked.options]
    known_by = json.dumps([asked.channel, asked.session, asked.request, asked.question, asked.command, asked.diff])
    return Prompt(
        prompt_id=hashlib.sha256(known_by.encode()).hexdigest()[:16],
        type="permission",
        prompt=asked.question,
        options=options,
        command=asked.command,
        diff=asked.diff,
    )
