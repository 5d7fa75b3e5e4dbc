"""Finds the agent of an editor's session: the one that was named, or the one in the editor's folder.

These calls wait for the daemon.
"""

import os
import re
from typing import Any, Final, NamedTuple

from synapsectl.client import Client, agent_path
from synapsectl.context import CommandContext
from synapsectl.daemon import ensure_daemon
from synapsectl.errors import REFUSED, ApiError, CtlError
from synapsectl.reach import reach
from synapsed.parts.editors.ctl.daemon_calls import Reach, in_folder, newest
from synapsed.parts.editors.ctl.session import TERMINAL
from synapsed.parts.editors.ctl.shapes import RequestRefused
from synapsed.parts.editors.ctl.turn import Turn, is_shown
from synapsed.parts.editors.ctl.wire import INVALID_PARAMS, NOT_FOUND

LOADED: Final = 50
"""Tasks that a loaded session shows."""

PAGE: Final = 50
"""Sessions of a page of `session/list`."""
_CURSOR: Final = re.compile(r"[0-9]{1,9}")


class AgentsOwn(CtlError):
    """Error for a request of an agent's program, which has no editor of its own."""

    exit_code = REFUSED
    code = "FORBIDDEN"


class ServedAgents(NamedTuple):
    """Agents of the command line: `agent` alone is served; `profile` is started if there is no such agent."""

    agent: str | None
    profile: str | None
    spawn: bool


class Opened(NamedTuple):
    """An agent as a session."""

    session_id: str
    """The editor's name for it."""
    agent: dict[str, Any]
    reach: Reach
    cursor: int
    """Position in the log from which it is followed."""
    replay: list[dict[str, Any]]
    """Updates of earlier tasks."""
    shown: list[str]
    """Tasks that are in `replay`."""
    here: bool
    """True if the agent is one of this machine's."""


def check_person(ctx: CommandContext) -> None:
    """Raises AgentsOwn if the daemon takes us for an agent."""
    if ctx.client.get("/whoami")["agent"] is not None:
        raise AgentsOwn("acp is for a person's editor: an agent reaches the others by the tools of 'synapsectl mcp'")


def open_new(ctx: CommandContext, wanted: ServedAgents, cwd: str) -> Opened:
    """Returns the session for an editor in `cwd`. Raises RequestRefused, CtlError."""
    ensure_daemon(ctx, spawn=wanted.spawn)
    check_person(ctx)
    if wanted.agent is not None:
        return _opened(ctx, wanted, _named(ctx, wanted, wanted.agent, cwd))
    found = in_folder(ctx.client.get("/agents"), cwd)
    if len(found) > 1:
        names = ", ".join(agent["name"] for agent in found)
        raise RequestRefused(
            INVALID_PARAMS,
            f"several agents are in {cwd}: name one of {names} on the command line (synapsectl acp NAME), "
            "or load its session",
            {"code": "AMBIGUOUS", "candidates": [agent["id"] for agent in found]},
        )
    if found:
        return _opened(ctx, wanted, _running(ctx, wanted, found[0], found[0]["id"]))
    if wanted.profile is None:
        raise RequestRefused(
            NOT_FOUND,
            f"no agent is in {cwd}: start one there ('synapsectl start PROFILE --cwd {cwd}'), name one "
            "(synapsectl acp NAME), or have one started (synapsectl acp --start PROFILE)",
            {"code": "UNKNOWN_AGENT"},
        )
    return _opened(ctx, wanted, _start(ctx, wanted.profile, None, cwd)["id"])


def open_known(ctx: CommandContext, wanted: ServedAgents, session_id: str, *, replay: bool) -> Opened:
    """Returns the session that an editor has had before, with its last tasks (`replay`). Raises RequestRefused,
    CtlError."""
    ensure_daemon(ctx, spawn=wanted.spawn)
    check_person(ctx)
    opened = _opened(ctx, wanted, session_id, replay=replay)
    if wanted.agent is not None and _opened(ctx, wanted, wanted.agent).session_id != opened.session_id:
        raise RequestRefused(
            NOT_FOUND, f"{session_id} is not served here: this server is for {wanted.agent} only", {"code": "FORBIDDEN"}
        )
    return opened


