"""Answers prompts on a terminal: types the answer, and checks if the program took it.

An answer counts as taken when the question has left the screen; or, if the terminal hid the typed text, when the
program has read it. `answer` returns only then. If the program then asks something else, `answer` returns after that
question is published, so that the caller's next answer is for it. No answer is typed twice: if it was not taken, the
caller gets NotTaken.
"""

import contextlib
from collections.abc import Callable

from synapsed.errors import KeeperLost, NotReady, NotTaken, NotWaiting, PromptChanged
from synapsed.model.link import LinkRefused
from synapsed.pty.keyboard import Emit, Keyboard, Rests, Steps, UntilRead, WaitForExit, Work, look_now, wait_for
from synapsed.pty.lag import ON_WAY
from synapsed.pty.linked_terminal import LinkedTerminal
from synapsed.pty.turn_machine import marked
from synapsed.terminal.look import GONE_S, Look
from synapsed.terminal.menu_keys import Move, route
from synapsed.terminal.prompts import Asked, holds_answer, keys_for, still_asks

HANDS_S = 3.0
"""Seconds that an answer waits until the program has read, and has shown, earlier input."""

EXIT_S = 2.0
"""Seconds to wait for the exit of a program whose screen is gone."""

TAKEN_S = 5.0
"""Seconds within which a program reacts to an answer; if it rests then, it has not taken the answer."""

TAKEN_ROUNDS = 5
"""Number of such waits while the program has not read the answer, or computes, because a busy machine leaves it little
time. Together they are less than the 30 s that clients wait for a response."""

NEXT_S = 2.0
"""Seconds to wait until the next question is drawn and published."""

CURSOR_KEYS = 1
"""The mode (DECCKM) in which a terminal sends other codes for the arrow keys."""


def prompt_id_of(look: Look) -> str | None:
    """Returns the id of the prompt that can be read on the screen."""
    return look.verdict.asked.prompt.prompt_id if look.verdict.asked else None


