"""Checks the daemon itself and its files: sockets, permissions, disk, keepers, the registry; and its automatic
functions: schedules, rules, webhooks and sinks."""

import os
import shutil
import socket
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from synapsectl.checkup.finding import NOTE, OK, WRONG, Finding, command
from synapsectl.checkup.loopback import look_at_agents
from synapsectl.client import agent_path
from synapsectl.context import CommandContext
from synapsectl.errors import CtlError, NoDaemon
from synapsectl.service.settings import env_file, user_env_file
from synapsectl.shell import brings
from synapsectl.spawn import holds_lock, is_elsewhere
from synapsectl.writable_folders import existing, unwritable
from synapsed import __version__
from synapsed.process.file_owners import told_foreign
from synapsed.process.installed import GONE, NEWER, commit, with_commit
from synapsed.shared.outside_json import NotJson, read_object

_STATUS = {"ok": OK, "idle": NOTE, "wrong": WRONG}
_TABLES = {"webhook": "[webhooks]", "sink": "[notify.sinks]"}

DISK_MIN = 1 << 30
"""Least bytes that should be free: below that, the spools of a few agents may fill the disk. A spool keeps 64 MiB and
more."""

CONNECT_TIMEOUT_S = 5.0


def look_inside(ctx: CommandContext) -> Iterator[Finding]:
    """Checks the daemon, and its files."""
    agents: list[dict[str, Any]] | None = None
    status: dict[str, Any] = {}
    try:
        status = ctx.client.get("/control/status")
        agents = ctx.client.get("/agents")
    except NoDaemon as error:
        yield _no_daemon(ctx, error)
    except CtlError as error:
        yield Finding("daemon", WRONG, f"it answers, but the answer is no status: {error}", "synapsectl shutdown")
    else:
        yield _daemon(status, len(agents or ()))
        yield from _files(status)
        yield from look_at_agents(agents or [])
        yield from _settings(agents or [])
    yield from _sockets(ctx)
    yield from _permissions(ctx)
    yield from _room(ctx)
    yield from _disk(ctx)
    yield from _database(ctx, daemon=agents is not None)
    yield from _keepers(ctx, agents)
    if "/synapsed.service" in _cgroup(status.get("pid")):
        yield from _outsiders(agents or [])
    if agents is not None:
        yield from _automation(ctx)
        yield from _environments(ctx, agents)
    yield _registry(ctx, [] if agents is not None else _stale_entries(ctx))


def _settings(agents: list[dict[str, Any]]) -> Iterator[Finding]:
    """Checks for settings of a person's program that limit synapsed."""
    for agent in agents:
        for note in agent.get("settings", ()):
            yield Finding(
                f"agent {agent['name']}", NOTE, note, f"change it there, then: synapsectl restart {agent['name']}"
            )


def _no_daemon(ctx: CommandContext, error: NoDaemon) -> Finding:
    if not holds_lock(ctx):
        return Finding("daemon", NOTE, str(error) if is_elsewhere(ctx) else "none runs", "synapsectl start PROFILE")
    pid = _locked_by(ctx.paths.lock) or _locked_by(ctx.paths.run_lock)
    if is_elsewhere(ctx) or pid is None:
        return Finding("daemon", WRONG, error.reason, "ask it where it runs")
    detail, state = f"pid {pid} holds the lock, but does not answer: {error.reason}", _process_state(pid)
    if state == "T":
        return Finding("daemon", WRONG, f"{detail}; it was stopped by a signal", f"kill -CONT {pid}")
    if not os.access(ctx.client.socket_path, os.F_OK):
        mend = f"look again in a moment: it comes up, or makes its socket again; else see {ctx.paths.logs}"
        return Finding("daemon", WRONG, detail, mend)
    return Finding("daemon", WRONG, detail, f"kill {pid}; its agents live on, and the next one finds them")


def _locked_by(lock: Path) -> int | None:
    """Returns the pid that the lock file names."""
    try:
        return int(lock.read_text(encoding="utf-8", errors="replace").partition("\n")[0])
    except (OSError, ValueError):
        return None


