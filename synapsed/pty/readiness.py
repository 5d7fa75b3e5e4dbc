"""Decides, by one table, if a message may be typed now, and for which reason not. Also decides if a program rests after
its model has answered, or if a hook of the person's may still send it back to work. Pure.

The caller passes the facts that it knows (`Moment`): a link those of its terminal, at every look; an agent those of its
queue, and the last observation of its link. The first row of the table that applies is the reason. A reason has no word
for people (`held`) if the agent's activity says enough (it works, it starts).

A program shows that it works as long as its hooks run. So it rests when its screen has come to rest, or sooner if the
program says so itself: by its status record, or by a title for which the profile has a pattern. These signs count only
if the program was seen at work since it took the prompt; otherwise they may be older.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from synapsed.interfaces import Hold
from synapsed.model.agent import Activity
from synapsed.model.link import LinkObserved
from synapsed.profiles.profile import Profile
from synapsed.pty.turn_types import SIGNS
from synapsed.terminal.look import Look
from synapsed.terminal.queries import are_answers
from synapsed.terminal.verdict import title_sign


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Facts because of which a message may have to wait."""

    # Facts that an agent knows.
    runs: bool = True
    """True if the agent's program runs, and its link is open."""
    hold: Hold | None = None
    """The reason why the agent's messages are held back, if they are."""
    restarting: bool = False
    """True if the program must be restarted before the next message."""
    interrupting: bool = False
    """True while the program's work is being stopped."""
    link: LinkObserved | None = None
    """The last observation of the link."""

    # Facts that a link knows.
    look: Look | None = None
    silent: bool = False
    """True if the keeper does not answer: the screen may be old, and typed text would wait at the keeper."""
    unread: bool = False
    """True if the program has not read all its input."""
    hands: bool = False
    """True if a person pressed a key just now: the key's effect may not be on the screen yet."""
    pasted: bool = False
    """True if the text in the composer may be the message that is being typed."""
    misread: bool = False
    """True if pasted text is on the screen, but not where the profile finds the composer."""

    in_turn: bool = False
    """True if a message was given whose turn is not over."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Reason why no message can be typed. `held` is the word that people see for it, if it has one."""

    what: str
    held: str | None = None


BY_HOLD = Obstacle("its messages are held back")
BY_LINK = Obstacle("its link says so")
"""`obstacle` gives these two the word of the hold, or of the link's observation."""

SILENT_KEEPER = Obstacle("the process that holds its terminal does not answer", "keeper")
UNKNOWN_SCREEN = Obstacle("its screen is not understood; an alert was sent", "unknown screen")
MISREAD_COMPOSER = Obstacle("the pasted text is on the screen, but not in the input line", "unknown screen")

type _Applies = Callable[[Moment], bool]


def _sees(applies: Callable[[Look], bool], unless: _Applies = lambda _: False) -> _Applies:
    return lambda now: now.look is not None and not unless(now) and applies(now.look)


def _is_ready(look: Look) -> bool:
    return look.verdict.activity is Activity.READY


def _is_written(look: Look) -> bool:
    """Returns True if the composer has text. A terminal's answers to queries, which typing removes, do not count."""
    return look.composer.state == "draft" and not are_answers(look.composer.text)


TABLE: tuple[tuple[Obstacle, _Applies], ...] = (
    (BY_HOLD, lambda now: now.hold is not None),
    (Obstacle("it is to be restarted", "restart"), lambda now: now.restarting),
    (BY_LINK, lambda now: now.link is not None and not now.link.can_receive),
    (Obstacle("no program runs"), lambda now: not now.runs),
    (Obstacle("its work is being stopped"), lambda now: now.interrupting),
    (SILENT_KEEPER, lambda now: now.silent),
    (Obstacle("it is ready, but has not read all keys", "unread"), _sees(_is_ready, unless=lambda now: not now.unread)),
    (UNKNOWN_SCREEN, _sees(lambda look: (asked := look.verdict.asked) is not None and asked.prompt.type == "screen")),
    (MISREAD_COMPOSER, lambda now: now.misread),
    (Obstacle("it waits for a person", "dialog"), _sees(lambda look: look.verdict.activity is Activity.WAITING)),
    (Obstacle("it is not ready"), _sees(lambda look: not _is_ready(look))),
    (Obstacle("its input line is not empty", "typing"), _sees(_is_written, unless=lambda now: now.pasted)),
    (
        Obstacle("it rests, and shows no input line", "no composer on the screen"),
        _sees(lambda look: look.verdict.lacks_composer),
    ),
    (Obstacle("its screen moves"), _sees(lambda look: not look.verdict.settled)),
    (Obstacle("a person is typing", "typing"), lambda now: now.hands and not now.pasted),
    (Obstacle("a turn runs"), lambda now: now.in_turn),
)


def obstacle(now: Moment) -> Obstacle | None:
    """Returns the reason why no message can be typed; None if one can be typed."""
    found = next((found for found, applies in TABLE if applies(now)), None)
    if found is BY_HOLD and now.hold is not None:
        return replace(found, held=now.hold.word)
    return replace(found, held=now.link.held) if found is BY_LINK and now.link is not None else found


class RestAfterHooks:
    """Finds when one program rests after an answer. Its prompts may come from any source."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._since = 0
        """End of the output when the program took the last prompt."""
        self._worked = False
        """True if the program was seen at work since then."""
        self._answered = False

    def worked_on(self, offset: int) -> None:
        """Notes that the program took a prompt, from a person, an agent or a hook."""
        self._since, self._worked, self._answered = offset, False, False

    def answered(self) -> None:
        """Notes that the program's model has sent an answer that may be the last of the turn."""
        self._answered = True

    def over(self) -> None:
        """Notes that the turn's end is published."""
        self._answered = False

    def seen(self, look: Look) -> bool:
        """Returns True if the program rests by this look; only once for each answer."""
        verdict = look.verdict
        if look.offset > self._since and verdict.activity is Activity.BUSY and verdict.source in SIGNS:
            self._worked = True
        if not self._answered:
            return False
        worked = self._worked or look.worked_until > self._since
        rests = verdict.activity is Activity.READY and verdict.settled
        if rests or (worked and self._says_so(look)):
            self._answered = False
            return True
        return False

    def _says_so(self, look: Look) -> bool:
        at_work = look.verdict.activity is Activity.BUSY and look.verdict.source in SIGNS
        titled = title_sign(self._profile.ready, look.screen) is not None
        return not at_work and (look.record in ("idle", "done", "error") or titled)
