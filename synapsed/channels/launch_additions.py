"""Additions to a launch that make the program report on itself; the user's own configuration is not changed. `plan` is
pure: profile and context to command line, environment and files. `prepare` is the I/O around it."""

import hashlib
import json
import os
import re
import shlex
import shutil
import socket
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from synapsed import own_python
from synapsed.errors import ConfigError
from synapsed.profiles.channel_spec import Channel
from synapsed.profiles.profile import Instructions, McpInjection, Profile
from synapsed.shared.regex import regex

HOOK_CLIENT = (Path(__file__).parent.parent / "hookclient.py").read_bytes()
"""Content of the hook client. Each launch has its own copy: if the installed one were gone, Python would end with 2, an
exit code by which a hook orders the program to block."""
COMPANION = Path(__file__).parent.parent / "companion.py"
COMPANION_S = 15
"""Seconds that a companion (a server of the program's own, started beside it) may take until it listens: usually 0.5 s,
but more than 5 s on a starved machine, and a program that was started without a companion never gets one. A companion
that has ended is not waited for."""
INSTRUCTIONS_FILE = "instructions.md"
"""File in `LaunchContext.launch_dir` with the instructions of the launch."""
_MCP = own_python.command("synapsectl.__main__", "mcp")[1:]
"""Arguments that make `{python}` the MCP server: `{mcp}` in a list, `{mcp_json}` in a text."""
_CONTEXT_FILE = "context.json"
_PLACEHOLDER = regex(
    r"\{(?:(hook|hook_json|decide|decide_json|file|sha256):([\w.-]+)"
    r"|(port|server_socket|agent_dir|launch_dir|inbox|conversation|python|packages|mcp_json|control_socket|instructions|instructions_json))\}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchContext:
    """One launch of one agent. `prepare` saves it, so that a new daemon that adopts the program finds its port."""

    agent_id: str
    agent_dir: Path
    """`Paths.agent(agent_id)`; absolute."""
    hooks_socket: Path
    conversation: str
    """The program's conversation id: of the conversation to continue, or a new UUID for programs that take one."""
    home: Path
    """The program's home directory, which has its transcripts."""
    port: int | None = None
    """A free port for the program's own server; see `needs_port`."""
    python: str = field(default_factory=lambda: sys.executable)
    companion: bool = False
    """The program is started beside a server of its own (`Channel.companion`)."""
    program: str = ""
    """Identity of the program's file: another file has another value (`program_mark`)."""
    chosen_by: tuple[str, ...] = ()
    """The person's own arguments, if they choose the conversation: its id is not known then."""
    began_ns: int = 0
    """CLOCK_MONOTONIC before the program starts: earlier reports of hooks belong to an earlier launch."""

    @property
    def server_socket(self) -> Path:
        """Socket of the companion, in a folder that no other user can enter."""
        return self.hooks_socket.parent / "servers" / self.agent_id / "s"

    @property
    def refused_file(self) -> Path:
        """File that names the program whose server was found to be incompatible, until there is another program."""
        return self.agent_dir / "server.refused"

    @property
    def companion_log(self) -> Path:
        """Log of the companion's standard error."""
        return self.launch_dir / "companion.log"

    @property
    def companion_failed(self) -> Path:
        """File with the reason why the program runs without its companion."""
        return self.launch_dir / "companion.failed"

    @property
    def hooks(self) -> Path:
        """Maildir of the agent's hooks."""
        return self.agent_dir / "hooks"

    @property
    def inbox(self) -> Path:
        """Directory of files that came with messages."""
        return self.agent_dir / "inbox"

    @property
    def decide_socket(self) -> Path:
        """`Paths.decide_socket`, which is beside `hooks_socket`."""
        return self.hooks_socket.with_name("decide.sock")

    @property
    def control_socket(self) -> Path:
        """`Paths.control_socket`, which is beside `hooks_socket`."""
        return self.hooks_socket.with_name("control.sock")

    @property
    def hook_client(self) -> Path:
        """Script that the program's hooks call; see `HOOK_CLIENT`."""
        return self.launch_dir / "hookclient.py"

    @property
    def launch_dir(self) -> Path:
        return self.agent_dir / "launch"

    @classmethod
    def load(cls, agent_dir: Path) -> "LaunchContext":
        """Returns the context of the agent's last launch. Raises OSError or ValueError if none can be read."""
        data = json.loads((agent_dir / "launch" / _CONTEXT_FILE).read_bytes())
        try:
            paths = {name: Path(data[name]) for name in ("agent_dir", "hooks_socket", "home")}
            return cls(**{**data, **paths, "chosen_by": tuple(data.get("chosen_by", ()))})
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"{agent_dir}: not a launch context: {error}") from None

    def dump(self) -> bytes:
        """Returns the bytes that `load` reads."""
        data = {name: str(value) if isinstance(value, Path) else value for name, value in asdict(self).items()}
        return json.dumps(data).encode()