def _process_state(pid: int) -> str:
    """Returns the state letter of `ps`; empty if it is unknown."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def _daemon(status: dict[str, Any], agents: int) -> Finding:
    listen = ", ".join(status["listen"]) or "no port"
    theirs, ours = status.get("commit", ""), commit()
    version = with_commit(status["version"], theirs)
    detail = f"pid {status['pid']}, version {version}, at {listen}, {agents} agents"
    mend = "systemctl --user restart synapsed, or synapsectl shutdown --keep-agents, then synapsectl up"
    if status["version"] != __version__ or (theirs and ours and theirs != ours):
        return Finding("daemon", WRONG, f"{detail}; this tool is {with_commit(__version__, ours)}", mend)
    return Finding("daemon", OK, detail)


def _files(status: dict[str, Any]) -> Iterator[Finding]:
    for alert in status.get("alerts", []):
        if alert.startswith((NEWER, GONE)):
            yield Finding("installed files", WRONG, alert)


def _sockets(ctx: CommandContext) -> Iterator[Finding]:
    path = Path(ctx.client.socket_path)
    if path != ctx.paths.control_socket:
        yield Finding(
            "control socket",
            NOTE,
            f"{path}: the daemon was started where XDG_RUNTIME_DIR, or HOME, is another; it is found by its lock",
        )
    try:
        info = path.lstat()
    except OSError:
        return
    if info.st_uid != os.getuid() or not stat.S_ISSOCK(info.st_mode):
        yield Finding("control socket", WRONG, f"{path} is no socket of yours", command("rm", path))
    elif not _listens(path):
        yield Finding("control socket", NOTE, f"{path} is left over; the next daemon replaces it", command("rm", path))
    else:
        yield Finding("control socket", OK, str(path))


def _permissions(ctx: CommandContext) -> Iterator[Finding]:
    """Checks that no other user can enter or read any of these files."""
    paths = ctx.paths
    private = [paths.state, paths.run, paths.sockets, paths.token, paths.database, paths.control_socket]
    private += [env_file(paths), user_env_file(paths)]
    wrong = 0
    if found := told_foreign((paths.state, paths.run, paths.sockets, paths.a2a)):
        wrong += 1
        yield Finding("permissions", WRONG, *found)
    for path in dict.fromkeys(private):
        try:
            info = path.lstat()
        except OSError:  # missing, or in a folder of another user's, which is reported
            continue
        if info.st_uid == os.getuid() and info.st_mode & 0o077:
            wrong += 1
            mode = stat.S_IMODE(info.st_mode)
            yield Finding("permissions", WRONG, f"{path} is open to others ({mode:04o})", command("chmod", "go=", path))
    if not wrong:
        yield Finding("permissions", OK, "state and sockets are yours alone")


def _room(ctx: CommandContext) -> Iterator[Finding]:
    paths = ctx.paths
    found = unwritable((paths.state, paths.sockets, paths.config, paths.a2a))
    for hindrance in found:
        yield Finding("folders", WRONG, *hindrance)
    if not found:
        yield Finding("folders", OK, "all can be written to")


def _disk(ctx: CommandContext) -> Iterator[Finding]:
    place = existing(ctx.paths.state)
    free = shutil.disk_usage(place).free
    detail = f"{free / (1 << 30):.1f} GiB free at {ctx.paths.state}"
    if free < DISK_MIN:
        yield Finding("disk", WRONG, detail, f"make room: agents block while their output cannot be stored ({place})")
    else:
        yield Finding("disk", OK, detail)


def _database(ctx: CommandContext, *, daemon: bool) -> Iterator[Finding]:
    """Checks the database if no daemon runs, since a running daemon has read it."""
    path, copies = ctx.paths.database, sorted(ctx.paths.backups.glob("synapsed-*.db"))
    kept = (
        f"{len(copies)} daily cop{'y' if len(copies) == 1 else 'ies'}, the newest {copies[-1].name}"
        if copies
        else "no copy yet"
    )
    if not os.access(path, os.R_OK) or (not daemon and holds_lock(ctx)):
        return
    if not daemon and (wrong := _damage(path)):
        yield Finding("database", WRONG, f"{path} is damaged: {wrong}; {kept}", "synapsectl doctor --repair")
    else:
        yield Finding("database", OK, f"{path}; {kept}")


def _damage(path: Path) -> str:
    """Returns SQLite's error about the database, empty if it is sound."""
    import sqlite3

    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)) as connection:
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        return str(error)
    return "" if found == "ok" else str(found)


