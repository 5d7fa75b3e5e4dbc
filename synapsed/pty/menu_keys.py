"""The keys that answer a menu which no profile knows: its mark is moved, and each step looked at."""

from synapsed.errors import NotTaken, PromptChanged
from synapsed.pty.keyboard import Keyboard, Steps
from synapsed.terminal.look import Look
from synapsed.terminal.menus import Menu, route
from synapsed.terminal.prompts import Asked

CURSOR_KEYS = 1
"""The mode (DECCKM) in which a terminal sends other codes for the arrows."""


def choose(keyboard: Keyboard, look: Look, asked: Asked, menu: Menu, key: str) -> Steps[str]:
    """Choose option `key` of the `menu` that `look` shows, and return the prompt's id as it was when that was
    submitted: a list that scrolls has other options then. Raises PromptChanged where the menu is gone, NotTaken where
    its mark did not go where it was sent: nothing is submitted then."""
    prompt_id = asked.prompt.prompt_id

    def mark(seen: Look) -> str | None:
        nonlocal prompt_id
        now = seen.verdict.asked
        if now is None or now.menu is None or now.prompt.prompt != asked.prompt.prompt:
            return None
        prompt_id = now.prompt.prompt_id
        return now.menu.mark

    moves = route(menu, key, application=CURSOR_KEYS in look.screen.modes.dec)
    made = yield from keyboard.choose(moves, mark)
    if made is None:
        raise PromptChanged("the prompt left the screen while it was being answered")
    if not made:
        raise NotTaken(
            "the mark of its menu did not move as expected, and nothing was submitted: answer it with "
            "'synapsectl attach', or press its keys with 'synapsectl keys'",
            prompt_id=prompt_id,
        )
    return prompt_id