@dataclass(frozen=True, slots=True)
class CompanionPlan:
    """The start of a program beside a server: `server` is the server's command line, `attached` that of the program;
    both have the program's name without its path (`with_companion`)."""

    server: tuple[str, ...]
    attached: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectedLaunch:
    """A start's command and files. `env` is set over its environment; `files` are written, 0600, before the start."""

    argv: tuple[str, ...]
    """Command line of the program alone."""
    companion: "CompanionPlan | None" = None
    """The program's start beside a server."""
    env: Mapping[str, str]
    files: Mapping[Path, bytes]


def needs_port(profile: Profile) -> bool:
    """Returns True if a channel of the profile needs a free port for the program's own server."""
    return any("{port}" in text for channel in profile.channels.values() for text in _texts(channel))


def free_port() -> int:
    """Returns a loopback port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def plan(
    profile: Profile,
    context: LaunchContext,
    *,
    resume: bool,
    args: Sequence[str] = (),
    chosen: bool = False,
    mcp: bool = True,
    instructions: str | None = None,
    taken: Collection[str] = (),
    withheld: Collection[tuple[str, ...]] = (),
    documents: Mapping[str, Mapping[str, Any]] | None = None,
) -> InjectedLaunch:
    """Returns the start of the program. Its command line is: command, arguments that resume (or begin) a conversation,
    the inbox's, the profile's, the channels' in order of rank, those for the MCP server (with `mcp`) and for
    `instructions`, and `args`, the person's own. If these have `chosen` the conversation, no other arguments do; a
    subcommand that does so stays the first, with all that follows it. A variable that is `taken` (set in the person's
    environment) is not set for the MCP server and the instructions: it may name a configuration of the person's. The
    profile's arguments in `withheld` are left out. The person's own `documents` are merged into the launch's files of
    the same names, and win there.

    `resume` goes on with `context.conversation` if the profile has a way. Raises ConfigError, which names the profile's
    file, for an unknown placeholder.
    """
    command, *fixed = profile.argv(context.python)
    for words in withheld:
        fixed = _without(fixed, words)
    beside = context.companion
    channels = sorted(channels_alone(profile), key=lambda channel: channel.rank)
    telling = [] if instructions is None else [profile.instructions]
    injections: list[Channel | McpInjection | Instructions] = [*channels, *([profile.mcp] if mcp else []), *telling]
    also = [] if instructions is None or not (resume or chosen) else [profile.instructions.resumed_files]
    written_for = [*(injection.files for injection in injections), *also]
    names = {name: context.launch_dir / name for files_of in written_for for name in files_of}
    names |= {} if instructions is None else {INSTRUCTIONS_FILE: context.launch_dir / INSTRUCTIONS_FILE}
    expand = _expander(profile, context, names, instructions)
    conversation = profile.resume.args if resume else profile.resume.fresh_args
    leading: Sequence[str] = ()
    if chosen:
        conversation = []
        leading, args = (args, ()) if args and not args[0].startswith("-") else ((), args)
    inbox = profile.delivery.inbox_args
    injected = [text for injection in injections for text in injection.args]
    env = dict(profile.env)
    files: dict[str, dict[str, Any]] = {}
    for injection in injections:
        given = () if isinstance(injection, Channel) else taken
        env |= {name: expand(value) for name, value in injection.env.items() if name not in given}
    for name, content in (item for files_of in written_for for item in files_of.items()):
        files[name] = files.get(name, {}) | _expanded(content, expand)
    files |= {name: merged(files[name], own) for name, own in (documents or {}).items() if name in files}
    written = {name: json.dumps(content, ensure_ascii=False, indent=1).encode() for name, content in files.items()}
    if instructions is not None:
        written[INSTRUCTIONS_FILE] = instructions.encode()

    def line(fixed: Sequence[str], injected: Sequence[str]) -> tuple[str, ...]:
        own = (*leading, *map(expand, conversation), *map(expand, inbox))
        return (command, *own, *fixed, *map(expand, _with_mcp(injected)), *args)

    server = _companion(profile) if beside else None
    return InjectedLaunch(
        argv=line(fixed, injected),
        companion=None
        if server is None
        else _companion_plan(server, line(fixed, _injected(profile, server, injections)), expand),
        env=env,
        files={names[name]: content for name, content in written.items()},
    )


def merged(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """Returns both documents in one: tables are merged, lists are joined; of all other values the person's wins."""
    both = {**ours, **theirs}
    for key in ours.keys() & theirs.keys():
        mine, own = ours[key], theirs[key]
        if isinstance(mine, Mapping) and isinstance(own, Mapping):
            both[key] = merged(mine, own)
        elif isinstance(mine, list) and isinstance(own, list):
            both[key] = [*own, *mine]
    return both


