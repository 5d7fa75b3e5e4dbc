"""How long a turn on a terminal waits, and for what. Pure."""

from synapsed.profiles.profile import Profile
from synapsed.pty.turn_types import Seen, TurnState

WORKED_UNSEEN_S = 1.0
"""A program without side channels that was never seen busy must be ready for so long before its turn is over."""

UNTOLD_UNSEEN_S = 30.0
"""The same where a side channel should have told the end: a program that is slow to begin looks as one that is done."""

EMPTY_UNTOLD_S = 120.0
"""The same where there is no answer either: the program may have put the message off until it has started. So it is
without side channels where the program was not seen at work."""

UNSEEN_S = 20.0
"""Where the message left the composer and the program shows nothing, or where it may not have come to the submit key,
it is waited for so long before that is told."""

STARVED_S = 60.0
"""The same while it is on a processor, or waits for one: on a busy machine that may be most of the time."""

UNSHOWN_S = 10.0
"""How long a program may take to show what was typed at a prompt of which nothing else is known."""

REFUSAL_STOPS_S = 3.0
"""A program that a refusal stops does so at once: one that shows for so long that it works was not refused."""

TYPED_AGAIN_AFTER_S = (0.0, 5.0, 20.0)
"""How long a message that was not taken, and was taken out of the composer, is kept each time before it is typed again:
what kept the program from it was its start-up, or passes. After these it is told to be undelivered."""

PASTED_AGAIN = 1
"""So often a paste is typed again that was never shown."""

LOOK_AGAIN_S = 0.02
"""While something is due but not settled yet."""

SLOW_AGAIN_S = 0.25
"""While a program that gets little of a busy machine's time is waited for."""


def to_accept(profile: Profile, seen: Seen, state: TurnState, *, since: float, taken: bool) -> float:
    """Seconds from `since` that the program has to show that it took the message. Where that has left its composer and
    stands nowhere else, nothing can be done but wait, and a program that gets little of a busy machine's time works
    before it shows it: the next message must not come upon it."""
    accept = profile.delivery.accept_ms / 1000
    if seen.computes and not taken and not state.interrupting:
        return max(accept, state.submit_ns / 1e9 + STARVED_S - since)
    waits = state.resubmitted and not taken and seen.composer != "draft" and not state.interrupting
    return max(accept, UNSEEN_S) if waits else accept


def given_back(profile: Profile, *, channels_tell: bool) -> float:
    """How long a message must stand in the composer again before that says that a person stopped its turn, seconds: a
    hook of theirs may have refused it, which a side channel tells a little later."""
    return profile.answer.channel_wait_ms / 1000 if channels_tell else 0.0


def at_rest(profile: Profile, *, worked: bool, channels_tell: bool, empty_untold: bool) -> float:
    """How long a ready screen must stand before it ends the turn, seconds. `worked`: the program was seen at work, or
    need not be; `empty_untold`: nothing has told of the turn, and there is no answer either."""
    if empty_untold:
        return EMPTY_UNTOLD_S
    if channels_tell:
        wait = profile.answer.channel_wait_ms / 1000
        return wait if worked else max(wait, UNTOLD_UNSEEN_S)
    return 0.0 if worked else WORKED_UNSEEN_S
