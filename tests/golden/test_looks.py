"""A look that is remembered is the look that would be taken: at every moment at which links look, of every fourth
recording, which are some of each program."""

from operator import attrgetter

import pytest

from synapsed.terminal.observer import TerminalObserver
from tests.golden.replay import CASES, Case, Replay
from tests.support.gated import chosen

pytestmark = pytest.mark.recorded

pytestmark = pytest.mark.recorded


class Forgetful(TerminalObserver):
    """Judges the screen at every look."""

    def _inputs(self, screen: object) -> tuple[object, ...]:
        return (object(),)


@pytest.mark.parametrize("case", chosen(CASES[::4], attrgetter("name")), ids=attrgetter("name"))
def test_what_is_remembered_is_what_would_be_judged(case: Case) -> None:
    remembering, forgetting = Replay(case, told=True), Replay(case, told=True)
    cols, rows = case.record["size"]
    forgetting.observer = Forgetful(case.profile(), cols=cols, rows=rows, offset=0)
    for kept, judged in zip(remembering.play(), forgetting.play(), strict=True):
        assert kept.at == judged.at
        assert kept.look == judged.look, kept.at
        again = remembering.observer.look(kept.at + 0.001)
        assert again == forgetting.observer.look(kept.at + 0.001), kept.at
    assert remembering.observer.looks < forgetting.observer.looks