def _without(words: Sequence[str], left_out: Sequence[str]) -> list[str]:
    size = len(left_out)
    at = next((n for n in range(len(words) - size + 1) if list(words[n : n + size]) == list(left_out)), None)
    return list(words) if at is None else [*words[:at], *words[at + size :]]


def _companion(profile: Profile) -> Channel | None:
    """Returns the channel of the profile whose server runs beside the program."""
    return next((channel for channel in profile.channels.values() if channel.companion), None)


def channels_alone(profile: Profile) -> list[Channel]:
    """Returns the channels of a program that is started without a companion."""
    return [
        channel
        for channel in profile.channels.values()
        if not channel.companion and channel.adapter != "app-server"  # only beside its companion
    ]


def replaced_channels(profile: Profile) -> list[str]:
    """Returns the names of the channels that a companion's channel replaces."""
    server = _companion(profile)
    return list(server.replaces) if server is not None else []


def program_mark(path: str) -> str:
    """Returns a mark of the present file of the program at `path`; empty if it cannot be read."""
    try:
        found = Path(path).resolve().stat()
    except OSError:
        return ""
    return f"{Path(path).resolve()} {found.st_size} {found.st_mtime_ns}"


def was_refused(context: LaunchContext) -> bool:
    """Returns True if the same program file's server was found incompatible with its channel. Call it in a thread."""
    try:
        return bool(context.program) and context.refused_file.read_text() == context.program
    except (OSError, ValueError):
        return False


def has_companion(profile: Profile) -> bool:
    """Returns True if the profile's program is started beside a server of its own."""
    return _companion(profile) is not None


def _injected(
    profile: Profile, server: Channel, injections: Sequence[Channel | McpInjection | Instructions]
) -> list[str]:
    """Returns the arguments that are added to the program beside `server`."""
    replaced = [profile.channels[name] for name in server.replaces if name in profile.channels]
    return [*server.args, *(text for each in injections if each not in replaced for text in each.args)]


def _companion_plan(server: Channel, argv: tuple[str, ...], expand: Callable[[str], str]) -> CompanionPlan:
    """Returns the companion's plan: options that the server takes, or that the program may not get, are no longer in
    the program's command line. An option without its value stays, for the program to refuse."""
    kept, taken = list[str](), list[str]()
    words = iter(argv)
    for word in words:
        if word in server.companion_takes:
            value = [*islice(words, 1)]
            (taken if value else kept).extend([word, *value])
        elif any(_has_value(word, option) for option in server.companion_takes):
            taken.append(word)
        elif word == "--":
            kept += [word, *words]
        elif word not in server.companion_drops:
            kept.append(word)
    return CompanionPlan((*(expand(word) for word in server.companion), *taken), tuple(kept))


def _has_value(word: str, option: str) -> bool:
    """Returns True if `word` is the option together with its value: `--config=VALUE`, `-cVALUE`."""
    return word.startswith(f"{option}=" if option.startswith("--") else option) and word != option


