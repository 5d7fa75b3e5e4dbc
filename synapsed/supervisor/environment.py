"""Makes the inputs of an agent's launch: its environment, its program and its conversation.

The environment is the caller's whole one (kept in the database, 0600, for restarts) or the daemon's, without the
leftovers (`synapsed.process.inherited`), plus the agent's own variables. Of these, the later one wins: base, the
profile's `env`, the agent's `env`, the agent's identity.

An `env_file` has variables in lines of `NAME=value`, as shells and service managers read them.

A later shell may bring variables to an agent: those of its connection (such as SSH_AUTH_SOCK), as with tmux's
`update-environment`, or all. `renewed` decides this; `gone` looks at the sockets and folders that an environment names.
Everything is pure, except that PATH, sockets, folders and files of variables are looked at.
"""

import errno
import hashlib
import hmac
import os
import re
import shutil
import socket
import stat
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from synapsed.agents.conversations import ASKED_ANEW
from synapsed.config.config import EnvironmentConfig
from synapsed.errors import ConfigError, ProgramNotFound
from synapsed.interfaces import Bringing
from synapsed.keepers.launch_plan import LaunchPlan
from synapsed.model.records import AgentRecord
from synapsed.process.inherited import CONNECTION, activated, inherited, select, without
from synapsed.profiles.profile import Profile
from synapsed.shared.regex import regex

PLACES = (
    "CONDA_PREFIX",
    "DBUS_SESSION_BUS_ADDRESS",
    "I3SOCK",
    "KRB5CCNAME",
    "NIRI_SOCKET",
    "SSH_AUTH_SOCK",
    "SWAYSOCK",
    "TMPDIR",
    "VIRTUAL_ENV",
    "WAYLAND_DISPLAY",
    "WSL_INTEROP",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
)
"""Variables that name something in the file system; `place_of` returns the path."""

_CACHES = ("FILE:", "DIR:")


def renewed(
    record: AgentRecord,
    env: Mapping[str, str],
    bringing: Bringing,
    *,
    own: Mapping[str, str],
    update: Iterable[str],
    is_gone: Callable[[Mapping[str, str]], set[str]],
) -> dict[str, Any]:
    """Returns the fields of `record` that change when a shell with `env` brings its variables; `own` is the daemon's
    environment, `update` the variables besides the connection.

    A variable that the shell lacks stays. A dead value, whose path does not exist or whose socket has no listener, does
    not replace a live one. With `missing`, for a shell that perhaps is not a person's, only dead values are replaced,
    and only by live ones. An agent that was started with the daemon's environment on purpose takes no connection."""
    if bringing == "all":
        return {"env": dict(env), "connection": {}}
    if record.env is None and not record.from_config:
        return {}
    stored = {**(own if record.env is None else record.env), **record.connection}
    brought = {name: value for name, value in select(env, (*CONNECTION, *update)).items() if stored.get(name) != value}
    if not brought:
        return {}
    stale, dead = is_gone(stored), is_gone(env)
    if bringing == "missing":
        brought = {name: value for name, value in brought.items() if name in stale - dead}
    else:
        brought = {
            name: value for name, value in brought.items() if name not in dead or name in stale or name not in stored
        }
    return {"connection": {**record.connection, **brought}} if brought else {}


def place_of(name: str, environ: Mapping[str, str]) -> str | None:
    """Returns the path that variable `name` names; None if it names no path."""
    value = environ.get(name, "")
    match name:
        case "DBUS_SESSION_BUS_ADDRESS":
            value = value.removeprefix("unix:path=").partition(",")[0].partition(";")[0]
        case "KRB5CCNAME":
            value = next((value.removeprefix(kind) for kind in _CACHES if value.startswith(kind)), value)
        case "WAYLAND_DISPLAY" if value and not value.startswith("/"):
            value = f"{environ.get('XDG_RUNTIME_DIR', '')}/{value}"
    return value if value.startswith("/") else None


