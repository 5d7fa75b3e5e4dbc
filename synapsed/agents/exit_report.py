"""Describes the end of a program for people and for the restart policy: its exit code, and its last words if it was
never ready.

Pure. A program that refuses its arguments prints the reason and ends. The rule needs all of this evidence:

- it ended by itself, with a code that is neither success nor a signal's;
- it was never ready in this launch, and ended within `REFUSAL_S` of its start;
- its last words say that an option or argument was wrong (`REFUSALS`).

Such a program would end the same way at each start, so it is not started again (`Parting.refused`).

An exit code may be that of a wrapper: a script may end with `exit 0` whatever happened to the program. A code for
success is not believed (`Parting.crashed`) if the program has a model, nobody pressed a key at its terminal in the last
`BY_HAND_S`, and the program ended

- in the middle of a turn that a message began (a command, such as `/quit`, may be the cause of the end),
- before it was ready in the conversation that it should continue (the next start is in a new one), or
- with a shell's word for the signal that ended a process as the last thing on the screen (`KILLED`).

That a program was never ready is otherwise no sign of a crash: one that prints a single answer ends like this, and
would do so again.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from synapsed.agents.lifecycle import ProcessEvent
from synapsed.agents.restart_policy import Decision, GiveUp, Rest, Retry
from synapsed.model.link import LinkExited
from synapsed.shared.regex import regex
from synapsed.tasks.transitions import describe_exit

REFUSAL_S = 30.0
"""Seconds after a start in which a refusal of arguments is believed. Programs read their arguments first; a runtime of
their own may take long to start on a busy machine."""

SIGNALED = 128
"""Exit codes from this number on are a shell's for a signal; 126 and 127 mean that nothing could be run."""

WORDS_MAX = 300

BY_HAND_S = 30.0
"""Seconds that a program may take to end after keys that end it were pressed: hooks run first."""

KILLED = regex(
    r"(?:^|[:\s])(?:Killed|Terminated|Aborted|Hangup|Bus error|Segmentation fault|Illegal instruction|Floating point "
    r"exception|Trace/breakpoint trap|Bad system call)(?: \(core dumped\)|(?: {2,}\S.*))?$"
)
"""A shell's words for a signal, searched in the last line of the screen; bash names the command after them."""

_THING = r"(?:options?|arguments?|flags?|switch(?:es)?|parameters?|subcommands?|commands?)"
_OPTION = r"['\"`‘“]?--?[A-Za-z][\w-]*['\"`’”]?"
_STRANGE = r"(?:unknown|unrecogni[sz]ed|unexpected|invalid|illegal|unsupported|ambiguous|bad|no such)"
_LACKING = r"(?:not enough|too many|missing|requires an?)"
_REFUSED = r"(?:not (?:recogni[sz]ed|supported|allowed)|is (?:unknown|invalid|ambiguous))"
_ALONE = r"(?:are mutually exclusive|can(?:not| only) be (?:used|combined))"
_SYSTEM = r"(?:\bEINVAL\b|\[Errno|: invalid argument\W*$)"
REFUSALS = regex(
    rf"^(?!.*{_SYSTEM}).*(?:"
    rf"\b{_STRANGE}\s+(?:[\w-]+\s+)?{_THING}\b"
    rf"|\b{_LACKING}\s+(?:[\w-]+\s+)?{_THING}\b"
    rf"|\b{_THING}\b.{{0,60}}\b{_REFUSED}\b"
    rf"|\b{_THING}\b.{{0,80}}\b{_ALONE}\b"
    rf"|(?:^|\s){_OPTION}.{{0,80}}\b{_ALONE}\b"
    rf"|\bcannot use\b.{{0,80}}{_OPTION})",
    re.IGNORECASE,
)
"""Words, in one line, for a refused command-line argument, but not those of a failed system call (`_SYSTEM`)."""

_USAGE = regex(r"^\s*usage:", re.IGNORECASE)
_ERROR = regex(r"^\W*(?:[\w.-]+:\s*)?(?:fatal|error|panic|exception|\w*Error)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parting:
    """The end of a program. `how` is for people; `refused`: it did not take its arguments."""

    how: str
    refused: bool = False
    crashed: bool = False
    """True if its exit code says success, and is not believed."""

    def because(self, why: str | None) -> "Parting":
        """Returns the same with an explanation, if there is one."""
        return self if why is None else replace(self, how=f"{self.how}; {why}")


def parting(exited: LinkExited, screen: str, *, ready: bool, uptime: float) -> Parting:
    """Returns how the program that showed `screen` ended. `ready`: it was so in this launch; `uptime` is in seconds."""
    code = exited.exit_code
    how = describe_exit(exited)
    if ready or code is None or code == 0:
        return Parting(how=how)
    lines = [line.strip() for line in screen.splitlines() if line.strip()]
    refusal = _last(REFUSALS, lines)
    words = refusal or _last(_ERROR, lines) or (lines[-1] if lines else None)
    if words is None:
        return Parting(how=how)
    said = (refusal is not None or _last(_USAGE, lines) is not None) and uptime <= REFUSAL_S
    refused = said and 0 < code < SIGNALED and code not in (126, 127)
    return Parting(how=f"{words[:WORDS_MAX]} ({how})", refused=refused)


def doubted(end: Parting, screen: str, *, in_turn: bool, unresumable: bool = False) -> Parting:
    """Checks the end of a program with a model that no person ended, and whose exit code says success: returns it as a
    crash if there is a sign of one. `in_turn`: it worked on a message; `unresumable`: it ended before it was ready in
    the conversation that it should continue."""
    lines = [line.rstrip() for line in screen.splitlines() if line.strip()]
    if lines and KILLED.search(lines[-1]):
        why = f"its last words are {lines[-1].strip()[:WORDS_MAX]!r}"
    elif in_turn:
        why = "nobody ended it, and it worked on a message"
    elif unresumable:
        why = "it did not go on with its conversation"
    else:
        return end
    return replace(end, how=f"{end.how}; {why}: that is no success", crashed=True)


def told_of(decision: Decision, end: Parting) -> tuple[tuple[ProcessEvent, ...], str]:
    """Returns the consequences of an exit, as events and in words."""
    match decision:
        case Rest():
            return (), f"{end.how}; {decision.reason}"
        case Retry():
            return (ProcessEvent.RETRY,), f"{end.how}; starting again in {decision.delay:.1f} s"
        case GiveUp():
            if end.refused:
                why = "it did not take its arguments, and would not the next time: set args, or use another version"
            else:
                why = f"ended {decision.exits} times in a row"
            return (ProcessEvent.GIVE_UP,), f"{end.how}; {why}; trying again in {decision.delay:.0f} s"


def _last(pattern: re.Pattern[str], lines: Sequence[str]) -> str | None:
    return next((line for line in reversed(lines) if pattern.search(line)), None)