def _keepers(ctx: CommandContext, agents: list[dict[str, Any]] | None) -> Iterator[Finding]:
    launches = {path.parent.name: _json(path) for path in ctx.paths.state.glob("agents/*/launch.json")}
    sockets = {agent: Path(str(launch.get("socket", ""))) for agent, launch in launches.items()}
    living = {agent: path for agent, path in sockets.items() if _listens(path)}
    lost = [agent["name"] for agent in agents or () if agent["state"] == "running" and agent["id"] not in living]
    if lost:
        detail = f"said to run, but nobody listens where their keepers should: {', '.join(lost)}"
        mend = f"look again in a moment; else, when they are idle, {command('synapsectl', 'restart', lost)}"
        yield Finding("keepers", WRONG, detail, mend)
    known = set(sockets.values())
    strays = [path for path in ctx.paths.keeper_sockets.glob("*.sock") if path not in known]
    for path in strays:
        if _listens(path):
            mend = "synapsectl restart its agent; what is left after that belongs to no agent"
            yield Finding(
                "keepers",
                NOTE,
                f"a keeper (the process that holds a terminal) at {path} belongs to no launch on record",
                mend,
            )
        else:
            yield Finding(
                "keepers",
                NOTE,
                f"{path} is left over from a keeper (the process that holds a terminal) that was killed",
                command("rm", path),
            )
    if agents is None and living:
        yield Finding("keepers", NOTE, f"{len(living)} go on without a daemon", "synapsectl start PROFILE")
    elif not lost:
        yield Finding("keepers", OK, f"{len(living)} alive")


def _outsiders(agents: list[dict[str, Any]]) -> Iterator[Finding]:
    names = [agent["name"] for agent in agents if agent["pid"] and "/synapse-agent-" not in _cgroup(agent["pid"])]
    if names:
        detail = f"started before the service, whose stop does not end them: {', '.join(names)}"
        yield Finding("agents", NOTE, detail, command("synapsectl", "restart", names))


def _automation(ctx: CommandContext) -> Iterator[Finding]:
    try:
        found = ctx.client.get("/control/automation")
    except CtlError:  # a daemon of another version, which has a finding of its own
        return
    yield from look_at_automation(found)


def look_at_automation(found: Iterable[Mapping[str, Any]]) -> Iterator[Finding]:
    """Checks `found`, the answer of `/control/automation`. Working functions are counted, the others are listed one by
    one; a kind that is not configured is not mentioned."""
    by_kind: dict[str, list[Mapping[str, Any]]] = {}
    for one in found:
        by_kind.setdefault(one["kind"], []).append(one)
    for kind, all_of_it in by_kind.items():
        odd = [one for one in all_of_it if one["state"] != "ok"]
        if fine := len(all_of_it) - len(odd):
            yield Finding(f"{kind}s", OK, f"{fine} as {'it' if fine == 1 else 'they'} should be")
        for one in odd:
            status = _STATUS.get(one["state"], WRONG)
            yield Finding(f"{kind} {one['name']}", status, one["problem"], _mend(kind, one))


def _mend(kind: str, one: Mapping[str, Any]) -> str:
    if one["source"] == "verb":
        return command("synapsectl", kind, "remove", one["name"]) + ", and add it again as it should be"
    reload = f"correct it under {_TABLES.get(kind, f'[[{kind}]]')} of config.toml, then 'synapsectl reload'"
    if kind == "sink":
        test = command("synapsectl", "notify", "test", one["name"])
        return f"see what {test} says; or {reload}"
    if kind == "webhook" and one["state"] == "wrong":
        return f"see that it answers, then 'synapsectl reload'; or {reload}"
    return reload


def _environments(ctx: CommandContext, agents: list[dict[str, Any]]) -> Iterator[Finding]:
    """Yields findings for agents that would be started again with sockets or folders of a login that has ended."""
    for agent in agents:
        if agent.get("host") is not None:
            continue
        try:
            gone = ctx.client.get(agent_path(agent["id"], "status"), {"detail": 1}).get("gone")
        except CtlError:
            continue
        if gone:
            lead = "leads" if len(gone) == 1 else "lead"
            detail = f"{agent['name']} is started with {', '.join(gone)}, which {lead} to what is gone"
            yield Finding("environment", NOTE, detail, brings(agent["name"]))


def _stale_entries(ctx: CommandContext) -> list[Path]:
    """Returns stale entries of the registry. A daemon removes them by itself, every few seconds."""
    return [path for path in sorted(ctx.paths.registry.glob("*.json")) if _is_stale(path)]


def _registry(ctx: CommandContext, stale: list[Path]) -> Finding:
    if stale:
        detail = f"entries of programs that are gone: {', '.join(path.stem for path in stale)}"
        return Finding("registry", WRONG, detail, command("rm", stale))
    return Finding("registry", OK, str(ctx.paths.registry))


def _is_stale(path: Path) -> bool:
    pid = _json(path).get("pid")
    if type(pid) is not int or pid <= 0:
        return False  # another program's entry, in a form of its own
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _cgroup(pid: int | None) -> str:
    """Returns the control group; empty if it is unknown."""
    try:
        return Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8")
    except OSError:
        return ""


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(CONNECT_TIMEOUT_S)
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


def _json(path: Path) -> dict[str, Any]:
    try:
        return read_object(path.read_bytes())
    except (OSError, NotJson):
        return {}