def gone(environ: Mapping[str, str]) -> set[str]:
    """Returns the names of the variables that lead to nothing any more: to no file, or to a socket without a listener.
    Blocks: call it in a thread."""
    return {name for name in PLACES if (path := place_of(name, environ)) is not None and _is_gone(path)}


def _is_gone(path: str) -> bool:
    try:
        listens = stat.S_ISSOCK(os.stat(path).st_mode)  # noqa: PTH116 - text, as the environment has it
    except OSError as error:
        return error.errno in (errno.ENOENT, errno.ENOTDIR)
    except ValueError:  # no path can have such a value
        return True
    if not listens:
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            return probe.connect_ex(path) == errno.ECONNREFUSED
        except OSError:  # the path is too long for an address
            return False


TERMINAL = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
"""Variables of the agent's terminal, the emulator behind its PTY."""

HERE = ("localhost", "127.0.0.1", "::1")
"""Names of this machine that programs understand in NO_PROXY. (Python's httpx fails on `[::1]`.)"""


def agent_token(control_token: str, agent_id: str, generation: str = "") -> str:
    """Returns the agent's SYNAPSE_AGENT_TOKEN, derived from the control token, so that no secret has to be stored. A
    former agent with the same id had another token, because of the record's `generation`."""
    whose = ":".join(("agent", agent_id, *([generation] if generation else [])))
    return hmac.new(control_token.encode(), whose.encode(), hashlib.sha256).hexdigest()


def agent_environment(
    record: AgentRecord,
    profile: Profile,
    *,
    own: Mapping[str, str],
    endpoint: str,
    control_socket: Path,
    token: str,
    tool_dir: Path | None,
    rules: EnvironmentConfig,
) -> dict[str, str]:
    """Returns the environment of `record`'s program. `own` is the daemon's; `tool_dir` has synapsectl."""
    base = {**(own if record.env is None else record.env), **record.connection}
    env = without(travelling(base, rules), profile.unset_env)
    env |= TERMINAL
    env |= profile.env
    env |= record.extra_env
    env |= past_proxies(env)
    env |= {
        "PWD": record.cwd,
        "SYNAPSE_AGENT_ID": record.id,
        "SYNAPSE_AGENT_NAME": record.name,
        "SYNAPSE_AGENT_TYPE": record.profile,
        "SYNAPSE_ENDPOINT": endpoint,
        "SYNAPSE_CONTROL_SOCKET": str(control_socket),
        "SYNAPSE_AGENT_TOKEN": token,
    }
    path = env.get("PATH") or os.defpath
    if tool_dir is not None and str(tool_dir) not in path.split(os.pathsep):
        path = f"{path}{os.pathsep}{tool_dir}"  # at the end: it must not hide anything of the user's
    env["PATH"] = path
    return env


def stored(record: AgentRecord, *, own: Mapping[str, str], rules: EnvironmentConfig) -> dict[str, str]:
    """Returns the variables among `PLACES` that the agent's next program gets."""
    base = {**(own if record.env is None else record.env), **record.connection}
    return {**travelling(select(base, PLACES), rules), **record.extra_env}


def travelling(environ: Mapping[str, str], rules: EnvironmentConfig) -> dict[str, str]:
    """Returns the part of a shell's environment, or of the daemon's, that goes to an agent."""
    return inherited(environ, own=sys.prefix, keep=rules.keep, drop=rules.drop)


def brought(record: AgentRecord, env: Mapping[str, str]) -> list[str]:
    """Returns the names of the shell's variables in `env`, its program's environment, that decide which code runs."""
    return [name for name in activated(env) if name in (record.env or ()) and name not in record.extra_env]


def past_proxies(env: Mapping[str, str]) -> dict[str, str]:
    """Returns variables that keep requests to this machine, such as those to SYNAPSE_ENDPOINT, away from the proxies of
    `env`: both spellings of NO_PROXY, extended. Empty if `env` names no proxy."""
    if not any(name.lower().endswith("_proxy") and name.lower() != "no_proxy" and env[name] for name in env):
        return {}
    large, small = env.get("NO_PROXY", ""), env.get("no_proxy", "")
    return {"NO_PROXY": _with_here(large or small), "no_proxy": _with_here(small or large)}


