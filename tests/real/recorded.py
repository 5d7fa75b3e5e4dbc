"""What is recorded of each program: what a person does, and the moments that are marked."""

import contextlib
import time
from collections.abc import Callable, Mapping

from tests.real.looks import LOOKS
from tests.real.questions import ANSWERING, ASK, ASKING, LISTS, PLANNED, PROPOSED, WORDS, asking
from tests.real.session import Session

__all__ = ["SCENARIOS", "is_possible"]


def start(session: Session) -> None:
    session.ready()
    session.terminal.send("a draft that nobody has sent")
    session.see("a draft that nobody", "draft")
    session.terminal.send(b"\x1b[200~first line\nsecond line\x1b[201~")
    session.settle("pasted two lines")


def leave(session: Session) -> None:
    session.ready()
    for key in session.look.leave:
        session.terminal.send(key)
        session.terminal.settle(0.3)
        session.mark(f"sent {key!r}")
    session.terminal.wait_exit()
    session.mark("ended")


def turn(session: Session) -> None:
    session.ready()
    session.submit("Say the fenced one. [[answer:fenced]]")
    session.served("fenced")
    session.settle("answered")
    session.submit("The same again. [[answer:fenced]]")
    session.served("again")
    session.settle("answered again")


def delayed(session: Session) -> None:
    session.ready()
    session.submit("[[delay:3]] [[stall:2]] [[answer:japanese]]")
    session.see(session.look.busy, "busy")
    session.served("japanese")
    session.settle("answered")


def long(session: Session) -> None:
    session.ready()
    session.submit("[[answer:lines200]]")
    session.served("lines200")
    session.terminal.wait_screen("Line 200")
    session.settle("answered")


def slow(session: Session) -> None:
    """Text that comes as a model writes it: markdown, then more than a screen."""
    session.ready()
    session.submit("Slowly, fenced. [[slow:60]] [[answer:fenced]]")
    session.served("Slowly")
    session.settle("answered")
    session.submit("Longer. [[slow:8000]] [[answer:lines200]]")
    session.served("Longer")
    session.terminal.wait_screen("Line 200")
    session.settle("answered again")


def quotes(session: Session) -> None:
    session.ready()
    session.submit("[[answer:quotes]]")
    session.served("quotes")
    session.settle("answered")


_TOUCH = "[[before:I will make the file.]] [[tool:shell-ask:touch made-by-tool]] say: The tool has run."


def accept(session: Session) -> None:
    session.ready()
    session.submit(_TOUCH)
    session.see(session.look.dialog, "dialog")
    session.settle("dialog settled")
    session.terminal.send(session.look.accept)
    session.mark("accepted")
    session.served("has run", 2)
    session.settle("answered")


def reject(session: Session) -> None:
    session.ready()
    session.submit(_TOUCH)
    session.see(session.look.dialog, "dialog")
    session.settle("dialog settled")
    session.terminal.send(session.look.reject)
    session.mark("rejected")
    session.settle("after rejection")
    session.submit("And now? nonce-after-rejection")
    session.served("nonce-after")
    session.settle("answered")


def question(session: Session) -> None:
    """Of the model to the person: one answer, several, and a page to look them over."""
    session.ready()
    session.submit(ASK)
    session.see(r"Which colour do you like\?[\s\S]*Enter to select", "one of them")
    session.settle("dialog settled")
    for key, label in (("2", "several of them"), ("1", "chosen"), ("\x1b[C", "look over"), ("1", "answered")):
        session.terminal.send(key)
        session.settle(label)


def planning(session: Session) -> None:
    """Has codex plan, which alone lets its model ask."""
    session.terminal.send("/plan")
    session.terminal.settle(0.6, at_most=3)
    session.terminal.send("\r")
    session.see(r"\bPlan mode \(", "planning")
    session.terminal.settle(0.6, at_most=3)


def _put(session: Session, message: str, dialog: str) -> None:
    """Submits what has the model ask. Some show so long a paste as a placeholder."""
    session.terminal.send(f"\x1b[200~{message}\x1b[201~")
    session.settle("pasted")
    session.terminal.send("\r")
    session.see(dialog, "one of them")
    session.settle("dialog settled")


def own_words(session: Session) -> None:
    """Questions of the model, answered in words of one's own."""
    session.ready()
    if session.cli == "codex":
        planning(session)
    _put(session, asking(session.cli), r"Which colour do you like\?[\s\S]*(?i:enter) (?:to select|to submit|confirm)")
    for keys, label in ANSWERING[session.cli]:
        session.terminal.send(keys)
        session.settle(label)


