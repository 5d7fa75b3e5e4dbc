"""The model of `top`: its content, and the chosen agent. Pure: changes of the agents, keys and the time go in, commands
come out.

The inbox's model handles questions and answers: an answer is held for a moment, is for one prompt by its id, and is
taken back with `u`. The chosen agent is known by its name, so it stays chosen if the rows change their order.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from synapsectl.agentrows import asking, by_need
from synapsectl.inbox.answer_keys import KeyPress
from synapsectl.inbox.items import Item, is_asked
from synapsectl.inbox.model import NOTE_S, Command, InboxModel, Row

EVENTS_MAX = 200
"""Events that are kept; the oldest go."""
ANSWERING = frozenset("ynba123456789ux")
"""Keys for the question of the chosen agent."""


class Shown(NamedTuple):
    """Data of one agent: its screen with colours, the reason why that is outdated, and its tasks."""

    agent: str
    screen: str = ""
    error: str = ""
    tasks: tuple[dict[str, Any], ...] = ()


class Desk:
    """The state of `top`: takes changes and keys, and returns commands. `hold`: seconds in which an answer can be taken
    back; `first`: the agent to begin with."""

    def __init__(self, *, hold: float, first: str | None = None) -> None:
        self.inbox = InboxModel(hold=hold)
        self.agents: list[dict[str, Any]] = []
        self.events: deque[dict[str, Any]] = deque(maxlen=EVENTS_MAX)
        self.at = first
        """Name of the chosen agent."""
        self.away: str | None = None
        """Reason why the daemon does not answer."""
        self._shown = Shown("")
        self._note = ""
        self._note_until = 0.0

    # --- news ---

    def told(self, agents: Sequence[dict[str, Any]], items: Sequence[Item], now: float) -> list[Command]:
        """Takes the agents, and the items that wait for a person."""
        self.agents = by_need(asking(agents, items))
        if self.agents and self.place is None:
            self.at = self.agents[0]["name"]
        return self.inbox.told(items, now)

    def show(self, shown: Shown) -> None:
        self._shown = shown

    def say(self, text: str, now: float) -> None:
        self._note, self._note_until = text, now + NOTE_S

    def due(self, now: float) -> list[Command]:
        """Returns the commands whose time has come."""
        if self._note_until <= now:
            self._note = ""
        self.inbox.choose(None)
        return self.inbox.due(now)

    # --- keys ---

    def move(self, by: int) -> None:
        place = self.place
        if place is not None:
            self.choose(place + by)

    def choose(self, row: int) -> None:
        """Chooses the agent in this row, or in the nearest one."""
        if self.agents:
            self.at = self.agents[max(0, min(len(self.agents) - 1, row))]["name"]

    def next_asking(self, now: float) -> None:
        """Chooses the next agent that waits for an answer."""
        names = [agent["name"] for agent in self.agents]
        start = (self.place or 0) + 1
        open_ = {row.item["agent"] for row in self.inbox.rows(now) if not row.told and not row.answer}
        found = next((name for name in names[start:] + names[:start] if name in open_), None)
        if found is None:
            self.say("nobody needs you", now)
        else:
            self.at = found

    def answer(self, key: str, now: float, pressed: float | None = None) -> list[Command]:
        """Takes a key of `ANSWERING`, which was `pressed` at that time: it answers the question of the chosen agent,
        and nothing else."""
        row = self.question(now)
        if row is None and key != "u":
            self.say(f"{self.at} asks nothing" if self.at else "there is no agent", now)
            return []
        self.inbox.choose(row.item["id"] if row is not None else None)
        return self.inbox.key(KeyPress(key), now, pressed)

    def words(self, text: str, now: float) -> list[Command]:
        """Takes an answer in words."""
        self.inbox.key(KeyPress("clear"), now)
        self.inbox.key(KeyPress("paste", text), now)
        return self.inbox.key(KeyPress("enter"), now)

    def no_words(self, now: float) -> None:
        """Drops an answer in words."""
        if self.inbox.typing is not None:
            self.inbox.key(KeyPress("esc"), now)

    # --- what is shown ---

    @property
    def place(self) -> int | None:
        """Returns the row of the chosen agent."""
        return next((row for row, agent in enumerate(self.agents) if agent["name"] == self.at), None)

    @property
    def shown(self) -> Shown:
        """Returns the data of the chosen agent, never those of another one."""
        return self._shown if self._shown.agent == self.at else Shown(self.at or "")

    @property
    def note(self) -> str:
        return self._note or self.inbox.note

    def question(self, now: float) -> Row | None:
        """Returns the question of the chosen agent, else another item of that agent, else one that is just over."""
        rows = [row for row in self.inbox.rows(now) if row.item["agent"] == self.at]
        return min(rows, key=lambda row: (bool(row.told), not is_asked(row.item)), default=None)
