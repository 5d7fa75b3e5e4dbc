"""Endings of a person's terminal on an agent."""

from typing import NamedTuple


class Detached(NamedTuple):
    """The person left; the agent goes on."""


class ProgramExited(NamedTuple):
    """The program ended for good; `code` is negative for a signal, None where it is not known."""

    code: int | None


class DaemonLost(NamedTuple):
    """The daemon stayed away."""

    reason: str


class Killed(NamedTuple):
    """This process got a signal to end, or its terminal hung up."""

    signum: int


class Hopped(NamedTuple):
    """The person wants the inbox, or the list."""

    where: str


Ending = Detached | ProgramExited | DaemonLost | Killed | Hopped