class Answering:
    """The answers to one program."""

    def __init__(self, terminal: LinkedTerminal, refuse: Callable[[bool], None] | None = None) -> None:
        """`refuse` is called with True if an answer is a refusal that stops the work of any sender, else with False."""
        self._agent_id = terminal.agent_id
        self._profile = terminal.profile
        self._session = session = terminal.session
        self._keyboard = session.keyboard
        self._tell_refusal = refuse
        self._observations = session.observations
        self.asking = session.observations.asking
        self._tried = ("", 0)
        """Id of the last prompt that was answered, and the end of the output before that."""

    def answer(self, text: str, prompt_id: str | None) -> Steps[bool]:
        """Implements `AgentLink.answer`; returns True if the terminal hid the answer."""
        # Earlier input may have answered the question already: this answer would then go into the next question.
        if not (yield UntilRead(HANDS_S)):
            raise NotReady("the program does not read what is typed now: try again when it goes on")
        if not (yield from wait_for(lambda _: not self._session.hands_on(self._session.now), HANDS_S)):
            raise PromptChanged(
                "a person is typing at the terminal: answer there, or try again when they have finished"
            )
        # If a question was published but is not on the screen now, it may be about to be drawn again.
        if self._observations.last is not None and self._observations.last.prompt is not None:
            yield from wait_for(lambda look: look.verdict.asked is not None, GONE_S)
        asked = self._asked((yield from look_now()), prompt_id)
        steps, chosen = keys_for(asked, text)
        dialog = asked.dialog
        if dialog is not None and asked.prompt.prompt_id == self._observations.touched and chosen in dialog.from_first:
            raise PromptChanged(
                "a person at its terminal may have moved the selection: it is answered there, or refused"
            )
        refuses = dialog is not None and chosen in dialog.refusal
        yield from self._refuse(refuses=refuses)
        try:
            hidden = yield from self._typed(asked, steps, chosen)
        except (NotTaken, PromptChanged):
            yield from self._refuse(refuses=False)
            with contextlib.suppress(KeeperLost):  # this look may find that the question counts as a new one now
                yield from look_now()
            raise
        if refuses and asked.prompt.type == "permission":
            yield Emit(LinkRefused(asked.prompt.prompt))
        with contextlib.suppress(KeeperLost):  # the answer was taken, even if the program is gone now
            yield from wait_for(self._is_told, NEXT_S)
        return hidden

    def _asked(self, look: Look, prompt_id: str | None) -> Asked:
        """Returns the prompt on the screen, if it may be answered now. Raises NotWaiting, PromptChanged."""
        asked = look.verdict.asked
        if asked is None:
            raise NotWaiting("the agent does not ask anything now", agent=self._agent_id)
        if prompt_id is not None and prompt_id != asked.prompt.prompt_id:
            raise PromptChanged(
                "the prompt on the screen is another one now; read it and answer that", prompt=asked.prompt.model_dump()
            )
        tried, offset = self._tried
        silent = tried == asked.prompt.prompt_id and look.offset <= offset
        if silent and self._session.lag.left(self._session.now, stalls=True):
            raise PromptChanged(f"an answer to it was typed; {ON_WAY}")
        if self._keyboard.interrupting:
            raise PromptChanged("its turn is being stopped just now, and the prompt goes with it")
        if asked.prompt.prompt_id in self.asking.answering or self._keyboard.answering:
            raise PromptChanged("another answer to this prompt is being typed just now: wait a moment, then look again")
        return asked

    def _refuse(self, *, refuses: bool) -> Steps[None]:
        """Reports to the turn if the person refuses: each answer replaces the one before."""
        if self._tell_refusal is not None:
            self._tell_refusal(refuses)
        if (turn := self._session.turn) is not None:
            note = marked(turn.task_id, self._profile.prompts.refusal_note)
            yield Work(turn.refuse(note, self._session.now) if refuses else turn.overrule())

    def _typed(self, asked: Asked, steps: list[bytes], chosen: str | None) -> Steps[bool]:
        """Types the answer; returns True if the terminal hid it. Raises PromptChanged, NotTaken."""
        answered = shown = asked.prompt.prompt_id
        number, offset = self.asking.number, self._session.offset
        self._tried = (answered, offset)
        self.asking.begin(answered, None if asked.drawn else offset)
        try:
            hidden, shown = yield from self._pressed(asked, steps, chosen)
            if asked.drawn:
                self.asking.answering.add(shown)
                self.asking.given(shown, offset)
            if not (yield from self._is_taken(shown, number, hidden=hidden)):
                asks = f"{TAKEN_S:g} s later the program asks the same: it did not take it, or asks again"
                words = f"the answer was typed, and {ON_WAY if self._session.lag.seconds else asks}"
                raise NotTaken(words, agent=self._agent_id, prompt_id=answered)
        finally:
            self.asking.end(answered, shown)
        return hidden

    def _is_told(self, look: Look) -> bool:
        """Returns True if the question on the screen, if there is one, has been published."""
        asked, told = prompt_id_of(look), self._observations.last
        return asked is None or (told is not None and told.prompt is not None and told.prompt.prompt_id == asked)

    def _pressed(self, asked: Asked, steps: list[bytes], chosen: str | None) -> Steps[tuple[bool, str]]:
        """Presses the keys; returns True if the terminal hid any of them, and the id of the prompt at the last key."""
        if asked.menu is not None:
            look = yield from look_now()
            moves = route(
                asked.menu, chosen, b"".join(steps).decode(), application=CURSOR_KEYS in look.screen.modes.dec
            )
            return False, (yield from _choose(self._keyboard, asked, moves))
        if chosen is not None and not asked.drawn:
            named = yield from self._keyboard.named(steps, lambda look: holds_answer(look.screen, asked))
            if named is None:
                raise NotTaken(
                    f"the answer was typed; {ON_WAY}", agent=self._agent_id, prompt_id=asked.prompt.prompt_id
                )
            return named, asked.prompt.prompt_id
        hidden = yield from self._keyboard.answer(
            steps, lambda look: still_asks(self._profile.prompts, look.screen, asked)
        )
        if hidden is None:
            raise PromptChanged("the prompt left the screen while it was being answered")
        return hidden, asked.prompt.prompt_id

    def _is_taken(self, answered: str, number: int, *, hidden: bool) -> Steps[bool]:
        if hidden:  # line mode without echo: the question stays on the screen until the program writes
            return bool((yield UntilRead(TAKEN_S)))
        for patience in (TAKEN_S,) * TAKEN_ROUNDS:
            try:
                gone = yield from wait_for(
                    lambda look: prompt_id_of(look) != answered or self.asking.number != number, patience
                )
            except KeeperLost:
                if (yield WaitForExit(EXIT_S)):
                    return True
                raise
            if gone or (yield WaitForExit(0.0)):
                return True
            if (yield Rests()):  # the program has read the answer, and does not react to it
                break
        return False


def _choose(keyboard: Keyboard, asked: Asked, moves: list[Move]) -> Steps[str]:
    """Makes the `moves` that answer the menu, and returns the prompt's id at the submission, which differs if a list
    has scrolled and shows other options. Raises PromptChanged if the menu is gone, NotTaken if its mark did not move as
    it should; then nothing is submitted."""
    prompt_id, labels = asked.prompt.prompt_id, _labels(asked)

    def marks(seen: Look) -> frozenset[str] | None:
        nonlocal prompt_id
        now = seen.verdict.asked
        if now is None or now.menu is None or not (now.prompt.prompt == asked.prompt.prompt or _labels(now) == labels):
            return None
        prompt_id = now.prompt.prompt_id
        return now.menu.marks

    made = yield from keyboard.choose(moves, marks)
    if made is None:
        raise PromptChanged("the prompt left the screen while it was being answered")
    if not made:
        raise NotTaken(
            "the mark of its menu did not move as expected, and nothing was submitted: answer it with "
            "'synapsectl attach', or press its keys with 'synapsectl keys'",
            prompt_id=prompt_id,
        )
    return prompt_id


def _labels(asked: Asked) -> list[str]:
    """Returns the labels of the menu's options. The text above them is left out: it may depend on the marked option."""
    return [option.label for option in asked.menu.choices] if asked.menu is not None else []
