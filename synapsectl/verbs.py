"""The verbs, each with its module and its purpose; and the overview of them, which `synapsectl -h` shows."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from synapsectl.output import PROGRAM, UNBROKEN, fold


class Verb(NamedTuple):
    """A verb."""

    module: str
    """Name of a module of `package`; `module:name` is an object in a module that several verbs share."""
    help: str
    group: str
    package: str = "synapsectl.commands"
    after: str = ""
    """The verb after which a part's verb is listed in the overview."""
    completes: "Mapping[str, tuple[str, str, str] | str] | None" = None
    """Sources of the possible words of its command line, by sub-verb and metavar (`remove NAME`). A value is a path of
    the daemon, with the keys of the words there and of their descriptions; or, as `module:name`, a function that
    returns words, each with its description."""

    @property
    def full_module(self) -> str:
        """Returns the name with its package, and without the object's name."""
        return f"{self.package}.{self.module.partition(':')[0]}"

    def load(self) -> Any:
        """Returns the module or object with the verb's `configure` and `run`, or its `SUBVERBS`."""
        found, name = import_module(self.full_module), self.module.partition(":")[2]
        return getattr(found, name) if name else found

    def source(self, word: str) -> "tuple[str, str, str] | Callable[[], Iterable[tuple[str, str]]] | None":
        """Returns what `completes` has for the word, with its function loaded."""
        found = (self.completes or {}).get(word)
        if not isinstance(found, str):
            return found
        module, _, name = found.partition(":")
        return getattr(import_module(f"{self.package}.{module}"), name)  # type: ignore[no-any-return]

    def examples(self) -> "Sequence[tuple[str, str]]":
        """Returns command lines, each with its purpose: `EXAMPLES` of the module, by name if several verbs share it."""
        name = self.module.partition(":")[2]
        found: Any = import_module(self.full_module).EXAMPLES
        told: Sequence[tuple[str, str]] = found[name] if name else found
        return told


class DaemonVerb(NamedTuple):
    """A verb of `synapsed`, in a part's table `DAEMON_VERBS`."""

    module: str
    """Name of its module, which has `configure`, for its parser, and `run`, which gets the parsed arguments and
    `Surroundings`; `run` may raise SynapsedError, and returns True if something has failed that it has reported
    itself."""
    help: str
    log: str = ""
    """Name of its log, for a verb that serves until SIGTERM or SIGINT."""
    internal: bool = False
    """True if it is for `synapsectl` only. It reports errors as JSON, too, like each verb with `--json`."""
    reads: tuple[str, ...] = ()
    """Values of its argument `what` with which it writes nothing, so that root may ask for them, too."""


class Surroundings(NamedTuple):
    """Things that the daemon gives to a part's verb of `synapsed`: its paths, a function that reads the configuration,
    the notifier of the service manager, and a function that returns the files in place of built-in profiles."""

    paths: Any
    configuration: Callable[[], Any]
    notifier: Any
    stand_ins: Callable[[], Mapping[str, Any]]


AGENTS = "agents"
LOOKING = "what they do"
MESSAGES = "messages and answers"
ELSEWHERE = "agents elsewhere, and programs"
DAEMON = "the daemon and this tool"
GROUPS = (AGENTS, LOOKING, MESSAGES, ELSEWHERE, DAEMON)
"""Groups in the order of the overview; another group of a part comes after them."""

