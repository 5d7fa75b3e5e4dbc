"""The last look at a screen, for who asks next: while nothing was told since, another one would say the same."""

from dataclasses import replace

from synapsed.terminal.look import Look
from synapsed.terminal.screen_messages import Ask


class KeptLook:
    """One look, and what it was asked with. Pure."""

    def __init__(self) -> None:
        self._kept: tuple[Look, Ask] | None = None
        self.changes = 0
        """How often something was told that may make another look say something else."""

    def changed(self) -> None:
        self._kept = None
        self.changes += 1

    def keep(self, look: Look, ask: Ask, changes: int) -> None:
        """`changes` is how many there were when it was asked for: a look that was overtaken by one is not kept."""
        if changes == self.changes:
            self._kept = look, ask

    def answers(self, ask: Ask) -> Look | None:
        """The look, if it is what `ask` would get. It may say more than is asked for. Whoever wants a whole one gets
        no look in the middle of a frame."""
        if self._kept is None:
            return None
        look, asked = self._kept
        timely = asked.now <= ask.now < look.good_until
        as_much = (not look.mid_frame or not ask.whole) and (look.kinds is not None or not ask.kinds)
        return look if timely and as_much and _alike(asked) == _alike(ask) else None


def _alike(ask: Ask) -> Ask:
    """What of it tells what is judged."""
    return replace(ask, now=0.0, kinds=False, whole=False)