def listed(ctx: CommandContext, wanted: ServedAgents, cwd: str | None, cursor: str | None) -> dict[str, Any]:
    """Returns the answer to `session/list`. Raises RequestRefused, CtlError."""
    ensure_daemon(ctx, spawn=wanted.spawn)
    check_person(ctx)
    agents = ctx.client.get("/agents", {"hosts": 1})
    if wanted.agent is not None:
        only = _opened(ctx, wanted, wanted.agent).session_id
        agents = [agent for agent in agents if agent["id"] == only]
    if cwd is not None:
        agents = in_folder(agents, cwd)
    start = 0 if cursor is None else int(cursor) if _CURSOR.fullmatch(cursor) else -1
    if not 0 <= start <= len(agents):
        raise RequestRefused(
            INVALID_PARAMS, "cursor: comes from no earlier answer; ask again without one", {"path": "cursor"}
        )
    page = [_row(agent) for agent in agents[start : start + PAGE]]
    more = {"nextCursor": str(start + PAGE)} if len(agents) > start + PAGE else {}
    return {"sessions": page, **more}


def _row(agent: dict[str, Any]) -> dict[str, Any]:
    state = agent["activity"] if agent["state"] == "running" else agent["state"]
    about = agent.get("asks") or agent.get("doing") or ""
    title = f"{agent['name']} ({state})" + (f": {about}" if about else "")
    return {"sessionId": agent["id"], "cwd": agent["cwd"], "title": title, "updatedAt": agent["since"]}


def _opened(ctx: CommandContext, wanted: ServedAgents, address: str, *, replay: bool = False) -> Opened:
    try:
        there, name = reach(ctx, address)
        agent = there.client.get(agent_path(name, "status"), {"detail": 1})
        found = Reach(there, agent["id"], spawn=wanted.spawn)
        cursor = newest(there.client)
        updates, shown = _replayed(there.client, agent["id"]) if replay else ([], [])
    except ApiError as error:
        if error.code == "UNKNOWN_AGENT":
            raise RequestRefused(NOT_FOUND, str(error), {"code": error.code}) from None
        raise
    host = "" if there is ctx else "@" + address.rpartition("@")[2]
    return Opened(agent["id"] + host, {**agent, "name": agent["name"] + host}, found, cursor, updates, shown, not host)


def _replayed(client: Client, agent: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Returns the last finished tasks, as updates, the oldest first; and their ids."""
    tasks = client.get(agent_path(agent, "tasks"), {"limit": LOADED, "status": ",".join(sorted(TERMINAL))})
    found: list[dict[str, Any]] = []
    for task in reversed(tasks):
        if is_shown(task):
            turn = Turn(task["id"])
            found += [*turn.asked(task), *turn.end(task)]
    return found, [task["id"] for task in tasks]


def _named(ctx: CommandContext, wanted: ServedAgents, address: str, cwd: str) -> str:
    """Returns the address of the agent that was named on the command line, once it runs. Raises RequestRefused,
    CtlError."""
    try:
        there, name = reach(ctx, address)
        agent = there.client.get(agent_path(name, "status"), {"detail": 1})
    except ApiError as error:
        if error.code != "UNKNOWN_AGENT":
            raise
        if wanted.profile is None or "@" in address.removeprefix("@"):
            raise RequestRefused(
                NOT_FOUND, f"{error}; 'synapsectl acp {address} --start PROFILE' starts one", {"code": error.code}
            ) from None
        return str(_start(ctx, wanted.profile, address, cwd)["id"])
    return _running(there, wanted, agent, address)


def _running(ctx: CommandContext, wanted: ServedAgents, agent: dict[str, Any], address: str) -> str:
    """Returns `address` of an agent that runs: one that does not is started again if that was requested.

    Raises RequestRefused.
    """
    if agent["state"] in ("stopped", "failed", "exited"):
        if wanted.profile is None:
            name = agent["name"]
            raise RequestRefused(
                NOT_FOUND,
                f"{name} is {agent['state']}: 'synapsectl restart {name}' starts it again, and so does --start",
                {"code": "NOT_READY"},
            )
        from synapsectl.client import SLOW_TIMEOUT

        ctx.client.post(agent_path(agent["id"], "restart", control=True), timeout=SLOW_TIMEOUT)
    return address


def _start(ctx: CommandContext, profile: str, name: str | None, cwd: str) -> dict[str, Any]:
    """Starts an agent as `synapsectl start PROFILE --cwd CWD` does. Raises RequestRefused, CtlError."""
    from synapsectl.launching import start_agent, unasked

    if not os.path.isdir(cwd):  # noqa: PTH112 - without pathlib
        raise RequestRefused(INVALID_PARAMS, f"cwd: {cwd} is no folder", {"path": "cwd"})
    return start_agent(unasked(profile, name=name, cwd=cwd, no_spawn_daemon=True), ctx)