def scrolled(session: Session) -> None:
    """Questions with more options than are shown: several answers, and one."""
    session.ready()
    _put(session, LISTS, r"Which sizes do you need\?[\s\S]*Enter to select")
    for keys, label in (
        ("2", "chosen"),
        ("\x0f", "all of them"),
        ("x", "own words"),
        (f"\x7f{WORDS}", "typed"),
        ("\x1b[B", "left"),
        ("1", "another chosen"),
        ("1", "taken back"),
        ("\x0f", "all of them with words"),
        ("\x1b[A", "at the end"),
        ("\r", "one of them"),
        ("\x0f", "all four"),
        ("4", "look over"),
        ("\r", "answered"),
    ):
        session.terminal.send(keys)
        session.settle(label)


def unanswered(session: Session) -> None:
    """A question that was passed over."""
    session.ready()
    planning(session)
    _put(session, asking(session.cli), r"Which colour do you like\?[\s\S]*enter to submit")
    for keys, label in (
        ("\x1b[C", "another"),
        ("1", "passed over"),
        ("2", "selected"),
        ("\r", "the first again"),
        ("1", "the other again"),
        ("2", "answered"),
    ):
        session.terminal.send(keys)
        session.settle(label)


def plan(session: Session) -> None:
    session.ready()
    if session.cli == "codex":
        planning(session)
        session.submit(PROPOSED)
        session.see(r"Implement this plan\?[\s\S]*3\. ", "dialog")
        session.settle("dialog settled")
        session.terminal.send("1")
        session.served("mplement the plan")
    else:
        session.submit(PLANNED[session.cli])
        session.see(r"Would you like to proceed\?[\s\S]*3\. |Ready to start[\s\S]*Enter to select", "dialog")
        session.settle("dialog settled")
        session.terminal.send("2")
        session.served("The plan", 3)
    session.settle("answered")


def always(session: Session) -> None:
    """A permission for good, where the program asks twice."""
    session.ready()
    session.submit(_TOUCH)
    session.see(session.look.dialog, "dialog")
    session.settle("dialog settled")
    session.terminal.send("\x1b[C")
    session.terminal.settle(0.4, at_most=2)
    session.terminal.send("\r")
    session.settle("asked again")
    session.terminal.send("\r")
    session.served("has run", 2)
    session.settle("answered")


def sign_in(session: Session) -> None:
    """Without an account. claude asks only when it is told to."""
    if session.cli == "claude":
        session.ready()
        session.terminal.send("/login")
        session.terminal.settle(0.6, at_most=3)
        session.terminal.send("\r")
    session.see(session.look.sign_in, "dialog", timeout=120)
    session.settle("dialog settled")


def refuse_with_reason(session: Session) -> None:
    """Refuses so that the turn goes on and the model is told, where the program's dialog can do that."""
    session.ready()
    session.submit(_TOUCH)
    session.see(session.look.dialog, "dialog")
    session.settle("dialog settled")
    for key in session.look.refuse_with_reason:
        session.terminal.send(key)
        session.terminal.settle(0.3, at_most=1)
        session.mark(f"sent {key!r}")
    session.served("has run", 2)
    session.settle("answered")


def trust(session: Session) -> None:
    assert session.look.trust is not None
    session.see(session.look.trust, "dialog")
    session.settle("dialog settled")
    for key in session.look.trust_keys:
        session.terminal.send(key)
        session.terminal.settle(0.3, at_most=1)
    session.mark("trusted")
    session.terminal.settle(2.5, at_most=8)
    session.mark("after trust")


def interrupt(session: Session) -> None:
    session.ready()
    session.submit("[[hold-mid:never]] [[answer:lines20]]")
    session.see("Line 0", "streaming")
    session.terminal.settle(0.5, at_most=1)
    session.mark("held")
    for key in session.look.interrupt:
        session.terminal.send(key)
        time.sleep(0.3)
    session.mark("interrupting")
    session.see(session.look.interrupted, "interrupted")
    session.settle("after interrupt")
    session.submit("Next. nonce-after-interrupt")
    session.served("nonce-after")
    session.settle("answered")


