"""A sender's line, over a broker that is a heap: what is put back comes again when its turn is near."""

import heapq
import itertools
from dataclasses import dataclass, field

import pytest

from synapsed.errors import QueueFull
from synapsed_fleet.mail_pulling import BATCH, LOOK_S
from synapsed_fleet.mail_turns import LATER_MAX, WAITS_S, Back, MailLine, PutOffMail
from synapsed_fleet.streams import MAIL_MAX

GIVES_S = 0.0005
"""The broker gives a message."""


@dataclass
class Mail:
    """Members that have sent `waiting` each, of which one takes so long: the broker gives what is due, and what was
    never given after that."""

    each_s: dict[str, float]
    fresh: list[tuple[str, int]]
    now: float = 100.0
    due: list[tuple[float, int, tuple[str, int]]] = field(default_factory=list)
    done: list[tuple[float, str, int]] = field(default_factory=list)
    gives: int = 0
    most: int = 0

    def __post_init__(self) -> None:
        self.lines: dict[str, MailLine[tuple[str, int]]] = {name: MailLine() for name in self.each_s}
        self.doing: dict[str, tuple[float, tuple[str, int]]] = {}
        self.in_hand = 0
        self.numbers = itertools.count()
        self.left = iter(self.fresh)

    def back(self, those: list[Back[tuple[str, int]]]) -> None:
        for one in those:
            self.in_hand -= 1
            heapq.heappush(self.due, (self.now + one.after, next(self.numbers), one.what))

    def step(self) -> bool:
        """False once everything is done."""
        for name, (until, what) in list(self.doing.items()):
            if until <= self.now:
                del self.doing[name]
                self.in_hand -= 1
                self.lines[name].done(self.each_s[name])
                self.done.append((until, *what))
        if self.in_hand < BATCH:
            first = not (self.due and self.due[0][0] <= self.now)
            given = next(self.left, None) if first else heapq.heappop(self.due)[2]
            if given is not None:
                self.gives += 1
                self.in_hand += 1
                self.back(self.lines[given[0]].put(given, self.now, first=first))
        if int(self.now / LOOK_S) != int((self.now - GIVES_S) / LOOK_S):
            for line in self.lines.values():
                self.back(line.look(self.now))
        for name, line in self.lines.items():
            if name not in self.doing and (what := line.next()) is not None:
                self.doing[name] = (self.now + self.each_s[name], what)
        self.now += GIVES_S
        return bool(self.in_hand or self.due)


@pytest.mark.parametrize("each_s", [0.002, 0.02, 0.1])
def test_what_is_put_back_is_done_in_its_order_as_fast_as_it_goes_and_behind_nobody(each_s: float) -> None:
    count = int(min(MAIL_MAX, 200 / each_s))
    mail = Mail({"attic": each_s, "cellar": 0.002}, [("attic", n) for n in range(count)] + [("cellar", 0)])
    while mail.step():
        pass
    (cellar,) = [at - 100.0 for at, name, _ in mail.done if name == "cellar"]
    attic = [n for _, name, n in mail.done if name == "attic"]
    last = mail.done[-1][0] - 100.0
    turned = sum(1 for one, other in itertools.pairwise(attic) if other < one)
    assert sorted(attic) == list(range(count))
    assert cellar < 10
    assert last < 1.3 * count * each_s + 5
    assert mail.gives < 15 * count
    assert turned < count / 50


def test_what_is_put_off_is_bounded_by_host_and_forgotten() -> None:
    put_off = PutOffMail()
    assert all(put_off.add(("attic", str(n)), "codex", 0.0) for n in range(LATER_MAX))
    assert not put_off.add(("attic", "one more"), "codex", 1.0)
    assert put_off.add(("attic", "7"), "codex", 1.0), "it waits already"
    assert put_off.add(("cellar", "1"), "codex", 1.0), "another host's do not take its place"
    put_off.taken(("attic", "7"), "codex")
    with pytest.raises(QueueFull, match="another host is next"):
        put_off.check("attic", "codex", 1.0)
    put_off.check("attic", "claude", 1.0)
    put_off.check("attic", "codex", 1.0 + WAITS_S)  # what has not come again for so long does not wait
    put_off.taken(("cellar", "1"), "codex")
    put_off.check("attic", "codex", 2.0)
    assert put_off.add(("attic", "one more"), "codex", WAITS_S), "the others were not asked for again"
