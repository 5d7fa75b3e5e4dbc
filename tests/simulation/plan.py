"""What a seed stands for: the programs with their tricks, what clients do, and the faults, all drawn before the run.

What is drawn during a run (how long things take, what runs next) comes of the seed too, so a plan with its seed is the
run. `without` makes the smaller plans that a shrinking tries.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

__all__ = ["ACTS", "FAULTS", "Act", "Fault", "Plan", "Player", "draw"]


@dataclass(frozen=True, slots=True)
class Player:
    """An agent: its profile (`programs.PROFILES`) and its program's tricks."""

    profile: str
    tricks: tuple[tuple[str, Any], ...] = ()

    @property
    def reads(self) -> bool:
        """A model reads what is typed."""
        return self.profile != "lines"


@dataclass(frozen=True, slots=True)
class Act:
    """What a client or a person does at a time, to the agent of that number."""

    at: float
    kind: str
    agent: int
    text: str = ""
    number: int = 0


@dataclass(frozen=True, slots=True)
class Fault:
    """It strikes `skew` steps of the loop after `at`; `amount` is how long it lasts, or how far it goes."""

    at: float
    kind: str
    agent: int
    skew: int = 0
    amount: float = 0.0


@dataclass(frozen=True, slots=True)
class Plan:
    seed: int
    players: tuple[Player, ...]
    acts: tuple[Act, ...]
    faults: tuple[Fault, ...]
    hurry: float

    def __str__(self) -> str:
        lines = [f"seed {self.seed}, {self.hurry:.0%} of the steps drawn"]
        lines += [f"  agent {n}: {one.profile} {dict(one.tricks) or ''}" for n, one in enumerate(self.players)]
        lines += [f"  {act.at:6.2f} {act.kind} → agent {act.agent} {act.text} {act.number or ''}" for act in self.acts]
        lines += [
            f"  {fault.at:6.2f} FAULT {fault.kind} (agent {fault.agent}, {fault.skew} steps later, {fault.amount:.2f})"
            for fault in self.faults
        ]
        return "\n".join(lines)

    @property
    def size(self) -> int:
        """Acts, faults, tricks."""
        return len(self.acts) + len(self.faults) + sum(len(one.tricks) for one in self.players)

    def without(self) -> Iterator["Plan"]:
        """The plans with less: a fault, several acts, an act, a trick, drawn steps, an act's words, an agent."""
        for n in range(len(self.faults)):
            yield replace(self, faults=self.faults[:n] + self.faults[n + 1 :])
        half = len(self.acts) // 2
        if half > 1:
            yield replace(self, acts=self.acts[:half])
            yield replace(self, acts=self.acts[half:])
        for n in range(len(self.acts)):
            yield replace(self, acts=self.acts[:n] + self.acts[n + 1 :])
        for n, one in enumerate(self.players):
            for name, _ in one.tricks:
                less = replace(one, tricks=tuple(trick for trick in one.tricks if trick[0] != name))
                yield replace(self, players=(*self.players[:n], less, *self.players[n + 1 :]))
        if self.hurry:
            yield replace(self, hurry=0.0)
        for n, act in enumerate(self.acts):
            if act.text:
                yield replace(self, acts=(*self.acts[:n], replace(act, text=""), *self.acts[n + 1 :]))
        used = {one.agent for one in self.acts} | {one.agent for one in self.faults}
        for n in range(len(self.players)):
            if len(self.players) > 1 and n not in used:
                yield self._without_player(n)

    def _without_player(self, gone: int) -> "Plan":
        acts = tuple(replace(one, agent=one.agent - (one.agent > gone)) for one in self.acts)
        faults = tuple(replace(one, agent=one.agent - (one.agent > gone)) for one in self.faults)
        return replace(self, players=self.players[:gone] + self.players[gone + 1 :], acts=acts, faults=faults)


TRICKS: dict[str, tuple[tuple[str, tuple[Any, ...]], ...]] = {
    "tui": (
        ("late", (0.5, 3.0)),
        ("asks", (True,)),
        ("swallow", (1, 2)),
        ("slow", (0.3, 2.0)),
        ("stall", (2.0, 6.0)),
        ("restore", (True,)),
        ("sluggish", (0.2, 0.6)),
        ("deaf", (True,)),
        ("stubborn", (1, 2)),
    ),
    "lines": (("late", (0.5, 2.0)), ("slow", (0.3, 1.5)), ("sluggish", (0.5,)), ("stubborn", (1,))),
}
TRICKS["hooked"] = (*TRICKS["tui"][:7], ("hooks", ("late", "twice", "never")), ("hooks", ("late", "twice", "never")))

ACTS = {
    "send": 10, "again": 2, "urgent": 2, "cancel": 3, "restart": 1, "restart-idle": 1, "park": 1, "interrupt": 1,
    "type": 1, "attach": 1, "stop": 0.5, "stranger": 0.5,
}  # fmt: skip
"""What clients do, by how often."""

FAULTS = {
    "daemon": 4, "commit": 4, "typed": 4,
    "keeper": 1, "frozen": 1, "program": 1, "screens": 1.5, "sockets": 1, "jump": 1,
    "sleep": 1, "slow-disk": 1.5, "full-disk": 1.5,
}  # fmt: skip
"""What happens to the machine, by how often."""

WORDS = ("", "", "", "delay=1", "delay=4", "lines=5", "ask", "flood=6", "crash", "delay=2 lines=9")


def draw(seed: int) -> Plan:
    """The plan of that seed."""
    rng = Random(f"plan {seed}")
    players = []
    for _ in range(rng.choice((1, 1, 1, 2))):
        profile = rng.choice(("tui", "hooked", "hooked", "lines"))
        tricks = {name: rng.choice(values) for name, values in rng.sample(TRICKS[profile], rng.choice((0, 1, 2)))}
        players.append(Player(profile, tuple(sorted(tricks.items()))))
    acts, at = [], rng.uniform(0.1, 3)
    for number in range(rng.randint(2, 7)):
        kind = "send" if number == 0 else rng.choices(list(ACTS), list(ACTS.values()))[0]
        agent = rng.randrange(len(players))
        words = rng.choice(WORDS) if kind in ("send", "urgent") else ""
        acts.append(Act(round(at, 3), kind, agent, words, rng.randrange(8)))
        at += rng.choice((0.0, rng.uniform(0, 0.5), rng.uniform(0, 4)))
    faults = [
        Fault(
            round(rng.uniform(0.5, at + 3), 3),
            rng.choices(list(FAULTS), list(FAULTS.values()))[0],
            rng.randrange(len(players)),
            rng.randrange(120),
            rng.choice((rng.uniform(0.1, 2), rng.uniform(2, 12))),
        )
        for _ in range(rng.choice((0, 1, 1, 2, 3)))
    ]
    return Plan(
        seed, tuple(players), tuple(acts), tuple(sorted(faults, key=lambda one: one.at)), rng.choice((0, 0, 0.05, 0.3))
    )