def _with_here(told: str) -> str:
    known = re.findall(r"[^\s,]+", told)
    return told if "*" in known else ",".join(dict.fromkeys([*known, *HERE]))


def find_program(command: str, *, cwd: str, env: Mapping[str, str], profile: str, install: str = "") -> str:
    """Returns the absolute path of `command`, seen from `cwd` with the PATH of `env`; `install` is a command that
    installs it. Raises ProgramNotFound."""
    path = env.get("PATH", os.defpath)
    if "/" in command:
        candidate = Path(cwd, Path(command).expanduser())
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return str(candidate)
        raise ProgramNotFound(
            f"{candidate} is not a program that can be run; correct 'command' of the agent or of profile {profile!r}",
            program=command,
        )
    if (found := shutil.which(command, path=path)) is not None:
        return str(Path(cwd, found))
    raise ProgramNotFound(
        f"{command!r} was not found on PATH ({path}): install it{f' ({install})' if install else ''}, start the agent "
        f"from a shell that finds it, or give its absolute path as 'command' of the agent or of profile {profile!r}",
        program=command,
        path=path,
    )


LAST_CONVERSATION = "last"
"""The id on record for a program that continues its last conversation without an id."""


def launch_plan(record: AgentRecord, profile: Profile, *, program: str, env: dict[str, str]) -> LaunchPlan:
    """Returns the plan of a launch, which continues the conversation on record or begins a new one. If the person's own
    arguments choose a conversation, they do so only at the first start: after that, it is on record."""
    resume, conversation, args = profile.resume, record.conversation, tuple(record.args)
    resumed = profile.resumes and conversation is not None
    if resumed or record.conversation_note == ASKED_ANEW:
        args = tuple(resume.without_choice(args))
    chosen = not resumed and resume.chosen_by(args)
    if chosen:
        conversation = None
    elif not resumed:
        conversation = None
        if names_conversation(resume.fresh_args):
            conversation = str(uuid4())
        elif resume.args and not resume.needs_conversation and not names_conversation(resume.args):
            conversation = LAST_CONVERSATION
    return LaunchPlan(program=program, env=env, conversation=conversation, resumed=resumed, args=args, chosen=chosen)


def names_conversation(args: Sequence[str]) -> bool:
    """Returns True if the arguments have a place for a conversation's id."""
    return any("{conversation}" in arg for arg in args)


SIZE_MAX = 1 << 20
"""Largest size of an `env_file` in bytes."""

_LINE = regex(r"(?:export\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)=(?P<value>.*)")


def with_env_file(record: AgentRecord, env_file: str | None, base: Path) -> AgentRecord:
    """Returns `record` with the variables of `env_file` (`~` allowed, relative to `base`), which the record's own
    variables override. Raises ConfigError."""
    if env_file is None:
        return record
    found = read_env_file(base / Path(env_file).expanduser())
    return record.model_copy(update={"extra_env": {**found, **record.extra_env}})


def read_env_file(path: Path) -> dict[str, str]:
    """Returns the variables of `path`. Empty lines and those that begin with `#` are ignored; a value in quotes is the
    text between them. Nothing is expanded. Raises ConfigError, which names file and line and never shows a value."""
    try:
        if path.stat().st_size > SIZE_MAX:
            raise ConfigError(f"{path}: more than {SIZE_MAX} bytes are no file of variables", file=str(path))
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"env_file {path}: {error}", file=str(path)) from None
    found = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        match = _LINE.fullmatch(text)
        if match is None or "\0" in text:
            raise ConfigError(f"{path}:{number}: a line is NAME=value", file=str(path))
        found[match["name"]] = _unquoted(match["value"])
    return found


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value