def with_companion(context: LaunchContext, launch: InjectedLaunch, program: str) -> tuple[list[str], dict[Path, bytes]]:
    """Returns the command line that starts `program` (its path), and the files it needs besides those of `launch`."""
    alone = [program, *launch.argv[1:]]
    if launch.companion is None:
        return alone, {}
    plan = {
        "socket": str(context.server_socket),
        "companion": [program if word == "{program}" else word for word in launch.companion.server],
        "attached": [program, *launch.companion.attached[1:]],
        "alone": alone,
        "wait_s": COMPANION_S,
        "failed": str(context.companion_failed),
        "log": str(context.companion_log),
    }
    path = context.launch_dir / "companion.json"
    argv = own_python.alone(str(COMPANION), str(path), python=context.python)
    return argv, {path: json.dumps(plan).encode()}


def prepare(context: LaunchContext, launch: InjectedLaunch, more: Mapping[Path, bytes] | None = None) -> None:
    """Makes the agent's directories (0700), empties its maildir and writes the launch's files and `more` (0600). The
    agent's inbox keeps its files. Call it in a thread. Reports of an earlier launch must not count for this launch, and
    after a reboot their times would be wrong. Raises OSError if the disk refuses."""
    context.agent_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    for stale in (context.hooks, context.launch_dir):
        if stale.is_dir():
            shutil.rmtree(stale)
    context.inbox.mkdir(mode=0o700, exist_ok=True)
    for folder in (context.hooks, context.hooks / "tmp", context.hooks / "new", context.launch_dir):
        folder.mkdir(mode=0o700)
    own = {context.launch_dir / _CONTEXT_FILE: context.dump(), context.hook_client: HOOK_CLIENT}
    for path, content in {**launch.files, **(more or {}), **own}.items():
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(content)


def _hook_command(context: LaunchContext, event: str, *, decide: bool = False) -> str:
    own = [str(context.hook_client), str(context.hooks), str(context.hooks_socket), context.agent_id, event]
    if decide:
        own.append(str(context.decide_socket))
    return shlex.join(own_python.alone(*own, python=context.python))


def _expander(
    profile: Profile, context: LaunchContext, files: Mapping[str, Path], instructions: str | None
) -> Callable[[str], str]:
    plain = {
        "port": context.port,
        "server_socket": context.server_socket,
        "agent_dir": context.agent_dir,
        "inbox": context.inbox,
        "conversation": context.conversation,
        "python": context.python,
        "packages": own_python.PACKAGES,
        "mcp_json": json.dumps(_MCP, ensure_ascii=False),
        "control_socket": context.control_socket,
        "launch_dir": context.launch_dir,
        "instructions": instructions,
        "instructions_json": json.dumps(instructions or "", ensure_ascii=False)[1:-1],
    }
    hashed = {name: text for channel in profile.channels.values() for name, text in channel.hashed.items()}

    def replacement(match: re.Match[str]) -> str:
        kind, name, word = match.groups()
        if kind in ("hook", "decide"):
            return _hook_command(context, name, decide=kind == "decide")
        if kind in ("hook_json", "decide_json"):
            command = _hook_command(context, name, decide=kind == "decide_json")
            return json.dumps(command, ensure_ascii=False)[1:-1]
        value = {"file": files, "sha256": hashed}[kind].get(name) if kind else plain[word]
        if value is None:
            raise ConfigError(f"{profile.source}: {match[0]} names nothing that the profile has", file=profile.source)
        return hashlib.sha256(expand(str(value)).encode()).hexdigest() if kind == "sha256" else str(value)

    def expand(text: str) -> str:
        return _PLACEHOLDER.sub(replacement, text)

    return expand


def _with_mcp(words: Iterable[Any]) -> list[Any]:
    return [each for word in words for each in (_MCP if word == "{mcp}" else [word])]


def _expanded(value: Any, expand: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return expand(value)
    if isinstance(value, Mapping):
        return {key: _expanded(item, expand) for key, item in value.items()}
    if isinstance(value, list):
        return [_expanded(item, expand) for item in _with_mcp(value)]
    return value


def _texts(channel: Channel) -> Iterable[str]:
    yield from channel.args
    yield from channel.env.values()
    yield from channel.hashed.values()
    yield json.dumps(channel.files)
