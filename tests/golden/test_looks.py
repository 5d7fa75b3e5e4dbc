"""A look that is remembered is the look that would be taken: at every moment at which links look, of every fourth
recording, which are some of each program."""

from dataclasses import replace
from operator import attrgetter

import pytest

from synapsed.terminal.look import Look
from synapsed.terminal.observer import TerminalObserver
from synapsed.terminal.verdict import Verdict, judge
from tests.golden.replay import CASES, Case, Replay
from tests.support.gated import chosen

pytestmark = pytest.mark.recorded

LATER_S = (1.5, 3.5, 6.0, 11.0, 31.0, 130.0, 3000.0)
"""Behind each time at which time alone may change a verdict."""


class Forgetful(TerminalObserver):
    """Judges the screen at every look."""

    def _inputs(self, screen: object) -> tuple[object, ...]:
        return (object(),)

    def judged_at(self, now: float) -> Verdict:
        """Returns what would be judged then of the screen as it is."""
        return judge(self._profile, self._observe(self.screen.snapshot(), now))


def _judged(look: Look) -> Look:
    """Returns the look without the time until which it is good: what is not changed by time is judged again in an hour
    from when it was judged last."""
    return replace(look, good_until=0.0)


@pytest.mark.parametrize("case", chosen(CASES[::4], attrgetter("name")), ids=attrgetter("name"))
def test_what_is_remembered_is_what_would_be_judged(case: Case) -> None:
    remembering, forgetting = Replay(case, told=True), Replay(case, told=True)
    cols, rows = case.record["size"]
    forgetting.observer = forgetful = Forgetful(case.profile(), cols=cols, rows=rows, offset=0)
    for kept, judged in zip(remembering.play(), forgetting.play(), strict=True):
        assert kept.at == judged.at
        assert _judged(kept.look) == _judged(judged.look), kept.at
        again = remembering.observer.look(kept.at + 0.001)
        assert _judged(again) == _judged(forgetting.observer.look(kept.at + 0.001)), kept.at
        for later in (kept.at + after for after in LATER_S if kept.at + after < again.good_until):
            assert forgetful.judged_at(later) == again.verdict, (kept.at, later)
    assert remembering.observer.looks < forgetting.observer.looks