VERBS = {
    "start": Verb("start", "start an agent", AGENTS),
    "run": Verb("run", "start an agent and attach to it", AGENTS),
    "adopt": Verb("adopt", "start an agent on an earlier conversation of its program", AGENTS),
    "stop": Verb("each:stop", "stop agents and everything they started", AGENTS),
    "restart": Verb("each:restart", "stop agents and start them again in their conversation", AGENTS),
    "park": Verb("each:park", "end idle agents' programs until the next message", AGENTS),
    "kill": Verb("each:kill", "kill agents' programs; their restart policy applies", AGENTS),
    "list": Verb("list_", "list the agents and what they do", LOOKING),
    "status": Verb("status", "show one agent closely, or the daemon", LOOKING),
    "inbox": Verb("inbox:inbox", "show who needs you, and answer with one key", LOOKING),
    "next": Verb("inbox:next_", "attach to the agent that has waited longest for you", LOOKING),
    "top": Verb("top", "show all agents at once: screens, questions, tasks, events", LOOKING),
    "attach": Verb("attach", "put this terminal on an agent", LOOKING),
    "screen": Verb("screen", "show an agent's screen", LOOKING),
    "logs": Verb("logs", "show what an agent printed", LOOKING),
    "events": Verb("events", "show what happens, as it happens", LOOKING),
    "send": Verb("send", "send a message to agents, and wait for the answers", MESSAGES),
    "reply": Verb("reply", "reply to what this agent was asked", MESSAGES),
    "tasks": Verb("tasks", "list the messages and what became of them", MESSAGES),
    "task": Verb("task", "show one task, with its answer", MESSAGES),
    "input": Verb("input_", "answer what an agent asks", MESSAGES),
    "approve": Verb("decide:approve", "answer yes to what an agent asks", MESSAGES),
    "deny": Verb("decide:deny", "answer no to what an agent asks", MESSAGES),
    "keys": Verb("keys", "press keys at an agent's terminal", MESSAGES),
    "cancel": Verb("cancel", "cancel a task, or interrupt an agent", MESSAGES),
    "event": Verb("event", "report what an agent does, as an event", MESSAGES),
    "mcp": Verb("mcp", "give an agent's program its tools, as an MCP server", ELSEWHERE),
    "profiles": Verb("profiles", "list, check and write the kinds of agents that can be started", DAEMON),
    "reload": Verb("reload", "read the configuration again and do what changed", DAEMON),
    "up": Verb("up", "bring the daemon back, and say which agents live", DAEMON),
    "shutdown": Verb("shutdown", "stop the daemon", DAEMON),
    "install": Verb("install", "make the daemon a service of your session", DAEMON),
    "uninstall": Verb("uninstall", "remove that service", DAEMON),
    "upgrade": Verb("upgrade", "say what is newer, and what an upgrade does to what runs", DAEMON),
    "doctor": Verb("doctor", "check the installation and suggest fixes", DAEMON),
    "completion": Verb("completion", "print a completion script for a shell", DAEMON),
    "version": Verb("version", "print the versions of the tool and of the daemon", DAEMON),
    "help": Verb("help_", "show this overview, or more of one verb", DAEMON),
}
"""Verbs that need no part; `verbs` has all."""

ALIASES = {"ls": "list"}
QUICK_VERBS = frozenset({"list", "inbox", "attach"})
"""Verbs that have in `QUICK`, for some command lines, the parser's result."""


PURPOSE = "keeps agents on the command line running, and talks to them"

SYNONYMS = {
    "ask": "send",
    "connect": "attach",
    "detach": "attach",
    "interrupt": "cancel",
    "log": "logs",
    "new": "start",
    "open": "attach",
    "ps": "list",
    "resume": "adopt",
    "rm": "stop --remove",
    "remove": "stop --remove",
    "spawn": "start",
    "tell": "send",
    "update": "upgrade",
    "down": "shutdown",
    "no": "deny",
    "yes": "approve",
}
"""Words of people who come from other tools, and the verb that they mean."""

RELEASED = {
    "acp": "editors",
    "diff": "worktrees",
    "external": "elsewhere",
    "fleet": "fleet",
    "history": "history",
    "host": "elsewhere",
    "notify": "attention",
    "report": "profile_tools",
    "schedule": "schedules",
    "usage": "history",
    "web": "web",
    "devices": "web",
    "token": "web",
    "worktree": "worktrees",
    **{f"profiles {word}": "profile_tools" for word in ("show", "check", "new", "try", "key", "bundle", "update")},
}
"""Verbs of parts, with the part of each: for the error if it is not installed."""

NEEDS = {"inbox": "attention", "next": "attention", "top": "attention"}
"""Verbs of this tool that need a part."""

OPTIONS = {"fleet": "fleet", "worktree": "worktrees"}
"""Options of this tool's verbs that need a part."""


