"""Tells when a program rests after its model has answered: by then no hook of the person's has sent that back to work.
Pure.

A program shows that it works as long as its hooks run. So it rests when its screen has come to rest, and sooner where
it says so itself: by its status record, or by a title for which the profile has a pattern. That counts if it was seen
at work since it took the prompt; else what is seen may be from before.
"""

from synapsed.model.agent import Activity
from synapsed.profiles.profile import Profile
from synapsed.pty.turn_types import SIGNS
from synapsed.terminal.look import Look
from synapsed.terminal.verdict import title_sign


class RestAfterHooks:
    """Follows one program, whoever gave it the prompt."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._since = 0
        """Where the output ended when it took the last prompt."""
        self._worked = False
        """It was seen at work since."""
        self._answered = False

    def worked_on(self, offset: int) -> None:
        """It took a prompt, of the person's or of a hook's."""
        self._since, self._worked, self._answered = offset, False, False

    def answered(self) -> None:
        """Its model has said what may be the turn's last word."""
        self._answered = True

    def over(self) -> None:
        """The turn's end is told."""
        self._answered = False

    def seen(self, look: Look) -> bool:
        """Whether it rests, which is told once for each answer."""
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
