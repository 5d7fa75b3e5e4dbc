"""The process of an agent as a state machine: one table alone decides which state may follow which.

An agent's process is always in exactly one state (`ProcessState`, docs/architecture.md), and only facts and decisions
that have a name here (`ProcessEvent`) move it:

::

                 START                LAUNCHED                 STOP                GONE
    stopped ────────────► starting ────────────► running ────────────► stopping ────────► stopped
       ▲                    │  ▲                   │
       │ STOP               │  │ DUE, START        │ EXITED
       │        LAUNCH_     │  │                   ▼
       ├─ exited ◄──FAILED──┘  │      ┌───────── exited ──────────┐
       ├─ backoff ◄────────────┼──────┤ RETRY                     │ GIVE_UP
       └─ failed ◄─────────────┼──────┼───────────────────────────┘
             └──────────────DUE┴──────┘

- `starting` ends when the program runs, not when it is ready: the activity of a running program, which its link
  reports, is not a state of the process.
- `exited` is left at once by the restart policy's decision (RETRY, GIVE_UP); it lasts if the policy does not restart
  the program.
- `failed` is not the end: after a long pause it is tried again (DUE), and a person may start it at any time.
- STOP during `starting` takes effect when the launch is done: the program that then runs is ended, so `stopping` is
  the one state in which LAUNCHED changes nothing.
- `parked` is the state of an idle program that was ended until the next message: `stopping` leads to it by PARKED in
  place of GONE; START leads from it to `starting`, and STOP to `stopped`.
- ADOPTED is LAUNCHED for a program that was found alive by a new daemon.

An event that the table does not have for the present state is a mistake of the caller: `after` raises IllegalEvent.
"""

from enum import StrEnum

from synapsed.model.agent import ProcessState

LIVE_STATES = frozenset({ProcessState.STARTING, ProcessState.RUNNING, ProcessState.STOPPING})
"""States in which a program may exist."""


class ProcessEvent(StrEnum):
    """Events of an agent's process, and decisions about it."""

    START = "start"
    LAUNCHED = "launched"
    ADOPTED = "adopted"
    LAUNCH_FAILED = "launch_failed"
    EXITED = "exited"
    RETRY = "retry"
    GIVE_UP = "give_up"
    DUE = "due"
    STOP = "stop"
    GONE = "gone"
    PARKED = "parked"


class IllegalEvent(Exception):
    """The error for an event that the table does not have for the present state; nothing was changed."""


_S, _E = ProcessState, ProcessEvent

TABLE: dict[ProcessState, dict[ProcessEvent, ProcessState]] = {
    _S.STOPPED: {_E.START: _S.STARTING, _E.ADOPTED: _S.RUNNING},
    _S.STARTING: {
        _E.LAUNCHED: _S.RUNNING,
        _E.ADOPTED: _S.RUNNING,
        _E.LAUNCH_FAILED: _S.EXITED,
        _E.EXITED: _S.EXITED,
        _E.STOP: _S.STOPPING,
    },
    _S.RUNNING: {_E.ADOPTED: _S.RUNNING, _E.EXITED: _S.EXITED, _E.STOP: _S.STOPPING},
    _S.STOPPING: {
        _E.LAUNCHED: _S.STOPPING,
        _E.ADOPTED: _S.STOPPING,
        _E.GONE: _S.STOPPED,
        _E.PARKED: _S.PARKED,
    },
    _S.PARKED: {_E.START: _S.STARTING, _E.STOP: _S.STOPPED},
    _S.EXITED: {_E.START: _S.STARTING, _E.RETRY: _S.BACKOFF, _E.GIVE_UP: _S.FAILED, _E.STOP: _S.STOPPED},
    _S.BACKOFF: {_E.START: _S.STARTING, _E.DUE: _S.STARTING, _E.STOP: _S.STOPPED},
    _S.FAILED: {_E.START: _S.STARTING, _E.DUE: _S.STARTING, _E.STOP: _S.STOPPED},
}


def after(state: ProcessState, event: ProcessEvent) -> ProcessState:
    """Returns the state that follows `state` by `event`. Raises IllegalEvent if the table has no such event there."""
    try:
        return TABLE[state][event]
    except KeyError:
        raise IllegalEvent(f"{event.value} while {state.value}") from None


def known_state(state: str) -> ProcessState:
    """Returns the state of a record. A state of a newer version counts as stopped (`store.schema`)."""
    try:
        return ProcessState(state)
    except ValueError:
        return ProcessState.STOPPED