@cache
def verbs() -> dict[str, Verb]:
    """Returns all verbs except those of parts of other distributions, in the order of the overview."""
    found = dict(VERBS)
    for package in _here("verbs"):
        found = with_part(found, package)
    return found


def packages_with(module: str) -> list[str]:
    """Returns the packages for this tool, of all parts, that have the module `module`."""
    return [*_here(module), *_outside(module)]


def _here(module: str) -> list[str]:
    """Returns the packages of `packages_with` for parts in this distribution."""
    from synapsed.parts import __path__ as parts
    from synapsed.parts.list import NAMES

    files = {part: os.path.join(parts[0], part, "ctl", f"{module}.py") for part in NAMES}  # noqa: PTH118 - without pathlib
    return [f"synapsed.parts.{part}.ctl" for part, file in files.items() if os.path.isfile(file)]  # noqa: PTH113 - as above


def is_installed(part: str) -> bool:
    """Returns True if a part is there. Other distributions are searched only if the part is no folder of this one."""
    from synapsed.parts import __path__ as parts

    if os.path.isfile(os.path.join(parts[0], part, "face.py")):  # noqa: PTH113, PTH118 - without pathlib
        return True
    from synapsed.parts.outside import packages

    return part in packages()


@cache
def all_verbs() -> dict[str, Verb]:
    """Returns all verbs. A part of another distribution whose verbs cannot be loaded adds none."""
    found = verbs()
    for package in _outside("verbs"):
        with suppress(Exception):
            found = with_part(found, package)
    return found


def daemon_verbs() -> dict[str, DaemonVerb]:
    """Returns the verbs that parts add to `synapsed`."""
    found: dict[str, DaemonVerb] = {}
    for package in packages_with("verbs"):
        with suppress(Exception):
            found = getattr(import_module(f"{package}.verbs"), "DAEMON_VERBS", {}) | found
    return found


def _outside(module: str) -> list[str]:
    """Returns the packages of `packages_with` for parts of other distributions."""
    from importlib.util import find_spec

    from synapsed.parts.outside import packages

    ours = []
    for package in packages().values():
        with suppress(Exception):
            ours += [f"{package}.ctl"] if find_spec(f"{package}.ctl.{module}") is not None else []
    return ours


def with_part(found: dict[str, Verb], package: str) -> dict[str, Verb]:
    """Returns the verbs with those of a part, each in its group and after the verb that it names."""
    rows = list(found.items())
    for name, verb in import_module(f"{package}.verbs").VERBS.items():
        if name not in found:
            names = [one for one, _ in rows]
            place = names.index(verb.after) + 1 if verb.after in names else len(names)
            rows.insert(place, (name, verb._replace(package=package)))
    return dict(sorted(rows, key=lambda row: GROUPS.index(row[1].group) if row[1].group in GROUPS else len(GROUPS)))


def subverbs_of_parts(module: str) -> dict[str, Any]:
    """Returns the sub-verbs that parts add to the verb in that module of this tool."""
    found: dict[str, Any] = {}
    for package in packages_with("verbs"):
        with suppress(Exception):  # as in `all_verbs`
            if (added := getattr(import_module(f"{package}.verbs"), "SUBVERBS", {}).get(module)) is not None:
                found = import_module(f"{package}.{added}").SUBVERBS | found
    return found


def overview(columns: int | None = None) -> str:
    """Returns the verbs by their groups, in lines that break at words if a terminal has fewer `columns`."""
    lines = [f"usage: {PROGRAM} VERB …"]
    width = columns or UNBROKEN
    group = None
    for name, verb in all_verbs().items():
        if verb.group != group:
            group = verb.group
            lines += ["", f"{group}:"]
        lines.append(fold(f"  {name:<12}{verb.help}", width, indent=14))
    ends = (
        "",
        f"'{PROGRAM} VERB -h' tells more of one, with examples.",
        "Where no daemon runs, start, run, adopt, send, host add and up start one.",
        "",
        f"Begin with '{PROGRAM} start claude' in a folder of yours.",
        f"No account at hand: '{PROGRAM} start dummy', a scripted agent.",
    )
    lines += [fold(line, width) for line in ends]
    return "\n".join(lines) + "\n"