def interrupt_early(session: Session) -> None:
    """Before the model has said anything."""
    session.ready()
    session.submit("[[hold:never]] nonce-held")
    session.model.wait_for_turn("nonce-held")
    session.see(session.look.busy, "busy")
    for key in session.look.interrupt:
        session.terminal.send(key)
        time.sleep(0.3)
    session.settle("after interrupt")


def menu(session: Session) -> None:
    """What the keys that clear the composer open where it is empty."""
    assert session.look.menu is not None
    session.ready()
    session.submit("Say nonce-before-menu.")
    session.served("nonce-before-menu")
    session.settle("answered")
    for key in session.look.interrupt * 2:
        session.terminal.send(key)
    session.see(session.look.menu, "menu")
    session.settle("menu settled")
    session.terminal.send("\x1b")
    session.settle("closed")


def error(session: Session) -> None:
    session.ready()
    session.submit("[[status:400]] nonce-broken")
    session.see(session.look.error, "error")
    session.settle("after error")
    session.submit("Next. nonce-after-error")
    session.served("nonce-after")
    session.settle("answered")


def retry(session: Session) -> None:
    session.ready()
    session.submit("[[status:529x1]] nonce-overloaded")
    with contextlib.suppress(TimeoutError):
        session.see(session.look.retry, "retrying", timeout=8)
    session.served("nonce-overloaded", 2)
    session.settle("answered")


def limit(session: Session) -> None:
    """The account's allowance is used up, for two hours."""
    _refused(session, "[[limit:7200]] nonce-limited")


def overlong(session: Session) -> None:
    _refused(session, "[[overlong]] nonce-overlong")


def login(session: Session) -> None:
    _refused(session, "[[status:401]] nonce-login")


def _refused(session: Session, message: str) -> None:
    session.ready()
    session.submit(message)
    session.served(message.rpartition(" ")[2])
    session.settle("refused")
    with contextlib.suppress(TimeoutError):
        session.see(session.look.error, "error", timeout=25)
    session.settle("after error")


def queued(session: Session) -> None:
    """Typed while the program works."""
    session.ready()
    session.submit("[[hold-mid:gate]] [[answer:lines20]]")
    session.see("Line 0", "streaming")
    session.terminal.settle(0.5, at_most=1)
    session.submit("Second message nonce-second")
    session.settle("second submitted")
    session.model.release("gate")
    session.served("nonce-second")
    session.settle("answered")


def loop(session: Session) -> None:
    """A question of the program's own, in mid-answer and in the composer's place; then the answer goes on."""
    session.ready()
    session.submit("[[answer:loop]]")
    session.see(r"A potential loop was detected", "dialog")
    session.settle("dialog settled")
    session.terminal.settle(12.0, at_most=14.0)
    session.mark("unanswered")
    session.terminal.send("\x1b")
    session.settle("kept")


SCENARIOS: Mapping[str, Callable[[Session], None]] = {
    "start": start,
    "leave": leave,
    "turn": turn,
    "delayed": delayed,
    "long": long,
    "slow": slow,
    "quotes": quotes,
    "accept": accept,
    "reject": reject,
    "refuse-with-reason": refuse_with_reason,
    "trust": trust,
    "question": question,
    "own-words": own_words,
    "scrolled": scrolled,
    "unanswered": unanswered,
    "plan": plan,
    "always": always,
    "sign-in": sign_in,
    "interrupt": interrupt,
    "interrupt-early": interrupt_early,
    "menu": menu,
    "error-400": error,
    "retry-529": retry,
    "limit": limit,
    "overlong": overlong,
    "error-401": login,
    "queued": queued,
    "loop": loop,
}

_FOUR = ("claude", "codex", "gemini", "opencode")

SOME = {
    **dict.fromkeys(("accept", "reject", "limit", "overlong", "error-401"), _FOUR),
    "menu": ("claude",),
    "question": ("claude",),
    "own-words": tuple(ASKING),
    "scrolled": ("gemini",),
    "unanswered": ("codex",),
    "plan": ("claude", "codex", "gemini"),
    "always": ("opencode",),
    "sign-in": ("claude", "codex", "gemini"),
    "loop": ("gemini",),
}
"""What only some can show."""


def is_possible(cli: str, scenario: str) -> bool:
    """Whether the program can show it."""
    look = LOOKS[cli]
    if scenario == "trust":
        return look.trust is not None
    if scenario in SOME:
        return cli in SOME[scenario]
    return scenario != "refuse-with-reason" or bool(look.refuse_with_reason)
